"""Whether a tier is asked for at all, and whether it makes sense to try a limited agent."""

import pytest

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.blocked import BlockCode, blocked
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.routing import Constraints
from claudomator_py.scheduler.classification import Cause
from claudomator_py.scheduler.plan import Planner, StartRun, plan
from claudomator_py.scheduler.snapshot import ActiveHold, AgentState, AskedTier, HeldConversation
from claudomator_py.scheduler.tiers import AskTier, question
from tests.unit.scheduler.situations import HOLD, NOW, agent, head, snapshot, starts

ONE, TWO = ModelChoice(model="one"), ModelChoice(model="two")


def acted(*agents: AgentState, **changes: object) -> list[StartRun | AskTier]:
    return list(plan(snapshot(*agents, heads=(head(1),), classifier=True, **changes)))


@pytest.mark.parametrize("models", [{}, {Tier.FAST: ONE}, dict.fromkeys(Tier, ONE)], ids=["none", "one", "one for all"])
def test_with_one_model_nothing_is_asked(models: dict[Tier, ModelChoice]) -> None:
    (start,) = acted(agent("claude", models=models))
    assert isinstance(start, StartRun)
    assert start.decision.classification.cause == Cause.NOTHING_TO_CHOOSE
    assert acted(agent("claude", models=models, active=2)) == [], "nor ahead of a free slot"


def test_nothing_is_asked_about_a_task_that_no_agent_can_take() -> None:
    for task in (head(1, agent_type="simulated"), head(1, agent_type="codex", strict=True)):
        assert plan(snapshot(agent("claude"), heads=(task,), classifier=True)) == ()
    assert acted(agent("claude", problem="not on PATH")) == []


@pytest.mark.parametrize("other", [TWO, ModelChoice(model="one", effort="high")])
def test_with_two_or_with_two_efforts_it_is(other: ModelChoice) -> None:
    models = {Tier.FAST: ONE, Tier.BALANCED: ONE, Tier.POWERFUL: other}
    (asked,) = acted(agent("claude", models=models))
    assert isinstance(asked, AskTier)
    assert asked.urgent, "but for the answer it would start"
    (ahead,) = acted(agent("claude", models=models, active=2))
    assert isinstance(ahead, AskTier)
    assert not ahead.urgent


def test_what_is_asked_for_follows_the_rule_for_agents_near_a_limit() -> None:
    near, busy = agent("claude", near_limit=True), agent("codex", active=1)
    for rule, name in (("avoid", "codex"), ("tie_break", "claude")):
        (asked,) = acted(near, busy, near_limit=rule)
        assert isinstance(asked, AskTier)
        assert asked.agent == name


@pytest.mark.parametrize(
    ("type_hint", "strict", "name"),
    [("prefer", False, "codex"), ("prefer", True, "codex"), ("ignore", False, "claude"), ("ignore", True, "codex")],
)
def test_what_is_asked_for_is_the_agent_that_the_hint_means_unless_hints_are_ignored(
    type_hint: str, strict: bool, name: str
) -> None:
    # Both full, so that it is asked ahead of a free slot.
    agents = agent("claude", active=2), agent("codex", active=3)
    heads = (head(1, agent_type="codex", strict=strict),)
    (asked,) = plan(snapshot(*agents, heads=heads, classifier=True, type_hint=type_hint))
    assert isinstance(asked, AskTier)
    assert asked.agent == name


@pytest.mark.parametrize("unfit", [{"problem": "not on PATH"}, {"auto_select": False}])
def test_nothing_is_asked_for_an_agent_that_would_not_get_the_task(unfit: dict[str, object]) -> None:
    claude, codex = agent("claude", **unfit), agent("codex", active=1)
    asked = question(head(1), (), (claude, codex))
    assert asked is not None
    assert asked.agent == "codex"
    assert question(head(1), (), (claude,)) is None
    meant = question(head(1), (claude,), (claude, codex))
    assert (meant is None) == ("problem" in unfit), "by its name one that is closed to balancing is meant"


def test_nothing_is_asked_where_the_constraints_leave_one_tier() -> None:
    constraints = Constraints(tier_floor=Tier.BALANCED, tier_ceiling=Tier.BALANCED)
    assert question(head(1, constraints=constraints), (), (agent("claude"),)) is None
    two = Constraints(tier_floor=Tier.BALANCED)
    assert question(head(1, constraints=two), (), (agent("claude"),)) is not None


@pytest.mark.parametrize("left_ms", [1, 0, -1])
def test_an_open_question_keeps_a_task_until_the_deadline_that_is_stored_with_it_and_no_longer(left_ms: int) -> None:
    claude = agent("claude")
    asked = AskedTier(agent="claude", deadline=NOW + left_ms, answered=False)
    seen = snapshot(claude, heads=(head(1, asked=asked),), classifier=True)
    if left_ms > 0:
        verdict = Planner(seen).consider(seen.heads[0])
        assert verdict == blocked(BlockCode.CLASSIFYING, until=NOW + left_ms)
        assert plan(seen) == (), "it is not asked again"
    else:
        (start,) = starts(seen)
        decided = start.decision
        assert (decided.tier, decided.classification.cause) == (claude.default_tier, Cause.TIMEOUT)


def test_an_answer_with_no_tier_means_the_default_before_its_deadline_too() -> None:
    asked = AskedTier(agent="claude", deadline=NOW + 1, answered=True, source="default", cause="garbage")
    (start,) = plan(snapshot(agent("claude"), heads=(head(1, asked=asked),), classifier=True))
    assert isinstance(start, StartRun)
    decided = start.decision
    assert (decided.tier, decided.classification.source, decided.classification.cause) == (
        agent("claude").default_tier,
        "default",
        "garbage",
    )


def test_a_hint_alone_pins_no_tier() -> None:
    (start,) = plan(snapshot(agent("claude"), heads=(head(1, agent_type="claude"),)))
    assert isinstance(start, StartRun)
    assert start.decision.classification.source == "default"


def test_a_kept_tier_says_whether_a_retry_or_a_conversation_keeps_it() -> None:
    talk = HeldConversation(run="run", agent="claude", kind="claude")
    causes = set()
    for conversation in (None, talk):
        task = head(1, kept_tier=Tier.FAST, conversation=conversation)
        (start,) = plan(snapshot(agent("claude"), heads=(task,)))
        assert isinstance(start, StartRun)
        assert (start.decision.tier, start.decision.classification.source) == (Tier.FAST, "kept")
        causes.add(start.decision.classification.cause)
    assert len(causes) == 2


def hold(reason: Reason | None = Reason.RATE_LIMITED, **changes: object) -> ActiveHold:
    return HOLD.model_copy(update={"reason": reason, **changes})


def test_an_agent_is_tried_only_if_none_of_its_limits_speaks_against_it() -> None:
    limit, tried = hold(), hold(tries=1)
    login = ActiveHold(
        bucket="claude/default", reason=Reason.AUTH, until=None, provenance=Provenance.REPORTED, source="log in"
    )
    against = [
        login,
        hold(until=None),
        hold(None),
        hold(Reason.BUDGET),
        hold(tries=0),
        hold(room=0, until=NOW - 1),
    ]
    assert agent("claude", holds=(limit, tried)).triable
    for active_hold in against:
        for both in ((limit, active_hold), (active_hold, tried)):
            assert not agent("claude", holds=both).triable, active_hold
    # What is on one family only, or is over, does not stop all of its models.
    for beside in (login.model_copy(update={"family": "opus"}), hold(room=1, until=NOW - 1)):
        assert agent("claude", holds=(limit, beside)).triable
