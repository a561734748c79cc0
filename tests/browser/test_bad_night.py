"""The bad night that pictures are taken of: its tasks are valid, and each page shows it on a narrow screen, too."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.bad_night import STAYING, BadNight, configuration
from tests.browser.conftest import NARROW, Complaints, Desktop
from tests.browser.pictures import FORMS, PAGES, TASKS
from tests.e2e.site import Site, open_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    with open_site(root, **configuration(root)) as site:
        yield site


def test_its_tasks_are_valid(site: Site) -> None:
    names = [task.name for task in BadNight(site).tasks()]
    assert len(names) == len(set(names)) > 300
    assert {name for entry in (*TASKS, *FORMS) for name in entry.split("/")[:1]} <= set(names)


@pytest.mark.nights
def test_no_page_sticks_out_of_a_narrow_screen_after_it(site: Site, browser: Browser) -> None:
    desktop = Desktop(site, BadNight(site).play(), browser, Complaints())
    desktop.complaints.expect("status of 404", "status of 422")
    counts = desktop.daemon.client.status().counts
    assert counts["FAILED"] > 40
    assert counts["RUNNING"] == STAYING
    page = desktop.page(viewport=NARROW)
    wide = []
    for path in (*PAGES, *(f"/tasks/{name}" for name in (*TASKS, *FORMS))):
        answer = page.goto(desktop.url + path)
        assert answer is not None
        assert answer.status < 500, path
        wide += [path] * page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert wide == []
    page.context.close()
    assert desktop.complaints.unexpected() == []
