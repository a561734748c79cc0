"""What has ended is kept for a time and then goes, a little at a time; what is needed stays, however old it is."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, Table, func, insert, select

from claudomator_py.domain import crashpoint
from claudomator_py.domain.channel import NewChannel, NewMessage
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.domain.retention import CleanupRequest, Retention
from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.store import decision_rows, events, metric_rows, outbox_rows, pruning
from claudomator_py.store.database import Database
from claudomator_py.store.tables import (
    CHANNEL_ANSWER,
    CLASSIFICATION,
    DECISION,
    EVENT,
    HOLD,
    RUN,
    SCHEDULE_FIRE,
    SNAPSHOT,
    TASK,
    TASK_REVISION,
)
from claudomator_py.workers import retention
from claudomator_py.workers.cleanup import Cleaner
from claudomator_py.workers.retention import Retainer
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

POLICY = Retention.model_validate({"runs": "30d", "events": "90d", "tasks": "365d"})
FOREVER = Retention.model_validate(
    dict.fromkeys(("runs", "decisions", "snapshots", "messages", "events", "tasks"), "forever")
)


class Crash(BaseException):
    """The end of a process."""


class Kept(World):
    """A world that keeps a policy."""

    def __init__(self, database: Database, folder: Path) -> None:
        super().__init__(database)
        self.policy = POLICY
        self.targets: tuple[str, ...] = ()
        self.folders = LocalRunHost(folder, Launcher(), grace_ms=0)
        self.cleaner = Cleaner(database, self.folders, self.worktrees, self.clock)
        self.retainer = Retainer(
            database,
            lambda: self.policy,
            lambda: self.targets,
            self.cleaner,
            self.folders,
            self.trees,
            self.clock,
            self.faults,
        )

    def done(self, name: str, **fields: object) -> str:
        """A task that has run to its end; the id of its run."""
        self.submit(name, **fields)
        self.tick()
        run_id = self.live(name).id
        self.folders.path(run_id).mkdir(parents=True)
        self.succeed(name)
        return run_id

    def after(self, days: float) -> dict[str, int]:
        """What is removed so many days after the start."""
        self.now_ms = START_MS + int(days * DAY_MS)
        return self.retainer.run_once()

    def count(self, table: Table) -> int:
        query = select(func.count()).select_from(table)
        return self.database.read(lambda connection: int(connection.execute(query).scalar_one()))


@pytest.fixture
def world(database: Database, tmp_path: Path) -> Kept:
    return Kept(database, tmp_path / "runs")


@pytest.fixture
def crash() -> Iterator[Callable[[], None]]:
    """Has the next batch that is removed be the last."""

    def at(name: str) -> None:
        if name == "rows-pruned":
            raise Crash

    yield lambda: crashpoint.install(at)
    crashpoint.install(None)


def test_nothing_goes_before_its_time_and_nothing_at_all_with_forever(world: Kept) -> None:
    world.done("t")

    assert world.after(29) == {}
    world.policy = FOREVER
    assert world.after(10_000) == {}


@pytest.mark.both_databases
def test_a_run_leaves_its_directory_and_what_was_seen_and_then_its_events(world: Kept) -> None:
    run_id = world.done("t")
    assert (world.count(DECISION), world.count(SNAPSHOT)) == (1, 1)

    removed = world.after(31)

    assert removed == {"run_directories": 1, "snapshots": 1}
    assert not world.folders.path(run_id).exists()
    assert (world.count(DECISION), world.count(SNAPSHOT)) == (1, 0)
    assert (world.state("t"), [run.id for run in world.service.runs("t")]) == ("COMPLETED", [run_id])
    assert world.service.why("t").sentences
    world.submit("young")
    assert set(world.after(91)) == {"events"}
    assert {event.task_id for event in world.database.read(lambda c: events.following(c, 0, 100))} == {
        world.row("young").id
    }


def test_what_a_task_needs_that_has_not_ended_is_kept_however_old_it_is(world: Kept) -> None:
    world.done("t")
    world.submit("waiting", depends_on=["nobody-yet"])
    world.submit("again", retry={"max_attempts": 3, "backoff": "1m"})
    world.tick()
    first = world.live("again").id
    world.folders.path(first).mkdir(parents=True)
    world.fail("again", reason="agent_error")
    before = world.count(EVENT)

    world.after(1_000)

    assert set(world.names()) == {"again", "waiting"}
    assert [run.id for run in world.service.runs("again")] == [first]
    assert world.folders.path(first).exists()
    assert world.count(DECISION) == 1
    for name in ("waiting", "again"):
        task_id = world.row(name).id
        messages = world.database.read(partial(events.of_task, task_id=task_id))
        assert messages[0].kind == "accepted"
    assert world.count(EVENT) < before
    world.tick()
    assert "again" in world.running()


def test_a_snapshot_stays_as_long_as_a_decision_that_was_made_from_it_is_young(world: Kept) -> None:
    world.done("t")
    (decision,) = world.database.read(lambda c: decision_rows.of_task(c, world.row("t").id))
    later = DECISION.update().values(at_ms=START_MS + 20 * DAY_MS)
    world.database.write(lambda c: c.execute(later))

    assert "snapshots" not in world.after(31)

    data = world.database.read(lambda c: decision_rows.snapshot(c, str(decision.snapshot_hash)))
    assert data is not None
    assert Snapshot.model_validate(data)
    assert world.after(51)["snapshots"] == 1


@pytest.mark.both_databases
def test_decisions_outlive_the_task_that_they_are_about(world: Kept) -> None:
    world.policy = Retention.model_validate({"tasks": "2d", "runs": "1h", "decisions": "10d"})
    world.done("t")
    (decision,) = world.database.read(lambda c: decision_rows.of_task(c, world.row("t").id))

    assert world.after(3)["tasks"] == 1

    assert world.count(RUN) == 0
    (listed,) = world.decisions.page(DecisionFilter(), None, 10).items
    assert (listed.id, listed.run_id, listed.run) == (decision.id, decision.run_id, None)
    assert world.decisions.get(decision.id).agent == listed.agent
    assert world.after(11) == {"decisions": 1}
    assert world.count(DECISION) == 0


@pytest.mark.both_databases
def test_messages_go_but_for_those_that_are_to_be_answered_and_the_last(world: Kept) -> None:
    world.policy = FOREVER.model_copy(update={"messages": 10 * DAY_MS})
    world.specialists.register(card("cook"))
    world.channels.create(NewChannel(name="kitchen", participants=("cook",)))

    def post(text: str) -> int:
        return world.channels.post("kitchen", NewMessage(content=text)).id

    heard, asked, last = post("hello"), post("@cook soup, please"), post("and thanks")
    reply = NewMessage(content="@cook and bread", reply_to=heard)

    assert world.after(9) == {}
    assert world.after(11) == {"messages": 1}
    left = world.channels.messages("kitchen").items
    assert {entry.id for entry in left} == {asked, last}
    with pytest.raises(Invalid, match=f"no message {heard}"):
        world.channels.post("kitchen", reply)

    world.database.write(lambda c: c.execute(CHANNEL_ANSWER.update().values(state="answered")))
    assert world.after(12) == {"messages": 1}
    assert world.count(CHANNEL_ANSWER) == 0
    assert post("again") > last


def test_an_event_that_a_target_has_not_seen_is_kept(world: Kept) -> None:
    world.done("t")
    world.submit("later")
    world.targets = ("mail",)
    assert "events" not in world.after(91)

    third = world.database.read(lambda connection: events.following(connection, 0, 3))[-1].id or 0
    world.database.write(lambda connection: outbox_rows.move_cursor(connection, "mail", third))
    world.database.write(lambda connection: outbox_rows.move_cursor(connection, "no-longer-configured", 0))

    assert world.after(91)["events"] == 3
    assert world.database.read(pruning.events_gone_upto) == third
    assert world.events.events_gone() == third


@pytest.mark.both_databases
def test_event_ids_go_on_rising_when_all_are_old(world: Kept) -> None:
    world.done("t")
    newest = world.database.read(events.last_id)

    world.after(91)

    assert world.database.read(events.last_id) == newest
    world.submit("next")
    assert world.database.read(events.last_id) > newest


def test_times_of_schedules_go_but_the_last(world: Kept) -> None:
    world.take("/tasks/s.yaml", spec("s", schedule="0 * * * *", timezone="UTC"))
    for hour in range(1, 4):
        world.now_ms = (START_MS // HOUR_MS + hour) * HOUR_MS
        world.schedule_runner.run_due()
        world.tick()
        for name in world.running():
            world.succeed(name)
    assert world.count(SCHEDULE_FIRE) == 3

    assert world.after(91)["schedule_times"] == 2

    assert world.schedules.get("s").last is not None
    world.now_ms = (world.now_ms // HOUR_MS + 1) * HOUR_MS
    world.schedule_runner.run_due()
    assert len(world.names()) == 4, "the schedule goes on, and no time comes twice"


def test_ended_holds_go(world: Kept) -> None:
    world.submit("t")
    world.tick()
    world.limit("t", reset_at=START_MS + HOUR_MS)

    assert world.after(89).get("holds") is None
    assert world.after(92)["holds"] == 1
    assert world.count(HOLD) == 0


@pytest.mark.both_databases
def test_an_old_task_goes_with_all_that_is_its_own_and_stays_in_the_sums(world: Kept) -> None:
    world.done("old")
    world.submit("failed", retry={"max_attempts": 1})
    world.tick()
    world.fail("failed")
    _classify(world, "old")
    sums = world.database.read(metric_rows.ended_runs), world.database.read(metric_rows.answers)
    assert world.after(364)["run_directories"] == 1
    world.now_ms = START_MS + 200 * DAY_MS
    world.done("young")
    assert set(world.names()) == {"young", "failed", "old"}

    assert world.after(366)["tasks"] == 2

    assert world.names() == ["young"]
    assert [world.count(table) for table in (TASK, TASK_REVISION, RUN, CLASSIFICATION)] == [1, 1, 1, 0]
    world.policy = FOREVER
    merged = {runs.group: runs for runs in world.database.read(metric_rows.ended_runs)}
    for before in sums[0]:
        young = 1 if before.ended_as == "succeeded" else 0
        assert merged[before.group].durations.count == before.durations.count + young
    assert world.database.read(metric_rows.answers) == sums[1] == {("classifier", ""): 1}


def test_an_old_task_stays_while_it_is_needed(world: Kept) -> None:
    world.done("depended")
    world.submit("waits", depends_on=["depended", "nobody-yet"])
    world.take("/tasks/filed.yaml", spec("filed"))
    world.tick()
    world.succeed("filed")
    world.done("with-directory")
    (with_directory,) = world.service.runs("with-directory")
    world.policy = Retention.model_validate({"runs": "forever", "tasks": "365d"})

    assert "tasks" not in world.after(1_000)

    world.policy = POLICY
    assert world.after(1_000)["tasks"] == 1
    assert set(world.names()) == {"filed", "waits", "depended"}
    assert not world.folders.path(with_directory.id).exists()
    world.service.cancel("waits")
    world.intake.gone(["/tasks/filed.yaml"])
    assert world.after(1_001)["tasks"] == 1, "its file is gone"
    assert world.after(1_400)["tasks"] >= 1
    world.after(1_400)
    assert world.names() == []
    assert (world.count(RUN), world.count(TASK_REVISION)) == (0, 0)


def test_a_task_that_was_restarted_in_that_moment_stays(world: Kept) -> None:
    world.done("t")
    before_ms = START_MS + DAY_MS
    page = world.database.read(lambda connection: pruning.old_tasks(connection, before_ms, "", 10))
    assert [task_id for task_id, _ in page] == [world.row("t").id]

    world.restart("t")

    ids = [task_id for task_id, _ in page]
    assert world.database.write(lambda connection: pruning.tasks(connection, ids, before_ms)) == 0
    assert world.names() == ["t"]


def test_no_step_is_long_and_a_crash_between_two_is_made_good(
    world: Kept, crash: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 5)
    monkeypatch.setattr(retention, "TASKS_AT_ONCE", 2)
    for number in range(6):
        world.done(f"t{number}")
    sums = world.database.read(metric_rows.ended_runs)
    left = [world.count(table) for table in (EVENT, DECISION, TASK)]
    steps = 0

    while True:
        crash()
        try:
            world.after(400)
            break
        except Crash:
            steps += 1
        now = [world.count(table) for table in (EVENT, DECISION, TASK)]
        taken = [before - after for before, after in zip(left, now, strict=True)]
        assert taken[0] <= 5
        assert taken[1] <= 5
        assert taken[2] <= 2
        left = now

    assert steps > 6
    assert world.names() == []
    assert world.count(EVENT) == 1, "the newest"
    assert [runs.durations.count for runs in world.database.read(metric_rows.ended_runs)] == [6]
    assert world.database.read(metric_rows.ended_runs) == sums


def _classify(world: World, name: str) -> None:
    values = {
        "task_id": world.row(name).id,
        "generation": 1,
        "agent": "claude",
        "model": "m",
        "cache_key": "k",
        "asked_ms": START_MS,
        "deadline_ms": START_MS,
        "answered_ms": START_MS,
        "source": "classifier",
        "tier": "fast",
    }

    def write(connection: Connection) -> None:
        connection.execute(insert(CLASSIFICATION).values(values))

    world.database.write(write)


def test_what_cannot_be_removed_keeps_nothing_else_from_going(world: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with files of root's in a run directory, or a row that others refer to."""
    stuck, gone = world.done("stuck"), world.done("gone")
    remove, tasks = world.folders.remove, pruning.tasks

    def forbidden(run_id: str) -> None:
        if run_id == stuck:
            raise PermissionError(1, "Operation not permitted", str(world.folders.path(run_id) / "work" / "roots"))
        remove(run_id)

    def referred(connection: Connection, task_ids: Collection[str], before_ms: int) -> int:
        if bad in task_ids:
            raise ValueError("FOREIGN KEY constraint failed")
        return tasks(connection, task_ids, before_ms)

    monkeypatch.setattr(world.folders, "remove", forbidden)
    assert world.after(31) == {"run_directories": 1, "snapshots": 2}
    assert not world.folders.path(gone).exists()
    (fault,) = world.faults.all()
    assert fault.text == f"{world.folders.path(stuck)}/work/roots: Operation not permitted"
    fields = {item.path: item.why for item in world.cleaner.clean(CleanupRequest()).items}
    assert fields[str(world.folders.path(stuck))] == fault.text

    monkeypatch.undo()
    bad = world.row("stuck").id
    monkeypatch.setattr("claudomator_py.workers.retention.pruning.tasks", referred)
    assert world.after(366)["tasks"] == 1
    assert world.names() == ["stuck"]
    assert "FOREIGN KEY" in world.faults.all()[-1].text


def test_a_step_that_fails_keeps_no_later_one(world: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    world.done("t")
    monkeypatch.setattr(world.cleaner, "remove_old_runs", lambda *_: 1 / 0)
    assert set(world.after(91)) == {"snapshots", "events"}
