"""Limits, on both databases: what a hold is on, and whom it stops."""

from typing import Any

import pytest

from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.units import HOUR_MS, format_instant
from claudomator_py.store.database import Database
from tests.fakes.world import CLAUDE, CLAUDE_MODELS, CODEX, START_MS, World

WORK = AgentSpec(name="work", kind="claude", models=CLAUDE_MODELS)
OTHER = AgentSpec(name="other", kind="claude", account="other", models=CLAUDE_MODELS)


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def limit_on(world: World, agent: str, tier: str = "powerful", **outcome: Any) -> None:
    """A task meets a limit there, and is cancelled."""
    world.submit("first", agent={"type": agent, "strict": True, "tier": tier})
    world.tick()
    world.end("first", **{"status": "limited", "reason": "rate_limited", "provenance": "reported", **outcome})
    world.tick()
    world.desk.cancel("first")


def test_a_limit_of_one_model_family_leaves_the_others_of_the_account_alone(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER), total=8)
    limit_on(world, "claude", limit="seven_day_opus", family="opus", reset_at=START_MS + HOUR_MS)
    for agent in ("claude", "work", "other"):
        for tier in ("powerful", "fast"):
            world.submit(f"{agent}-{tier}", agent={"type": agent, "strict": True, "tier": tier})
    world.tick()
    assert set(world.running()) == {"claude-fast", "work-fast", "other-powerful", "other-fast"}
    waiting = world.task("work-powerful")
    assert (waiting.reason, waiting.waiting_until) == ("limited", format_instant(START_MS + HOUR_MS))
    claude, work, other = world.desk.agents()
    assert (claude.limited, work.limited, len(other.holds)) == (False, False, 0)
    assert claude.holds == work.holds
    (hold,) = claude.holds
    assert (hold.bucket, hold.family, hold.window) == ("claude/default:opus", "opus", "seven_day_opus")
    assert (hold.provenance, hold.until) == ("reported", format_instant(START_MS + HOUR_MS))


def test_two_agents_of_one_account_are_limited_and_released_together(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER, CODEX))
    limit_on(world, "work", reset_at=START_MS + HOUR_MS)
    assert {view.name for view in world.desk.agents() if view.limited} == {"claude", "work"}
    assert not world.desk.release("claude").limited
    assert not any(view.limited for view in world.desk.agents())


@pytest.mark.parametrize(("reason", "held"), [("auth", {"claude", "work"}), ("no_credit", {"claude", "work"})])
def test_a_login_or_a_credit_is_the_accounts(world: World, reason: str, held: set[str]) -> None:
    world = World(world.database, agents=(CLAUDE, WORK, OTHER))
    limit_on(world, "claude", status="failed", reason=reason)
    assert {view.name for view in world.desk.agents() if view.limited} == held


def test_an_overload_is_held_against_the_agent_alone(world: World) -> None:
    world = World(world.database, agents=(CLAUDE, WORK))
    limit_on(world, "claude", status="failed", reason="overloaded")
    assert {view.name for view in world.desk.agents() if view.limited} == {"claude"}


def test_a_task_of_a_held_family_hides_no_other_of_its_lane(world: World) -> None:
    world = World(world.database, agents=(CLAUDE,))
    limit_on(world, "claude", limit="seven_day_opus", family="opus", reset_at=START_MS + HOUR_MS)
    for number in range(80):
        world.submit(f"strong-{number}", priority="urgent")
    strong = [world.row(f"strong-{number}").id for number in range(80)]
    world.keep_tier(strong, "powerful")
    world.submit("light")
    world.tick()
    assert world.running() == {"light": "claude"}
