"""The floor and the ceiling of a task's tier, wherever the tier comes from."""

from typing import Any

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.routing import Constraints
from claudomator_py.queries.explain import decision_sentences
from claudomator_py.scheduler.decision import DecisionRecord
from claudomator_py.scheduler.plan import StartRun, plan
from claudomator_py.scheduler.snapshot import AskedTier
from claudomator_py.scheduler.tiers import AskTier
from tests.unit.scheduler.situations import NOW, agent, head, snapshot, starts

FLOOR = Constraints(tier_floor=Tier.BALANCED)
CEILING = Constraints(tier_ceiling=Tier.BALANCED)
ANSWERED = AskedTier(agent="claude", deadline=NOW, answered=True, source="classifier", tier=Tier.POWERFUL)


def decided(constraints: Constraints, **changes: Any) -> DecisionRecord:
    (start,) = starts(snapshot(agent("claude"), heads=(head(1, constraints=constraints, **changes),), classifier=True))
    return start.decision


@pytest.mark.parametrize(
    ("constraints", "source", "asks"),
    [
        (FLOOR, "pinned", {"tier": Tier.FAST}),
        (CEILING, "pinned", {"tier": Tier.POWERFUL}),
        (FLOOR, "kept", {"kept_tier": Tier.FAST}),
        (CEILING, "classifier", {"asked": ANSWERED}),
    ],
)
def test_a_tier_outside_is_clamped_and_the_decision_says_so(
    constraints: Constraints, source: str, asks: dict[str, Any]
) -> None:
    before = decided(Constraints(), **asks)
    record = decided(constraints, **asks)

    assert (record.tier, record.model) == (Tier.BALANCED, "sonnet")
    assert (record.classification.source, record.classification.clamped_from) == (source, before.tier)
    assert record.constraints == constraints
    assert before.classification.clamped_from is None
    bound = "floor" if constraints is FLOOR else "ceiling"
    assert f"without its {bound} it would be {before.tier}" in " ".join(decision_sentences(record, 1, NOW, NOW))


def test_the_agents_default_is_clamped_too() -> None:
    powerful = Constraints(tier_floor=Tier.POWERFUL)
    (start,) = starts(snapshot(agent("claude"), heads=(head(1, constraints=powerful),)))

    assert (start.decision.tier, start.decision.model) == (Tier.POWERFUL, "opus")
    assert start.decision.classification.clamped_from is Tier.BALANCED


@pytest.mark.parametrize(("pinned", "allowed"), [("opus", False), ("sonnet", True), ("haiku", True), ("other", False)])
def test_a_pinned_model_is_used_only_if_one_of_its_tiers_is_allowed(pinned: str, allowed: bool) -> None:
    record = decided(CEILING, agent_type="claude", model=pinned)

    assert record.model == (pinned if allowed else "sonnet")
    assert record.overridden_model == (None if allowed else pinned)
    told = " ".join(decision_sentences(record, 1, NOW, NOW))
    assert (f"The task pins {pinned}, which its constraints do not allow." in told) is not allowed


def test_a_pinned_tier_does_not_bring_a_pinned_model_in() -> None:
    record = decided(CEILING, agent_type="claude", model="opus", tier=Tier.FAST)

    assert (record.tier, record.model, record.overridden_model) == (Tier.FAST, "haiku", "opus")


def test_a_tier_inside_is_left_alone() -> None:
    assert decided(CEILING, tier=Tier.FAST).classification.clamped_from is None


def test_nothing_is_asked_where_one_tier_is_left() -> None:
    only = Constraints(tier_floor=Tier.FAST, tier_ceiling=Tier.FAST)

    (start,) = plan(snapshot(agent("claude"), heads=(head(1, constraints=only),), classifier=True))
    assert isinstance(start, StartRun)
    assert (start.decision.tier, start.decision.model) == (Tier.FAST, "haiku")


def test_the_question_is_the_same_with_a_floor_as_without() -> None:
    asked = [
        plan(snapshot(agent("claude"), heads=(head(1, constraints=constraints),), classifier=True))[0]
        for constraints in (Constraints(), FLOOR)
    ]

    without, with_floor = (ask for ask in asked if isinstance(ask, AskTier))
    assert without.models == with_floor.models
