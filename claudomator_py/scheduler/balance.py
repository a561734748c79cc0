"""Where a task runs: the choice among agents, pure and total, with no model asked."""

from collections.abc import Iterable
from dataclasses import dataclass

from claudomator_py.scheduler.snapshot import AgentState, NearLimit


@dataclass(frozen=True, slots=True)
class Pick:
    """The agent chosen. all_limited: every candidate was limited, so this is the fallback."""

    agent: AgentState
    all_limited: bool


def pick_agent(candidates: Iterable[AgentState], near_limit: NearLimit = "tie_break") -> Pick | None:
    """The least active candidate that is not limited; if all are limited, the least active of all.

    Ties go to those that are not near a limit, unless that is to be ignored, then to the alphabetically first name, so
    the order of the candidates never matters. near_limit ``avoid``: one that is near a limit is picked only if all
    others are limited or near one, too. None only without candidates.
    """
    agents = tuple(candidates)
    if not agents:
        return None
    free = tuple(agent for agent in agents if not agent.limited)
    far = tuple(agent for agent in free if not agent.near_limit) if near_limit == "avoid" else ()
    regarded = near_limit != "ignore"
    chosen = min(far or free or agents, key=lambda agent: (agent.active, regarded and agent.near_limit, agent.name))
    return Pick(chosen, all_limited=not free)
