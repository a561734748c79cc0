"""Where a task runs: the choice among agents, pure and total, with no model asked (A2)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

NearLimit = Literal["tie_break", "avoid", "ignore"]
"""What it means that an agent is near a limit: it loses ties, or counts as limited while another is not, or nothing."""


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


def pick_agent(candidates: Iterable[AgentStatus], near_limit: NearLimit = "tie_break") -> Pick | None:
    """The least active candidate that is not limited; if all are limited, the least active of all.

    Ties go to those that are not near a limit, unless that is to be ignored, then to the alphabetically first name, so
    the order of the candidates never matters. near_limit ``avoid``: one that is near a limit is picked only if all
    others are limited or near one, too. None only without candidates.
    """
    statuses = tuple(candidates)
    if not statuses:
        return None
    free = tuple(status for status in statuses if not status.limited)
    far = tuple(status for status in free if not status.near_limit) if near_limit == "avoid" else ()
    regarded = near_limit != "ignore"
    chosen = min(
        far or free or statuses, key=lambda status: (status.active, regarded and status.near_limit, status.name)
    )
    return Pick(chosen.name, all_limited=not free)
