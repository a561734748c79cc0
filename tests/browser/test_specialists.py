"""Specialists by hand on the page: found, shared, changed and removed."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NARROW, Desktop
from tests.browser.reaching import tab_to, violations
from tests.fakes.cards import card

PLUMBER = card("plumber", description="Fixes leaks.", system_prompt="You fix leaks.\n\nProve it.", visibility="shared")


@pytest.fixture
def desktop(lasting_desktop: Desktop) -> Desktop:
    """One daemon: a test begins with the specialist as it wants it, and none leaves a task."""
    return lasting_desktop


def test_one_is_found_and_shared_by_keyboard(desktop: Desktop) -> None:
    client = desktop.daemon.client
    client.register_specialist(PLUMBER)
    page = desktop.page()
    page.get_by_role("link", name="Specialists", exact=True).click()
    page.wait_for_url("**/specialists")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("leaks")
    page.keyboard.press("Enter")
    page.wait_for_url("**/specialists?q=leaks")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="plumber", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/specialists/plumber")
    tab_to(page, page.get_by_label("Name of a token"))
    page.keyboard.type("org:bolt")
    page.keyboard.press("Enter")
    revoke = page.get_by_role("button", name="Revoke the grant of org:bolt")
    expect(revoke).to_be_visible()
    assert client.specialist("plumber").grants == ("org:bolt",)
    tab_to(page, revoke)
    page.keyboard.press("Enter")
    expect(revoke).to_have_count(0)
    assert client.specialist("plumber").grants == ()


def test_who_edits_what_has_changed_sees_both(desktop: Desktop) -> None:
    desktop.complaints.expect("status of 412")
    client = desktop.daemon.client
    client.register_specialist(PLUMBER)
    page = desktop.page("/specialists/plumber")
    page.get_by_role("link", name="Edit…").click()
    text = page.get_by_label("Card, in YAML")
    mine = text.input_value().replace("Fixes leaks.", "Fixes what drips.")
    text.fill(mine)
    client.register_specialist(PLUMBER.model_copy(update={"keywords": ("burst pipe",)}))
    page.get_by_role("button", name="Save the card").click()
    expect(page.get_by_role("alert")).to_contain_text("Changed in the meantime")
    expect(page.get_by_role("region", name="The card as it is now")).to_contain_text("burst pipe")
    expect(text).to_have_value(mine)
    page.get_by_role("button", name="Save the card").click()
    page.wait_for_url("**/specialists/plumber")
    expect(page.get_by_text("Fixes what drips.", exact=True)).to_be_visible()
    assert client.specialist("plumber").content == PLUMBER.model_copy(update={"description": "Fixes what drips."})


def test_one_is_registered_and_removed(desktop: Desktop) -> None:
    desktop.complaints.expect("status of 422")
    page = desktop.page("/specialists")
    page.get_by_text("Register a specialist").click()
    text = page.get_by_label("Card, in YAML")
    text.fill("id: painter\n")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("alert")).to_contain_text("description: is missing")
    text.fill("id: painter\ndescription: Paints.\n")
    page.get_by_role("button", name="Register").click()
    page.wait_for_url("**/specialists/painter")
    page.get_by_role("link", name="Remove…").click()
    expect(page.get_by_role("heading", name="Remove painter?")).to_be_visible()
    assert desktop.daemon.client.specialist("painter").description == "Paints."
    page.get_by_role("button", name="Remove the specialist").click()
    page.wait_for_url("**/specialists")
    expect(page.get_by_role("link", name="painter", exact=True)).to_have_count(0)


def test_who_would_do_it_is_asked_by_keyboard(desktop: Desktop) -> None:
    message = "The nightly dump of the orders database fails. Restore the last one, and find out why."
    page = desktop.page(viewport=NARROW)
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Routing").click()
    page.wait_for_url("**/routing")
    page.keyboard.press("/")
    text = page.get_by_label("Instructions of the task")
    expect(text).to_be_focused()
    page.keyboard.type(message)
    tab_to(page, page.get_by_role("button", name="Ask"))
    page.keyboard.press("Enter")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("would go to database-administrator")
    expect(answer.get_by_role("row", name="database-administrator")).to_contain_text("chosen")
    expect(text).to_have_value(message)
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    assert violations(page) == []
    assert not list(desktop.daemon.client.all_tasks())
    answer.get_by_role("link", name="database-administrator").click()
    expect(page.get_by_role("heading", name="Database administrator")).to_be_visible()
