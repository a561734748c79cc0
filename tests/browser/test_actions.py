"""Acting on a task: by keyboard and by mouse, after a look at what it is about."""

from playwright.sync_api import Route, expect

from claudomator_py.domain.task import TaskSpec
from tests.browser.conftest import Desktop
from tests.browser.reaching import tab_to


def test_cancel_by_mouse(lasting_desktop: Desktop) -> None:
    lasting_desktop.task("by-mouse", "delay=2m")
    lasting_desktop.settled("by-mouse", "RUNNING")
    page = lasting_desktop.page()
    page.get_by_role("link", name="by-mouse", exact=True).click()
    page.get_by_role("link", name="Cancel…").click()
    expect(page.get_by_role("heading", name="Cancel by-mouse?")).to_be_visible()
    assert lasting_desktop.daemon.client.task("by-mouse").state == "RUNNING"
    page.get_by_role("button", name="Cancel the task").click()
    expect(page.locator("#task")).to_contain_text("cancelled")
    lasting_desktop.settled("by-mouse", "CANCELLED")


def test_restart_by_keyboard(desktop: Desktop) -> None:
    task = desktop.task("it", "delay=50ms outcome=fail", retry="{max_attempts: 1}")
    desktop.settled("it", "FAILED")
    page = desktop.page()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="it", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{task.id}")
    restart = page.get_by_role("link", name="Restart…")
    expect(restart).to_be_visible()
    tab_to(page, restart)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Restart it?")).to_be_visible()
    page.get_by_label("Agent", exact=True).focus()
    page.keyboard.type("other")
    page.keyboard.press("Tab")
    page.keyboard.type("powerful")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("a stronger model may do it")
    button = page.get_by_role("button", name="Restart the task")
    tab_to(page, button)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{task.id}")
    result = desktop.when("it", lambda task: task.generation == 2 and task.runs == 2)
    assert (result.agent, result.tier) == ("other", "powerful")


def test_who_acts_on_what_has_changed_is_told_so(lasting_desktop: Desktop) -> None:
    lasting_desktop.complaints.expect("status of 412", "status of 409")
    task = lasting_desktop.task("changed", not_before="2099-01-01T00:00:00Z")
    page, other = lasting_desktop.page(f"/tasks/{task.id}/cancel"), lasting_desktop.page(f"/tasks/{task.id}/cancel")
    other.get_by_role("button", name="Cancel the task").click()
    expect(other.locator("#task")).to_contain_text("cancelled")
    page.get_by_role("button", name="Cancel the task").click()
    expect(page.get_by_role("alert")).to_contain_text("Changed in the meantime")
    expect(page.get_by_role("heading", name="changed cannot be cancelled")).to_be_visible()


def test_release_ends_the_hold(desktop: Desktop) -> None:
    desktop.task("it", "delay=50ms outcome=auth")
    page = desktop.page()
    held = page.locator("#needs-you .notice", has_text="simulated")
    expect(held).to_contain_text("not logged in")
    held.get_by_role("button", name="Release simulated").click()
    desktop.when("it", lambda task: task.runs > 1)


def test_keys(desktop: Desktop) -> None:
    desktop.task("one", not_before="2099-01-01T00:00:00Z")
    desktop.task("two", not_before="2099-01-02T00:00:00Z")
    page = desktop.page()
    first, two = (page.get_by_role("link", name=name, exact=True) for name in ("one", "two"))
    for key, link in (("j", first), ("j", two), ("j", two), ("k", first)):
        page.keyboard.press(key)
        expect(link).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("tw")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="two", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="one", exact=True)).to_have_count(0)
    assert page.url.endswith("q=tw&state=&tag=&specialist=")
    for key, path in (
        ("c", "/channels"),
        ("s", "/specialists"),
        ("t", "/routing"),
        ("d", "/decisions"),
        ("o", "/policy"),
        ("g", "/"),
    ):
        page.keyboard.press(key)
        page.wait_for_url(f"{desktop.url}{path}")


def test_the_first_stop_skips_to_the_content(lasting_desktop: Desktop) -> None:
    page = lasting_desktop.page()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_the_page_works_without_scripts(lasting_desktop: Desktop) -> None:
    lasting_desktop.task("plain", not_before="2099-01-01T00:00:00Z")
    page = lasting_desktop.page(java_script_enabled=False)
    expect(page.locator("#queue")).to_contain_text("not before 2099-01-01 00:00 UTC")
    page.get_by_role("link", name="plain", exact=True).click()
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the task").click()
    expect(page.locator("#task")).to_contain_text("cancelled")


def test_what_is_in_a_row_is_reached_although_the_row_is_a_link(desktop: Desktop) -> None:
    task = desktop.task("it", "delay=1ms", approval="true")
    desktop.settled("it", "NEEDS_INPUT")
    page = desktop.page("/policy")
    page.get_by_role("link", name="Approve… it").click()
    page.get_by_role("button", name="Approve the task").click()
    desktop.settled("it", "COMPLETED")
    page.goto(f"{desktop.url}/decisions?kind=placement")
    page.get_by_role("link", name=f"task {task.id[:8]}").click()
    page.wait_for_url(f"{desktop.url}/tasks/{task.id}")


def test_answer_by_keyboard(lasting_desktop: Desktop) -> None:
    task = lasting_desktop.task("asks", "outcome=question text='Red or <b>blue</b>?'\n\n  simulate: text=painted")
    lasting_desktop.settled("asks", "NEEDS_INPUT")
    page = lasting_desktop.page()
    expect(page.locator("#needs-you")).to_contain_text("Red or <b>blue</b>?")
    page.goto(f"{lasting_desktop.url}/tasks/{task.id}")
    expect(page.get_by_label("What is asked")).to_contain_text("Red or <b>blue</b>?")
    answer = page.get_by_role("link", name="Answer…")
    tab_to(page, answer)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your answer")).to_be_focused()
    page.keyboard.type("Blue.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{task.id}")
    result = lasting_desktop.settled("asks", "COMPLETED")
    assert result.result_text == "[simulated] painted"
    assert result.runs == 2


def test_an_answer_is_typed_in_the_row_and_no_event_takes_it_away(lasting_desktop: Desktop) -> None:
    lasting_desktop.task("which", "outcome=question text='Red or blue?'\n\n  simulate: text=painted")
    lasting_desktop.settled("which", "NEEDS_INPUT")
    page = lasting_desktop.page()
    expect(page.locator("#needs-you")).to_contain_text("Red or blue?")
    page.keyboard.press("n")
    expect(page.get_by_role("link", name="which", exact=True)).to_be_focused()
    page.keyboard.press("a")
    typed = page.get_by_role("textbox", name="Answer which")
    expect(typed).to_be_focused()
    page.keyboard.type("Blu")
    lasting_desktop.task("meanwhile", "delay=1ms")
    lasting_desktop.settled("meanwhile", "COMPLETED")
    page.wait_for_timeout(1_500)
    expect(typed).to_have_value("Blu")
    page.keyboard.type("e.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"{lasting_desktop.url}/")
    assert lasting_desktop.settled("which", "COMPLETED").result_text == "[simulated] painted"
    expect(page.locator("#recent")).to_contain_text("meanwhile")


def test_what_is_typed_while_a_refresh_is_on_its_way_stays(lasting_desktop: Desktop) -> None:
    lasting_desktop.task("slow", "outcome=question text='Red or blue?'")
    lasting_desktop.settled("slow", "NEEDS_INPUT")
    page = lasting_desktop.page()
    expect(page.locator("#live")).to_have_text("Live")
    held: list[Route] = []
    page.route(lambda url: url.endswith("/"), lambda route: held.append(route))
    lasting_desktop.task("another", "delay=1ms")
    while not held:
        page.wait_for_timeout(20)
    typed = page.get_by_role("textbox", name="Answer slow")
    typed.fill("Blu")
    with page.expect_response(lambda response: response.url.endswith("/")):
        held.pop(0).continue_()
    page.wait_for_timeout(500)
    expect(typed).to_have_value("Blu")


def test_an_approval_shows_what_is_approved_and_is_reached_from_the_row(lasting_desktop: Desktop) -> None:
    lasting_desktop.task("careful", "delay=1ms text=Careful.", approval="true")
    lasting_desktop.settled("careful", "NEEDS_INPUT")
    page = lasting_desktop.page()
    page.get_by_role("link", name="Approve… careful").click()
    shown = page.get_by_role("region", name="What it would do")
    expect(shown.get_by_label("Instructions")).to_contain_text("text=Careful.")
    for name in ("Directory", "Agent", "Permissions", "Risk"):
        expect(shown.locator("dt", has_text=name)).to_be_visible()
    page.get_by_role("button", name="Approve the task").click()
    assert lasting_desktop.settled("careful", "COMPLETED").result_text == "[simulated] Careful."


def test_what_asks_is_rejected_by_key_from_its_row(lasting_desktop: Desktop) -> None:
    task = lasting_desktop.task("unwanted", "delay=1ms", approval="true")
    lasting_desktop.settled("unwanted", "NEEDS_INPUT")
    page = lasting_desktop.page()
    page.get_by_role("link", name="unwanted", exact=True).focus()
    page.keyboard.press("r")
    page.wait_for_url(f"**/tasks/{task.id}/reject")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("Not now.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/tasks/{task.id}")
    assert lasting_desktop.settled("unwanted", "FAILED").reason_text is not None


def test_a_tool_is_allowed_after_a_look_at_what_that_means(lasting_desktop: Desktop) -> None:
    task = lasting_desktop.task(
        "publishes", "needs=shell(publish) text=no\n\n  simulate: needs=shell(publish) text=out"
    )
    lasting_desktop.settled("publishes", "NEEDS_INPUT")
    page = lasting_desktop.page(f"/tasks/{task.id}")
    page.get_by_role("link", name="Approve…").click()
    expect(page.get_by_role("heading", name="Approve publishes?")).to_be_visible()
    expect(page.get_by_label("Allow these tools")).to_have_value("shell(publish)")
    page.get_by_role("button", name="Approve the task").click()
    page.wait_for_url(f"**/tasks/{task.id}")
    assert lasting_desktop.settled("publishes", "COMPLETED").result_text == "[simulated] out"


def test_a_task_that_asks_first_is_rejected_and_a_late_answer_is_told_so(lasting_desktop: Desktop) -> None:
    lasting_desktop.complaints.expect("status of 412", "status of 409")
    task = lasting_desktop.task("rejected", "delay=1ms", approval="true")
    lasting_desktop.settled("rejected", "NEEDS_INPUT")
    page, other = lasting_desktop.page(f"/tasks/{task.id}/approve"), lasting_desktop.page(f"/tasks/{task.id}")
    other.get_by_role("link", name="Reject…").click()
    other.get_by_label("Reason").fill("Not on a Friday.")
    other.get_by_role("button", name="Reject the task").click()
    expect(other.locator("#task")).to_contain_text("Not on a Friday.")
    page.get_by_role("button", name="Approve the task").click()
    expect(page.get_by_role("alert")).to_contain_text("Changed in the meantime")
    expect(page.get_by_role("heading", name="There is nothing to approve in rejected")).to_be_visible()
    assert lasting_desktop.settled("rejected", "FAILED").runs == 0


def test_a_task_is_given_to_somebody_else_by_mouse(desktop: Desktop) -> None:
    client = desktop.daemon.client
    text = "The nightly dump of the orders database fails. Restore the last one, and find out why."
    client.submit(TaskSpec(name="it", instructions=text))
    task = desktop.when("it", lambda task: task.specialist == "database-administrator")
    client.cancel(task.id)
    page = desktop.page(f"/tasks/{task.id}")
    page.get_by_text("Specialists compared").click()
    page.get_by_role("link", name="Restart… with test-engineer").click()
    expect(page.get_by_label("Specialist")).to_have_value("test-engineer")
    page.get_by_label("Reason").fill("It is a matter of tests.")
    page.get_by_role("button", name="Restart the task").click()
    page.wait_for_url(f"**/tasks/{task.id}")
    expect(page.locator("#task").get_by_role("link", name="test-engineer")).to_be_visible()
    assert desktop.when("it", lambda task: task.generation == 2).specialist == "test-engineer"


def test_a_task_is_written_on_the_page_and_its_faults_are_said_meanwhile(lasting_desktop: Desktop) -> None:
    page = lasting_desktop.page()
    page.keyboard.press("w")
    page.get_by_label("Instructions").fill("Tidy the sink.\n\nsimulate: text=Tidied.")
    page.get_by_label("Other settings").fill("chekc: [make]")
    expect(page.get_by_role("status").filter(has_text="is not a known key")).to_be_visible()
    page.get_by_label("Other settings").fill("retry: {max_attempts: 1}")
    expect(page.get_by_text("ok (tidy-the-sink.-simulate-text-tidied)")).to_be_visible()
    page.get_by_label("Agent", exact=True).select_option("simulated")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/tasks/*")
    assert (
        lasting_desktop.settled("tidy-the-sink.-simulate-text-tidied", "COMPLETED").result_text == "[simulated] Tidied."
    )
    page.get_by_role("link", name="Again…").click()
    expect(page.get_by_label("Other settings")).to_have_value("retry:\n  max_attempts: 1\n")
