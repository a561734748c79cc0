"""Ticks as a whole: replayed, idle, and with directories that nobody knows."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, select

from claudomator_py.dispatch import reconciler
from claudomator_py.dispatch.reconciler import ARRIVING_MS, COUNT_MS, SOON_MS, OverdueRequest
from claudomator_py.domain import crashpoint
from claudomator_py.domain.run import RunLimits, RunSpec, Swept
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.scheduler.plan import StartRun, plan
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.store import StoreUnavailable, decision_rows, run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import DECISION, RUN, SNAPSHOT, TASK
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


def test_every_decision_can_be_replayed_from_its_snapshot(world: World) -> None:
    hints: list[dict[str, object]] = [{"agent": {"type": "codex"}} if number % 2 else {} for number in range(6)]
    world.take("/in/t.yaml", *(spec(f"t{number}", **hint) for number, hint in enumerate(hints)))
    world.tick()
    world.limit("t0", reset_at=START_MS + HOUR_MS)
    world.succeed("t1")

    def read(connection: Connection) -> list[Any]:
        query = select(DECISION.c.task_id, DECISION.c.data, DECISION.c.snapshot_hash).join(
            SNAPSHOT, SNAPSHOT.c.hash == DECISION.c.snapshot_hash
        )
        return [
            (task, data, decision_rows.snapshot(connection, seen)) for task, data, seen in connection.execute(query)
        ]

    decided = world.database.read(read)
    assert len(decided) == 5
    for task_id, decision, seen in decided:
        actions = plan(Snapshot.model_validate(seen))
        replayed = [action for action in actions if isinstance(action, StartRun) and action.head.task_id == task_id]
        # What the run is given is known only when it starts, and no part of the decision that is made again.
        decision.pop("given", None)
        assert [action.decision.model_dump(mode="json", exclude={"given"}) for action in replayed] == [decision]


def test_a_tick_with_nothing_to_do_writes_nothing(world: World) -> None:
    world.submit("runs")
    world.submit("waits", depends_on=["nobody"])
    world.tick()
    world.tick()
    commits: list[int] = []
    world.database.on_commit(lambda: commits.append(1))
    world.tick()
    report = world.tick()
    assert commits == []
    assert (report.started, len(report.live), report.wake_ms) == (0, 1, None)


def test_a_tick_finds_out_whether_a_store_in_trouble_works_again(world: World) -> None:
    """Though it has nothing to write: nobody else may try for long."""
    world.database.trouble = StoreUnavailable("the disk was full", "make room")
    world.tick()
    assert world.database.trouble is None


def test_nothing_starts_while_tasks_are_arriving(world: World) -> None:
    """One of those that arrive may be more urgent. Whatever has begun goes on."""
    world.submit("before")
    world.tick()
    world.reconciler.arriving = lambda: True
    world.submit("low")
    world.end("before")
    report = world.tick()
    assert (world.state("before"), world.state("low")) == ("COMPLETED", "QUEUED ready")
    assert report.wake_ms == world.now_ms + ARRIVING_MS, "whether or not somebody wakes it"
    world.reconciler.arriving = lambda: False
    world.tick()
    assert world.state("low").startswith("RUNNING")


def test_the_inbox_alone_tells_of_what_it_took(world: World) -> None:
    """Not each of its commits: more may have come with what it took."""
    wakes: list[int] = []
    world.database.on_commit(lambda: wakes.append(world.now_ms), planned=False)
    world.take("/in/t.yaml", spec("t"))
    assert wakes == []


def test_directories_without_a_row_are_swept_and_others_stay(world: World) -> None:
    world.submit("t")
    world.tick()
    known = world.live("t").id
    world.host.prepare(replace(world.host.directories[known, 0].order, run_id="stray"))
    world.tick()
    assert ("stray", 0) in world.host.directories, "a tick looks again only for what could not be removed"
    assert world.reconciler.sweep() == ["stray"]
    assert list(world.host.directories) == [(known, 0)]


def test_while_run_directories_cannot_be_looked_at_none_is_swept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = RunLimits(timeout_ms=None, stall_ms=None, grace_ms=0, output_bytes=1)
    world.host.prepare(RunSpec("stray", (("true",),), None, (), (), "", limits))

    def broken(known: frozenset[str]) -> list[Swept]:
        raise OSError(5, "Input/output error", "/state/runs")

    monkeypatch.setattr(world.host, "sweep", broken)
    assert world.reconciler.sweep() == []
    world.tick(MINUTE_MS)
    (fault,) = world.faults.all()
    assert fault.times == 2
    monkeypatch.undo()
    world.tick(2 * MINUTE_MS)
    assert world.host.directories == {}
    assert world.faults.all() == []


@pytest.mark.parametrize("alive", [False, True])
def test_a_run_that_the_store_does_not_know_is_swept_and_the_task_started(world: World, *, alive: bool) -> None:
    """As after an older copy of the database was put back: the directory tells of a run that is in no row."""
    world.submit("t")
    run_id, _ = run_rows.identity(world.row("t").id, 1, 1, 1)
    limits = RunLimits(timeout_ms=None, stall_ms=None, grace_ms=0, output_bytes=1)
    world.host.prepare(RunSpec(run_id, (("true",),), None, (), (), "", limits))
    world.host.spawn(run_id, {})
    if not alive:
        world.host.kill_shim(run_id)

    world.tick()
    # One that lives has to end first.
    world.tick(MINUTE_MS if alive else 0)

    assert world.state("t").startswith("RUNNING")
    assert world.live("t").id == run_id


def test_a_task_that_an_older_version_left_waiting_for_nothing_starts(world: World) -> None:
    world.submit("first")
    world.submit("second", depends_on=["first"])
    ended = TASK.update().where(TASK.c.name == "first").values(state="COMPLETED", phase=None, reason=None)
    world.database.write(lambda connection: connection.execute(ended))
    world.tick()
    assert list(world.running()) == ["second"]


def test_all_that_an_older_version_left_waiting_for_nothing_starts_however_much_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "DUE_BATCH_SIZE", 1)
    world.submit("first")
    for name in ("second", "third"):
        world.submit(name, depends_on=["first"])
    ended = TASK.update().where(TASK.c.name == "first").values(state="COMPLETED", phase=None, reason=None)
    world.database.write(lambda connection: connection.execute(ended))
    for _ in range(2):
        world.tick()
    assert set(world.running()) == {"second", "third"}


def test_a_task_of_which_nobody_could_be_asked_holds_up_no_other(world: World) -> None:
    """As if whoever judges tasks failed: it stays in the queue, at the head of its lane, and is not started."""
    for name in ("asks", "other"):
        world.submit(name, approval=name == "asks")

    world.tick()

    assert set(world.running()) == {"other"}
    assert world.state("asks").startswith("QUEUED")


def test_a_task_that_nobody_answers_in_time_fails(database: Database) -> None:
    world = World(database, routes=True)
    world.submit("t", approval=True)
    world.tick()
    limited = TASK.update().values(until_ms=START_MS + HOUR_MS)
    world.database.write(lambda connection: connection.execute(limited))
    world.tick(HOUR_MS - 1)
    assert world.state("t") == "NEEDS_INPUT approval"
    world.tick(1)
    assert world.state("t") == "FAILED expired"


def test_a_request_that_a_tick_does_not_get_to_is_told_until_one_does(world: World) -> None:
    """As of a task that is said to run, and of which no run lives."""
    world.submit("t")
    world.tick()
    world.host.stubborn = True
    world.service.cancel("t")
    assert world.tick(1).overdue is None, "its run was asked to end"
    assert world.faults.all() == [], "it is cancelled once its run has ended"
    lost = RUN.update().where(RUN.c.id == world.live("t").id)
    world.database.write(lambda connection: connection.execute(lost.values(live=False)))
    assert world.tick(1).overdue == OverdueRequest("t", START_MS)
    world.database.write(lambda connection: connection.execute(lost.values(live=True)))
    assert world.tick(1).overdue is None


def test_of_several_such_requests_the_oldest_is_told(world: World) -> None:
    asked = {"newer": START_MS + 3, "older": START_MS + 2, "newest": START_MS + 4}
    for name in asked:
        world.submit(name)
    world.tick()
    for name, at_ms in asked.items():
        change = TASK.update().where(TASK.c.name == name).values(cancel_requested_ms=at_ms)
        world.database.write(partial(Connection.execute, statement=change))
    world.database.write(lambda connection: connection.execute(RUN.update().values(live=False)))
    assert world.tick(2).overdue is None, "it was asked for while the tick ran"
    assert world.tick(2).overdue == OverdueRequest("older", START_MS + 2)


@pytest.mark.parametrize(
    ("fields", "state"),
    [({}, "QUEUED"), ({"not_before": "2026-09-22T00:00:00Z"}, "WAITING"), ({"approval": True}, "NEEDS_INPUT")],
)
def test_a_task_whose_run_ended_just_before_it_was_to_be_cancelled_is_cancelled(
    database: Database, fields: dict[str, Any], state: str
) -> None:
    world = World(database, routes=True)
    world.submit("t", **fields)
    world.router.route()
    assert world.row("t").state == state
    asked = TASK.update().values(cancel_requested_ms=START_MS)
    world.database.write(lambda connection: connection.execute(asked))
    report = world.tick(1)
    assert world.state("t") == "CANCELLED"
    assert (report.started, report.overdue) == (0, None)


def test_the_next_tick_is_due_soon_while_a_run_starts(world: World) -> None:
    world.submit("runs")
    world.tick()
    world.tick()
    world.submit("later", not_before="2026-09-22T00:00:00Z")
    world.submit("starts")
    assert world.tick().wake_ms == START_MS + SOON_MS
    assert world.tick().wake_ms == world.row("later").until_ms


def test_the_next_tick_is_due_in_time_to_count_what_a_run_with_a_budget_uses(world: World) -> None:
    world.submit("t", budget={"tokens": 1_000})
    world.tick()
    world.tick()
    world.answer("t")
    assert world.tick().wake_ms == START_MS + COUNT_MS


def test_an_end_and_the_start_that_takes_its_slot_are_one_commit(database: Database) -> None:
    world = World(database, total=1)
    world.submit("first")
    world.tick()
    world.submit("second")
    world.end("first")
    commits: list[int] = []
    world.database.on_commit(lambda: commits.append(1))
    assert world.tick().started == 1
    assert (world.state("first"), list(world.running())) == ("COMPLETED", ["second"])
    assert len(commits) == 1


@pytest.mark.parametrize("point", ["finish-begin", "store-before-commit"])
def test_a_crash_before_that_commit_leaves_the_run_alive_and_starts_nothing(database: Database, point: str) -> None:
    world = World(database, total=1)
    world.submit("first")
    world.tick()
    world.submit("second")
    world.end("first")

    def crash(passed: str) -> None:
        if passed == point:
            raise KeyboardInterrupt if point != "store-before-commit" else RuntimeError(point)

    crashpoint.install(crash)
    try:
        with pytest.raises((KeyboardInterrupt, StoreUnavailable)):
            world.tick()
    finally:
        crashpoint.install(None)
    assert (list(world.running()), world.state("second")) == (["first"], "QUEUED slots")
    assert [call for call, *_ in world.host.calls].count("spawn") == 1
    world.restarted_daemon()
    world.tick()
    assert (world.state("first"), list(world.running())) == ("COMPLETED", ["second"])
    assert [call for call, *_ in world.host.calls].count("spawn") == 2
