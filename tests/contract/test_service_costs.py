"""What a look at the status asks of the database: what is shown, and nothing again before something was written."""

from typing import Any

import pytest

from claudomator_py.domain.units import HOUR_MS
from claudomator_py.store.database import Database
from tests.databases import listening
from tests.fakes.world import World

LISTED = 10


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def asked(world: World) -> list[str]:
    """The statements of a look."""
    texts: list[str] = []
    with listening(lambda statement, parameters: texts.append(statement)):
        world.overview.status(LISTED)
    return [statement for statement in texts if statement.startswith("SELECT")]


def fail(world: World, name: str, times: int = 1) -> None:
    world.submit(name, agent={"type": "claude", "strict": True}, retry={"max_attempts": times, "backoff": "1s"})
    for _ in range(times):
        world.tick(HOUR_MS)
        world.end(name, exit_code=1, status="failed", reason="agent_error", detail="out of memory")
        world.tick(1_000)


def test_a_second_look_counts_and_lists_nothing_again(world: World) -> None:
    for number in range(LISTED + 3):
        world.submit(f"t{number}", agent={"type": "claude"}, depends_on=["nothing"])
    first, second = asked(world), asked(world)
    again = [statement for statement in second if "count(" in statement or "FROM task_revision" in statement]
    assert again == []
    assert len(second) <= len(first) - 8
    world.submit("another", agent={"type": "claude"}, depends_on=["nothing"])
    assert world.overview.status(LISTED).counts["WAITING"] == LISTED + 4
    world.now_ms += 25 * HOUR_MS
    assert len(asked(world)) > len(second), "what failed 25 hours ago is no news any more"


def test_of_a_task_that_ran_often_one_run_is_read_whole(world: World) -> None:
    fail(world, "often", times=5)
    read: list[Any] = []

    def note(statement: str, parameters: Any) -> None:
        if "WHERE run.id IN" in statement:
            # SQLite's driver is given values in order, PostgreSQL's by name.
            read.append(tuple(parameters.values() if isinstance(parameters, dict) else parameters))

    with listening(note):
        (failed,) = world.overview.status(LISTED).problems
    assert failed.runs == 5
    assert read == [(world.service.runs("often")[-1].id,)]
