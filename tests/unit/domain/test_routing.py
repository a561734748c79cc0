"""What routing and rules leave open of agents, tiers and tools: two of them together never more than either."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.routing import Constraints, RuleCap, ToolLimits
from claudomator_py.domain.task import PermissionMode, Permissions, TaskSpec

FAST, BALANCED, POWERFUL = Tier.FAST, Tier.BALANCED, Tier.POWERFUL
STRICTEST_FIRST = (PermissionMode.PLAN, PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.BYPASS)

tools = st.lists(st.sampled_from(["Read", "Bash", "Bash(ls)", "Bash(rm x)"]), unique=True).map(tuple)
limits = st.builds(
    ToolLimits,
    mode=st.none() | st.sampled_from(PermissionMode),
    allowed_tools=st.none() | tools,
    disallowed_tools=tools,
)
wishes = st.builds(Permissions, mode=st.sampled_from(PermissionMode), allowed_tools=tools, disallowed_tools=tools)
names = st.lists(st.sampled_from(["claude", "claude-2", "codex"]), unique=True).map(tuple)
whoever = st.builds(Constraints, agents=names, one_of=st.lists(names, max_size=2).map(tuple), excluded_agents=names)
any_tier = st.none() | st.sampled_from(Tier)


def bounds(floor: Tier | None, ceiling: Tier | None) -> Constraints | None:
    try:
        return Constraints(tier_floor=floor, tier_ceiling=ceiling)
    except ValidationError:
        return None


some_tiers = st.builds(bounds, any_tier, any_tier).filter(lambda constraints: constraints is not None)


@pytest.mark.parametrize(
    ("floor", "ceiling", "clamped"),
    [
        (None, None, [FAST, BALANCED, POWERFUL]),
        (BALANCED, None, [BALANCED, BALANCED, POWERFUL]),
        (None, BALANCED, [FAST, BALANCED, BALANCED]),
        (BALANCED, BALANCED, [BALANCED, BALANCED, BALANCED]),
        (FAST, POWERFUL, [FAST, BALANCED, POWERFUL]),
    ],
)
def test_a_tier_becomes_the_nearest_that_is_allowed(
    floor: Tier | None, ceiling: Tier | None, clamped: list[Tier]
) -> None:
    constraints = Constraints(tier_floor=floor, tier_ceiling=ceiling)

    assert [constraints.clamp(tier) for tier in (FAST, BALANCED, POWERFUL)] == clamped
    assert [tier for tier in Tier if constraints.allows(tier)] == sorted(set(clamped), key=list(Tier).index)


def test_a_floor_above_the_ceiling_is_refused() -> None:
    with pytest.raises(ValidationError, match="no tier is between the floor powerful and the ceiling fast"):
        Constraints(tier_floor=POWERFUL, tier_ceiling=FAST)


def test_what_leaves_everything_open_says_nothing() -> None:
    assert Constraints().text == "{}"
    assert not Constraints().bounds_tiers
    assert Constraints.parse(None) == Constraints()


def test_what_is_written_is_read_again_and_is_the_same_for_the_same() -> None:
    constraints = Constraints(tier_ceiling=BALANCED, tier_floor=FAST)

    assert constraints.text == '{"tier_floor":"fast","tier_ceiling":"balanced"}'
    assert Constraints.parse(constraints.text) == constraints


def test_one_tier_is_left_only_where_floor_and_ceiling_are_the_same() -> None:
    assert Constraints(tier_floor=FAST, tier_ceiling=FAST).only_tier is FAST
    assert Constraints(tier_floor=FAST, tier_ceiling=BALANCED).only_tier is None
    assert Constraints().only_tier is None


@pytest.mark.parametrize("bound", [{"tier_floor": FAST}, {"tier_ceiling": POWERFUL}])
def test_a_bound_alone_bounds_tiers(bound: dict[str, Tier]) -> None:
    assert Constraints.model_validate(bound).bounds_tiers


# --- two together ---------------------------------------------------------------------------------------------------


@given(limits, limits, wishes)
def test_what_two_limits_leave_of_permissions_is_what_is_left_by_one_after_the_other(
    one: ToolLimits, other: ToolLimits, asked: Permissions
) -> None:
    left = one.within(other).limited(asked)
    in_turn = one.limited(other.limited(asked))

    assert (left.mode, left.allowed_tools) == (in_turn.mode, in_turn.allowed_tools)
    assert set(left.disallowed_tools) == set(in_turn.disallowed_tools)


@given(limits, wishes)
def test_limits_grant_nothing_that_was_not_asked_for_and_forbid_all_that_they_name(
    limit: ToolLimits, asked: Permissions
) -> None:
    left = limit.limited(asked)

    freest = asked.mode if limit.mode is None else limit.mode
    assert STRICTEST_FIRST.index(left.mode) == min(map(STRICTEST_FIRST.index, (asked.mode, freest)))
    assert set(left.allowed_tools) <= set(asked.allowed_tools)
    assert set(left.disallowed_tools) == {*asked.disallowed_tools, *limit.disallowed_tools}
    if limit.allowed_tools is not None:
        assert all(tool in limit.allowed_tools or "Bash" in limit.allowed_tools for tool in left.allowed_tools)


@pytest.mark.parametrize(
    ("tool", "by_use", "by_name"),
    [
        ("Bash", False, True),
        ("Bash(ls)", True, True),
        ("Bash(rm x)", False, True),
        ("BashOutput", False, False),
        ("Read", False, False),
    ],
)
def test_a_tools_name_stands_for_all_that_it_may_be_used_for_and_a_use_for_itself_alone(
    tool: str, by_use: bool, by_name: bool
) -> None:
    asked = Permissions(allowed_tools=(tool,))

    assert bool(ToolLimits(allowed_tools=("Bash(ls)",)).limited(asked).allowed_tools) is by_use
    assert bool(ToolLimits(allowed_tools=("Bash",)).limited(asked).allowed_tools) is by_name


@pytest.mark.parametrize(
    ("constraints", "admitted"),
    [
        (Constraints(), {"claude", "claude-2", "codex"}),
        (Constraints(agents=("claude",)), {"claude", "claude-2"}),
        (Constraints(agents=("claude-2",)), {"claude-2"}),
        (Constraints(excluded_agents=("claude",)), {"codex"}),
        (Constraints(excluded_agents=("claude-2",)), {"claude", "codex"}),
        (Constraints(agents=("claude",), excluded_agents=("claude-2",)), {"claude"}),
        (Constraints(one_of=(("claude",), ("claude-2", "codex"))), {"claude-2"}),
        (Constraints(agents=("codex",), one_of=(("claude",),)), set()),
    ],
)
def test_an_agent_is_meant_by_its_name_and_by_its_kind_in_every_list(
    constraints: Constraints, admitted: set[str]
) -> None:
    agents = {"claude": "claude", "claude-2": "claude", "codex": "codex"}
    assert {name for name, kind in agents.items() if constraints.admits(name, kind)} == admitted


@given(whoever, whoever, st.sampled_from(["claude", "claude-2", "codex"]), st.sampled_from(["claude", "codex"]))
@example(Constraints(agents=("claude",)), Constraints(agents=("codex",)), "claude", "claude")
@example(Constraints(agents=("claude",)), Constraints(), "codex", "codex")
@example(Constraints(), Constraints(agents=("claude",)), "codex", "codex")
def test_an_agent_takes_a_task_only_if_both_admit_it(
    card: Constraints, rules: Constraints, agent: str, kind: str
) -> None:
    assert card.and_those(rules).admits(agent, kind) is (card.admits(agent, kind) and rules.admits(agent, kind))


@given(some_tiers, some_tiers)
def test_no_tier_is_left_that_either_rules_out_unless_they_leave_none_together(
    card: Constraints, rules: Constraints
) -> None:
    both = [tier for tier in Tier if card.allows(tier) and rules.allows(tier)]
    left = [tier for tier in Tier if card.and_those(rules).allows(tier)]

    assert left == both or (not both and left == [card.and_those(rules).tier_ceiling])


def test_what_demands_something_is_not_lost_beside_what_does_not() -> None:
    cap, limit = RuleCap(rule="two-at-a-time", most=2), ToolLimits(allowed_tools=("Read",))
    demanding = Constraints(default_tier=FAST, tools=limit, isolated=True, caps=(cap,))

    assert Constraints().and_those(demanding) == demanding
    assert demanding.and_those(Constraints()) == demanding
    assert demanding.and_those(demanding) == demanding.model_copy(update={"caps": (cap, cap)})


def test_the_tools_of_both_are_limited() -> None:
    card = Constraints(tools=ToolLimits(allowed_tools=("Bash",)))
    rules = Constraints(tools=ToolLimits(disallowed_tools=("Bash(rm x)",)))
    task = TaskSpec(name="a", instructions="x", permissions=Permissions(allowed_tools=("Bash(ls)", "Read")))

    assert card.and_those(rules).limited(task).permissions == Permissions(
        allowed_tools=("Bash(ls)",), disallowed_tools=("Bash(rm x)",)
    )
    assert Constraints().limited(task) is task


def test_an_agent_is_named_by_either_list_and_not_by_its_kind() -> None:
    assert Constraints(agents=("lint",)).names("lint")
    assert Constraints(one_of=(("codex",), ("lint",))).names("lint")
    assert not Constraints(agents=("claude",), one_of=(("claude",),)).names("claude-2")
