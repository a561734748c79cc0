"""The floor and the ceiling of a task's tier, wherever the tier comes from."""

from typing import Any

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked
from claudomator_py.domain.routing import Constraints
from claudomator_py.resources.decisions.sentences import decision_sentences
from claudomator_py.scheduler.plan import Planner, StartRun, plan
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.scheduler.snapshot import AskedTier
from claudomator_py.scheduler.tiers import AskTier
from tests.unit.scheduler.situations import NOW, agent, head, snapshot, starts

ONLY_CODEX = Constraints(agents=("codex",))
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
    text = " ".join(decision_sentences(record, 1, NOW, NOW))
    assert (f"The task pins {pinned}, which its constraints do not allow." in text) is not allowed


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


def test_an_agent_that_is_not_among_those_allowed_is_not_chosen_and_the_decision_says_why() -> None:
    agents = (agent("claude"), agent("codex", active=1))

    (start,) = starts(snapshot(*agents, heads=(head(1, constraints=ONLY_CODEX),)))

    assert start.decision.agent == "codex"
    rejected = {
        candidate.agent: candidate.rejected.code
        for candidate in start.decision.candidates
        if candidate.rejected is not None
    }
    assert rejected == {"claude": BlockCode.NOT_ALLOWED}


def test_a_preferred_agent_that_is_not_allowed_is_overridden() -> None:
    agents = (agent("claude"), agent("codex"))

    (start,) = starts(snapshot(*agents, heads=(head(1, constraints=ONLY_CODEX, agent_type="claude"),)))

    assert start.decision.agent == "codex"
    assert start.decision.overridden is not None
    assert [entry.code for entry in start.decision.overridden.because] == [BlockCode.NOT_ALLOWED]


def test_a_task_of_which_no_agent_is_allowed_waits_and_says_so() -> None:
    verdict = Planner(snapshot(agent("claude"))).consider(head(1, constraints=ONLY_CODEX))

    assert isinstance(verdict, Blocked)
    assert (verdict.code, [agent.code for agent in verdict.params.agents]) == (
        BlockCode.AGENTS_UNABLE,
        [BlockCode.NOT_ALLOWED],
    )


def test_an_agent_that_has_to_be_named_is_open_where_the_constraints_name_it() -> None:
    agents = (agent("claude"), agent("writer-bot", auto_select=False))

    (start,) = starts(snapshot(*agents, heads=(head(1, constraints=Constraints(agents=("writer-bot",))),)))

    assert start.decision.agent == "writer-bot"


def test_nothing_is_asked_for_an_agent_that_is_not_allowed() -> None:
    agents = (agent("claude"), agent("codex"))

    (ask,) = plan(snapshot(*agents, heads=(head(1, constraints=ONLY_CODEX),), classifier=True))

    assert isinstance(ask, AskTier)
    assert ask.agent == "codex"


def test_the_constraints_say_the_tier_where_nobody_else_does() -> None:
    powerful = Constraints(default_tier=Tier.POWERFUL)

    (start,) = starts(snapshot(agent("claude"), heads=(head(1, constraints=powerful),)))
    (pinned,) = starts(snapshot(agent("claude"), heads=(head(1, constraints=powerful, tier=Tier.FAST),)))

    assert (start.decision.tier, pinned.decision.tier) == (Tier.POWERFUL, Tier.FAST)


@pytest.mark.parametrize(("routing", "routed", "starting"), [(True, False, 0), (True, True, 1), (False, False, 1)])
def test_nothing_starts_before_it_is_decided_who_does_it(routing: bool, routed: bool, starting: int) -> None:
    seen = snapshot(agent("claude"), heads=(head(1, routed=routed),), routing=routing)

    assert len(plan(seen)) == starting
    if not starting:
        verdict = Planner(seen).decide(head(1, routed=routed))
        assert isinstance(verdict, Blocked)
        assert verdict.code is BlockCode.ROUTING


def test_a_task_that_asks_first_does_not_start_unasked_even_where_nothing_is_routed() -> None:
    asks, other = head(1, asks=True), head(2)

    seen = snapshot(agent("claude"), heads=(asks, other), routing=False)

    assert [start.head.task_id for start in starts(seen)] == [other.task_id]
    verdict = Planner(seen).decide(asks)
    assert isinstance(verdict, Blocked)
    assert verdict.code is BlockCode.ROUTING


def test_a_task_for_an_agent_that_takes_no_role_need_not_be_routed() -> None:
    agents = (agent("claude"), agent("lint", kind="command", auto_select=False))
    seen = snapshot(*agents, routing=True)

    verdicts = [
        Planner(seen).decide(head(1, agent_type="lint")),
        Planner(seen).decide(head(1, agent_type="lint", names_specialist=True)),
        Planner(seen).decide(head(1, agent_type="claude")),
    ]

    assert [isinstance(verdict, Blocked) for verdict in verdicts] == [False, True, True]
