"""A task that cannot be judged or routed: every other one is, it is tried again after a pause, and it is shown."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from claudomator_py.dispatch import deciding, routing
from claudomator_py.dispatch.deciding import Decided, Decider, Subject
from claudomator_py.dispatch.policing import Policing
from claudomator_py.dispatch.routing import SpecialistRouter
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.faults import Activity, Item, item_of
from claudomator_py.routing.profile import Request
from claudomator_py.scheduler.records import PolicyRecord
from claudomator_py.store import queue
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.tables import TASK_REVISION, Task
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.unit.dispatch.asked_model import Later
from tests.unit.dispatch.test_choosing import Routed

PAUSE_MS = 5 * SECOND_MS
LONG = "The log says that all is well.\n" * 1_000
NAMES = ("a", "b", "bad", "d", "e")


def spoil(world: World, name: str) -> None:
    """Give it a content that this version does not know, as a newer one might have written it."""
    of_task = TASK_REVISION.c.task_id == world.row(name).id

    def write(connection: Any) -> None:
        content = connection.execute(select(TASK_REVISION.c.spec).where(of_task)).scalar_one()
        connection.execute(update(TASK_REVISION).where(of_task).values(spec={**content, "unknown": 1}))

    world.database.write(write)


def failing(world: World) -> list[tuple[Activity, str]]:
    return [(fault.item.activity, fault.item.name) for fault in world.faults.all()]


def unrouted(world: World, *names: str) -> list[str]:
    world.database.write(lambda _: None)  # that nobody in particular does a task is written a moment later
    return [name for name in names if world.row(name).constraints is None]


def breaks(monkeypatch: pytest.MonkeyPatch, of: Any, step: str, names: Callable[..., str]) -> None:
    """Have that step fail for the task that is called bad. names: what the step is given has that name."""
    usual = getattr(of, step)

    def broken(*given: Any, **named: Any) -> Any:
        if names(*given) == "bad":
            raise ValueError("no such field")
        return usual(*given, **named)

    monkeypatch.setattr(of, step, broken)


def _judged(_policing: Policing, _connection: Any, task: Task, _spec: TaskSpec) -> str:
    return task.name


def _ranked(request: Request, *_: Any) -> str:
    return request.name


def _chosen(_decider: Decider, subject: Subject, *_: Any) -> str:
    return subject.task.name


def _written(_router: SpecialistRouter, decided: Decided, _connection: Any) -> str:
    return decided.subject.task.name


STEPS = [
    (Policing, "judge", _judged),
    (deciding, "rank", _ranked),
    (Decider, "rejudge", _chosen),
    (SpecialistRouter, "_write", _written),
]


@pytest.mark.both_databases
def test_a_content_that_cannot_be_read_keeps_no_other_task_waiting(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "BATCH_SIZE", 1)
    world = World(database)
    world.take("bad.yaml", spec("bad", priority="high"))
    world.submit("good")
    spoil(world, "bad")

    world.router.route()
    assert failing(world) == [(Activity.ROUTE, "bad")]
    world.router.route()
    assert unrouted(world, "bad", "good") == ["bad"]
    assert world.faults.all()[0].times == 1, "it is not tried again before the pause is over"

    world.now_ms += PAUSE_MS
    world.router.route()
    assert world.faults.all()[0].times == 2

    world.take("bad.yaml", spec("bad", instructions="something else", priority="high"), mtime_ns=2)
    world.router.route()
    assert unrouted(world, "bad") == [], "other content is tried at once"
    assert world.faults.all() == []


def test_a_task_that_pauses_takes_no_place_among_the_next_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, read = queue.contents, list[Sequence[str]]()

    def counted(connection: Any, task_ids: Sequence[str]) -> Any:
        read.append(task_ids)
        return contents(connection, task_ids)

    monkeypatch.setattr(queue, "contents", counted)
    monkeypatch.setattr(routing, "BATCH_SIZE", 1)
    world = World(database)
    for name in ("pauses", "next", "last"):
        world.now_ms += 1
        world.submit(name)
    world.faults.note(item_of(Activity.ROUTE, world.row("pauses")), ValueError("no such field"))

    world.router.route()
    assert read == [[world.row("next").id]], "and its content is not read"
    assert unrouted(world, "pauses", "next", "last") == ["pauses", "last"]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("of", "step", "names"), STEPS)
def test_what_fails_for_one_task_is_told_of_that_one_and_the_others_are_routed(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    of: Any,
    step: str,
    names: Callable[..., str],
    *,
    at_once: bool,
) -> None:
    routed = Routed(database, says_at_once=at_once)
    world = routed.world
    for name in NAMES:
        world.submit(name, instructions="Zwölf Boxkämpfer jagen Viktor.", requires=[])
    breaks(monkeypatch, of, step, names)

    for _ in range(2):
        routed.route()

    assert unrouted(world, *NAMES) == ["bad"]
    assert failing(world) == [(Activity.ROUTE, "bad")]
    assert world.faults.all()[0].times == 1

    world.now_ms += PAUSE_MS
    routed.route()
    assert world.faults.all()[0].times == 2

    monkeypatch.undo()
    world.now_ms += 2 * PAUSE_MS
    routed.encoder.immediate = at_once
    routed.route()
    assert unrouted(world, "bad") == []
    assert world.faults.all() == []


def test_a_very_long_text_that_cannot_be_judged_is_not_tried_at_each_tick(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, reader = World(database), Later()
    router = SpecialistRouter(
        database, world.registry, world.router.decider, world.clock, world.faults, Later(), text_pool=reader
    )
    world.submit("bad", instructions=LONG)
    breaks(monkeypatch, Policing, "judge", _judged)

    router.route()
    reader.work()
    assert failing(world) == [(Activity.ROUTE, "bad")]
    router.route()
    assert reader.given == []

    monkeypatch.undo()
    world.now_ms += PAUSE_MS
    router.route()
    reader.work()
    assert unrouted(world, "bad") == []
    assert world.faults.all() == []


def test_the_databases_own_trouble_is_no_fault_of_a_task(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    world.submit("t")

    def broken(*_: Any, **__: Any) -> Any:
        raise OperationalError("SELECT", {}, error)

    monkeypatch.setattr(Policing, "judge", broken)
    with pytest.raises(StoreUnavailable, match="disk I/O error"):
        world.router.route()
    assert world.faults.all() == []


def test_no_item_of_the_tick_is_said_to_be_worked_on_while_something_is_done_beside_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    routed, seen = Routed(database), list[Item | None]()
    record = Policing.record

    def looked(policing: Policing, *given: Any) -> PolicyRecord | None:
        seen.append(routed.world.faults.current)
        return record(policing, *given)

    monkeypatch.setattr(Policing, "record", looked)
    routed.submit("leak")
    routed.route()
    assert seen == [None]


@pytest.mark.parametrize("text", ["Mend the sink.", "Drop the customers schema on the production cluster."])
def test_a_fault_is_over_where_nobody_in_particular_does_the_task_or_it_is_held(world: World, text: str) -> None:
    world.submit("t", instructions=text)
    world.faults.note(item_of(Activity.ROUTE, world.row("t")), ValueError("no such field"))
    world.now_ms += PAUSE_MS
    world.router.route()
    assert unrouted(world, "t") == ([] if world.row("t").state == "QUEUED" else ["t"])
    assert world.faults.all() == []


def test_a_thread_that_cannot_be_started_leaves_the_task_to_the_next_tick(database: Database) -> None:
    class Full(Later):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("can't start new thread")

    world, reader = World(database), Later()
    router = SpecialistRouter(
        database, world.registry, world.router.decider, world.clock, world.faults, Later(), text_pool=Full()
    )
    world.specialists.register(card("plumber"))
    world.submit("long", instructions=LONG)
    with pytest.raises(RuntimeError, match="new thread"):
        router.route()

    router._text_pool = reader
    router.route()
    assert len(reader.given) == 1


def _staffed(database: Database) -> World:
    """A world with a specialist, in which ticks route."""
    world = World(database, routing=True, routes=True)
    world.specialists.register(card("ann"))
    return world


@pytest.mark.both_databases
def test_a_task_is_routed_and_started_in_one_commit_that_wakes_no_other_tick(database: Database) -> None:
    world, woken = _staffed(database), list[bool]()
    world.submit("t", specialist="ann")
    before = database.commits
    database.on_commit(lambda: woken.append(True), planned=False)
    world.tick()
    assert world.live("t").specialist == "ann"
    assert database.commits == before + 1
    assert woken == []


def test_what_fails_while_a_tick_stores_a_decision_is_told_of_that_task_at_its_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = _staffed(database)
    for name in ("bad", "good"):
        world.submit(name, specialist="ann")
    breaks(monkeypatch, SpecialistRouter, "_write", _written)
    world.tick()
    assert failing(world) == [(Activity.ROUTE, "bad")]
    assert world.row("good").state == "RUNNING"

    monkeypatch.undo()
    world.tick(PAUSE_MS)
    assert world.row("bad").state == "RUNNING"
    assert world.faults.all() == []
