"""PostgreSQL fails at each statement of an operation in turn: nothing is left half done, and all is well afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest
from sqlalchemy.pool.base import _ConnectionFairy

from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.store import statement, writer
from claudomator_py.store.connections import driver_of
from claudomator_py.store.database import Database, StoreUnavailable
from tests.cells import cells
from tests.fakes.agents import CLAUDE
from tests.fakes.cards import card
from tests.fakes.world import World

Call = Callable[[], Any]
Fault = Callable[[Any, Call], Any]
"""Is given a driver's connection and what would be done on it."""


def lost(driver: Any, call: Call) -> Any:
    """The server ends the connection, as when it is restarted."""
    with suppress(Exception):
        driver.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return call()


def unanswered(driver: Any, call: Call) -> Any:
    """The server does it, and ends the connection before it answers."""
    call()
    return lost(driver, lambda: driver.execute("SELECT 1"))


def timed_out(driver: Any, _: Call) -> Any:
    """The statement takes longer than the server allows."""
    driver.execute("SET statement_timeout = 1")
    return driver.execute("SELECT pg_sleep(60)")


class Strike:
    """A fault at the nth statement or commit that a driver is given."""

    def __init__(self, fault: Fault, number: int) -> None:
        self._fault, self._left = fault, number

    @property
    def is_over(self) -> bool:
        return self._left <= 0

    def at(self, driver: Any, call: Call) -> Any:
        self._left -= 1
        return self._fault(driver, call) if self._left == 0 else call()


class Struck:
    """A driver's connection or cursor."""

    def __init__(self, driver: Any, inner: Any, strike: Strike) -> None:
        self._driver, self._inner, self._strike = driver, inner, strike

    def cursor(self) -> Any:
        return Struck(self._driver, self._inner.cursor(), self._strike)

    def execute(self, *arguments: Any) -> Any:
        return self._strike.at(self._driver, partial(self._inner.execute, *arguments))

    def executemany(self, *arguments: Any) -> Any:
        return self._strike.at(self._driver, partial(self._inner.executemany, *arguments))

    def commit(self) -> None:
        self._strike.at(self._driver, self._inner.commit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def striking(fault: Fault, number: int) -> Iterator[Strike]:
    """In the block, the nth statement fails that way, on whichever connection."""
    strike, given = Strike(fault, number), _ConnectionFairy.cursor

    def cursor(fairy: _ConnectionFairy, *arguments: Any, **options: Any) -> Any:
        return Struck(fairy.dbapi_connection, given(fairy, *arguments, **options), strike)

    def driver(connection: Any) -> Any:
        return Struck(driver_of(connection), driver_of(connection), strike)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_ConnectionFairy, "cursor", cursor)
        patch.setattr(statement, "driver_of", driver)
        patch.setattr(writer, "driver_of", driver)
        yield strike


@pytest.fixture
def world(database: Database) -> World:
    world = World(database, agents=[CLAUDE.model_copy(update={"max_concurrent": 500})], total=500, per_workdir=500)
    world.specialists.register(card("plumber"))
    return world


def at_each_statement(
    fault: Fault, prepare: Callable[[str], Any], do: Callable[[str], Any]
) -> Iterator[tuple[str, bool]]:
    """Yield the name of a task for each statement at which ``do`` was struck, and whether it succeeded all the same."""
    for number in range(1, 200):
        prepare(name := f"task-{number}")
        with striking(fault, number) as strike:
            try:
                do(name)
                failed = False
            except (StoreUnavailable, Unavailable):
                failed = True
        if not strike.is_over:
            assert number > 1
            return
        yield name, not failed
    raise AssertionError("it does not end")


on_postgresql = pytest.mark.parametrize("database_kind", ["postgresql"])


@on_postgresql
@pytest.mark.parametrize("fault", cells([lost], [unanswered, timed_out]))
def test_a_task_is_accepted_whole_or_not_at_all(world: World, fault: Fault) -> None:
    for name, accepted in at_each_statement(fault, lambda _: None, world.submit):
        listed = name in world.names()
        assert listed or not accepted
        if not listed:
            world.submit(name)
        world.tick(1_000)
        assert world.state(name) == "RUNNING"


@on_postgresql
@pytest.mark.parametrize("fault", cells([unanswered], [lost, timed_out]))
def test_a_run_begins_once(world: World, fault: Fault) -> None:
    def prepare(name: str) -> None:
        world.submit(name, specialist="plumber")

    def start(_: str) -> None:
        world.tick(1_000)

    for name, _ in at_each_statement(fault, prepare, start):
        for _ in range(2):
            world.tick(2 * MINUTE_MS)
        assert world.state(name) == "RUNNING"
        runs = [run for run in world.service.runs(name) if run.state != "revoked"]
        assert [run.id for run in runs] == [world.live(name).id]
        assert world.live(name).attempt == 1
    begun = [key[0] for key, directory in world.host.directories.items() if directory.started]
    assert len(begun) == len(set(begun)) == len(world.running())


@on_postgresql
@pytest.mark.parametrize("fault", cells([timed_out], [lost, unanswered]))
def test_an_end_is_kept_once(world: World, fault: Fault) -> None:
    def prepare(name: str) -> None:
        world.submit(name)
        world.tick(1_000)
        world.end(name)

    def collect(_: str) -> None:
        world.tick(1_000)

    for name, _ in at_each_statement(fault, prepare, collect):
        for _ in range(2):
            world.tick(2 * MINUTE_MS)
        assert world.state(name) == "COMPLETED"
        assert len(world.service.runs(name)) == 1
        events = world.events.last_events(world.events.event_filter(name, ("state",)), 50).items
        assert [event.data["state"] for event in events].count("COMPLETED") == 1


@on_postgresql
@pytest.mark.parametrize("fault", cells([], [lost, unanswered, timed_out]))
def test_a_list_is_refused_and_shown_the_next_time(world: World, fault: Fault) -> None:
    world.submit("listed")

    def page(_: str) -> None:
        assert world.service.page(TaskFilter(), None, 50).items
        assert world.service.why("listed").sentences

    assert not any(shown for _, shown in at_each_statement(fault, lambda _: page(""), page))
