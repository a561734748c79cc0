"""Logging in and out in a browser."""

import re

from playwright.sync_api import expect

from claudomator_py.resources.access.cli import write_login_page
from tests.browser.conftest import Desktop
from tests.e2e.daemon import Daemon
from tests.patience import wait_until


def test_a_code_lets_a_browser_in_once(desktop: Desktop) -> None:
    desktop.complaints.expect("status of 401", "status of 403")
    page = desktop.context().new_page()
    assert page.goto(desktop.url) is not None
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(page.get_by_text("claudomator open")).to_be_visible()
    link = desktop.url + desktop.daemon.client.login_code().path
    page.goto(link)
    # A browser moves the focus with the first frame it draws, which may come after `load`.
    expect(page.get_by_role("button", name="Log in")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{desktop.url}/")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    cookie = page.context.cookies()[0]
    assert cookie.get("name") == f"claudomator_{desktop.url.rpartition(':')[2]}"
    assert cookie.get("httpOnly")
    assert cookie.get("sameSite") == "Strict"

    other = desktop.context().new_page()
    other.goto(link)
    other.get_by_role("button", name="Log in").click()
    expect(other.get_by_role("alert")).to_contain_text("no longer valid")
    other.goto(desktop.url)
    expect(other.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_file_leads_a_browser_to_the_login(desktop: Desktop) -> None:
    """As `claudomator open` writes it; the browser says then that the link is on a page of another site."""
    page = desktop.context().new_page()
    page.goto(write_login_page(desktop.site.state, desktop.daemon.client.login_code().url).as_uri())
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{desktop.url}/")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()


def test_logging_out(desktop: Desktop) -> None:
    desktop.complaints.expect("status of 401")
    desktop.complaints.expect("Status Error Code 401")
    page = desktop.page()
    (cookie,) = page.context.cookies()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    # The end of its event stream may tell the page before the answer to the button does.
    wait_until(lambda: page.context.cookies() == [], "the cookie to be gone")
    page.context.add_cookies([{"name": cookie["name"], "value": cookie["value"], "url": desktop.url}])
    page.goto(desktop.url)
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert page.context.cookies() == []


def test_the_session_outlives_a_restart_of_the_daemon(desktop: Desktop) -> None:
    page = desktop.page()
    desktop.restart(Daemon.stop)
    page.reload()
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()


def test_the_link_leads_to_the_name_of_the_pages_wherever_it_is_opened(desktop: Desktop) -> None:
    desktop.complaints.expect("status of 401")
    page = desktop.context().new_page()
    page.goto(f"http://{desktop.address}{desktop.daemon.client.login_code().path}")
    button = page.get_by_role("button", name="Log in")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{desktop.url}/")
    page.goto(f"http://{desktop.address}/")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_every_browser_is_logged_out_by_one_of_them(desktop: Desktop) -> None:
    desktop.complaints.expect("status of 401", "Status Error Code 401", "ERR_", "htmx:")
    page, other = desktop.page(), desktop.page()
    live = other.locator("#live", has_text=re.compile(r"^\s*Live\s*$"))
    expect(live).to_have_count(1)
    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_text("this one")).to_be_visible()
    page.get_by_role("button", name="Log out everywhere").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    # Its stream is cut, and a look at the tasks that was under way brings it to the login by itself.
    expect(live).to_have_count(0)
    other.reload()
    expect(other.get_by_role("heading", name="Log in")).to_be_visible()
    assert desktop.daemon.client.sessions() == []
