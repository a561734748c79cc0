"""An organisation that has its share hides nobody, however much of its work waits, and a look at that costs nothing."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import TASK
from tests.databases import open_migrated
from tests.fakes.many import multiply
from tests.fakes.steps import spec
from tests.fakes.world import World
from tests.unit.dispatch.test_blocked_lanes import cost

MANY = 2_100
ACME, GLOBEX = (Principal(f"{name}-ci", Role.OPERATE, name) for name in ("acme", "globex"))
AGENTS = (
    AgentSpec(name="claude", kind="claude", max_concurrent=90),
    AgentSpec(name="shop", kind="a2a", max_concurrent=90, auto_select=False),
)


def shared(database: Database, agents: tuple[AgentSpec, ...] = AGENTS[:1]) -> World:
    return World(database, agents=agents, total=5, per_organisation=2, remote=4, remote_per_organisation=2)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_migrated(tmp_path / "state") as database:
        yield shared(database)


def submit(world: World, by: Principal, *names: str, **fields: object) -> None:
    for name in names:
        world.now_ms += 1
        world.access.as_(by)[Tasks].submit(spec(name, **fields))


def in_one_lane(world: World, number: int) -> None:
    submit(world, ACME, "a1", "a2", "a3", priority="urgent")
    world.tick()
    assert set(world.running()) == {"a1", "a2"}
    world.database.write(lambda connection: multiply(connection, "a3", number))


def in_folders_of_their_own(world: World, number: int) -> None:
    submit(world, ACME, "a1", "a2", priority="urgent")
    submit(world, ACME, "a3", priority="urgent", working_dir="/srv/a")
    world.tick()
    assert set(world.running()) == {"a1", "a2"}
    world.database.write(lambda connection: multiply(connection, "a3", number, folders=True))


def in_lanes_of_their_own(world: World, number: int) -> None:
    """As tasks are that each pin a model of their own."""
    in_one_lane(world, number)
    apart = update(TASK).where(TASK.c.name.like("a3%")).values(eligibility=TASK.c.eligibility + TASK.c.id)
    world.database.write(lambda connection: connection.execute(apart))


def of_many_creators(world: World, number: int) -> None:
    """Of whom each would have a share, and none may have what is kept for the operator."""
    submit(world, ACME, "a1", "a2", priority="urgent")
    submit(world, GLOBEX, "g1", "g2", priority="urgent")
    submit(world, Principal("ann", Role.OPERATE), "n1", priority="urgent")
    world.tick()
    assert len(world.running()) == 4
    world.database.write(lambda connection: multiply(connection, "n1", number))
    others = update(TASK).where(TASK.c.name.like("n1-%")).values(creator=TASK.c.id)
    world.database.write(lambda connection: connection.execute(others))


SCENES = (in_one_lane, in_folders_of_their_own, in_lanes_of_their_own, of_many_creators)


@pytest.mark.parametrize("scene", SCENES)
def test_it_hides_nobody(world: World, scene: Callable[[World, int], None]) -> None:
    scene(world, MANY)
    before = set(world.running())
    world.tick()
    assert set(world.running()) == before
    submit(world, OPERATOR, "own", priority="low")
    world.tick()
    assert set(world.running()) - before == {"own"}


@pytest.mark.parametrize("scene", SCENES[:-1])
def test_it_hides_no_other_organisation(world: World, scene: Callable[[World, int], None]) -> None:
    scene(world, MANY)
    before = set(world.running())
    submit(world, GLOBEX, "g1", "g2", "g3", priority="low")
    submit(world, OPERATOR, "own", priority="low")
    world.tick()
    assert set(world.running()) - before == {"g1", "g2", "own"}
    world.succeed("a1")
    world.tick()
    assert sum(name.startswith("a3") for name in world.running()) == 1, "its turn comes"


@pytest.mark.parametrize("scene", SCENES)
def test_a_look_costs_what_it_costs_with_a_few(tmp_path: Path, scene: Callable[[World, int], None]) -> None:
    costs = []
    for number in (20, MANY):
        with open_migrated(tmp_path / str(number)) as database:
            world = shared(database)
            scene(world, number)
            costs.append(database.read(partial(cost, look=world.observer.observe)))
    (few_statements, few_steps), (many_statements, many_steps) = costs
    assert many_statements == few_statements
    assert many_steps < few_steps * 1.5 + 500


@pytest.mark.parametrize("scene", [in_one_lane, in_folders_of_their_own])
def test_so_does_one_while_a_remote_agent_is_free(tmp_path: Path, scene: Callable[[World, int], None]) -> None:
    costs = []
    for number in (20, MANY):
        with open_migrated(tmp_path / str(number)) as database:
            world = shared(database, AGENTS)
            scene(world, number)
            costs.append(database.read(partial(cost, look=world.observer.observe)))
    (few_statements, few_steps), (many_statements, many_steps) = costs
    assert many_statements == few_statements
    assert many_steps < few_steps * 1.5 + 500


def test_nor_is_any_lane_looked_at_that_names_no_agent_which_is_free(tmp_path: Path) -> None:
    """However many they are: a guest with an agent elsewhere may submit tasks that each pin a model of their own."""
    statements = []
    for number in (20, MANY):
        with open_migrated(tmp_path / str(number)) as database:
            world = shared(database, AGENTS)
            in_lanes_of_their_own(world, number)
            statements.append(database.read(partial(cost, look=world.observer.observe))[0])
            submit(world, ACME, "elsewhere", agent={"type": "shop"}, priority="low")
            submit(world, OPERATOR, "here", priority="low")
            world.tick()
            assert set(world.running()) == {"a1", "a2", "elsewhere", "here"}
    few, many = statements
    assert few == many


def test_with_all_slots_used_only_what_names_a_free_agent_is_looked_at(world: World) -> None:
    world = shared(world.database, AGENTS)
    submit(world, OPERATOR, *(f"o{number}" for number in range(6)))
    world.tick()
    assert set(world.running()) == {f"o{number}" for number in range(5)}
    submit(world, OPERATOR, "kind", agent={"type": "a2a"}, priority="low")
    submit(world, OPERATOR, "name", agent={"type": "shop", "strict": True}, priority="low")
    world.tick()
    assert {"kind", "name"} < set(world.running())


def test_the_checks_that_a_plan_has_read_do_not_change(tmp_path: Path) -> None:
    with open_migrated(tmp_path / "state") as database:
        world = shared(database, AGENTS)
        submit(world, ACME, "s1", agent={"type": "shop"})
        world.tick()
        (run,) = database.read(run_rows.live)
        slots = world.observer.check_slots
        slots.replace_live([run])
        read = slots.to_check
        assert slots.obstacle(run) is None
        assert (read, slots.to_check) == (set(), {run.id})
