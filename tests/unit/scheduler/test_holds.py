"""Holds on buckets: each stops every task of its bucket, and no other."""

from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.blocked_words import blocked_text
from claudomator_py.domain.outcome import Provenance
from claudomator_py.domain.units import format_instant
from claudomator_py.scheduler.admission import admit
from claudomator_py.scheduler.load import load_of
from claudomator_py.scheduler.snapshot import AgentState, AskedTier, QueueHead
from tests.fakes.agents import CLAUDE_MODELS
from tests.fakes.configuration import rules
from tests.unit.scheduler.situations import HOLD, NOW, agent, head, placed, snapshot, starts

OPUS = HOLD.model_copy(update={"bucket": "claude/default:opus", "family": "opus", "window": "seven_day_opus"})


def verdict(task: QueueHead, *agents: AgentState, **changes: object) -> str:
    """The agent it would go to, or why it waits."""
    result = admit(task, agents, rules(**changes), load_of(snapshot()))
    return blocked_text(result, lambda _: "then") if isinstance(result, Blocked) else result.agent


@given(st.sampled_from(Tier), st.sampled_from(["tier", "kept_tier", "asked", "model"]))
def test_a_hold_on_one_family_stops_its_tasks_and_none_else(tier: Tier, known: str) -> None:
    asked = AskedTier(agent="claude", deadline=NOW, answered=True, source="classifier", tier=tier)
    model = CLAUDE_MODELS[tier].model
    fields: dict[str, dict[str, object]] = {
        "tier": {"tier": tier},
        "kept_tier": {"kept_tier": tier},
        "asked": {"asked": asked},
        "model": {"model": model, "agent_type": "claude"},
    }
    task = head(1, **fields[known])
    expected = "claude is limited (7d opus window, reported) until then" if tier is Tier.POWERFUL else "claude"
    assert verdict(task, agent("claude", hold=OPUS), classifier=True) == expected
    assert (
        verdict(task, agent("claude", hold=HOLD), classifier=True)
        == "claude is limited (5h window, reported) until then"
    )


def test_an_agent_is_chosen_again_once_the_tier_is_known_and_its_model_is_held() -> None:
    agents = (agent("claude", hold=OPUS), agent("codex", active=1))
    asked = AskedTier(agent="claude", deadline=NOW + 1, answered=True, source="classifier", tier=Tier.POWERFUL)
    assert verdict(head(1), *agents, classifier=True) == "waiting for the tier classifier"
    assert verdict(head(1, asked=asked), *agents, classifier=True) == "codex"
    light = asked.model_copy(update={"tier": Tier.FAST})
    assert verdict(head(1, asked=light), *agents, classifier=True) == "claude"


def test_each_agent_is_judged_by_the_model_that_the_task_would_get_there() -> None:
    other = agent("second", default_tier=Tier.POWERFUL, hold=OPUS)
    assert placed(snapshot(agent("claude", hold=OPUS, active=1), other, heads=(head(1),))) == [("task-001", "claude")]


def test_agents_of_one_account_wait_for_the_longest_of_its_holds() -> None:
    longer = HOLD.model_copy(update={"until": NOW + 90_000, "window": "seven_day"})
    both = agent("claude", holds=(HOLD, longer))
    result = admit(head(1), (both,), rules(), load_of(snapshot()))
    assert isinstance(result, Blocked)
    assert (blocked_text(result, str), result.until) == (
        f"claude is limited (7d window, reported) until {format_instant(NOW + 90_000)}",
        NOW + 90_000,
    )


@given(st.integers(0, 4), st.lists(st.sampled_from(Tier), max_size=8), st.sampled_from(["wait", "try"]))
def test_no_more_begin_on_a_bucket_than_its_probe_leaves_room_for(room: int, tiers: list[Tier], when: str) -> None:
    opus = OPUS.model_copy(update={"room": room, "until": NOW - 1})
    agents = (agent("claude", hold=opus, max_concurrent=9), agent("second", hold=opus, max_concurrent=9))
    heads = tuple(head(number, tier=tier) for number, tier in enumerate(tiers))
    begun = starts(snapshot(*agents, heads=heads, total=18, when_all_limited=when))
    strong = [start for start in begun if start.decision.model == "opus"]
    assert len(strong) == min(room, tiers.count(Tier.POWERFUL))
    assert len(begun) - len(strong) == len(tiers) - tiers.count(Tier.POWERFUL)
    assert [start.head for start in strong] == [head for head in heads if head.tier is Tier.POWERFUL][:room]


def test_what_an_operator_holds_is_not_tried_all_the_same() -> None:
    by_hand = HOLD.model_copy(update={"reason": None, "window": None, "source": "", "provenance": Provenance.OPERATOR})
    assert (
        verdict(head(1), agent("claude", hold=by_hand), when_all_limited="try")
        == "claude is held (by the operator) until then"
    )
    assert verdict(head(1), agent("claude", hold=HOLD), when_all_limited="try") == "claude"
