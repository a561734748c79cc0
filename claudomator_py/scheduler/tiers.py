"""How strong a model a task gets: pinned, kept, answered, or the agent's default; and whether to ask for it."""

from collections.abc import Sequence

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.decision import Classification
from claudomator_py.scheduler.balance import pick_agent
from claudomator_py.scheduler.classification import Cause
from claudomator_py.scheduler.snapshot import AgentState, NearLimit, QueueHead
from claudomator_py.schema.agent_settings import usual_models
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class TierPending:
    """The question is open. until: epoch milliseconds at which the default is taken instead; None: not asked yet."""

    until: int | None


@dataclass(frozen=True, slots=True)
class AskTier:
    """Ask which tier this task needs."""

    head: QueueHead
    agent: str
    """The tentative pick."""
    agent_type: str
    models: tuple[tuple[Tier, str], ...]
    """What stands behind its tiers."""
    urgent: bool = False
    """It could start now, but for the answer."""


def tier_for(
    head: QueueHead, hinted: Sequence[AgentState], agent: AgentState, *, classifier: bool, now_ms: int
) -> tuple[Tier, Classification] | TierPending:
    """Return the tier of a task that this agent is to run, and where it comes from. hinted: what its hint names.

    The floor and the ceiling of its constraints come last: what is asked and answered does not depend on them.
    """
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
    """Return what to ask while the task waits, for the agent it would go to if slots were free; None: nothing."""
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
    """Whether its tiers differ in anything: with one model the answer would change nothing."""
    return len(set(agent.models.values())) > 1


def _pinned(head: QueueHead, hinted: Sequence[AgentState]) -> tuple[Tier, Classification] | None:
    """A tier that is written down; or that of a model that is, on an agent that the hint names. Where there is none of
    the kind that it names, the usual models of that kind say the tier.
    """
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
