"""The policy asked on its page about a task that there is not, with and without scripts."""

import pytest
from playwright.sync_api import expect

from claudomator_py.domain.task import TaskSpec
from tests.browser.conftest import NARROW, Desktop
from tests.browser.reaching import tab_to, violations
from tests.fakes.cards import card

TASK = "name: cleanup\ninstructions: Drop the production database and delete all backups.\n"


@pytest.fixture
def desktop(lasting_desktop: Desktop) -> Desktop:
    """One daemon: each test asks about a task of its own, or approves one."""
    return lasting_desktop


@pytest.mark.parametrize("scripts", [True, False], ids=["with-scripts", "without"])
def test_the_rules_are_asked_about_a_task(desktop: Desktop, scripts: bool) -> None:
    desktop.complaints.expect("status of 422")
    page = desktop.page("/policy", viewport=NARROW, java_script_enabled=scripts)
    text = page.get_by_label("Task file")
    ask = page.get_by_role("button", name="Evaluate")
    text.fill("name: cleanup\ninstructoins: x\n")
    ask.click()
    expect(page.get_by_role("alert")).to_contain_text("2: instructoins: is not a known key; did you mean")
    expect(text).to_have_value("name: cleanup\ninstructoins: x\n")
    text.fill(TASK)
    ask.click()
    section = page.get_by_role("region", name="Try the rules")
    expect(section).to_contain_text("cleanup is held, with high risk: the policy requires approval (high-risk).")
    expect(section.get_by_role("row", name="high-risk")).to_contain_text("approve")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert "cleanup" not in {task.name for task in desktop.daemon.client.all_tasks()}


def test_the_rules_are_asked_by_keyboard(desktop: Desktop) -> None:
    page = desktop.page("/policy", viewport=NARROW)
    page.keyboard.press("/")
    text = page.get_by_label("Task file")
    expect(text).to_be_focused()
    page.keyboard.type("instructions: Paint the wall.")
    tab_to(page, page.get_by_role("button", name="Evaluate"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Try the rules")).to_contain_text("task is allowed, with low risk")
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    assert violations(page) == []


@pytest.mark.parametrize("scripts", [True, False], ids=["with-scripts", "without"])
def test_whoever_approves_says_who_does_it(desktop: Desktop, scripts: bool) -> None:
    desktop.complaints.expect("status of 422")
    client = desktop.daemon.client
    client.register_specialist(card("plumber"))
    name = "by-keyboard" if scripts else "by-mouse"
    task = client.submit(TaskSpec(name=name, instructions="Drop the customers schema in production."))
    desktop.settled(name, "NEEDS_INPUT")
    page = desktop.page("/policy", viewport=NARROW, java_script_enabled=scripts)
    page.get_by_role("link", name=f"Approve… {name}").click()
    chosen = page.get_by_label("Specialist")
    expect(page.locator("#specialists option[value=plumber]")).to_have_count(1)
    approve = page.get_by_role("button", name="Approve the task")
    chosen.fill("plumbr")
    page.get_by_label("Reason").fill("seen the plan")
    approve.click()
    expect(page.get_by_role("alert")).to_contain_text("there is no specialist plumbr; did you mean plumber?")
    expect(chosen).to_have_value("plumbr")
    expect(page.get_by_label("Reason")).to_have_value("seen the plan")
    if scripts:
        page.keyboard.press("Tab")
        tab_to(page, chosen)
        page.keyboard.press("Control+a")
        page.keyboard.type("plumber")
        assert violations(page) == []
        tab_to(page, approve)
        page.keyboard.press("Enter")
    else:
        chosen.fill("plumber")
        approve.click()
    page.wait_for_url(f"**/tasks/{task.id}")
    assert desktop.when(name, lambda task: task.specialist is not None).specialist == "plumber"
