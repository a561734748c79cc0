"""pick_agent against its own words, told a second time in the plainest way."""

from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.blocked import BlockCode
from claudomator_py.scheduler.snapshot import AgentState, NearLimit
from claudomator_py.scheduler.tiers import Pick, lost_to, pick_agent
from tests.unit.scheduler.situations import HOLD, agent


def seen(name: str, active: int, limited: bool, near_limit: bool = False) -> AgentState:
    return agent(name, active=active, hold=HOLD if limited else None, near_limit=near_limit)


NAMES = st.text("abcdexyz-1", min_size=1, max_size=4)
ANY = st.lists(
    st.builds(seen, NAMES, st.integers(0, 3), st.booleans(), st.booleans()),
    max_size=8,
    unique_by=lambda status: status.name,
)
STATUSES = st.lists(
    st.builds(seen, NAMES, st.integers(0, 3), st.booleans()), max_size=8, unique_by=lambda status: status.name
)


def oracle(statuses: list[AgentState]) -> str | None:
    """First pass: not limited, fewest active, alphabetically first. Fallback: the same regardless of limits."""
    for regard_limits in (True, False):
        best: AgentState | None = None
        for status in sorted(statuses, key=lambda status: status.name):
            if regard_limits and status.limited:
                continue
            if best is None or status.active < best.active:
                best = status
        if best is not None:
            return best.name
    return None


@given(STATUSES)
def test_it_picks_what_the_requirement_says(statuses: list[AgentState]) -> None:
    pick = pick_agent(statuses)
    assert (None if pick is None else pick.agent.name) == oracle(statuses)


@given(STATUSES)
def test_with_candidates_it_always_names_one_and_says_if_it_was_the_fallback(statuses: list[AgentState]) -> None:
    pick = pick_agent(statuses)
    assert (pick is None) == (not statuses)
    if pick is not None:
        assert pick.all_limited == all(status.limited for status in statuses)


@given(STATUSES.filter(bool))
def test_a_limited_one_is_never_picked_while_another_is_not(statuses: list[AgentState]) -> None:
    pick = pick_agent(statuses)
    assert pick is not None
    chosen = pick.agent
    open_ones = [status for status in statuses if not status.limited]
    assert chosen.limited == (not open_ones)
    assert chosen.active == min(status.active for status in open_ones or statuses)


@given(STATUSES.flatmap(lambda statuses: st.tuples(st.just(statuses), st.permutations(statuses))))
def test_the_order_of_the_candidates_never_matters(orders: tuple[list[AgentState], list[AgentState]]) -> None:
    agent_states, other = orders
    assert pick_agent(agent_states) == pick_agent(other) == pick_agent(iter(agent_states))


def test_ties_go_to_the_alphabetically_first_name() -> None:
    tied = [seen("gemini", 1, False), seen("codex", 1, False), seen("claude", 2, False)]
    assert pick_agent(tied) == Pick(tied[1], all_limited=False)


def test_a_limited_idle_agent_loses_to_a_busy_one_with_quota() -> None:
    busy = seen("b", 9, False)
    assert pick_agent([seen("a", 0, True), busy]) == Pick(busy, all_limited=False)


def test_when_all_are_limited_the_least_active_is_the_fallback() -> None:
    limited = [seen("b", 1, True), seen("a", 2, True), seen("c", 1, True)]
    assert pick_agent(limited) == Pick(limited[0], all_limited=True)


def test_among_equals_one_that_is_not_near_its_limit_goes_first_but_never_before_a_less_active_one() -> None:
    near, idle, busy = seen("claude", 0, False, near_limit=True), seen("codex", 0, False), seen("codex", 1, False)
    assert pick_agent([near, idle]) == Pick(idle, all_limited=False)
    assert pick_agent([near, busy]) == pick_agent([near]) == Pick(near, all_limited=False)


@given(ANY.filter(bool), st.sampled_from(["tie_break", "avoid", "ignore"]))
def test_near_a_limit_is_never_worse_than_limited(statuses: list[AgentState], rule: NearLimit) -> None:
    """Whatever it means: who is limited is picked only if all are, and the flag alone hides nobody."""
    pick = pick_agent(statuses, rule)
    assert pick is not None
    chosen = pick.agent
    assert pick.all_limited == chosen.limited == all(status.limited for status in statuses)
    if rule == "avoid" and chosen.near_limit and not chosen.limited:
        assert all(status.limited or status.near_limit for status in statuses)
    if rule == "ignore":
        unwarned = pick_agent(status.model_copy(update={"near_limit": False}) for status in statuses)
        assert unwarned is not None
        assert pick.agent.name == unwarned.agent.name


@given(ANY.filter(bool), st.sampled_from(["tie_break", "avoid", "ignore"]))
def test_why_another_lost_is_true_of_the_two(statuses: list[AgentState], rule: NearLimit) -> None:
    pick = pick_agent(statuses, rule)
    assert pick is not None
    chosen = pick.agent
    for other in statuses:
        if other.name != chosen.name:
            assert _is_true_of(lost_to(other, chosen, rule).code, other, chosen)


def _is_true_of(code: BlockCode, other: AgentState, chosen: AgentState) -> bool:
    match code:
        case BlockCode.LIMITED:
            return other.limited and not chosen.limited
        case BlockCode.NEAR_LIMIT:
            return other.near_limit and not chosen.near_limit
        case BlockCode.BUSIER:
            return other.active > chosen.active
        case BlockCode.TIE_NEAR_LIMIT:
            return other.active == chosen.active and other.near_limit and not chosen.near_limit
        case _:
            return code is BlockCode.TIE and other.active == chosen.active and other.name > chosen.name
