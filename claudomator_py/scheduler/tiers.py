"""Which agent runs a task, and how strong a model it gets: pinned, kept, answered or the agent's default; and whether
to ask for the tier. Pure and total; calls no model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.decision import Classification
from claudomator_py.scheduler.classification import Cause
from claudomator_py.scheduler.snapshot import AgentState, NearLimit, QueueHead
from claudomator_py.schema.agent_settings import usual_models
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Pick:
    """The agent chosen."""

    agent: AgentState
    all_limited: bool
    """True if every candidate was limited, so this is a last resort."""


@dataclass(frozen=True, slots=True)
class _Preference:
    """A criterion by which agents are preferred: the smaller ``rank`` wins. code: why the other agent lost."""

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
"""In order of precedence."""
_OF_THE_CHOSEN: Final = frozenset({BlockCode.TIE_NEAR_LIMIT, BlockCode.TIE})
"""Codes whose text names the chosen agent."""


def pick_agent(candidates: Iterable[AgentState], near_limit: NearLimit = "tie_break") -> Pick | None:
    """Return the least active candidate that is not limited; if all are limited, the least active of all.

    Ties go to agents that are not near a limit, unless that is to be ignored, and then to the alphabetically first
    name, so the order of candidates never matters. near_limit ``avoid``: an agent near a limit is picked only if all
    others are limited or near one, too. Returns None only without candidates.
    """
    chosen = min(
        candidates, key=lambda agent: [preference.rank(agent, near_limit) for preference in _PREFERENCES], default=None
    )
    return None if chosen is None else Pick(chosen, all_limited=chosen.limited)


def lost_to(agent: AgentState, chosen: AgentState, near_limit: NearLimit) -> Blocked:
    """Return why the chosen agent was preferred to this one: the first preference by which they differ."""
    first = next(
        preference
        for preference in _PREFERENCES
        if preference.rank(agent, near_limit) != preference.rank(chosen, near_limit)
    )
    named = {"chosen": chosen.name} if first.code in _OF_THE_CHOSEN else {}
    return blocked(first.code, agent=agent.name, **first.params(agent), **named)


@dataclass(frozen=True, slots=True)
class TierPending:
    """The question is open. until: when the default tier is used instead, in epoch milliseconds; None if not asked
    yet."""

    until: int | None


@dataclass(frozen=True, slots=True)
class AskTier:
    """A request to ask which tier this task needs."""

    head: QueueHead
    agent: str
    """The tentatively picked agent."""
    agent_type: str
    models: tuple[tuple[Tier, str], ...]
    """The model of each of its tiers."""
    urgent: bool = False
    """True if the task could start now but for the answer."""


def tier_for(
    head: QueueHead, hinted: Sequence[AgentState], agent: AgentState, *, classifier: bool, now_ms: int
) -> tuple[Tier, Classification] | TierPending:
    """Return the tier of a task on this agent, and where it comes from. hinted: the agents that its hint refers to. The
    constraints' floor and ceiling are applied last: what is asked and answered does not depend on them."""
    decided = _unclamped(head, hinted, agent, classifier=classifier, now_ms=now_ms)
    if isinstance(decided, TierPending):
        return decided
    tier, classification = decided
    clamped = head.constraints.clamp(tier)
    if clamped is tier:
        return decided
    return clamped, classification.model_copy(update={"clamped_from": tier})


def _unclamped(
    head: QueueHead, hinted: Sequence[AgentState], agent: AgentState, *, classifier: bool, now_ms: int
) -> tuple[Tier, Classification] | TierPending:
    pinned = _pinned(head, hinted)
    if pinned is not None:
        return pinned
    if head.kept_tier is not None:
        what = "an automatic retry" if head.conversation is None else "a continued conversation"
        return head.kept_tier, Classification(source="kept", cause=f"{what} keeps its tier")
    default = head.constraints.default_tier or agent.default_tier
    asked_tier = head.asked
    if asked_tier is not None and asked_tier.tier is not None and asked_tier.source in ("classifier", "cache"):
        classification = Classification(
            source=asked_tier.source,
            reason=asked_tier.detail,
            asked_about=asked_tier.agent,
            said_agent=asked_tier.said_agent,
        )
        return asked_tier.tier, classification
    if asked_tier is not None and asked_tier.answered:
        return default, Classification(
            source="default", cause=asked_tier.cause, reason=asked_tier.detail, asked_about=asked_tier.agent
        )
    if not classifier:
        return default, Classification(source="default", cause=Cause.OFF)
    if not _has_choice(agent) or head.constraints.only_tier is not None:
        return default, Classification(source="default", cause=Cause.NOTHING_TO_CHOOSE)
    if asked_tier is None:
        return TierPending(None)
    if now_ms < asked_tier.deadline:
        return TierPending(asked_tier.deadline)
    return default, Classification(source="default", cause=Cause.TIMEOUT, asked_about=asked_tier.agent)


def question(
    head: QueueHead, hinted: Sequence[AgentState], agents: Sequence[AgentState], near_limit: NearLimit = "tie_break"
) -> AskTier | None:
    """Return the question to ask while the task waits, for the agent it would get if slots were free; None if
    nothing."""
    if head.asked is not None or head.kept_tier is not None or _pinned(head, hinted) is not None:
        return None
    if head.constraints.only_tier is not None:
        return None
    admitted = [agent for agent in agents if head.constraints.admits(agent.name, agent.kind)]
    wished = [agent for agent in admitted if agent in hinted]
    candidates = [agent for agent in wished or admitted if agent.problem is None and (wished or agent.auto_select)]
    pick = pick_agent(candidates, near_limit)
    if pick is None:
        return None
    agent = pick.agent
    if not _has_choice(agent):
        return None
    models = tuple((tier, choice.model) for tier, choice in sorted(agent.models.items()))
    return AskTier(head, agent.name, agent.kind, models)


def _has_choice(agent: AgentState) -> bool:
    """True if the agent's tiers differ; with only one model the answer would change nothing."""
    return len(set(agent.models.values())) > 1


def _pinned(head: QueueHead, hinted: Sequence[AgentState]) -> tuple[Tier, Classification] | None:
    """The pinned tier, or the tier of the pinned model on an agent that the hint refers to. If no agent matches the
    kind that the hint names, that kind's usual models determine the tier."""
    if head.tier is not None:
        return head.tier, Classification(source="pinned")
    if head.model is None:
        return None
    if not hinted:
        usual = usual_models(head.agent_type or "")
        named = (tier for tier, choice in usual.items() if choice.model == head.model)
        tier = next(named, None)
        return None if tier is None else (tier, Classification(source="pinned", cause=f"the tier of {head.model}"))
    for agent in hinted:
        for tier, choice in agent.models.items():
            if choice.model == head.model:
                return tier, Classification(source="pinned", cause=f"the tier of {head.model}")
    return hinted[0].default_tier, Classification(source="pinned", cause=f"{head.model} belongs to no tier")
