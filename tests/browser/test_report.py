"""/report: its span is chosen on the viewer's clock, or, without scripts, on the operator's."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, Desktop
from tests.browser.reaching import violations


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_times_are_on_the_clock_of_the_viewer_and_stay_in_their_fields(lasting_desktop: Desktop) -> None:
    page = lasting_desktop.page("/report")
    page.get_by_label("From").fill("2026-07-01T22:00")
    page.get_by_label("to", exact=True).fill("2026-07-02T08:00")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/report?since=*")
    assert asked(page) == {"since": ["2026-07-01T20:00:00.000Z"], "until": ["2026-07-02T06:00:00.000Z"]}
    expect(page.get_by_label("From")).to_have_value("2026-07-01T22:00")
    expect(page.get_by_text("1 Jul 22:00 CEST to 2 Jul 08:00 CEST")).to_be_visible()
    assert violations(page) == []


def test_a_span_is_chosen_on_a_narrow_screen_without_scripts(lasting_desktop: Desktop) -> None:
    page = lasting_desktop.page("/report", viewport=NARROW, java_script_enabled=False)
    page.get_by_label("From").fill("2026-07-01T22:00")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("From")).to_have_value("2026-07-01T22:00")
    assert asked(page) == {"since": ["2026-07-01T22:00"]}
    page.get_by_role("link", name="Last night").click()
    expect(page.locator("strong", has_text="Last night")).to_be_visible()
    for element in (page.get_by_label("From"), page.get_by_label("to", exact=True), page.locator(".spans").first):
        box = element.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= NARROW["width"]
