"""Spent budgets: nothing begins on what is spent, others take over, and a tick begins no more than is left."""

from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.budget import Figures, Unit
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.scheduler.admission import admit
from claudomator_py.scheduler.load import load_of
from claudomator_py.scheduler.plan import Planner
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.scheduler.snapshot import ActiveHold, DayLeft, Snapshot
from tests.fakes.configuration import rules
from tests.unit.scheduler.situations import HOLD, NOW, agent, head, snapshot, starts

MIDNIGHT = NOW + 3_600_000
FIGURES = Figures(unit=Unit.USD, spent=5.0, limit=5.0)


def out_of_budget(agent: str) -> Blocked:
    return blocked(BlockCode.BUDGET, agent=agent, figures=FIGURES, until=MIDNIGHT)


def spent(name: str, room: int | None = None) -> ActiveHold:
    """The agent's budget of the day: used up, or with so many runs left of it."""
    return ActiveHold(
        bucket=f"{name} today",
        reason=Reason.BUDGET,
        until=MIDNIGHT,
        provenance=Provenance.OPERATOR,
        source="",
        figures=FIGURES,
        room=room,
    )


def test_it_flows_to_another_agent_and_says_why() -> None:
    agents = (agent("claude", hold=spent("claude")), agent("codex", active=1))
    record = admit(head(1), agents, rules(), load_of(snapshot()))
    assert isinstance(record, DecisionRecord)
    assert record.agent == "codex"
    (rejected,) = [candidate for candidate in record.candidates if candidate.agent == "claude"]
    assert rejected.rejected == out_of_budget("claude")
    assert rejected.limited_until == MIDNIGHT


def test_with_all_spent_it_waits_until_the_first_day_is_over_even_if_limited_agents_are_tried() -> None:
    agents = (agent("claude", hold=spent("claude")), agent("codex", hold=spent("codex")))
    for when in ("wait", "try"):
        verdict = admit(head(1), agents, rules(when_all_limited=when), load_of(snapshot()))
        assert isinstance(verdict, Blocked)
        spenders = tuple(map(out_of_budget, ("claude", "codex")))
        assert verdict == blocked(BlockCode.AGENTS_SPENT, agents=spenders)
        assert verdict.until == MIDNIGHT


def test_a_limit_beside_a_spent_budget_is_a_limit() -> None:
    agents = (agent("claude", hold=spent("claude")), agent("codex", hold=HOLD))
    verdict = admit(head(1), agents, rules(), load_of(snapshot()))
    assert isinstance(verdict, Blocked)
    assert verdict.code is BlockCode.AGENTS_LIMITED
    assert [agent.code for agent in verdict.params.agents] == [BlockCode.BUDGET, BlockCode.LIMITED]


def of_the_day(room: int | None, heads: int, **agents: int | None) -> Snapshot:
    """So many tasks, agents with many slots, what is left of their runs, and of the day's."""
    holds = {name: None if left is None else spent(name, left) for name, left in agents.items()}
    seen = (agent(name, max_concurrent=50, hold=hold) for name, hold in holds.items())
    tasks = tuple(head(number) for number in range(heads))
    return snapshot(*seen, heads=tasks, day=DayLeft(figures=FIGURES, until=MIDNIGHT, room=room), total=100)


lefts = st.none() | st.integers(-2, 6)


@given(lefts, st.integers(0, 12), lefts, lefts)
def test_a_plan_begins_no_more_than_is_left_and_all_that_may(
    day: int | None, heads: int, claude: int | None, codex: int | None
) -> None:
    seen = of_the_day(day, heads, claude=claude, codex=codex)
    begun = starts(seen)
    by_agent = {name: sum(1 for start in begun if start.decision.agent == name) for name in ("claude", "codex")}
    for name, left in (("claude", claude), ("codex", codex)):
        assert left is None or by_agent[name] <= max(0, left)
    rooms = [max(0, left) for left in (claude, codex) if left is not None]
    agents_allow = heads if None in (claude, codex) else sum(rooms)
    assert len(begun) == min(heads, agents_allow, heads if day is None else max(0, day))


def test_a_spent_day_leaves_nothing_to_look_at() -> None:
    assert Planner(of_the_day(0, 1, claude=None)).exhausted
    verdict = Planner(of_the_day(0, 1, claude=None)).consider(head(1))
    assert verdict == blocked(BlockCode.DAY_BUDGET, figures=FIGURES, until=MIDNIGHT)
    assert not Planner(of_the_day(1, 1, claude=None)).exhausted


def test_a_snapshot_of_an_older_version_reads_back() -> None:
    old = snapshot(agent("claude"), heads=(head(1),)).model_dump(mode="json")
    del old["day"]
    (seen,) = old["agents"]
    hold = spent("claude").model_dump(mode="json")
    seen["holds"] = [{name: hold[name] for name in hold if name not in ("figures", "used", "share")}]
    assert Snapshot.model_validate(old).day is None
