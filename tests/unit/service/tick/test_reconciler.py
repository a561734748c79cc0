"""Ticks over a host in memory: every way in which a run can begin, end or get lost, and what is made of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from claudomator_py.core import crashpoint
from claudomator_py.core.run import RunLimits, RunOrder
from claudomator_py.core.units import HOUR_MS, MINUTE_MS
from claudomator_py.planning.plan import StartRun, plan
from claudomator_py.planning.snapshot import Snapshot
from claudomator_py.store import run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import DECISION, SNAPSHOT
from tests.fakes.runs import MemoryRunHost
from tests.fakes.world import CLAUDE, START_MS, World, spec


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open("sqlite", state_dir=tmp_path) as opened:
        migrate(opened)
        yield opened


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def starts(host: MemoryRunHost) -> list[tuple[str, int]]:
    return [(run_id, step) for call, run_id, step in host.calls if call == "spawn"]


# --- starting ---------------------------------------------------------------------------------------------------------


def test_directory_then_committed_row_then_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    committed: list[bool] = []
    prepare, spawn = world.host.prepare, world.host.spawn

    def look(run_id: str) -> None:
        committed.append(world.database.read(lambda connection: run_rows.find(connection, run_id)) is not None)

    def watched_prepare(order: RunOrder, step: int = 0) -> None:
        look(order.run_id)
        prepare(order, step)

    def watched_spawn(run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        look(run_id)
        spawn(run_id, environment, step)

    monkeypatch.setattr(world.host, "prepare", watched_prepare)
    monkeypatch.setattr(world.host, "spawn", watched_spawn)
    world.submit("t")
    assert world.tick().started == 1
    assert committed == [False, True]
    assert [call for call, *_ in world.host.calls] == ["prepare", "spawn"]


def test_what_a_run_is_told(world: World) -> None:
    limits = {"timeout": "5m", "stall_timeout": "1m"}
    world.submit("t", working_dir="/srv/x", env={"CI": "1"}, expected_output="a fix", on_input="deny", **limits)
    world.tick()
    run = world.live("t")
    directory = world.host.directories[run.id, 0]
    order = directory.order
    assert order.commands == (("claude", "sonnet"),)
    assert (order.cwd, order.stdin) == ("/srv/x", "do t\n\nHand back: a fix\n")
    assert (order.limits.timeout_ms, order.limits.stall_ms) == (5 * MINUTE_MS, MINUTE_MS)
    assert directory.environment["CI"] == "1"
    assert directory.environment["CLAUDOMATOR_RUN"] == run.id
    assert "SECRET" not in directory.environment
    assert order.env_names == tuple(sorted(directory.environment))


def test_a_task_that_changed_since_it_was_planned_is_left_for_the_next_plan(world: World) -> None:
    world.submit("t")
    world.submit("other")
    snapshot = world.database.read(world.observer.snapshot)
    planned = [action for action in plan(snapshot) if isinstance(action, StartRun)]
    world.desk.cancel("t")
    assert world.starter.start(snapshot, planned) == 1
    assert list(world.running()) == ["other"]
    assert world.state("t") == "CANCELLED"


def test_a_change_between_directory_and_commit_starts_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = world.host.prepare

    def change_then_prepare(order: RunOrder, step: int = 0) -> None:
        prepare(order, step)
        world.desk.cancel("t")

    monkeypatch.setattr(world.host, "prepare", change_then_prepare)
    world.submit("t")
    assert world.tick().started == 0
    assert world.state("t") == "CANCELLED"
    assert world.host.starts() == []
    assert world.host.directories == {}


def test_a_directory_that_cannot_be_made_leaves_the_task_queued_and_writes_nothing(world: World) -> None:
    world.submit("t")
    world.host.no_room = OSError(28, "No space left on device")
    commits: list[int] = []
    world.database.on_commit(lambda: commits.append(1))
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            world.tick()
    assert commits == []
    assert world.state("t") == "QUEUED ready"
    world.host.no_room = None
    world.tick()
    assert world.running() == {"t": "claude"}


def test_what_was_committed_before_such_a_fault_is_started_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = world.host.prepare
    made: list[str] = []

    def once(order: RunOrder, step: int = 0) -> None:
        if made:
            raise OSError(28, "No space left on device")
        made.append("one")
        prepare(order, step)

    monkeypatch.setattr(world.host, "prepare", once)
    world.submit("a")
    world.submit("b")
    with pytest.raises(OSError, match="No space left"):
        world.tick()
    assert len(world.host.starts()) == 1
    assert len(world.running()) == 1


def test_a_process_that_cannot_be_made_costs_nothing_and_is_tried_again_with_pauses(world: World) -> None:
    world.submit("t", retry={"max_attempts": 1})
    world.host.no_processes = OSError(11, "Resource temporarily unavailable")
    world.tick()
    for _ in range(20):
        world.tick()
    assert len(starts(world.host)) == 2
    assert world.state("t") == "WAITING backoff"
    for _ in range(6):
        world.tick(10 * MINUTE_MS)
    assert world.task("t").attempts == 0
    world.host.no_processes = None
    world.tick(HOUR_MS)
    world.tick(HOUR_MS)
    assert world.running() == {"t": "claude"}
    world.succeed("t")
    assert world.task("t").attempts == 1


def test_an_agent_that_cannot_be_launched_as_configured_fails_its_task(world: World) -> None:
    world.kinds["claude"].refusal = "`extra_args` may not hold `--print`; remove it"
    world.submit("t", agent={"type": "claude"})
    world.tick()
    assert world.state("t") == "FAILED setup_failed"
    assert "may not hold `--print`" in str(world.task("t").reason_text)
    assert world.host.calls == []
    (run,) = world.desk.runs("t")
    assert (run.state, run.exit_code) == ("ended", None)


def test_an_agent_that_cannot_be_launched_and_a_task_that_changed_meanwhile(world: World) -> None:
    world.kinds["claude"].refusal = "no"
    world.submit("t")
    snapshot = world.database.read(world.observer.snapshot)
    planned = [action for action in plan(snapshot) if isinstance(action, StartRun)]
    find = task_rows.find

    def change_after(connection: Connection, task_id: str) -> object:
        found = find(connection, task_id)
        world.database.submit(lambda writing: task_rows.change(writing, task_rows.get(writing, task_id), START_MS))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_rows, "find", change_after)
        assert world.starter.start(snapshot, planned) == 0
    assert world.state("t") == "QUEUED ready"


# --- ends -------------------------------------------------------------------------------------------------------------


def test_a_run_given_up_before_it_started_costs_nothing(world: World) -> None:
    world.host.slow = True
    world.submit("t")
    world.tick()
    first = world.live("t").id
    world.host.kill_shim(first)
    world.tick()
    second = world.live("t")
    assert (second.attempt, second.seq) == (1, 2)
    assert world.desk.run(first).state == "revoked"
    assert not world.host.begin(first)
    assert "was given up before it started; it cost nothing" in " ".join(world.desk.why("t").sentences)


def test_a_shim_on_its_way_is_waited_for(world: World) -> None:
    world.host.slow = True
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    for _ in range(3):
        assert world.tick().wake_ms is not None
    assert world.task("t").phase == "starting"
    world.host.begin(run_id)
    world.tick()
    assert (world.task("t").phase, world.live("t").state) == ("running", "running")
    world.succeed("t")
    assert starts(world.host) == [(run_id, 0)]


def test_a_lost_run_whose_last_word_was_said_counts_as_that(world: World) -> None:
    world.submit("done")
    world.submit("lost")
    world.tick()
    world.say("done", text="all done")
    for name in ("done", "lost"):
        world.host.kill_shim(world.live(name).id)
    world.tick()
    view = world.task("done")
    assert (view.state, view.result_text) == ("COMPLETED", "all done")
    (run,) = world.desk.runs("done")
    assert run.exit_code is None
    assert world.state("lost") == "FAILED lost"


def test_half_a_last_word_is_none(world: World) -> None:
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.host.write(run_id, json.dumps({"status": "succeeded"}).encode())
    world.host.kill_shim(run_id)
    world.tick()
    assert world.state("t") == "FAILED lost"


def test_no_retry_before_nothing_of_the_lost_run_is_left(world: World) -> None:
    world.submit("t", on_lost="retry", retry={"backoff": "0s"})
    world.tick()
    run_id = world.live("t").id
    world.host.kill_shim(run_id)
    world.host.survivors[run_id] = 2
    for _ in range(2):
        world.tick()
        assert world.live("t").id == run_id
    world.tick(1)
    assert world.live("t").id != run_id


def test_a_run_directory_that_is_gone_is_a_lost_run(world: World) -> None:
    world.submit("t")
    world.tick()
    world.host.remove(world.live("t").id)
    world.tick()
    assert world.state("t") == "FAILED lost"


def test_one_unreadable_directory_keeps_nobody_else_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.submit("bad")
    world.submit("good")
    world.tick()
    bad, settle = world.live("bad").id, world.host.settle

    def settle_but_one(run_id: str, step: int = 0) -> object:
        if run_id == bad:
            raise OSError(5, "Input/output error")
        return settle(run_id, step)

    monkeypatch.setattr(world.host, "settle", settle_but_one)
    world.end("good")
    world.submit("next")
    world.tick()
    assert world.state("good") == "COMPLETED"
    assert set(world.running()) == {"bad", "next"}


def test_output_that_its_reader_stumbles_over_ends_that_run_only(world: World) -> None:
    for kind in world.kinds.values():
        kind.poison = b"poison"
    world.submit("bad", retry={"max_attempts": 1})
    world.submit("good")
    world.tick()
    world.end("bad", text="here is poison for you")
    world.end("good")
    world.tick()
    assert world.state("good") == "COMPLETED"
    assert world.state("bad") == "FAILED agent_error"
    assert "could not be understood" in str(world.task("bad").reason_text)


def test_an_agent_that_is_no_longer_configured_is_still_read(world: World) -> None:
    world.submit("t", agent={"type": "codex"})
    world.tick()
    world.agents = (CLAUDE,)
    world.restarted_daemon()
    world.succeed("t")
    assert world.state("t") == "COMPLETED"


def test_an_end_is_recorded_once(world: World) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.end("t")
    world.tick()
    version = world.task("t").version
    collected = world.collector.collect(run, world.now_ms)
    assert collected is False
    assert world.task("t").version == version


# --- cancelling -------------------------------------------------------------------------------------------------------


def test_cancel_before_the_process_has_started(world: World) -> None:
    world.host.slow = True
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.desk.cancel("t")
    world.tick()
    assert world.task("t").phase == "stopping"
    assert not world.host.begin(run_id)
    world.tick()
    assert world.state("t") == "CANCELLED"
    assert world.desk.run(run_id).state == "revoked"


def test_cancel_is_asked_for_until_the_run_has_ended(world: World) -> None:
    world.host.stubborn = True
    world.submit("t")
    world.tick()
    run_id = world.live("t").id
    world.desk.cancel("t")
    for _ in range(3):
        world.tick()
    assert world.host.calls.count(("cancel", run_id, 0)) == 3
    assert world.task("t").phase == "stopping"
    world.host.end(run_id, None, ended_by="cancel")
    world.tick()
    assert world.state("t") == "CANCELLED"


def test_a_cancelled_run_is_neither_retried_nor_resumed_by_its_limit(world: World) -> None:
    world.submit("t")
    world.tick()
    world.host.stubborn = True
    world.desk.cancel("t")
    world.limit("t", reset_at=START_MS + HOUR_MS)
    assert world.state("t") == "CANCELLED"
    assert world.desk.agents()[0].limited


# --- check ------------------------------------------------------------------------------------------------------------


def checking(world: World, **fields: Any) -> str:
    """A task whose agent has succeeded and whose check runs; the run's id."""
    world.submit("t", check=["make test", "make lint"], **fields)
    world.tick()
    world.end("t", text="done")
    world.tick()
    assert (world.task("t").state, world.task("t").phase) == ("RUNNING", "checking")
    return world.live("t").id


def test_a_check_decides_success(world: World) -> None:
    run_id = checking(world)
    order = world.host.directories[run_id, 1].order
    assert order.commands == (("make", "test"), ("make", "lint"))
    world.host.end(run_id, 0, step=1)
    world.tick()
    view = world.task("t")
    assert (view.state, view.result_text) == ("COMPLETED", "done")
    assert world.desk.run(run_id).exit_code == 0


def test_a_failed_check_fails_the_attempt_with_its_output(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 2, "backoff": "1s"})
    world.host.write(run_id, b"1 failed, 3 passed\n", "stderr", step=1)
    world.host.end(run_id, 2, step=1)
    world.tick()
    assert world.state("t") == "WAITING backoff"
    outcome = world.desk.run(run_id).outcome
    assert outcome is not None
    assert (outcome.status, outcome.reason, outcome.text) == ("failed", "check_failed", "done")
    assert outcome.detail == "check `make test` exited with 2\n1 failed, 3 passed"


def test_a_lost_or_interrupted_check_is_begun_again_but_not_for_ever(world: World) -> None:
    run_id = checking(world, retry={"max_attempts": 1})
    world.host.kill_shim(run_id, 1)
    world.tick()
    world.host.end(run_id, None, ended_by="interrupt", step=2)
    world.tick()
    assert world.live("t").check_seq == 3
    assert world.task("t").phase == "checking"
    for step in range(3, 6):
        world.host.kill_shim(run_id, step)
        world.tick()
    assert world.state("t") == "FAILED check_failed"
    assert "begun 5 times, and lost each time" in str(world.task("t").reason_text)
    assert [call for call in world.host.calls if call[0] == "spawn"] == [("spawn", run_id, step) for step in range(6)]


def test_cancel_during_a_check(world: World) -> None:
    run_id = checking(world)
    world.desk.cancel("t")
    world.tick()
    assert ("cancel", run_id, 1) in world.host.calls
    world.tick()
    assert world.state("t") == "CANCELLED"


def test_a_success_that_was_not_checked_any_more_is_none(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    world.host.stubborn = True
    world.desk.cancel("t")
    world.end("t", text="done")
    world.tick()
    assert world.state("t") == "CANCELLED"


def test_a_check_directory_that_cannot_be_made_writes_nothing_and_is_made_later(world: World) -> None:
    world.submit("t", check=["make test"])
    world.tick()
    world.tick()
    world.end("t")
    world.host.no_room = OSError(28, "No space left on device")
    commits: list[int] = []
    world.database.on_commit(lambda: commits.append(1))
    world.tick()
    world.tick()
    assert commits == []
    world.host.no_room = None
    world.tick()
    assert world.task("t").phase == "checking"
    assert world.live("t").check_seq == 1


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_limited_run_loses_no_attempt_and_goes_on_elsewhere_and_new_tasks_flow_around(world: World) -> None:
    world.submit("a", retry={"max_attempts": 1})
    world.tick()
    assert world.running() == {"a": "claude"}
    world.limit("a", reset_at=START_MS + HOUR_MS)
    assert world.running() == {"a": "codex"}
    assert world.live("a").attempt == 1
    world.take("/in/more.yaml", spec("b"), spec("c"))
    world.tick()
    assert world.running() == {"a": "codex", "b": "codex"}
    assert world.task("c").reason_text == "codex is full (2 of 2 slots)"
    assert world.tick().wake_ms == START_MS + HOUR_MS
    world.tick(HOUR_MS)
    assert world.running() == {"a": "codex", "b": "codex", "c": "claude"}


def test_what_falls_due_while_a_tick_is_under_way_is_not_forgotten(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    world.tick(HOUR_MS - 1)

    def pass_by(point: str) -> None:
        world.now_ms += 5 * (point == "tick-end")

    crashpoint.install(pass_by)
    try:
        wake = world.tick().wake_ms
    finally:
        crashpoint.install(None)
    assert wake == START_MS + HOUR_MS, "it is over already, and the next tick is due at once"


def test_when_all_are_limited_tasks_wait_for_the_first_reset_or_are_released_by_hand(world: World) -> None:
    world.submit("t")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    world.limit("t", reset_at=START_MS + 2 * HOUR_MS)
    view = world.task("t")
    assert (view.state, view.reason, view.attempts, view.runs) == ("QUEUED", "limited", 0, 2)
    world.tick(MINUTE_MS)
    assert world.running() == {}
    world.desk.release("codex")
    world.tick()
    assert world.running() == {"t": "codex"}


def test_a_limit_without_a_reset_is_probed_with_growing_pauses(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t")
    begun = []
    for _ in range(4):
        wake = world.tick().wake_ms
        begun.append(world.now_ms - START_MS)
        world.limit("t")
        wake = world.tick().wake_ms
        assert wake is not None
        world.now_ms = wake
    assert begun == [0, 5 * MINUTE_MS, 15 * MINUTE_MS, 35 * MINUTE_MS]
    assert world.task("t").attempts == 0


def test_runs_that_meet_one_limit_together_hold_it_once(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("a")
    world.submit("b")
    world.tick()
    for name in ("a", "b"):
        world.end(name, status="limited", reason="rate_limited")
    world.tick()
    assert world.tick().wake_ms == START_MS + 5 * MINUTE_MS


def test_an_earlier_deadline_does_not_shorten_a_later_one(world: World) -> None:
    world.submit("a", agent={"type": "claude", "strict": True})
    world.submit("b", agent={"type": "claude", "strict": True})
    world.tick()
    world.end("a", status="limited", reason="rate_limited", reset_at=START_MS + 2 * HOUR_MS)
    world.tick()
    world.end("b", status="limited", reason="rate_limited", reset_at=START_MS + HOUR_MS)
    world.tick()
    world.tick(HOUR_MS)
    assert world.running() == {}
    world.tick(HOUR_MS)
    (probe,) = world.running()
    world.succeed(probe)
    assert set(world.running()) == {"a", "b"} - {probe}


def test_a_login_that_is_missing_holds_until_somebody_acts(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    world.submit("t")
    world.tick()
    world.fail("t", "auth", detail="Please run /login")
    world.tick(1_000 * HOUR_MS)
    view = world.task("t")
    assert (view.state, view.reason) == ("QUEUED", "limited")
    assert view.reason_text == "claude is held until `claudomator release claude` (auth: Please run /login)"
    world.desk.release("claude")
    world.tick()
    assert world.running() == {"t": "claude"}


def test_tried_all_the_same_when_so_configured(world: World) -> None:
    world = World(world.database, when_all_limited="try", agents=(CLAUDE,))
    world.submit("t")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)
    assert world.running() == {"t": "claude"}
    assert "Every agent is limited; tried all the same." in world.desk.why("t").sentences


# --- the whole --------------------------------------------------------------------------------------------------------


def test_every_decision_can_be_replayed_from_its_snapshot(world: World) -> None:
    hints: list[dict[str, object]] = [{"agent": {"type": "codex"}} if number % 2 else {} for number in range(6)]
    world.take("/in/t.yaml", *(spec(f"t{number}", **hint) for number, hint in enumerate(hints)))
    world.tick()
    world.limit("t0", reset_at=START_MS + HOUR_MS)
    world.succeed("t1")

    def read(connection: Connection) -> list[Any]:
        query = select(DECISION.c.task_id, DECISION.c.data, SNAPSHOT.c.data).join(
            SNAPSHOT, SNAPSHOT.c.hash == DECISION.c.snapshot_hash
        )
        return list(connection.execute(query))

    decided = world.database.read(read)
    assert len(decided) == 5
    for task_id, decision, seen in decided:
        actions = plan(Snapshot.model_validate(seen))
        replayed = [action for action in actions if isinstance(action, StartRun) and action.head.task_id == task_id]
        assert [action.decision.model_dump(mode="json") for action in replayed] == [decision]


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


def test_directories_without_a_row_are_swept_and_others_stay(world: World) -> None:
    world.submit("t")
    world.tick()
    known = world.live("t").id
    world.host.prepare(replace(world.host.directories[known, 0].order, run_id="stray"))
    assert world.reconciler.sweep() == ["stray"]
    assert list(world.host.directories) == [(known, 0)]


# --- sleeping in a limit ----------------------------------------------------------------------------------------------


def test_a_run_that_sleeps_in_a_limit_is_ended_and_its_agent_held_until_then(world: World) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.host.begin(run.id)
    world.tick()
    reset = world.clock() + HOUR_MS
    world.host.write(run.id, str(reset).encode(), "stderr")
    world.tick()
    assert ("cancel", run.id, 0) in world.host.calls
    world.tick()

    assert world.state("t") != "CANCELLED"
    assert world.task("t").attempts == 0
    held = {view.name: view.limited_until for view in world.desk.agents() if view.limited}
    assert list(held) == [run.agent]


def test_a_short_sleep_is_waited_out(world: World) -> None:
    world.submit("t")
    world.tick()
    run = world.live("t")
    world.host.begin(run.id)
    world.host.write(run.id, str(world.clock() + MINUTE_MS // 2).encode(), "stderr")
    world.tick()
    world.tick()
    assert ("cancel", run.id, 0) not in world.host.calls


def test_a_run_that_the_store_does_not_know_is_swept_and_the_task_started(world: World) -> None:
    """As after an older copy of the database was put back: the directory tells of a run that is in no row."""
    world.submit("t")
    run_id, _ = run_rows.identity(world.row("t").id, 1, 1, 1)
    limits = RunLimits(timeout_ms=None, stall_ms=None, grace_ms=0, output_bytes=1)
    world.host.prepare(RunOrder(run_id, (("true",),), None, (), (), "", limits))
    world.host.spawn(run_id, {})

    world.tick()
    world.tick()

    assert world.state("t").startswith("RUNNING")
    assert world.live("t").id == run_id
