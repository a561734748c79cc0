"""Worlds whose agents run into limits."""

from typing import Any

from claudomator_py.domain.agent import AgentSpec
from tests.fakes.agents import CLAUDE_MODELS
from tests.fakes.world import World

WORK = AgentSpec(name="work", kind="claude", models=CLAUDE_MODELS)
WIDE = AgentSpec(name="claude", kind="claude", models=CLAUDE_MODELS, max_concurrent=6)


def limit_on(world: World, agent: str, tier: str = "powerful", **outcome: Any) -> None:
    """A task meets a limit there, and is cancelled."""
    world.now_ms += 1  # The newest of that name is this one.
    world.submit("first", agent={"type": agent, "strict": True, "tier": tier})
    world.tick()
    world.end("first", **{"status": "limited", "reason": "rate_limited", "provenance": "reported", **outcome})
    world.tick()
    world.service.cancel("first")
