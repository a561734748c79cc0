"""What the service says of what runs changed: for whom it exists, in full, and without secrets."""

import re
from typing import Any

import pytest

from claudomator_py.api.page.rows import row_of
from claudomator_py.domain.changes import MAX_FILES, RunChanges
from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.resources.branches.service import Changes
from claudomator_py.store.database import Database
from tests.fakes.world import World

HEADS = {"head": "b" * 40, "head_before": "a" * 40, "branch": "main", "branch_before": "main"}
MOVED = "another commit is checked out"
KEY = "sk-ant-api03-" + "Zq7" * 20


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def record(files: int = 1, **more: Any) -> RunChanges:
    named = [{"path": f"src/{number:04}", "change": "modified", "added": 1, "removed": 2} for number in range(files)]
    figures = {"file_count": files, "added": files, "removed": 2 * files}
    return RunChanges.model_validate({"place": "/srv/shop", "files": named, **figures, **HEADS, **more})


def run_with(world: World, changes: RunChanges, name: str = "t") -> str:
    """A task whose run ends with these changes; the id of the run."""
    world.submit(name)
    world.tick()
    run_id = world.live(name).id
    world.host.changed[run_id] = changes
    world.end(name, changes=changes.shortened().model_dump(mode="json"))
    world.tick()
    return run_id


def asked(world: World, by: Principal = OPERATOR) -> Changes:
    return world.access.as_(by)[Changes]


def test_a_task_says_in_a_line_what_its_last_run_changed(world: World) -> None:
    commits = ({"id": "b" * 40, "subject": "fix: taps", "author": "n"},)
    run_with(world, record(commits=commits, commit_count=1))
    assert world.task("t").changes == "1 commit, 1 file (+1 -2)"
    (run,) = world.service.runs("t")
    assert run.changes is not None
    assert run.changes.commits[0].subject == "fix: taps"
    (view,) = asked(world).of_task("t").runs
    assert (view.run_id, view.number, view.summary) == (run.id, 1, "1 commit, 1 file (+1 -2)")


@pytest.mark.parametrize(
    ("text", "more", "doubtful"),
    [
        ("Fixed the redirect.", {}, True),
        ("Der Fehler wurde behoben.", {}, True),
        ("There is nothing to fix.", {}, False),
        (None, {}, False),
        ("Fixed the redirect.", {"fault": "git took too long"}, False),
        ("Fixed the redirect.", {"files": [{"path": "a", "change": "added"}], "file_count": 1}, False),
    ],
)
def test_a_success_that_changed_nothing_although_it_says_so_stands_out(
    world: World, text: str | None, more: dict[str, Any], doubtful: bool
) -> None:
    world.submit("t")
    world.tick()
    same = {"head": "a" * 40, "head_before": "a" * 40}
    world.end("t", text=text, changes={"place": "/srv/shop", **same, **more})
    world.tick()
    task = world.task("t")
    (view,) = asked(world).of_task("t").runs
    assert task.is_doubtful == view.is_doubtful == row_of(task).is_doubtful == doubtful
    assert task.changes == view.summary
    assert str(task.changes).endswith("(its result says otherwise)") == doubtful


def test_a_task_says_what_all_its_attempts_changed_together(world: World) -> None:
    world.submit("t", retry={"max_attempts": 4, "backoff": "1s"})
    left = record(1, untracked=("new",), untracked_count=1, place="/srv/other")
    for made in (record(3).model_dump(mode="json"), SAME, left.model_dump(mode="json")):
        world.tick(MINUTE_MS)
        world.fail("t", "agent_error", changes=made)
    assert world.task("t").changes == f"1 file (+1 -2), {MOVED}, 1 not committed", "it was elsewhere"
    world.submit("u", retry={"max_attempts": 3, "backoff": "1s"})
    commits = ({"id": "c" * 40, "subject": "fix: taps", "author": "n"},)
    for files in (3, 2):
        world.tick(MINUTE_MS)
        world.fail("u", "agent_error", changes=record(files).model_dump(mode="json"))
    world.tick(MINUTE_MS)
    world.end("u", changes=record(1, commits=commits, commit_count=1).model_dump(mode="json"))
    world.tick()
    assert world.task("u").changes == "1 commit, 3 files (+6 -12), by 3 runs"
    assert [view.summary for view in asked(world).of_task("u").runs][:2] == [
        f"3 files (+3 -6), {MOVED}",
        f"2 files (+2 -4), {MOVED}",
    ]


@pytest.mark.parametrize(
    ("file", "remark"),
    [
        ({"change": "modified", "removed": 1}, "rests on a check that it changed: tests/test_a.py"),
        ({"path": "tests/test_b.py", "change": "deleted", "removed": 9}, "deletes or skips tests: tests/test_b.py"),
        ({"path": "tests/test_b.py", "change": "modified", "removed": 9}, None),
    ],
)
def test_a_check_or_a_test_that_the_run_has_weakened_is_remarked(
    world: World, file: dict[str, Any], remark: str | None
) -> None:
    changed = {"path": "tests/test_a.py", **file}
    made = {"place": "/srv/shop", **HEADS, "files": [changed], "file_count": 1}
    says = f"Move what {changed['path'].rpartition('/')[2]} has."
    for name, text, doubted in (("t", "Make it faster.", remark is not None), ("u", says, False)):
        world.submit(name, check=[["pytest", "tests/test_a.py"]], instructions=text, working_dir="/srv/shop")
        world.tick()
        world.end(name, text="All tests pass.", changes=made)
        world.tick()
        world.host.end(world.live(name).id, 0, step=1)
        world.tick()
        task = world.task(name)
        assert (task.state, task.is_doubtful) == ("COMPLETED", doubted)
        assert str(task.changes).endswith(f" (its result {remark})") == doubted


def test_a_test_that_is_skipped_is_remarked_without_a_check_too(world: World) -> None:
    made = {"place": "/srv/shop", **HEADS, "skips": ["tests/test_a.py"]}
    for status, doubted in (("succeeded", True), ("failed", False)):
        world.submit(status)
        world.tick()
        world.end(status, text="Done.", changes=made) if doubted else world.fail(status, changes=made)
        world.tick()
        assert world.task(status).is_doubtful == doubted


SAME = {"place": "/srv/shop", "head": "a" * 40, "head_before": "a" * 40}


def test_what_a_run_says_of_earlier_changes_of_its_task_is_not_doubted(world: World) -> None:
    world.submit("t", retry={"max_attempts": 2, "backoff": "1s"})
    world.tick()
    world.fail("t", "agent_error", changes=record().model_dump(mode="json"))
    world.tick(MINUTE_MS)
    world.end("t", text="Fixed the redirect.", changes=SAME)
    world.tick()
    assert re.fullmatch(r"1 file \(\+1 -2\), .*, by an earlier run", str(world.task("t").changes))
    assert not world.task("t").is_doubtful
    assert asked(world).of_task("t").runs[-1].summary == "no further changes"


def test_what_a_task_says_of_changes_of_the_task_that_it_continues_is_not_doubted(world: World) -> None:
    run_with(world, record(), "first")
    for name, before in (("second", "first"), ("third", "second")):
        world.submit(name, continues=before)
        world.tick()
        world.end(name, text="Fixed the redirect.", changes=SAME)
        world.tick()
        assert (world.task(name).changes, world.task(name).is_doubtful) == ("no further changes", False)


@pytest.mark.parametrize("again", ["restart", "retry", "continues"])
def test_a_run_after_others_that_changed_nothing_is_doubted(world: World, again: str) -> None:
    world.submit("t", retry={"max_attempts": 2, "backoff": "1s"})
    world.tick()
    if again == "retry":
        world.fail("t", "agent_error", changes=SAME)
    else:
        changes = record().model_dump(mode="json") if again == "restart" else SAME
        world.end("t", changes=changes)
    world.tick(MINUTE_MS)
    if again == "restart":  # a fresh start, which knows nothing of what was changed before
        world.restart("t")
    name = "next" if again == "continues" else "t"
    if again == "continues":
        world.submit(name, continues="t")
    world.tick()
    world.end(name, text="Fixed the redirect.", changes=SAME)
    world.tick()
    assert world.task(name).is_doubtful


def test_a_failure_is_not_doubted(world: World) -> None:
    world.submit("t")
    world.tick()
    world.fail("t", text="Fixed it.", changes={"place": "/srv/shop"})
    assert (world.task("t").changes, world.task("t").is_doubtful) == ("no changes", False)


def test_of_a_run_that_is_not_over_or_not_recorded_nothing_is_known(world: World) -> None:
    world.submit("t")
    world.tick()
    (view,) = asked(world).of_task("t").runs
    assert (view.summary, view.changes) == ("recorded when the run ends", None)
    world.succeed("t")
    assert world.task("t").changes is None
    (view,) = asked(world).of_task("t").runs
    assert (view.summary, view.changes) == ("not recorded", None)


def test_all_files_are_named_where_the_record_is_kept_and_the_first_where_it_is_gone(world: World) -> None:
    run_id = run_with(world, record(files=MAX_FILES + 40))

    def named() -> int:
        (view,) = asked(world).of_task("t").runs
        assert view.changes is not None
        assert view.changes.file_count == MAX_FILES + 40
        return len(view.changes.files)

    assert named() == MAX_FILES + 40
    del world.host.changed[run_id]
    assert named() == MAX_FILES


def test_no_secret_is_in_patch_or_names(world: World) -> None:
    commits = ({"id": "b" * 40, "subject": f"use {KEY}", "author": "n"},)
    run_id = run_with(world, record(files=MAX_FILES + 1, commits=commits, commit_count=1))
    world.host.patches[run_id] = f"+key = {KEY}\n"
    changes = asked(world)
    assert KEY not in changes.of_task("t").model_dump_json()
    assert changes.patch(run_id).text == "+key = [redacted]\n"


def test_a_patch_that_was_cut_says_so(world: World) -> None:
    run_id = run_with(world, record(is_patch_whole=False))
    assert not asked(world).patch(run_id).is_whole


def test_what_does_not_exist_for_a_guest_has_no_changes(world: World) -> None:
    run_id = run_with(world, record())
    changes = asked(world, Principal("eve", Role.READ, "shop"))
    with pytest.raises(NotFound):
        changes.of_task("t")
    with pytest.raises(NotFound):
        changes.patch(run_id)
