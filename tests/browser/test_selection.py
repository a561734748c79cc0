"""Several tasks at once, and schedules, by hand on the page."""

from playwright.sync_api import expect

from tests.browser.conftest import Desktop


def test_two_of_three_are_cancelled(desktop: Desktop) -> None:
    for name in ("one", "two", "three"):
        desktop.task(name, not_before="2099-01-01T00:00:00Z", tags="[shop]")
    page = desktop.page()
    page.get_by_label("Tag", exact=True).fill("shop")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**/*tag=shop*")  # the page before has such a link too, to all tasks
    page.get_by_role("link", name="Select…").click()
    expect(page.get_by_role("checkbox")).to_have_count(3)
    page.get_by_label("one", exact=True).check()
    page.get_by_label("three", exact=True).check()
    page.get_by_role("button", name="Cancel…").click()
    expect(page.get_by_role("heading", name="Cancel these 2 tasks?")).to_be_visible()
    page.get_by_role("button", name="Cancel all 2").click()
    expect(page.get_by_role("heading", name="Cancel: 2 done")).to_be_visible()
    states = {task.name: task.state for task in desktop.daemon.client.all_tasks()}
    assert states == {"one": "CANCELLED", "two": "WAITING", "three": "CANCELLED"}


def test_a_schedule_is_paused_and_run(desktop: Desktop) -> None:
    client = desktop.daemon.client
    desktop.site.drop("nightly.yaml", 'instructions: Tidy up.\nschedule: "0 3 1 1 *"\nagent: {type: simulated}\n')
    page = desktop.page()
    side = page.locator("#schedules")
    expect(side).to_contain_text("0 3 1 1 *")
    side.get_by_role("button", name="Pause nightly").click()
    expect(side).to_contain_text("paused")
    assert client.schedule("nightly").paused_since is not None
    side.get_by_role("button", name="Run now").click()
    expect(page.locator("#task")).to_contain_text("nightly.")
    page.goto(desktop.url)
    side.get_by_role("button", name="Resume nightly").click()
    expect(side.get_by_role("button", name="Pause nightly")).to_be_visible()
    assert client.schedule("nightly").paused_since is None


def test_all_that_wait_for_the_same_are_opened_and_cancelled_from_the_overview(desktop: Desktop) -> None:
    for name in ("one", "two", "three"):
        desktop.task(name, not_before="2099-01-01T00:00:00Z")
    desktop.task("four", not_before="2099-02-01T00:00:00Z")
    page = desktop.page()
    fold = page.locator("#queue details")
    expect(fold.locator("summary")).to_contain_text("3 wait: not before")
    fold.locator("summary").click()
    fold.get_by_role("button", name="Select these 3").click()
    chosen = page.get_by_role("form", name="Actions on the selected tasks")
    expect(chosen).to_contain_text("3 selected")
    desktop.task("meanwhile", "delay=1ms")
    desktop.settled("meanwhile", "COMPLETED")
    page.wait_for_timeout(1_500)
    expect(chosen).to_contain_text("3 selected")
    chosen.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel all 3").click()
    expect(page.get_by_role("heading", name="Cancel: 3 done")).to_be_visible()
    assert desktop.daemon.client.task("four").state == "WAITING"


def test_the_density_is_remembered_and_keys_select_and_restart(desktop: Desktop) -> None:
    desktop.task("it", "delay=50ms outcome=fail", retry="{max_attempts: 1}")
    task = desktop.settled("it", "FAILED")
    page = desktop.page()
    density = page.get_by_role("button", name="Comfortable")
    density.click()
    page.reload()
    expect(density).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Select it")).to_be_checked()
    page.keyboard.press("r")
    page.wait_for_url(f"**/tasks/{task.id}/restart")
