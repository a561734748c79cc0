"""``fallback_model``: what an agent uses once a model is overloaded or not to be had, and who else is spared for it."""

from typing import Any

import pytest

from claudomator_py.domain.requests import HoldRequest
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.decisions import classification_of
from tests.fakes.world import World

SPARE = CLAUDE.model_copy(update={"fallback_model": "haiku", "max_concurrent": 3})
MINUTE_MS = 60_000


@pytest.fixture
def world(database: Database) -> World:
    return World(database, agents=(SPARE,))


def started(world: World, name: str, **fields: Any) -> DecisionView:
    """The decision by which the task runs."""
    world.submit(name, **fields)
    world.tick()
    return decision(world, name)


def decision(world: World, name: str) -> DecisionView:
    return world.service.why(name).decisions[0]


def overload(world: World, name: str) -> None:
    world.fail(name, "overloaded", detail="529 Overloaded")


def test_the_next_attempt_uses_it_and_says_so(world: World) -> None:
    assert started(world, "t").model == "sonnet"
    overload(world, "t")
    world.tick(2 * MINUTE_MS)
    second = decision(world, "t")
    assert (second.model, second.tier, classification_of(second).source) == ("haiku", "balanced", "kept")
    assert second.reason == "least active; haiku is its fallback_model after overloaded of sonnet"
    assert world.service.runs("t")[-1].model == "haiku"
    world.fail("t", "agent_error")
    world.tick(5 * MINUTE_MS)
    assert decision(world, "t").model == "sonnet", "that was no fault of the model"


def test_others_use_it_too_while_the_model_is_overloaded(world: World) -> None:
    started(world, "t")
    overload(world, "t")
    other = started(world, "other")
    assert (other.model, other.reason) == (
        "haiku",
        "least active; haiku is its fallback_model after overloaded of sonnet",
    )
    assert started(world, "strong", agent={"tier": "powerful"}).model == "opus", "of which nobody said so"
    agent = world.roster.all()[0]
    assert (agent.limited, [hold.family for hold in agent.holds]) == (False, ["sonnet"])


def test_after_the_hold_one_goes_first_and_the_rest_wait_for_its_answer_on_the_fallback(world: World) -> None:
    started(world, "t")
    overload(world, "t")
    world.now_ms += 31_000
    for name in ("a", "b"):
        world.submit(name)
    world.tick()
    assert sorted(str(decision(world, name).model) for name in ("a", "b")) == ["haiku", "sonnet"]


def test_when_the_fallback_is_overloaded_too_the_agent_is_left_alone(world: World) -> None:
    started(world, "t")
    overload(world, "t")
    started(world, "u")
    overload(world, "u")
    assert world.roster.all()[0].limited
    world.submit("v")
    world.tick()
    assert world.state("v") == "QUEUED limited"


def test_a_pinned_model_is_kept_and_waits(world: World) -> None:
    pinned = {"type": "claude", "model": "sonnet"}
    started(world, "t", agent=pinned)
    overload(world, "t")
    world.submit("u", agent=pinned)
    world.tick()
    assert world.state("u") == "QUEUED limited"
    world.tick(2 * MINUTE_MS)
    world.tick(2 * MINUTE_MS)
    assert {run.model for name in ("t", "u") for run in world.service.runs(name)} == {"sonnet"}


@pytest.mark.both_databases
def test_a_model_that_is_not_known_is_replaced_once(world: World) -> None:
    started(world, "t")
    world.fail("t", "invalid_model", detail="no such model")
    assert world.state("t") == "WAITING backoff"
    world.tick(2 * MINUTE_MS)
    assert "haiku is its fallback_model after invalid_model of sonnet" in decision(world, "t").reason
    world.fail("t", "invalid_model")
    assert world.state("t") == "FAILED invalid_model"


def test_without_one_nothing_is_replaced(database: Database) -> None:
    world = World(database, agents=(CODEX,))
    started(world, "t")
    overload(world, "t")
    assert world.roster.all()[0].limited
    world.tick(2 * MINUTE_MS)
    assert decision(world, "t").model == "sol"
    world.fail("t", "invalid_model")
    assert world.state("t") == "FAILED invalid_model"


def test_another_agent_keeps_its_own_models(database: Database) -> None:
    world = World(database, agents=(SPARE, CODEX))
    started(world, "t", agent={"type": "claude"})
    world.end("t", status="failed", reason="overloaded")
    world.roster.hold("claude", HoldRequest())
    world.tick(2 * MINUTE_MS)
    assert (decision(world, "t").agent, decision(world, "t").model) == ("codex", "sol")
