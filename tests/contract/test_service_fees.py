"""What cards ask for their work: a part of a task's cost of its own, in budgets, and by whom it is owed to."""

from typing import Any

import pytest

from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.tasks import TaskView
from claudomator_py.store.database import Database
from tests.fakes.cards import card
from tests.fakes.world import World

PRICED = {"per_task": 12.0, "input": 2.0, "output": 10.0}
DEAR = {"id": "cathedral", "name": "Cathedrals", "creator": "master", "pricing": {"per_task": 30.0}}


@pytest.fixture
def world(database: Database) -> World:
    made = World(database, routes=True)
    made.specialists.register(card("painter", pricing=PRICED, skills=[DEAR]))
    return made


def start(world: World, name: str, **fields: Any) -> None:
    world.submit(name, specialist="painter", **fields)
    world.router.route()
    world.tick()


def done(world: World, name: str, **outcome: Any) -> TaskView:
    world.end(name, **outcome)
    world.tick()
    return world.service.get(name)


@pytest.mark.both_databases
def test_a_fee_is_part_of_the_cost_of_a_task_and_owed_to_the_creator(world: World) -> None:
    start(world, "fence")
    fence = done(world, "fence", cost_usd=0.5)
    start(world, "nave", skill="cathedral")
    nave = done(world, "nave")

    assert (fence.cost_usd, fence.fees_usd) == (12.5, 12.0)
    assert (nave.cost_usd, nave.fees_usd) == (30.0, 30.0)
    (run,) = world.service.runs("fence")
    assert run.outcome is not None
    assert run.outcome.fee is not None
    assert (run.outcome.fee.usd, run.outcome.fee.creator) == (12.0, OPERATOR.id)
    owed = [(fee.creator, fee.runs, fee.usd) for fee in world.access.as_(OPERATOR)[Routing].stats().fees]
    assert owed == [("master", 1, 30.0), (OPERATOR.id, 1, 12.0)]
    eve = world.access.as_(Principal("eve", Role.READ, "acme"))
    assert eve[Routing].stats().fees == (), "of tasks that do not exist for her"


def test_tokens_are_asked_for_where_their_cost_is_not_told(world: World) -> None:
    start(world, "fence")
    task = done(world, "fence", tokens={"input": 500_000, "output": 100_000})
    assert (task.cost_usd, task.fees_usd) == (14.0, 14.0)


def test_what_is_not_done_costs_no_more_than_its_tokens(world: World) -> None:
    start(world, "fence", retry={"max_attempts": 1})
    world.fail("fence", tokens={"input": 500_000, "output": 0})
    failed = world.service.get("fence")
    assert (failed.state, failed.cost_usd) == ("FAILED", 1.0)


def test_a_fee_counts_in_the_budget_of_a_task(world: World) -> None:
    start(world, "fence", budget={"usd": 20.0})
    fence = done(world, "fence", cost_usd=0.5)
    assert fence.budget is not None
    assert fence.budget.text.startswith("12.50 of 20.00 USD")


def test_work_without_a_price_has_no_fee(world: World) -> None:
    world.specialists.register(card("painter"))
    start(world, "fence")
    fence = done(world, "fence", cost_usd=0.5)
    assert (fence.cost_usd, fence.fees_usd) == (0.5, None)


@pytest.mark.parametrize(
    ("pricing", "fields", "message"),
    [
        ({"per_task": 12}, {"budget": {"usd": 5}}, "a task of far costs 12 USD"),
        ({}, {"budget": {"usd": 5}}, "its program does not say what it costs"),
        ({"per_task": 1, "output": 4}, {"budget": {"usd": 5}}, "its program does not say what it costs"),
        ({"per_task": 12}, {"budget": {"tokens": 500}}, "does not say how many it uses"),
        ({"per_task": 12}, {"budget": {"usd": 12}}, None),
        ({"per_task": 12}, {"budget": {"runs": 2}}, None),
        ({"per_task": 12}, {}, None),
    ],
)
def test_a_task_beyond_whose_budget_its_specialist_is_is_refused(
    world: World, pricing: dict[str, float], fields: dict[str, Any], message: str | None
) -> None:
    world.specialists.register(card("far", url="http://127.0.0.1:9/far", pricing=pricing))
    world.registry.refresh()
    if message is not None:
        with pytest.raises(Invalid, match=message):
            world.submit("t", specialist="far", **fields)
        return
    world.submit("t", specialist="far", **fields)
    world.router.route()
    assert "cannot keep" not in str(world.service.get("t").reason_text)


def test_a_task_is_refused_for_the_price_of_a_specialist_here_too(world: World) -> None:
    with pytest.raises(Invalid, match="a task of painter costs 30 USD"):
        world.submit("nave", specialist="painter", skill="cathedral", budget={"usd": 20})
    assert world.submit("fence", specialist="painter", budget={"usd": 20}).name == "fence"
