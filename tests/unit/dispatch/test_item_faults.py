"""A fault of one task, run or directory: the others carry on, it is tried again, and it is shown."""

import errno
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.dispatch.heads import HeadReader
from claudomator_py.dispatch.reconciler import ALL_RUNS
from claudomator_py.domain.run import RunStatus
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS
from claudomator_py.faults import Activity, Item, checks, error_text, item_of, remedy_of
from claudomator_py.scheduler.plan import Planner
from claudomator_py.scheduler.snapshot import QueueHead
from claudomator_py.store.tables import RUN, Task
from claudomator_py.tasks.readiness import ready
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


def loop(path: Path) -> None:
    """Put a loop of symbolic links in the place of the folder."""
    path.rmdir()
    path.symlink_to(path)


def broken_starts(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have every look at the folder fail for no reason that is known."""

    def tree_request(*_: object) -> object:
        raise RecursionError(f"too deep, at {folder}")

    monkeypatch.setattr("claudomator_py.dispatch.run_context.tree_request", tree_request)


def next_time(world: World) -> None:
    """A tick at the time at which the next fault is tried again."""
    after_ms = world.faults.next_ms(world.now_ms)
    assert after_ms is not None
    world.tick(after_ms - world.now_ms)


def shown(world: World) -> list[str]:
    return [check.detail for check in checks(world.faults.all()) if not check.ok]


def test_a_task_whose_own_place_is_broken_fails_at_once_and_alone(world: World, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    world.submit("bad", working_dir=str(tmp_path / "repo"), isolation="worktree")
    world.submit("after", depends_on=["bad"])
    world.submit("good")
    loop(tmp_path / "repo")
    world.tick()
    assert list(world.running()) == ["good"]
    assert (world.state("bad"), world.state("after")) == ("FAILED setup_failed", "FAILED dependency_failed")
    text = str(world.task("bad").reason_text)
    assert str(tmp_path / "repo") in text
    assert text.endswith("correct the folder and restart the task.")
    assert shown(world) == []
    (tmp_path / "repo").unlink()
    (tmp_path / "repo").mkdir()
    assert world.restart("bad").state == "QUEUED"


def test_a_start_that_fails_again_and_again_stops_its_own_task_only(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo").mkdir()
    world.submit("bad", working_dir=str(tmp_path / "repo"), isolation="worktree")
    world.submit("good")
    broken_starts(monkeypatch, tmp_path / "repo")

    world.tick()
    assert list(world.running()) == ["good"]
    assert world.state("bad") == "QUEUED fault"
    headline = world.service.why("bad").sentences[0]
    assert headline.startswith("bad is QUEUED: starting bad failed: ")
    assert f"{tmp_path / 'repo'}" in headline
    assert headline.endswith("; tries again at 14:13 UTC (in 5s).")
    world.submit("later")
    world.tick()
    assert set(world.running()) == {"good", "later"}
    tries = 1
    while world.row("bad").state == "QUEUED":
        next_time(world)
        tries += 1
        assert tries < 20

    assert world.state("bad") == "FAILED setup_failed"
    text = str(world.task("bad").reason_text)
    assert "could not be started 7 times in a row" in text
    assert str(tmp_path / "repo") in text
    assert world.now_ms >= START_MS + 10 * MINUTE_MS
    assert shown(world) == []


def test_a_start_that_failed_is_tried_at_once_when_the_task_is_given_other_content(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "repo").mkdir()
    world.take("/in/t.yaml", spec("t", working_dir=str(tmp_path / "repo"), isolation="worktree"))
    loop(tmp_path / "repo")
    world.tick()
    assert world.running() == {}
    world.take("/in/t.yaml", spec("t"), mtime_ns=2)
    world.tick()
    assert list(world.running()) == ["t"]


def test_a_run_whose_reading_raises_is_read_again_with_pauses_that_grow(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("bad")
    world.submit("good")
    world.tick()
    bad, reconcile = world.live("bad").id, world.host.reconcile
    looks: list[int] = []

    def broken(run_id: str, step: int = 0) -> RunStatus:
        if run_id == bad:
            looks.append(world.now_ms)
            raise RecursionError("maximum recursion depth exceeded")
        return reconcile(run_id, step)

    monkeypatch.setattr(world.host, "reconcile", broken)
    world.end("good")
    for _ in range(7):
        world.tick()
        next_time(world)
    assert world.state("good") == "COMPLETED"
    pauses = [after - before for before, after in pairwise(looks)]
    assert pauses == [SECOND_MS * 2**number for number in range(6)] + [MINUTE_MS]
    (text,) = shown(world)
    assert f"reading the run of bad (run {bad[:8]}) failed {len(looks)} times in a row: RecursionError" in text

    assert world.task("bad").reason == "fault"
    assert "RecursionError" in str(world.task("bad").reason_text)

    monkeypatch.undo()
    world.end("bad")
    world.tick(MINUTE_MS)
    assert world.state("bad") == "COMPLETED"
    assert world.faults.all() == []


def test_a_cancellation_does_not_wait_for_the_end_of_such_a_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("t")
    world.tick()
    world.tick()
    reader = world.host._reader
    monkeypatch.setattr(world.host, "_reader", lambda subject: 1 / 0)
    world.tick()
    assert [fault.item.activity for fault in world.faults.all()] == [Activity.COLLECT]
    monkeypatch.setattr(world.host, "_reader", reader)
    world.service.cancel("t")
    world.tick()
    world.tick()
    assert world.state("t") == "CANCELLED"
    assert world.faults.all() == []


def test_a_cancellation_that_fails_leaves_what_failed_before_as_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("t")
    world.tick()
    monkeypatch.setattr(world.host, "reconcile", lambda *_: 1 / 0)
    world.tick()
    world.service.cancel("t")
    world.tick()
    assert {fault.item.activity for fault in world.faults.all()} == {Activity.COLLECT, Activity.STOP}


def test_a_change_of_one_task_that_raises_keeps_no_other_from_its_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = "2026-09-21T16:26:40Z"
    for name in ("a", "bad", "c"):
        world.submit(name, not_before=later)
    world.tick()

    def broken(connection: Any, task: Any, *rest: Any) -> Any:
        if task.name == "bad":
            raise ValueError("a row that makes no sense")
        return ready(connection, task, *rest)

    monkeypatch.setattr("claudomator_py.dispatch.reconciler.ready", broken)
    world.now_ms = world.row("a").until_ms or 0
    world.tick()
    assert set(world.running()) == {"a", "c"}
    monkeypatch.undo()
    world.tick(MINUTE_MS)
    assert set(world.running()) == {"a", "bad", "c"}


@pytest.mark.parametrize(("of", "step"), [(HeadReader, "head"), (Planner, "consider")])
def test_what_cannot_be_understood_or_planned_keeps_no_other_task_from_starting(
    world: World, monkeypatch: pytest.MonkeyPatch, of: type, step: str
) -> None:
    world.submit("bad")
    world.submit("good")
    usual = getattr(of, step)

    def broken(self: object, about: Task | QueueHead, *rest: Any) -> Any:
        if about.name == "bad":
            raise ValueError("no such field")
        return usual(self, about, *rest)

    monkeypatch.setattr(of, step, broken)
    world.tick()
    assert list(world.running()) == ["good"]
    assert [(fault.item.activity, fault.item.name) for fault in world.faults.all()] == [(Activity.START, "bad")]
    monkeypatch.undo()
    world.tick(MINUTE_MS)
    assert set(world.running()) == {"bad", "good"}


def test_a_task_whose_routing_failed_is_not_held_up_where_nobody_routes(world: World) -> None:
    """As after the last specialist was removed."""
    world.submit("t")
    world.faults.note(item_of(Activity.ROUTE, world.row("t")), ValueError("no such field"))
    world.tick()
    assert list(world.running()) == ["t"]


def test_the_faults_of_a_task_that_has_ended_and_of_a_run_that_is_gone_are_forgotten(world: World) -> None:
    for name in ("ended", "goes"):
        world.submit(name, not_before="2026-09-22T00:00:00Z")
    world.submit("runs")
    world.tick()
    for name in ("ended", "goes"):
        world.faults.note(item_of(Activity.READY, world.row(name)), ValueError("a row that makes no sense"))
    for doing in (Activity.COLLECT, Activity.STOP):
        world.faults.note(Item(doing, world.live("runs").id, "its run"), OSError("an odd file"))
    world.service.cancel("ended")
    over = RUN.update().values(live=False)
    world.database.write(lambda connection: connection.execute(over))
    world.tick()
    assert [fault.item.name for fault in world.faults.all()] == ["goes"]


def test_a_fault_of_all_tasks_is_not_forgotten_with_one_of_them(world: World) -> None:
    of_all = Item(Activity.ROUTE, ALL_RUNS, "all tasks")
    world.faults.note(of_all, ValueError("no such field"))
    world.submit("ended")
    world.faults.note(item_of(Activity.ROUTE, world.row("ended")), ValueError("no such field"))
    world.service.cancel("ended")
    world.tick()
    assert [fault.item for fault in world.faults.all()] == [of_all]


def test_a_spawn_that_cannot_work_ends_its_task_and_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with an environment that is too large for any process."""
    world.submit("bad", env={"BIG": "x"})
    world.submit("good")
    spawn = world.host.spawn

    def broken(run_id: str, environment: Any, step: int = 0) -> None:
        if "BIG" in environment:
            raise OSError(7, "Argument list too long")
        spawn(run_id, environment, step)

    monkeypatch.setattr(world.host, "spawn", broken)
    world.tick()
    assert "good" in world.running()
    while world.row("bad").state in ("RUNNING", "QUEUED", "WAITING"):
        world.tick(MINUTE_MS)
    assert world.state("bad") == "FAILED setup_failed"
    assert "Argument list too long" in str(world.task("bad").reason_text)


def test_a_directory_that_cannot_be_removed_keeps_nothing_from_starting(world: World) -> None:
    world.submit("gone")
    world.tick()
    order = world.host.directories[world.live("gone").id, 0].order
    for name in ("one", "two"):
        world.host.prepare(replace(order, run_id=name))
    world.host.stuck["one"] = PermissionError(1, "Operation not permitted", "/state/runs/.one.trash/work/root-owned")

    assert world.reconciler.sweep() == ["two"]
    world.submit("next")
    world.host.prepare(replace(order, run_id="three"))
    world.tick()
    assert set(world.running()) == {"gone", "next"}
    assert ("three", 0) in world.host.directories, "a tick looks again only once the pause is over"
    world.tick(MINUTE_MS)
    assert ("three", 0) not in world.host.directories
    (text,) = shown(world)
    assert "removing the run directory one failed" in text
    assert "/state/runs/.one.trash/work/root-owned: Operation not permitted" in text

    world.host.stuck.clear()
    world.tick(60 * MINUTE_MS)
    assert shown(world) == []
    assert ("one", 0) not in world.host.directories


def test_what_the_system_refuses_without_a_path_is_looked_up_in_the_log() -> None:
    """As "Invalid argument; check that path" names none."""
    bare, placed = OSError(errno.EINVAL, "Invalid argument"), OSError(errno.EINVAL, "Invalid argument", "/srv/x")
    assert (error_text(bare), remedy_of(bare)) == ("OSError: Invalid argument", "see the daemon's log")
    assert (error_text(placed), remedy_of(placed)) == ("/srv/x: Invalid argument", "check that path")
    full = OSError(errno.ENOSPC, "No space left on device")
    assert (error_text(full), remedy_of(full)) == (
        "No space left on device",
        "make room on that disk, or remove files if it has space but no inodes (df -i)",
    )


def test_what_keeps_runs_from_starting_is_said_while_the_task_waits_for_the_next_attempt(world: World) -> None:
    world.submit("t")
    world.host.no_processes = PermissionError(errno.EACCES, "Permission denied", "/opt/venv/bin/python")
    while not (shown(world) and world.state("t") == "WAITING fault"):
        world.tick(10 * SECOND_MS)
    for text in (str(world.task("t").reason_text), " ".join(world.service.why("t").sentences), *shown(world)):
        assert "/opt/venv/bin/python: Permission denied" in text
    assert any(not check.ok and check.blocking for check in checks(world.faults.all()))
    world.host.no_processes = None
    while world.task("t").state != "RUNNING" or shown(world):
        world.tick(10 * SECOND_MS)
    world.succeed("t")
    assert world.state("t") == "COMPLETED"
