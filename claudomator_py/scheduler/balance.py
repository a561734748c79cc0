"""Where a task runs: the choice among agents, pure and total, with no model asked.

One list of preferences both chooses and says why each other agent was not chosen, so that the two cannot disagree.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.scheduler.snapshot import AgentState, NearLimit
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Pick:
    """The agent chosen."""

    agent: AgentState
    all_limited: bool
    """Every candidate was limited, so this is the fallback."""


@dataclass(frozen=True, slots=True)
class _Preference:
    """What makes an agent preferred to another: the one for which ``rank`` is the smaller. code: why the other lost."""

    rank: Callable[[AgentState, NearLimit], Any]
    code: BlockCode
    params: Callable[[AgentState], Mapping[str, object]] = lambda _: {}


_PREFERENCES: Final = (
    _Preference(lambda agent, _: agent.limited, BlockCode.LIMITED),
    _Preference(
        lambda agent, near_limit: near_limit == "avoid" and agent.near_limit and not agent.limited, BlockCode.NEAR_LIMIT
    ),
    _Preference(
        lambda agent, _: agent.active,
        BlockCode.BUSIER,
        lambda agent: {"active": agent.active, "slots": agent.max_concurrent},
    ),
    _Preference(lambda agent, near_limit: near_limit != "ignore" and agent.near_limit, BlockCode.TIE_NEAR_LIMIT),
    _Preference(lambda agent, _: agent.name, BlockCode.TIE),
)
"""In the order in which they count."""
_OF_THE_CHOSEN: Final = frozenset({BlockCode.TIE_NEAR_LIMIT, BlockCode.TIE})
"""Codes whose words name the agent that was chosen."""


def pick_agent(candidates: Iterable[AgentState], near_limit: NearLimit = "tie_break") -> Pick | None:
    """Return the least active candidate that is not limited; if all are limited, the least active of all.

    Ties go to those that are not near a limit, unless that is to be ignored, then to the alphabetically first name, so
    the order of the candidates never matters. near_limit ``avoid``: one that is near a limit is picked only if all
    others are limited or near one, too. None only without candidates.
    """
    chosen = min(candidates, key=lambda agent: [one.rank(agent, near_limit) for one in _PREFERENCES], default=None)
    return None if chosen is None else Pick(chosen, all_limited=chosen.limited)


def lost_to(agent: AgentState, chosen: AgentState, near_limit: NearLimit) -> Blocked:
    """Return why the agent was not picked, but that other candidate: the first preference by which they differ."""
    first = next(one for one in _PREFERENCES if one.rank(agent, near_limit) != one.rank(chosen, near_limit))
    named = {"chosen": chosen.name} if first.code in _OF_THE_CHOSEN else {}
    return blocked(first.code, agent=agent.name, **first.params(agent), **named)
