"""An agent as a task sees it: which of its holds count, how many runs they leave, and what stands in for its model."""

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.outcome import Reason
from claudomator_py.scheduler.snapshot import ActiveHold, AgentState
from tests.unit.scheduler.situations import HOLD, NOW, agent


def hold(**changes: object) -> ActiveHold:
    return HOLD.model_copy(update=changes)


FOREVER = hold(reason=Reason.AUTH, until=None)
PROBED = hold(room=0, until=NOW - 1)
BUDGET = hold(reason=Reason.BUDGET, room=0, until=NOW + 90_000)


def test_of_several_holds_the_longest_counts_and_one_that_is_tried_only_alone() -> None:
    later = hold(until=NOW + 80_000)
    for holds, longest in (
        ((), None),
        ((HOLD, later), later),
        ((later, FOREVER, HOLD), FOREVER),
        ((PROBED, HOLD), HOLD),
        ((PROBED,), PROBED),
        ((later, BUDGET), BUDGET),
        ((hold(room=1), hold(family="opus")), None),
    ):
        seen = agent("claude", holds=holds)
        assert (seen.hold, seen.limited) == (longest, longest is not None)


@pytest.mark.parametrize(
    ("held", "stops", "tried", "counts"),
    [
        (HOLD, True, False, False),
        (hold(room=1), False, True, True),
        (hold(room=0), True, True, True),
        (hold(tries=1), True, False, True),
        (hold(reason=Reason.BUDGET), True, False, False),
        (BUDGET, True, False, True),
    ],
)
def test_a_hold_stops_is_tried_or_is_counted(held: ActiveHold, stops: bool, tried: bool, counts: bool) -> None:
    assert (held.stops, held.tried, held.counts) == (stops, tried, counts)


def test_a_run_takes_from_what_is_counted_of_its_buckets_and_nothing_else() -> None:
    room, tries, plain = hold(bucket="a", room=3), hold(bucket="a", tries=2), hold(bucket="a")
    elsewhere = hold(bucket="b", room=5)
    seen = agent("claude", holds=(room, tries, plain, elsewhere))
    begun = seen.with_run({"a"})
    assert begun.holds == (hold(bucket="a", room=2), hold(bucket="a", tries=1), plain, elsewhere)
    assert seen.with_run({"b"}).holds[3].room == 4
    for bare, buckets in ((seen, {"c"}), (agent("claude", holds=(plain,)), {"a"})):
        assert bare.with_run(buckets) is bare, "nothing is copied where nothing is counted"


def test_a_task_sees_the_holds_on_its_model_as_holds_on_all() -> None:
    opus, sonnet = hold(family="opus"), hold(family="sonnet", until=NOW + 1)
    seen = agent("claude", holds=(PROBED, opus, sonnet))
    assert seen.with_model("claude-opus-4").holds == (PROBED, HOLD)
    assert seen.with_model("haiku").holds == (PROBED,)
    assert seen.with_model(None).holds == (PROBED,)
    assert not seen.limited or seen.hold == PROBED
    general = agent("claude", holds=(HOLD,))
    assert general.with_model("opus") is general
    assert seen.buckets_of("opus") == {HOLD.bucket}
    assert agent("claude", holds=(opus,)).buckets_of("haiku") == frozenset()
    assert agent("claude", holds=(opus, PROBED)).buckets_of("haiku") == {HOLD.bucket}


OVERLOADED = hold(reason=Reason.OVERLOADED, family="opus")


def falling_back(
    *holds: ActiveHold, spare: str | None = "haiku", model: str | None = "opus", after: Reason | None = None
) -> AgentState:
    return agent("claude", holds=holds, fallback_model=spare).falling_back(Tier.POWERFUL, model, after)


def test_the_fallback_stands_in_for_a_model_that_is_overloaded_or_was_not_to_be_had() -> None:
    for fallen, named in (
        (falling_back(OVERLOADED), ("overloaded", "opus")),
        (falling_back(after=Reason.INVALID_MODEL), ("invalid_model", "opus")),
        (falling_back(OVERLOADED, after=Reason.INVALID_MODEL), ("invalid_model", "opus")),
        (falling_back(model=None, after=Reason.OVERLOADED), ("overloaded",)),
    ):
        before = agent("claude").models
        assert fallen.models[Tier.POWERFUL].model == "haiku"
        assert {tier: fallen.models[tier] for tier in (Tier.FAST, Tier.BALANCED)} == {
            tier: before[tier] for tier in (Tier.FAST, Tier.BALANCED)
        }
        assert fallen.stands_in is not None
        assert all(word in fallen.stands_in.text for word in (*named, "haiku"))
        assert ("None" in fallen.stands_in.text) is False


@pytest.mark.parametrize(
    "held",
    [
        OVERLOADED.model_copy(update={"family": None}),
        OVERLOADED.model_copy(update={"family": "sonnet"}),
        OVERLOADED.model_copy(update={"reason": Reason.RATE_LIMITED}),
        OVERLOADED.model_copy(update={"room": 1}),
    ],
)
def test_no_fallback_stands_in_for_what_is_held_for_another_reason(held: ActiveHold) -> None:
    assert falling_back(held).stands_in is None


def test_nothing_stands_in_for_itself_or_where_there_is_no_fallback() -> None:
    assert falling_back(OVERLOADED, spare=None, after=Reason.OVERLOADED).stands_in is None
    assert falling_back(OVERLOADED, spare="opus", after=Reason.OVERLOADED).stands_in is None
    assert falling_back().stands_in is None
