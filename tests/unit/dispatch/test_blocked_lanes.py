"""Thousands of tasks that cannot start hide nobody, and a look at them costs what a look at a few does."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, update

from claudomator_py.domain.limits import Bucket, Hold
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.store import hold_rows
from claudomator_py.store.tables import TASK
from tests.databases import listening, open_migrated
from tests.fakes.many import multiply
from tests.fakes.world import START_MS, World

MANY = 2_100


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_migrated(tmp_path / "state") as database:
        yield World(database)


def hold(world: World, **bucket: Any) -> None:
    reason = Reason.RATE_LIMITED
    hold = Hold(Bucket(**bucket), reason, START_MS + 10**9, Provenance.REPORTED, "five_hour", START_MS)
    world.database.write(partial(hold_rows.add, hold=hold, run_id=None))


def on_a_held_agent(world: World, number: int) -> None:
    hold(world, agent="claude")
    world.submit("held", working_dir="/srv/held", agent={"type": "claude", "strict": True})
    world.database.write(lambda connection: multiply(connection, "held", number, folders=True))


def on_a_held_family(world: World, number: int) -> None:
    """Pinned to it, or found to need it; each in a folder of its own."""
    hold(world, kind="claude", account="default", family="opus")
    for name, fields in (("pinned", {"tier": "powerful"}), ("kept", {})):
        world.submit(name, working_dir=f"/srv/{name}", agent={"type": "claude", "strict": True, **fields})
    world.keep_tier([world.row("kept").id], "powerful")
    for name in ("pinned", "kept"):
        world.database.write(partial(multiply, name=name, number=number // 2, folders=True))


def with_demands_of_their_own(world: World, number: int) -> None:
    hold(world, agent="codex")
    for further in range(20):
        world.submit(
            f"t{further}",
            working_dir=f"/srv/t{further}",
            add_dirs=[f"/srv/lib{further}"],
            max_turns=further + 1,
            agent={"type": "codex", "strict": True},
        )
    world.database.write(lambda connection: multiply(connection, "t0", number, folders=True))


def in_lanes_of_their_own(world: World, number: int) -> None:
    """As tasks are that each pin a model of their own."""
    on_a_held_agent(world, number)
    apart = update(TASK).where(TASK.c.name.like("held%")).values(eligibility=TASK.c.eligibility + TASK.c.id)
    world.database.write(lambda connection: connection.execute(apart))


def in_one_busy_directory(world: World, number: int) -> None:
    world.submit("first", working_dir="/srv/busy", agent={"type": "codex", "strict": True})
    world.tick()
    world.submit("behind", working_dir="/srv/busy", agent={"type": "codex", "strict": True})
    world.database.write(lambda connection: multiply(connection, "behind", number))


def in_a_thread_that_has_its_turn(world: World, number: int) -> None:
    world.submit("root")
    world.tick()
    world.succeed("root")
    world.submit("next", continues="root", max_turns=9)
    world.tick()
    assert "next" in world.running()
    world.submit("after", continues="root", max_turns=9)
    world.database.write(lambda connection: multiply(connection, "after", number))


SCENES = (
    on_a_held_agent,
    on_a_held_family,
    with_demands_of_their_own,
    in_lanes_of_their_own,
    in_one_busy_directory,
    in_a_thread_that_has_its_turn,
)


@pytest.mark.parametrize("scene", SCENES)
def test_they_hide_nobody(world: World, scene: Callable[[World, int], None]) -> None:
    scene(world, MANY)
    before = set(world.running())
    world.tick()
    assert set(world.running()) == before
    world.submit("elsewhere", priority="low", working_dir="/srv/elsewhere")
    world.submit("light", priority="low", agent={"type": "claude", "tier": "fast"})
    world.tick()
    assert set(world.running()) - before == {"elsewhere", "light"}
    assert world.task("elsewhere").state == "RUNNING"


@pytest.mark.parametrize("scene", SCENES[:-1])
def test_they_cost_what_a_few_cost(tmp_path: Path, scene: Callable[[World, int], None]) -> None:
    costs = []
    for number in (20, MANY):
        with open_migrated(tmp_path / str(number)) as database:
            world = World(database)
            scene(world, number)
            costs.append(database.read(partial(cost, look=world.observer.observe)))
    (few_statements, few_steps), (many_statements, many_steps) = costs
    assert many_statements == few_statements
    assert many_steps < few_steps * 1.5 + 500


def apart(world: World, name: str, number: int) -> None:
    """So many tasks like that one, each in a lane and a folder of its own."""
    world.database.write(lambda connection: multiply(connection, name, number, folders=True))
    change = update(TASK).where(TASK.c.name.like(f"{name}%")).values(eligibility=TASK.c.eligibility + TASK.c.id)
    world.database.write(lambda connection: connection.execute(change))


def where_nobody_else_could_take_them(world: World, number: int) -> None:
    """They may move to another agent, and all that they may move to are at their limits."""
    for agent in ("claude", "codex"):
        hold(world, agent=agent)
    world.submit("held", working_dir="/srv/held", agent={"type": "claude"})
    apart(world, "held", number)


def where_all_could_start(world: World, number: int) -> None:
    world.submit("ready", working_dir="/srv/ready", agent={"type": "claude"})
    apart(world, "ready", number)


@pytest.mark.parametrize("scene", [where_nobody_else_could_take_them, where_all_could_start])
def test_lanes_cost_what_a_few_cost(tmp_path: Path, scene: Callable[[World, int], None]) -> None:
    costs = []
    for number in (20, MANY):
        with open_migrated(tmp_path / str(number)) as database:
            world = World(database)
            scene(world, number)
            costs.append(database.read(partial(cost, look=world.observer.observe)))
            world.submit("urgent", priority="urgent", agent={"type": "lint"})
            world.tick()
            assert "urgent" in world.running()
    (few_statements, few_steps), (many_statements, many_steps) = costs
    assert many_statements == few_statements
    assert many_steps < few_steps * 1.1


def cost(connection: Connection, look: Callable[[Connection], object]) -> tuple[int, int]:
    """What a look costs: statements, and steps of the database's own machine, which no busy processor changes."""
    statements: list[str] = []
    steps: list[None] = []
    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: steps.append(None), 1)
    with listening(lambda statement, _: statements.append(statement)):
        look(connection)
    driver.set_progress_handler(None, 1)
    return len(statements), len(steps)


def not_understood(world: World, number: int) -> None:
    world.submit("odd", working_dir="/srv/odd", agent={"type": "claude", "strict": True})
    world.database.write(lambda connection: multiply(connection, "odd", number, folders=True))
    spoil = update(TASK).where(TASK.c.name.startswith("odd")).values(tier="no such tier")
    world.database.write(lambda connection: connection.execute(spoil))


def test_a_lane_of_many_that_cannot_be_understood_stops_nobody(world: World) -> None:
    not_understood(world, 50)
    world.submit("good", priority="low")
    world.tick()
    assert set(world.running()) == {"good"}


def test_in_the_pause_after_their_faults_they_are_left_out_together(tmp_path: Path) -> None:
    statements = []
    for number in (20, 100):
        with open_migrated(tmp_path / str(number)) as database:
            world = World(database)
            not_understood(world, number)
            world.tick()
            statements.append(database.read(partial(cost, look=world.observer.observe))[0])
    few, many = statements
    assert few == many
