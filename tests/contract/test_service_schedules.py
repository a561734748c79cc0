"""What becomes of schedules: their times, files, pauses and overlaps, and what was missed."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, select

from claudomator_py.domain import schedule
from claudomator_py.domain.blocked_words import blocked_text
from claudomator_py.domain.errors import Conflict, Invalid, NotFound
from claudomator_py.domain.notice import EventContext, notice_of
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, format_instant
from claudomator_py.resources.daemon import DrainRequest
from claudomator_py.sources import schedules
from claudomator_py.store import schedule_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import EVENT, Schedule
from claudomator_py.tasks.schedules import HELD_UP, fire
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

PATH = "/in/t.yaml"
# START_MS is 2026-09-21T14:13:20Z.
FIRST = START_MS // HOUR_MS * HOUR_MS + HOUR_MS
HOURLY = {"schedule": "0 * * * *", "timezone": "UTC"}


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def meet(world: World, at_ms: int) -> list[str]:
    """The names of all tasks, in order, once the schedule runner has looked at that time."""
    world.now_ms = at_ms
    world.schedule_runner.run_due()
    return sorted(world.names())


def due(hours: int) -> str:
    """The name of the task of t's so-manieth time."""
    return f"t.20260921t{15 + hours:02d}00z"


def test_a_file_with_a_schedule_becomes_a_schedule_and_no_task(world: World) -> None:
    assert world.take(PATH, spec("t", **HOURLY, tags=["x"])) == []
    assert world.names() == []
    view = world.schedules.get("t")
    assert (view.source, view.file_path, view.schedule, view.timezone) == ("file", PATH, "0 * * * *", "UTC")
    assert (view.next_at, view.last) == (format_instant(FIRST), None)
    assert meet(world, FIRST - 1) == []
    assert meet(world, FIRST) == [due(0)]
    assert meet(world, FIRST + 1) == [due(0)]
    task = world.task(due(0))
    assert (task.state, task.source, task.tags) == ("QUEUED", "schedule", ("x",))
    last = world.schedules.get("t").last
    assert last is not None
    assert (last.task_id, last.by, last.due_at) == (task.id, "clock", format_instant(FIRST))


def test_why_names_the_schedule_and_the_time(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    meet(world, FIRST)
    sentences = world.service.why(due(0)).sentences
    assert any("schedule t" in sentence and "15:00 UTC" in sentence for sentence in sentences), sentences


def test_its_name_is_none_of_a_task_and_leads_to_its_tasks(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    with pytest.raises(NotFound, match="There is no task 't': it is a schedule") as refused:
        world.service.why("t")
    assert refused.value.remedy == "See `claudomator schedule list`; it has made no task yet."
    meet(world, FIRST)
    with pytest.raises(NotFound) as refused:
        world.service.cancel("t")
    assert refused.value.remedy == f"See `claudomator schedule list`; the last of its tasks is {due(0)}."
    with pytest.raises(NotFound):
        world.schedules.get("a\0b")


def test_what_waits_for_the_name_of_a_schedule_is_told_that_it_is_none_of_a_task(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    world.submit("after", depends_on=["t"])
    assert world.state("after") == "WAITING dependency"
    assert any("t is a schedule" in sentence for sentence in world.service.why("after").sentences)


def test_unchanged_content_changes_nothing_and_new_content_is_for_later_tasks(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY, overlap="queue"))
    before = world.schedules.get("t")
    world.take(PATH, spec("t", **HOURLY, overlap="queue"), mtime_ns=2)
    assert world.schedules.get("t") == before
    meet(world, FIRST)
    world.take(PATH, spec("t", **HOURLY, overlap="queue", tags=["new"]), mtime_ns=3)
    assert world.schedules.get("t").id == before.id
    meet(world, FIRST + HOUR_MS)
    assert world.task(due(0)).tags == ()
    assert world.task(due(1)).tags == ("new",)


def test_content_changed_at_a_time_does_not_lose_it_but_other_times_begin_now(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY, overlap="queue", catch_up="all"))
    world.now_ms = FIRST + HOUR_MS
    world.take(PATH, spec("t", **HOURLY, overlap="queue", catch_up="all", tags=["x"]), mtime_ns=2)
    assert meet(world, FIRST + HOUR_MS) == [due(0), due(1)]
    more = {**HOURLY, "schedule": "0,30 * * * *"}
    world.now_ms += 20 * MINUTE_MS
    world.take(PATH, spec("t", **more, overlap="queue", catch_up="all"), mtime_ns=3)
    assert meet(world, world.now_ms) == [due(0), due(1)]
    assert meet(world, FIRST + 90 * MINUTE_MS)[2:] == ["t.20260921t1630z"]


def test_a_deleted_file_ends_its_schedule_and_leaves_its_tasks(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    meet(world, FIRST)
    world.intake.gone([PATH])
    assert world.schedules.all() == []
    assert meet(world, FIRST + HOUR_MS) == [due(0)]
    assert world.state(due(0)).startswith("QUEUED")


def test_a_file_that_comes_back_goes_on_with_its_next_time(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY, catch_up="once"))
    world.intake.gone([PATH])
    world.now_ms = FIRST + 5 * MINUTE_MS
    world.take(PATH, spec("t", **HOURLY, catch_up="once"), mtime_ns=2)
    assert meet(world, world.now_ms) == []
    assert meet(world, FIRST + HOUR_MS) == [due(1)]


def test_a_renamed_file_is_the_same_schedule(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    before = world.schedules.get("t")
    world.intake.gone([PATH])
    world.take("/in/other.yaml", spec("t", **HOURLY))
    after = world.schedules.get("t")
    assert (after.id, after.file_path) == (before.id, "/in/other.yaml")


def test_a_document_taken_out_of_its_file_ends_its_schedule(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY), spec("u", **HOURLY))
    world.take(PATH, spec("u", **HOURLY), mtime_ns=2)
    assert [view.name for view in world.schedules.all()] == ["u"]


def test_a_schedule_becomes_a_task_and_a_task_a_schedule(world: World) -> None:
    world.take(PATH, spec("t"))
    world.take(PATH, spec("t", **HOURLY), mtime_ns=2)
    assert world.state("t") == "CANCELLED", "it was replaced before it began"
    assert [view.name for view in world.schedules.all()] == ["t"]
    world.now_ms += 1
    world.take(PATH, spec("t"), mtime_ns=3)
    assert world.schedules.all() == []
    assert (world.names(), world.state("t").split()[0]) == (["t", "t"], "QUEUED")
    world.tick()
    world.take(PATH, spec("t", **HOURLY), mtime_ns=4)
    assert world.state("t").startswith("RUNNING"), "a run goes on to its end"


def test_the_schedule_of_a_file_that_was_moved_away_goes_on_and_is_replaced_by_the_next_arrival(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    world.intake.archived([PATH])
    before = world.schedules.get("t")
    assert before.file_path is None
    world.take(PATH, spec("t", **HOURLY, tags=["new"]), mtime_ns=2)
    world.intake.archived([PATH])
    assert world.schedules.get("t").id == before.id
    meet(world, FIRST)
    assert world.task(due(0)).tags == ("new",)
    world.schedules.delete("t")
    assert world.schedules.all() == []


@pytest.mark.both_databases
def test_a_name_is_one_schedule(world: World) -> None:
    world.schedules.add(spec("t", **HOURLY))
    (problem,) = world.take(PATH, spec("t", **HOURLY))
    assert problem.field == "name"
    assert "claudomator schedule delete t" in str(problem.remedy)
    assert world.schedules.add(spec("t", **HOURLY)).id == world.schedules.get("t").id, "harmless when repeated"
    with pytest.raises(Conflict):
        world.schedules.add(spec("t", **HOURLY, tags=["x"]))


def test_an_unknown_zone_is_refused_by_every_way(world: World) -> None:
    atlantis = spec("t", schedule="0 3 * * *", timezone="Europe/Atlantis")
    (problem,) = world.take(PATH, atlantis)
    assert (problem.field, "Europe/Berlin" in str(problem.remedy)) == ("timezone", True)
    with pytest.raises(Invalid, match="Atlantis"):
        world.schedules.add(atlantis)


def test_the_zone_of_the_machine_is_written_down(world: World) -> None:
    view = world.schedules.add(spec("t", schedule="0 3 * * *"))
    assert view.timezone
    assert "timezone" not in view.spec


def test_a_schedule_is_not_submitted_as_a_task_nor_a_task_as_a_schedule(world: World) -> None:
    with pytest.raises(Invalid, match="/v1/schedules"):
        world.submit("t", **HOURLY)
    with pytest.raises(Invalid, match="/v1/tasks"):
        world.schedules.add(spec("t"))


@pytest.mark.both_databases
@pytest.mark.parametrize(("policy", "made"), [("skip", []), ("once", [4]), ("all", [0, 1, 2, 3, 4])])
def test_what_was_missed_is_caught_up_as_told(world: World, policy: str, made: list[int]) -> None:
    world.take(PATH, spec("t", **HOURLY, catch_up=policy, overlap="queue"))
    world.restarted_daemon()
    later = FIRST + 4 * HOUR_MS + 30 * MINUTE_MS
    names = [due(hour) for hour in made]
    assert meet(world, later) == names
    world.restarted_daemon()
    assert meet(world, later) == names, "once and for all"
    assert meet(world, FIRST + 5 * HOUR_MS) == [*names, due(5)]


def test_what_is_caught_up_runs_in_order(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY, catch_up="all", overlap="queue", working_dir="/tmp"))
    meet(world, FIRST + 4 * HOUR_MS)
    for hour in range(5):
        world.tick()
        assert list(world.running()) == [due(hour)]
        world.succeed(due(hour))


def test_a_restart_within_a_minute_misses_nothing(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    world.restarted_daemon()
    assert meet(world, FIRST + MINUTE_MS - 1) == [due(0)]


def test_all_is_not_without_bounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "due", partial(schedule.due, most=50))  # of a thousand, each would be a task
    world.take(PATH, spec("t", schedule="* * * * *", timezone="UTC", catch_up="all", overlap="queue"))
    world.now_ms = START_MS + 30 * DAY_MS
    assert world.schedule_runner.run_due() == 50
    assert world.schedule_runner.run_due() == 0


def test_a_time_is_skipped_while_a_task_of_the_schedule_has_not_ended(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    meet(world, FIRST)
    assert meet(world, FIRST + HOUR_MS) == [due(0)]
    last = world.schedules.get("t").last
    assert last is not None
    assert (last.task_id, last.due_at) == (None, format_instant(FIRST + HOUR_MS))
    assert due(0) in str(last.skipped)
    world.tick()
    world.succeed(due(0))
    assert meet(world, FIRST + 2 * HOUR_MS) == [due(0), due(2)]


def test_times_queue_where_they_may_overlap(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY, overlap="queue"))
    meet(world, FIRST)
    assert meet(world, FIRST + HOUR_MS) == [due(0), due(1)]


def test_a_paused_schedule_makes_nothing_and_goes_on_with_its_next_time(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY, catch_up="once"))
    view = world.schedules.pause("t")
    assert (view.next_at, view.paused_since) == (None, format_instant(START_MS))
    assert world.schedules.pause("t") == view
    assert meet(world, FIRST + 30 * MINUTE_MS) == []
    assert world.schedules.resume("t").next_at == format_instant(FIRST + HOUR_MS)
    assert world.schedules.resume("t").paused_since is None
    assert meet(world, world.now_ms) == []
    assert meet(world, FIRST + HOUR_MS) == [due(1)]


def test_a_task_is_made_now_besides_the_times(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    world.schedules.pause("t")
    task = world.schedules.run("t")
    assert task.name == "t.20260921t141320z"
    with pytest.raises(Conflict, match="has not ended"):
        world.schedules.run("t")
    world.service.cancel(task.id)
    assert world.schedules.run("t").id != task.id


def test_the_schedule_of_a_file_is_ended_by_deleting_the_file_alone(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    with pytest.raises(Conflict, match=PATH):
        world.schedules.delete("t")
    with pytest.raises(NotFound, match="'u'"):
        world.schedules.delete("u")
    with pytest.raises(NotFound):
        world.schedules.run("u")


def test_a_time_at_which_no_task_can_be_made_is_skipped_with_the_reason(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY, agent={"type": "codex", "strict": True}))
    world.agents = tuple(agent for agent in world.agents if agent.name != "codex")
    del world.kinds["codex"]
    world.restarted_daemon()
    assert meet(world, FIRST) == []
    last = world.schedules.get("t").last
    assert last is not None
    assert "codex" in str(last.skipped)


def test_a_drained_daemon_makes_tasks_and_starts_none(world: World) -> None:
    world.take(PATH, spec("t", **HOURLY))
    world.daemon.drain(DrainRequest(reason="for a while"))
    assert meet(world, FIRST) == [due(0)]
    world.tick()
    assert world.running() == {}


def test_what_changed_while_it_was_looked_at_is_not_met(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.take(PATH, spec("t", **HOURLY))
    seen = world.database.read(schedule_rows.all_there)
    monkeypatch.setattr(world.schedule_runner, "_active", lambda: seen)
    world.schedules.pause("t")
    assert meet(world, FIRST) == []
    world.schedules.resume("t")
    assert meet(world, FIRST + MINUTE_MS) == [], "resumed after the time had passed"


def test_a_schedule_for_which_making_its_task_fails_keeps_no_other_from_its_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again with growing pauses, and its time is not lost."""
    for name in ("a", "bad", "c"):
        world.take(f"/in/{name}.yaml", spec(name, **HOURLY))

    def broken(connection: Connection, schedule: Schedule, *rest: Any) -> Any:
        if schedule.name == "bad":
            raise KeyError("cron")
        return fire(connection, schedule, *rest)

    monkeypatch.setattr("claudomator_py.sources.schedules.fire", broken)
    assert [name.partition(".")[0] for name in meet(world, FIRST)] == ["a", "c"]
    for number in range(3):
        meet(world, FIRST + number)
    (fault,) = world.schedule_faults.all()
    assert (fault.times, fault.again_ms) == (1, FIRST + 1_000)
    assert blocked_text(fault.blocked).startswith("creating the task of schedule bad failed: KeyError: 'cron'")

    monkeypatch.undo()
    assert [name.partition(".")[0] for name in meet(world, FIRST + 1_000)] == ["a", "bad", "c"]
    assert world.schedule_faults.all() == []


def asking(world: World, **fields: Any) -> str:
    """A schedule whose first task asks a person something: its name."""
    world.take(PATH, spec("t", **HOURLY, **fields))
    meet(world, FIRST)
    world.tick()
    world.end(due(0), status="needs_input", text="Red or blue?", question="Red or blue?")
    world.tick()
    assert world.state(due(0)) == "NEEDS_INPUT question"
    return due(0)


def held_up(world: World) -> list[int]:
    """When it was told that the schedule is held up."""
    query = select(EVENT.c.at_ms).where(EVENT.c.kind == HELD_UP).order_by(EVENT.c.id)
    return list(world.database.read(lambda connection: connection.execute(query).scalars().all()))


@pytest.mark.both_databases
def test_a_task_that_waits_for_a_person_holds_its_schedule_up_for_a_day_at_most(world: World) -> None:
    first = asking(world)
    for hour in range(1, 24):
        assert meet(world, FIRST + hour * HOUR_MS) == [first]
    assert world.state(first) == "NEEDS_INPUT question"
    assert len(meet(world, FIRST + 24 * HOUR_MS)) == 2, "it has waited for a day"
    assert world.state(first) == "FAILED expired"
    assert "Nobody answered by" in str(world.task(first).reason_text)
    assert len(held_up(world)) == 1


def test_that_a_schedule_is_held_up_is_told_once_a_day_until_the_task_expires(world: World) -> None:
    first = asking(world, expires="3d")
    asked_ms = world.now_ms
    for hour in range(1, 72):
        assert meet(world, FIRST + hour * HOUR_MS) == [first]
        world.restarted_daemon()
    assert [at_ms - FIRST for at_ms in held_up(world)] == [HOUR_MS, 25 * HOUR_MS, 49 * HOUR_MS]
    assert world.task(first).waiting_until == format_instant(asked_ms + 3 * DAY_MS)
    world.now_ms = asked_ms + 3 * DAY_MS
    world.tick()
    assert world.state(first) == "FAILED expired"
    assert len(meet(world, FIRST + 73 * HOUR_MS)) == 2


@pytest.mark.both_databases
def test_the_next_task_replaces_one_that_waits_and_none_that_runs(world: World) -> None:
    first = asking(world, overlap="replace")
    assert meet(world, FIRST + HOUR_MS) == [first, due(1)]
    assert (world.state(first), world.state(due(1))) == ("CANCELLED", "QUEUED ready")
    assert meet(world, FIRST + 2 * HOUR_MS) == [first, due(1), due(2)]
    assert (world.state(due(1)), held_up(world)) == ("CANCELLED", [])
    world.tick()
    assert meet(world, FIRST + 3 * HOUR_MS) == [first, due(1), due(2)], "that one runs"
    assert world.running() == {due(2): "claude"}


def test_queued_times_go_on_beside_a_task_that_waits_for_a_person(world: World) -> None:
    first = asking(world, overlap="queue")
    assert meet(world, FIRST + HOUR_MS) == [first, due(1)]
    assert (world.state(first), held_up(world)) == ("NEEDS_INPUT question", [])


def test_a_schedule_that_was_held_up_for_too_long_may_be_run_by_hand(world: World) -> None:
    first = asking(world)
    with pytest.raises(Conflict):
        world.schedules.run("t")
    world.now_ms += DAY_MS
    assert world.schedules.run("t").state == "QUEUED"
    assert world.state(first) == "FAILED expired"


def test_a_held_up_schedule_is_worth_a_notice() -> None:
    data = {"schedule": "t", "until": "2026-09-22T15:00:00.000Z"}
    event = EventContext(7, "2026-09-21T16:00:00.000Z", HELD_UP, data, "id", "t.20260921t1500z", None, None, None)
    notice = notice_of(event)
    assert notice is not None
    assert (notice.kind, notice.task_id) == ("needs_input", "id")
    assert "holds up its schedule t" in notice.title
