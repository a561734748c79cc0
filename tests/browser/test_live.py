"""What changes while somebody looks: no reload, no gap, and nothing while nobody looks."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Desktop
from tests.e2e.daemon import Daemon
from tests.patience import wait_until


def mark(page: Page) -> None:
    """Something that a reload would lose."""
    page.evaluate("window.here = true")


def assert_not_reloaded(page: Page) -> None:
    assert page.evaluate("window.here") is True


def test_sections_come_in_the_order_of_urgency(desktop: Desktop) -> None:
    desktop.task("done")
    desktop.settled("done", "COMPLETED")
    desktop.task("broken", "delay=50ms outcome=fail", retry="{max_attempts: 1}")
    desktop.settled("broken", "FAILED")
    desktop.task("asks", 'delay=50ms outcome=question text="Which one?"')
    desktop.settled("asks", "NEEDS_INPUT")
    desktop.task("works", "delay=2m")
    desktop.settled("works", "RUNNING")
    desktop.task("later", not_before="2099-01-01T00:00:00Z")
    page = desktop.page()
    assert page.locator("section.list > h2").all_inner_texts() == [
        "Needs you 1",
        "Running 1",
        "Problems 1",
        "Queued and waiting 1",
        "Recent 1",
    ]
    expect(page.locator("#needs-you")).to_contain_text("Which one?")
    expect(page.locator("#problems")).to_contain_text("agent_error")
    expect(page.locator("#queue")).to_contain_text("not before 1 Jan 2099 01:00")  # in the viewer's zone
    expect(page.locator("#agents")).to_contain_text("1/4")


def test_a_task_that_ends_moves_without_a_reload(desktop: Desktop) -> None:
    page = desktop.page()
    expect(page.locator("#live")).to_have_text("Live")
    mark(page)
    desktop.task("it", "delay=2m")
    expect(page.locator("#running")).to_contain_text("it")
    desktop.daemon.client.cancel("it")
    expect(page.locator("#recent")).to_contain_text("it")
    expect(page.locator("#running")).to_contain_text("Nothing runs.")
    expect(page.get_by_role("status")).to_have_text("nothing needs you, 0 failed, 0 running, 0 queued or waiting")
    assert_not_reloaded(page)


def test_a_pause_holds_everything_until_it_is_ended(desktop: Desktop) -> None:
    page = desktop.page()
    expect(page.locator("#live")).to_have_text("Live")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_have_attribute("aria-pressed", "true")
    desktop.task("it")
    desktop.settled("it", "COMPLETED")
    expect(page.locator("#board")).to_contain_text("There are no tasks yet.")
    page.keyboard.press("p")
    expect(page.locator("#recent")).to_contain_text("it")


def test_a_hidden_tab_keeps_no_connection(desktop: Desktop) -> None:
    task = desktop.task("talks", "delay=2m")
    desktop.settled("talks", "RUNNING")
    page = desktop.page(f"/tasks/{task.id}")
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator(".entry").first).to_be_visible()
    turn = """hidden => {
        Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    ended: set[str] = set()
    page.on("requestfailed", lambda request: ended.add(request.url.removeprefix(desktop.url).partition("?")[0]))
    run = desktop.daemon.client.runs(task.id)[0].id
    streams = {"/v1/events", f"/v1/runs/{run}/log"}
    page.evaluate(turn, True)
    page.wait_for_function("document.hidden")
    wait_until(lambda: page.title() and streams <= ended, "both streams to end")
    shown = page.locator(".entry").all_inner_texts()
    with page.expect_request("**/v1/events"), page.expect_request("**/log?view=structured&cursor=*"):
        page.evaluate(turn, False)
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator(".entry").nth(len(shown))).to_be_visible()
    assert page.locator(".entry").all_inner_texts()[: len(shown)] == shown  # nothing twice, nothing left out


def test_the_log_grows_as_the_agent_writes(desktop: Desktop) -> None:
    task = desktop.task("talks", "delay=2m")
    desktop.settled("talks", "RUNNING")
    page = desktop.page(f"/tasks/{task.id}")
    log = page.get_by_role("log")
    expect(log).to_contain_text("begins")
    expect(log).to_contain_text(re.compile("works.*works", re.DOTALL))  # a second one, while we look
    mark(page)
    before = log.locator(".entry").count()
    wait_until(lambda: log.locator(".entry").count() > before, "a further entry")
    page.locator("details#content summary").click()
    desktop.daemon.client.cancel("talks")
    expect(page.locator("#task")).to_contain_text("cancelled")
    expect(page.locator("#log-state")).to_contain_text("ended")
    assert log.locator(".entry").count() > before  # the log was not begun again
    expect(page.locator("details#content")).to_have_attribute("open", "")
    assert_not_reloaded(page)


def test_no_event_is_missed_over_a_restart_of_the_daemon(desktop: Desktop) -> None:
    page = desktop.page()
    expect(page.locator("#live")).to_have_text("Live")
    mark(page)
    page.evaluate(
        """() => {
            window.ids = [];
            const source = new EventSource("/v1/events");
            for (const kind of document.getElementById("live").dataset.kinds.split(" "))
                source.addEventListener(kind, (message) => window.ids.push(Number(message.lastEventId)));
            return new Promise((resolve) => { source.onopen = resolve; });
        }"""
    )
    desktop.task("before")
    desktop.settled("before", "COMPLETED")
    page.wait_for_function("window.ids.length > 0")
    page.evaluate("""() => {
        window.labels = [];
        const label = document.querySelector("#live .label");
        new MutationObserver(() => labels.push(label.textContent)).observe(label, {childList: true});
    }""")
    desktop.restart(Daemon.kill)
    desktop.task("after")
    last = desktop.settled("after", "COMPLETED")
    ids = [event.id for event in desktop.daemon.client.why(last.id).events]
    page.wait_for_function("last => window.ids.includes(last)", arg=ids[-1])
    seen = page.evaluate("window.ids")
    assert seen == list(range(seen[0], seen[-1] + 1))
    expect(page.locator("#recent")).to_contain_text("after")
    expect(page.locator("#live")).to_have_text("Live")
    labels = page.evaluate("labels")
    assert any(re.fullmatch(r"Reconnecting; as of \d\d:\d\d CES?T", label) for label in labels), labels
    assert_not_reloaded(page)


def test_what_has_the_focus_keeps_it_when_the_page_shows_everything_again(desktop: Desktop) -> None:
    task = desktop.task("it", "delay=2m")
    desktop.settled("it", "RUNNING")
    page = desktop.page(f"/tasks/{task.id}")
    expect(page.locator("#live")).to_have_text("Live")
    page.get_by_role("link", name="Cancel and restart…").focus()
    desktop.daemon.client.cancel("it")
    expect(page.locator("#task")).to_contain_text("cancelled")
    expect(page.get_by_role("link", name="Restart…")).to_be_focused()


@pytest.mark.parametrize(
    "wanted", ["summary", ".strip a[href*=FAILED]", "#problems [name=task]", "#problems .pick-all", "#agents .small"]
)
def test_what_has_no_id_keeps_the_focus_as_well(lasting_desktop: Desktop, wanted: str) -> None:
    desktop = lasting_desktop
    for name in ("broken", "broken-too", "broken-as-well"):
        if name not in {task.name for task in desktop.daemon.client.all_tasks()}:
            desktop.task(name, "delay=50ms outcome=fail", retry="{max_attempts: 1}")
            desktop.settled(name, "FAILED")
    page = desktop.page()
    expect(page.locator("#live")).to_have_text("Live")
    page.locator("#problems summary").click()
    # Without its text: a count may change, as tasks of other tests may still end, and have the page replace it.
    page.evaluate("() => { window.keyOf = one => one.outerHTML.replace(/>[^<]+/g, '>'); }")
    page.locator(wanted).first.evaluate("one => { one.focus(); window.before = one; window.key = keyOf(one); }")
    desktop.task(f"event-for-{sum(map(ord, wanted))}", "delay=50ms")
    page.wait_for_function("() => !window.before.isConnected")
    page.wait_for_function("() => document.activeElement !== document.body")
    assert page.evaluate("keyOf(document.activeElement) === key")


def test_times_have_a_zone_and_durations_one_form(lasting_desktop: Desktop) -> None:
    """As the daemon writes them, which knows nothing of the reader's zone."""
    started = lasting_desktop.task("timed", "delay=50ms")
    lasting_desktop.settled("timed", "COMPLETED")
    page = lasting_desktop.page(f"/tasks/{started.id}")
    expect(page.locator(".timeline .at").first).to_have_text(re.compile(r"^\d\d:\d\d:\d\d CES?T$"))
    add = """lengths => document.querySelector(".foot").replaceChildren(...lengths.map((hours) => {
        const time = document.createElement("time");
        time.dateTime = new Date(Date.now() - hours * 3_600_000 - 5_000).toISOString();
        time.dataset.show = "ago";
        return time;
    }))"""
    page.evaluate(add, [1, 1.5, 28])
    expect(page.locator(".foot time")).to_have_text(["1h ago", "1h30m ago", "1d4h ago"])
