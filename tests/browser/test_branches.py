"""Merging and discarding the branches of tasks on the page, in a real repository."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from claudomator_py.resources.tasks import TaskView
from tests.browser.conftest import NARROW, Desktop
from tests.browser.reaching import violations
from tests.e2e.repositories import COMMIT, git, repository


@pytest.fixture
def shop(lasting_desktop: Desktop, request: pytest.FixtureRequest) -> Path:
    return repository(lasting_desktop.site.root / f"shop-{request.node.name}")


def worked(desktop: Desktop, shop: Path, name: str, does: str) -> TaskView:
    """A task whose check has done that in its work tree, once it has ended."""
    check = f"""["sh -c '{does}'"]"""
    desktop.task(name, "delay=1ms", working_dir=str(shop), isolation="worktree", check=check)
    return desktop.settled(name, "COMPLETED")


def test_a_branch_is_merged_by_mouse_and_the_merge_is_undone_by_what_the_page_says(
    lasting_desktop: Desktop, shop: Path
) -> None:
    worked(lasting_desktop, shop, "mend", f"echo mended > tap && git add . && {COMMIT}")
    page = lasting_desktop.page("/repositories")
    page.get_by_role("link", name="Merge… mend").click()
    preview = page.get_by_role("status").filter(has_text="into main")
    expect(preview).to_contain_text("no conflict 1 commit into main: 1 file (+1 -0).")
    page.get_by_label("How").select_option("squash")
    page.get_by_label("Into").fill("nowhere")
    page.get_by_label("Into").press("Tab")
    expect(page.get_by_role("alert")).to_contain_text("There is no branch nowhere")
    expect(page.get_by_role("button", name="Merge")).to_have_count(0)
    page.get_by_label("Into").fill("")
    page.get_by_label("Into").press("Tab")
    page.get_by_role("button", name="Merge").click()
    expect(page.locator("#task")).to_contain_text("Merged into main")
    assert (shop / "tap").read_text() == "mended\n"
    undo = page.locator("#task code", has_text="reset --keep").inner_text()
    git(shop, *undo.split()[3:])
    assert not (shop / "tap").exists()


def test_a_conflict_is_shown_before_and_nothing_is_merged_without_scripts_either(
    lasting_desktop: Desktop, shop: Path
) -> None:
    task = worked(lasting_desktop, shop, "paint", f"echo red > readme && git add . && {COMMIT}")
    tree = git(shop, "worktree", "list", "--porcelain").split("worktree ")[-1].split("\n")[0]
    Path(tree, "brush").write_text("b\n")
    (shop / "readme").write_text("blue\n")
    git(shop, "commit", "-q", "-a", "-m", "blue")
    page = lasting_desktop.page(f"/tasks/{task.id}", java_script_enabled=False)
    page.get_by_role("link", name="Merge…").click()
    expect(page.get_by_role("alert")).to_contain_text("1 file is not committed")
    page.get_by_label("First commit uncommitted files").check()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("would conflict with main in readme")
    expect(page.get_by_label("First commit uncommitted files")).to_be_checked()
    expect(page.get_by_role("button", name="Merge")).to_have_count(0)
    page.get_by_role("link", name="Back").click()
    page.get_by_role("link", name="Discard…").click()
    page.get_by_role("button", name="Discard the branch").click()
    expect(page.locator("#task")).to_contain_text("its contents are kept")
    assert (shop / "readme").read_text() == "blue\n"
    assert git(shop, "branch", "--list", "claudomator/*") == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_forms_are_readable_on_a_narrow_screen(lasting_desktop: Desktop, shop: Path, scheme: str) -> None:
    task = worked(lasting_desktop, shop, f"look-{scheme}", f"echo new > tap && git add . && {COMMIT} && echo b > brush")
    page = lasting_desktop.page(viewport=NARROW, color_scheme=scheme)
    for path in ("/repositories", f"/tasks/{task.id}", *(f"/tasks/{task.id}/{act}" for act in ("merge", "discard"))):
        page.goto(lasting_desktop.url + path)
        assert violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"], path
    page.goto(f"{lasting_desktop.url}/tasks/{task.id}")
    # A doubt may be a sentence of its agent.
    page.locator(".title-line > .chip").evaluate("one => one.textContent = 'its result says what it leaves '.repeat(9)")
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    page.goto(f"{lasting_desktop.url}/tasks/{task.id}/merge?commit=yes")
    assert violations(page) == []


def test_all_that_are_ready_are_merged_at_once_on_a_narrow_screen_without_scripts(
    lasting_desktop: Desktop, shop: Path
) -> None:
    for name in ("sink", "bath"):
        worked(lasting_desktop, shop, name, f"echo {name} > {name} && git add . && {COMMIT}")
    page = lasting_desktop.page("/repositories", viewport=NARROW, has_touch=True, java_script_enabled=False)
    page.get_by_role("link", name="ready…").click()
    for box in page.get_by_role("checkbox").all():
        box.set_checked(page.locator(f"label[for='{box.get_attribute('id')}']").inner_text() in ("sink", "bath"))
    page.get_by_role("button", name="Merge").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 merged")
    undo = page.locator("pre").inner_text()
    assert (shop / "sink").exists()
    assert (shop / "bath").exists()
    git(shop, *undo.split()[3:])
    assert not (shop / "sink").exists()
    assert not (shop / "bath").exists()


def test_the_form_and_the_result_of_merging_several_are_readable_on_a_narrow_screen(
    lasting_desktop: Desktop, shop: Path
) -> None:
    name = "a-name-that-is-as-long-as-names-get-" + "x" * 60
    worked(lasting_desktop, shop, name, f"echo new > tap && git add . && {COMMIT}")
    worked(lasting_desktop, shop, "rival", f"echo old > tap && git add . && {COMMIT}")
    page = lasting_desktop.page("/repositories/merge", viewport=NARROW, has_touch=True)
    for _ in range(2):
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
        if page.get_by_role("button", name="Merge").count():
            page.get_by_role("button", name="Merge").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("merged, 1 not")
    expect(page.get_by_role("listitem").filter(has_text="would conflict with main in tap")).to_have_count(1)
    page.goto(f"{lasting_desktop.url}/repositories/merge")
    page.get_by_label("How").select_option("rebase")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing can be merged")
    expect(page.get_by_label("How")).to_have_value("rebase")
    expect(page.get_by_role("listitem").filter(has_text="not possible")).to_have_count(1)
