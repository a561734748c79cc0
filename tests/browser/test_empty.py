"""Pages of a daemon that has nothing yet: each offers a next step, and is for everybody."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NARROW, Desktop
from tests.browser.reaching import violations, weak_contrasts

PLACES = ("/", "/report", "/night", "/agents", "/repositories", "/schedules", "/notices", "/channels", "/decisions")


def test_a_page_without_anything_is_for_everybody(desktop: Desktop) -> None:
    page = desktop.page(viewport=NARROW, reduced_motion="reduce")
    passed, results = set[str](), list[str]()
    for path in PLACES:
        page.goto(desktop.url + path)
        widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        results += [] if widths[0] == widths[1] else [f"{path} is {widths} wide"]
        results += [f"{path}: {item['id']}" for item in violations(page, without=["color-contrast"])]
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            results += [f"{path}, {scheme}: {text}" for text in weak_contrasts(page, passed)]
    assert results == []


@pytest.mark.parametrize(
    ("path", "step"),
    [("/", "Write one here"), ("/repositories", "Write a task"), ("/night", "What is waiting")],
)
def test_an_empty_page_leads_on(desktop: Desktop, path: str, step: str) -> None:
    expect(desktop.page(path).get_by_role("link", name=step)).to_be_visible()
