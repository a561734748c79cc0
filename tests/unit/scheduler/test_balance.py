"""pick_agent against its own words (A2), told a second time in the plainest way."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.scheduler.balance import AgentStatus, NearLimit, Pick, pick_agent

NAMES = st.text("abcdexyz-1", min_size=1, max_size=4)
ANY = st.lists(
    st.builds(AgentStatus, NAMES, st.integers(0, 3), st.booleans(), st.booleans()),
    max_size=8,
    unique_by=lambda status: status.name,
)
STATUSES = st.lists(
    st.builds(AgentStatus, NAMES, st.integers(0, 3), st.booleans()), max_size=8, unique_by=lambda status: status.name
)


def oracle(statuses: list[AgentStatus]) -> str | None:
    """First pass: not limited, fewest active, alphabetically first. Fallback: the same regardless of limits."""
    for regard_limits in (True, False):
        best: AgentStatus | None = None
        for status in sorted(statuses, key=lambda status: status.name):
            if regard_limits and status.limited:
                continue
            if best is None or status.active < best.active:
                best = status
        if best is not None:
            return best.name
    return None


@given(STATUSES)
def test_it_picks_what_the_requirement_says(statuses: list[AgentStatus]) -> None:
    pick = pick_agent(statuses)
    assert (None if pick is None else pick.name) == oracle(statuses)


@given(STATUSES)
def test_with_candidates_it_always_names_one_and_says_if_it_was_the_fallback(statuses: list[AgentStatus]) -> None:
    pick = pick_agent(statuses)
    assert (pick is None) == (not statuses)
    if pick is not None:
        assert pick.all_limited == all(status.limited for status in statuses)


@given(STATUSES.filter(bool))
def test_a_limited_one_is_never_picked_while_another_is_not(statuses: list[AgentStatus]) -> None:
    pick = pick_agent(statuses)
    assert pick is not None
    chosen = next(status for status in statuses if status.name == pick.name)
    open_ones = [status for status in statuses if not status.limited]
    assert chosen.limited == (not open_ones)
    assert chosen.active == min(status.active for status in open_ones or statuses)


@given(STATUSES.flatmap(lambda statuses: st.tuples(st.just(statuses), st.permutations(statuses))))
def test_the_order_of_the_candidates_never_matters(orders: tuple[list[AgentStatus], list[AgentStatus]]) -> None:
    one, other = orders
    assert pick_agent(one) == pick_agent(other) == pick_agent(iter(one))


def test_ties_go_to_the_alphabetically_first_name() -> None:
    tied = [AgentStatus("gemini", 1, False), AgentStatus("codex", 1, False), AgentStatus("claude", 2, False)]
    assert pick_agent(tied) == Pick("codex", all_limited=False)


def test_a_limited_idle_agent_loses_to_a_busy_one_with_quota() -> None:
    assert pick_agent([AgentStatus("a", 0, True), AgentStatus("b", 9, False)]) == Pick("b", all_limited=False)


def test_when_all_are_limited_the_least_active_is_the_fallback() -> None:
    limited = [AgentStatus("b", 1, True), AgentStatus("a", 2, True), AgentStatus("c", 1, True)]
    assert pick_agent(limited) == Pick("b", all_limited=True)


def test_among_equals_one_that_is_not_near_its_limit_goes_first_but_never_before_a_less_active_one() -> None:
    near = AgentStatus("claude", 0, False, near_limit=True)
    assert pick_agent([near, AgentStatus("codex", 0, False)]) == Pick("codex", all_limited=False)
    assert pick_agent([near, AgentStatus("codex", 1, False)]) == Pick("claude", all_limited=False)
    assert pick_agent([near]) == Pick("claude", all_limited=False)


@given(ANY.filter(bool), st.sampled_from(["tie_break", "avoid", "ignore"]))
def test_near_a_limit_is_never_worse_than_limited(statuses: list[AgentStatus], rule: NearLimit) -> None:
    """Whatever it means: who is limited is picked only if all are, and the flag alone hides nobody."""
    pick = pick_agent(statuses, rule)
    assert pick is not None
    chosen = next(status for status in statuses if status.name == pick.name)
    assert pick.all_limited == chosen.limited == all(status.limited for status in statuses)
    if rule == "avoid" and chosen.near_limit and not chosen.limited:
        assert all(status.limited or status.near_limit for status in statuses)
    if rule == "ignore":
        assert pick == pick_agent(replace(status, near_limit=False) for status in statuses)
