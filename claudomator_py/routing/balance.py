"""Where a task runs: the choice among agents, pure and total, with no model asked (A2)."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """One candidate. active: its live runs, counted from rows. limited: it is known to have no quota left.

    near_limit: it will have none soon.
    """

    name: str
    active: int
    limited: bool
    near_limit: bool = False


@dataclass(frozen=True, slots=True)
class Pick:
    """The agent chosen. all_limited: every candidate was limited, so this is the fallback."""

    name: str
    all_limited: bool


def pick_agent(candidates: Iterable[AgentStatus]) -> Pick | None:
    """The least active candidate that is not limited; if all are limited, the least active of all.

    Ties go to those that are not near a limit, then to the alphabetically first name, so the order of the candidates
    never matters. None only without candidates.
    """
    statuses = tuple(candidates)
    if not statuses:
        return None
    free = tuple(status for status in statuses if not status.limited)
    chosen = min(free or statuses, key=lambda status: (status.active, status.near_limit, status.name))
    return Pick(chosen.name, all_limited=not free)
