"""The plan: whatever is observed, caps, order, holds and hints are kept, and the same snapshot gives the same plan."""

from collections import Counter

import pytest
from hypothesis import event, given

from claudomator_py.domain.agent import AgentSpec, Tier
from claudomator_py.domain.budget import Figures, Unit
from claudomator_py.domain.routing import Constraints, RuleCap
from claudomator_py.scheduler.lanes import hint_of
from claudomator_py.scheduler.plan import Planner, first_difference, plan, under
from claudomator_py.scheduler.snapshot import AgentState, DayLeft, QueueHead, Snapshot
from tests.fakes.agents import CLAUDE, CODEX
from tests.fakes.configuration import rules
from tests.unit.scheduler.situations import HOLD, NOW, agent, head, placed, snapshot, snapshots, starts


@given(snapshots())
def test_the_same_snapshot_gives_the_same_plan_also_after_a_journey_through_json(seen: Snapshot) -> None:
    again = Snapshot.model_validate_json(seen.model_dump_json())
    assert again == seen
    assert plan(seen) == plan(seen) == plan(again)


@given(snapshots())
def test_no_cap_is_ever_exceeded(seen: Snapshot) -> None:
    begun = starts(seen)
    event(f"{len(begun)} starts")
    if begun:
        assert not seen.disk_low
        assert seen.live + len(begun) <= seen.rules.total
    by_agent = Counter(start.decision.agent for start in begun)
    for observed in seen.agents:
        if by_agent[observed.name]:
            assert observed.active + by_agent[observed.name] <= observed.max_concurrent
    directories = Counter(start.head.dir_key for start in begun if start.head.dir_key)
    for directory, number in directories.items():
        assert seen.busy.get(directory, 0) + number <= seen.rules.per_workdir
    assert len({start.head.task_id for start in begun}) == len(begun)


@given(snapshots())
def test_nothing_starts_with_a_hint_that_is_shut(seen: Snapshot) -> None:
    shut = Planner(seen).exhausted_hints
    event(f"{len(shut)} hints are shut")
    begun = [start.head for start in starts(seen) if start.head.conversation is None]
    assert shut.isdisjoint(hint_of(known.agent_type, strict=known.strict) for known in begun)


@given(snapshots())
def test_what_starts_does_so_in_the_order_of_the_queue(seen: Snapshot) -> None:
    order = [known.task_id for known in seen.heads]
    begun = [order.index(start.head.task_id) for start in starts(seen)]
    assert begun == sorted(begun)


@given(snapshots())
def test_each_start_agrees_with_the_words_of_the_requirements(seen: Snapshot) -> None:
    """Against an oracle that counts for itself: A2 and A7, start by start."""
    active = {observed.name: observed.active for observed in seen.agents}
    for start in starts(seen):
        as_seen = _as_it_sees_them(seen, start.head)
        allowed = _holder(as_seen, start.head, active) or _allowed(
            as_seen, active, start.head.agent_type, strict=start.head.strict
        )
        assert start.decision.agent == allowed, (start.head, active)
        active[start.decision.agent] += 1


def _as_it_sees_them(seen: Snapshot, task: QueueHead) -> Snapshot:
    """Of each agent only the holds that are on the model that the task gets there."""
    wanted = {known.name for known in seen.agents if task.agent_type == known.name} or {
        known.name
        for known in seen.agents
        if task.agent_type == known.kind and (known.auto_select or not _open(seen, task.agent_type))
    }

    def model(known: AgentState) -> str:
        if task.model is not None and known.name in wanted:
            return task.model
        first = next((other for other in seen.agents if other.name in wanted), None)
        pinned = task.tier
        if pinned is None and task.model is not None and first is not None:
            of_model = [
                tier for a in seen.agents if a.name in wanted for tier, m in a.models.items() if m.model == task.model
            ]
            pinned = of_model[0] if of_model else first.default_tier
        if pinned is None and not wanted and (task.agent_type, task.model) == ("claude", "opus"):
            pinned = Tier.POWERFUL
        chosen = known.models.get(pinned or task.kept_tier or known.default_tier)
        return chosen.model if chosen is not None else ""

    def own(known: AgentState) -> AgentState:
        its = [hold for hold in known.holds if hold.family is None or hold.family in model(known)]
        return known.model_copy(update={"holds": tuple(hold.model_copy(update={"family": None}) for hold in its)})

    return seen.model_copy(update={"agents": tuple(own(known) for known in seen.agents)})


def _holder(seen: Snapshot, task: QueueHead, active: dict[str, int]) -> str | None:
    """The agent that has the conversation in which the task goes on, unless somebody else may begin it instead."""
    held = task.conversation
    if held is None:
        return None
    agent_state = next((known for known in seen.agents if (known.name, known.kind) == (held.agent, held.kind)), None)
    free = agent_state is not None and active[held.agent] < agent_state.max_concurrent
    if agent_state is None or agent_state.problem is not None:
        gone = True
    elif held.optional:
        gone = agent_state.hold is not None or not free
    else:
        gone = held.yields == "limited" and agent_state.hold is not None
    return None if gone and (held.optional or held.yields is not None) else held.agent


def _open(seen: Snapshot, kind: str) -> bool:
    return any(known.auto_select for known in seen.agents if known.kind == kind)


def _allowed(seen: Snapshot, active: dict[str, int], wanted: str | None, *, strict: bool) -> str | None:
    agents = {observed.name: observed for observed in seen.agents}
    named = [wanted] if wanted in agents else [name for name, known in agents.items() if known.kind == wanted]
    if len([name for name in named if agents[name].auto_select]) > 0 and wanted not in agents:
        named = [name for name in named if agents[name].auto_select]
    insists = bool(named) and (strict or not any(agents[name].auto_select for name in named))
    everyone = [name for name, known in agents.items() if known.auto_select]
    if strict and not named:
        return None
    if insists:
        return _balanced(agents, active, named, seen.rules.when_all_limited)
    if seen.rules.type_hint == "prefer":
        ready = [name for name in named if _unlimited(agents[name]) and active[name] < agents[name].max_concurrent]
        if ready:
            return min(ready, key=lambda name: (active[name], agents[name].near_limit, name))
    return _balanced(agents, active, everyone, seen.rules.when_all_limited)


def _balanced(agents: dict[str, AgentState], active: dict[str, int], names: list[str], when: str) -> str | None:
    healthy = [name for name in names if agents[name].problem is None]
    unlimited = [name for name in healthy if agents[name].hold is None]
    if not unlimited and when == "wait":
        return None
    # A limited one is never chosen while another merely has no slot, nor one that a person has to mend.
    tried = [name for name in healthy if (hold := agents[name].hold) is not None and hold.until is not None]
    free = [name for name in unlimited or tried if active[name] < agents[name].max_concurrent]
    return min(free, key=lambda name: (active[name], agents[name].near_limit, name), default=None)


def _unlimited(known: AgentState) -> bool:
    return known.problem is None and known.hold is None


def test_the_load_of_earlier_starts_counts_for_later_ones() -> None:
    seen = snapshot(agent("claude"), agent("codex"), heads=tuple(head(number) for number in range(6)))
    assert [name for _, name in placed(seen)] == ["claude", "codex", "claude", "codex"]


def test_tasks_flow_around_a_limited_agent_and_back() -> None:
    heads = tuple(head(number) for number in range(2))
    limited = snapshot(agent("claude", hold=HOLD), agent("codex", active=1), heads=heads)
    assert [name for _, name in placed(limited)] == ["codex"]
    free = snapshot(agent("claude"), agent("codex", active=1), heads=heads)
    assert [name for _, name in placed(free)] == ["claude", "claude"]


def test_one_directory_is_used_by_one_run_at_a_time_and_hides_no_other() -> None:
    heads = (head(1, dir_key="/x"), head(2, dir_key="/x"), head(3, dir_key="/y"), head(4), head(5))
    seen = snapshot(agent("claude", max_concurrent=9), heads=heads, busy={"/y": 1}, total=9)
    assert [task for task, _ in placed(seen)] == ["task-001", "task-004", "task-005"]


def test_nothing_starts_while_the_daemon_is_drained() -> None:
    seen = snapshot(agent("claude"), heads=(head(1),)).model_copy(update={"drained": True})
    assert placed(seen) == []


def test_nothing_starts_on_a_full_disk() -> None:
    assert placed(snapshot(agent("claude"), heads=(head(1),), disk_low=True)) == []


def test_what_a_plan_starts_counts_against_the_total_of_the_same_plan() -> None:
    heads = tuple(head(number) for number in range(1, 9))
    for live, begun in ((0, 5), (3, 2), (4, 1), (5, 0), (6, 0)):
        seen = snapshot(agent("claude", max_concurrent=90), heads=heads, live=live, total=5)
        assert [task for task, _ in placed(seen)] == [known.task_id for known in heads[:begun]]


def test_what_a_plan_starts_counts_against_the_probe_room_of_its_bucket_and_of_no_other() -> None:
    probed = HOLD.model_copy(update={"until": NOW, "room": 2})
    other = probed.model_copy(update={"bucket": "codex/default", "room": 1})
    agents = (
        agent("claude", max_concurrent=9, holds=(probed,)),
        agent("claude-2", kind="claude", max_concurrent=9, holds=(probed,)),
        agent("codex", max_concurrent=9, holds=(other,)),
    )
    heads = tuple(head(number) for number in range(1, 9))
    assert [name for _, name in placed(snapshot(*agents, heads=heads, total=9))] == ["claude", "claude-2", "codex"]


def test_what_a_plan_starts_counts_against_the_days_budget() -> None:
    heads = tuple(head(number) for number in range(1, 6))
    day = DayLeft(figures=Figures(unit=Unit.RUNS, spent=2, limit=2), until=NOW + 1, room=2)
    assert len(placed(snapshot(agent("claude", max_concurrent=9), heads=heads, day=day))) == 2
    spent = DayLeft(figures=Figures(unit=Unit.RUNS, spent=2, limit=2), until=NOW + 1, room=0)
    assert Planner(snapshot(agent("claude"), day=spent)).exhausted


def test_what_a_plan_starts_counts_against_the_rules_that_limit_how_many_run() -> None:
    few, many = RuleCap(rule="few", most=2), RuleCap(rule="many", most=3)
    heads = (
        *(head(number, constraints=Constraints(caps=(few, many))) for number in range(1, 4)),
        *(head(number, constraints=Constraints(caps=(many,))) for number in range(4, 6)),
        head(6),
    )
    seen = snapshot(agent("claude", max_concurrent=9), heads=heads, total=9, capped={"few": 1, "many": 1})
    assert [task for task, _ in placed(seen)] == ["task-001", "task-004", "task-006"]


def test_a_plan_begins_one_task_of_a_thread() -> None:
    heads = (head(1, thread="task-000"), head(2, thread="task-000"), head(3))
    assert [task for task, _ in placed(snapshot(agent("claude"), heads=heads))] == ["task-001", "task-003"]


def test_a_plan_is_exhausted_once_nothing_can_begin_whatever_it_is() -> None:
    free, full = agent("claude"), agent("codex", active=2)
    assert not Planner(snapshot(free, full)).exhausted
    for changes in ({"live": 4}, {"disk_low": True}, {"drained": True}):
        assert Planner(snapshot(free, full, **changes)).exhausted
    for agents in ((), (full,)):
        assert Planner(snapshot(*agents, live=0)).exhausted


def test_a_task_without_a_directory_takes_none() -> None:
    planner = Planner(snapshot(agent("claude"), heads=(head(1), head(2, dir_key="/x"))))
    planner.consider(head(1))
    assert planner.taken.dir_keys == frozenset()
    planner.consider(head(2, dir_key="/x"))
    assert planner.taken.dir_keys == {"/x"}


def test_under_other_agents_one_of_the_same_name_and_kind_keeps_its_runs_holds_and_warnings() -> None:
    seen = agent("claude", active=1, problem="gone", hold=HOLD, near_limit=True)

    def state_of(spec: AgentSpec) -> tuple[object, ...]:
        (state,) = under(snapshot(seen), [spec], rules()).agents
        return state.active, state.problem, state.holds, state.near_limit

    assert state_of(CLAUDE) == (1, "gone", (HOLD,), True)
    for spec in (CLAUDE.model_copy(update={"kind": "codex"}), CODEX):
        assert state_of(spec) == (0, None, (), False)


def test_under_other_rules_what_an_earlier_version_did_not_record_stays_unbounded() -> None:
    other = rules(remote=5, per_organisation=2, remote_per_organisation=1)

    def bounds_under(then: Snapshot) -> tuple[int | None, ...]:
        taken = under(then, None, other).rules
        return taken.remote, taken.per_organisation, taken.remote_per_organisation

    assert bounds_under(snapshot(agent("claude"), remote=3)) == (5, 2, 1)
    assert bounds_under(snapshot(agent("claude"), remote=None)) == (None, None, None)


@pytest.mark.parametrize(
    ("stored", "replayed", "difference"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, None),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b: 2 was recorded, 3 is decided"),
        ([1, 2, 3], [1, 5, 4], "[1]: 2 was recorded, 5 is decided"),
        ([1], [1, 2], ": [1] was recorded, [1, 2] is decided"),
        ({"a": 1}, {"b": 1}, "a: 1 was recorded, None is decided"),
        ({"a": 1}, [1], ": {'a': 1} was recorded, [1] is decided"),
    ],
)
def test_the_first_difference_of_two_values_is_named_by_its_path(
    stored: object, replayed: object, difference: str | None
) -> None:
    assert first_difference(stored, replayed) == difference
