"""Whether a page can be used by everybody: what the keyboard reaches, and what axe finds."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until that has the focus. What a page shows again meanwhile may take the focus along: it goes round."""
    expect(wanted).to_be_visible()  # the page is there, and not the one before it
    if page.locator("[data-refresh]").count():
        # With its stream a page shows everything again; on a busy machine that is as late as the focus.
        expect(page.locator("#live")).to_have_text("Live")
    for _ in range(200):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            break
    expect(wanted).to_be_focused()


# Of all that is well it tells only what it looked for.
BRIEFLY = {"resultTypes": ["violations"]}


def violations(axe: Axe, page: Page) -> list[dict[str, Any]]:
    """What axe finds."""
    response = axe.run(page, options=BRIEFLY).response
    assert response["passes"]
    found: list[dict[str, Any]] = response["violations"]
    return found


def weak_contrasts(page: Page) -> list[dict[str, Any]]:
    """Those that axe finds, once ``violations`` has brought it to the page: all else is the same in the dark."""
    response = page.evaluate("options => axe.run(options)", BRIEFLY | {"runOnly": ["color-contrast"]})
    assert response["passes"]
    found: list[dict[str, Any]] = response["violations"]
    return found
