"""Slots are shared: nobody gets more than its share, the operator finds one, and none is left empty for nothing."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from claudomator_py.domain.blocked import BlockCode, Why, blocked
from claudomator_py.domain.blocked_words import blocked_text
from claudomator_py.domain.principal import OWN, tenant_of
from claudomator_py.domain.routing import Constraints, RuleCap
from claudomator_py.scheduler.lanes import Demand, hint_of
from claudomator_py.scheduler.load import Shut
from claudomator_py.scheduler.plan import Planner, StartRun
from claudomator_py.scheduler.snapshot import AgentState, QueueHead, Snapshot
from tests.unit.scheduler.situations import agent, demand_of, head, placed, snapshot, snapshots, starts

BOUNDS: dict[str, Any] = {"total": 4, "per_organisation": 2, "remote": 4, "remote_per_organisation": 2}
ACME, GLOBEX, ANN = "org:acme", "org:globex", "by:ann"
CLAUDE = agent("claude", max_concurrent=90)
SHOP = agent("shop", kind="a2a", max_concurrent=90, auto_select=False, remote=True)
BARN = agent("hub:barn", kind="hub", max_concurrent=90, auto_select=False, remote=True, specialist="barn")
ANY = Demand(hint_of(None, strict=False), "")
AT_BARN = Constraints(agents=("hub:barn",))


def tasks(*tenants: str, **fields: Any) -> tuple[QueueHead, ...]:
    """A task of each of these, in that order."""
    return tuple(head(number, tenant=tenant, **fields) for number, tenant in enumerate(tenants, 1))


def begun(seen: Snapshot) -> list[str]:
    """Whose tasks start."""
    return [start.head.tenant for start in starts(seen)]


def why(task: QueueHead, *agents: AgentState, live: int = 0, **changes: Any) -> object:
    """What keeps the task waiting."""
    return Planner(snapshot(*agents, live=live, **{**BOUNDS, **changes})).consider(task)


@pytest.mark.parametrize(
    ("creator", "organisation", "tenant"),
    [
        ("operator", None, OWN),
        ("inbox", None, OWN),
        ("ann", None, ANN),
        ("ann", "acme", ACME),
        ("operator", "acme", ACME),
    ],
)
def test_a_task_is_its_organisations_else_its_creators_and_the_operators_own_are_nobodys(
    creator: str, organisation: str | None, tenant: str
) -> None:
    assert tenant_of(creator, organisation) == tenant


@pytest.mark.parametrize(
    ("queue", "start"),
    [
        ((ACME,) * 6, [ACME] * 2),
        ((ANN,) * 6, [ANN] * 2),
        ((OWN,) * 6, [OWN] * 4),
        ((ACME,) * 4 + (GLOBEX,) * 4, [ACME, ACME, GLOBEX]),
        ((ACME,) * 4 + (GLOBEX,) * 4 + (OWN,), [ACME, ACME, GLOBEX, OWN]),
        ((ACME,) * 4 + (OWN,) * 4, [ACME, ACME, OWN, OWN]),
    ],
)
def test_each_has_its_share_and_the_last_slot_is_the_operators(queue: tuple[str, ...], start: list[str]) -> None:
    assert begun(snapshot(CLAUDE, heads=tasks(*queue), **BOUNDS)) == start


def test_with_one_slot_whoever_comes_first_has_it() -> None:
    assert begun(snapshot(CLAUDE, heads=tasks(ACME, OWN), **BOUNDS | {"total": 1, "per_organisation": 1})) == [ACME]


def test_without_bounds_as_in_earlier_versions_all_are_alike() -> None:
    assert begun(snapshot(CLAUDE, SHOP, heads=tasks(*[ACME] * 6), total=4)) == [ACME] * 4
    at_shop = tasks(*[ACME] * 6, agent_type="shop")
    assert begun(snapshot(CLAUDE, SHOP, heads=at_shop, total=4)) == [ACME] * 4


def test_runs_on_remote_agents_take_slots_of_their_own() -> None:
    queue = (*tasks(*[OWN] * 6, agent_type="shop"), *tasks(*[OWN] * 6))
    queue = tuple(queue_head.model_copy(update={"task_id": f"t{number}"}) for number, queue_head in enumerate(queue))
    assert [name for _, name in placed(snapshot(CLAUDE, SHOP, heads=queue, **BOUNDS))] == ["shop"] * 4 + ["claude"] * 4


def test_a_guest_that_holds_all_that_it_may_have_elsewhere_holds_nothing_here() -> None:
    at_barn = tasks(*[ACME] * 6, constraints=AT_BARN)
    queue = (*at_barn, *tasks(OWN, ACME))
    queue = tuple(queue_head.model_copy(update={"task_id": f"t{number}"}) for number, queue_head in enumerate(queue))
    result = placed(snapshot(CLAUDE, BARN, heads=queue, **BOUNDS))
    assert [name for _, name in result] == ["hub:barn", "hub:barn", "claude", "claude"]


@pytest.mark.parametrize(
    ("tenant", "in_use", "result"),
    [
        (
            ACME,
            {"tenants": {ACME: 2}, "live": 2},
            blocked(
                BlockCode.ORGANISATION_SLOTS,
                organisation="acme",
                active=2,
                slots=2,
                setting="concurrency.per_organisation",
            ),
        ),
        (
            ANN,
            {"tenants": {ANN: 3}, "live": 4},
            blocked(
                BlockCode.ORGANISATION_SLOTS, creator="ann", active=3, slots=2, setting="concurrency.per_organisation"
            ),
        ),
        (
            ANN,
            {"tenants": {ACME: 2, GLOBEX: 1}, "live": 3},
            blocked(BlockCode.KEPT_SLOTS, active=3, slots=3, setting="concurrency.total"),
        ),
        (ANN, {"tenants": {ACME: 2}, "live": 4}, blocked(BlockCode.SLOTS, active=4, slots=4)),
        (OWN, {"tenants": {ACME: 2}, "live": 4}, blocked(BlockCode.SLOTS, active=4, slots=4)),
    ],
)
def test_the_narrowest_bound_is_named(tenant: str, in_use: Mapping[str, Any], result: object) -> None:
    for agents in ((CLAUDE,), (CLAUDE, BARN), (CLAUDE, SHOP)):
        assert why(head(1, tenant=tenant), *agents, **in_use) == result, agents


def test_the_bounds_of_remote_runs_are_named_by_their_own_keys() -> None:
    task = head(1, tenant=ACME, agent_type="shop")
    result = why(task, CLAUDE, SHOP, remote_tenants={ACME: 2}, remote_live=2)
    setting = "concurrency.remote_per_organisation"
    assert result == blocked(BlockCode.ORGANISATION_SLOTS, organisation="acme", active=2, slots=2, setting=setting)
    result = why(task, CLAUDE, SHOP, remote_tenants={ANN: 2, GLOBEX: 1}, remote_live=3)
    assert result == blocked(BlockCode.KEPT_SLOTS, active=3, slots=3, setting="concurrency.remote")
    result = why(task, CLAUDE, SHOP, remote_live=4)
    assert result == blocked(BlockCode.REMOTE_SLOTS, active=4, slots=4)
    assert result.why is Why.SLOTS


def test_a_task_that_prefers_an_agent_here_goes_to_a_remote_one_that_balancing_may_choose() -> None:
    open_shop = SHOP.model_copy(update={"auto_select": True})
    prefers = head(1, agent_type="claude")
    seen = snapshot(CLAUDE, open_shop, heads=(prefers,), live=4, **BOUNDS)
    (start,) = starts(seen)
    assert start.decision.agent == "shop"
    (rejected,) = (candidate.rejected for candidate in start.decision.candidates if candidate.agent == "claude")
    assert rejected == blocked(BlockCode.NO_SLOT, agent="claude", active=4, slots=4)
    assert blocked_text(rejected) == "claude is free, but without a slot for the task (4 of 4 in use)"


def test_one_agent_that_is_full_and_one_without_a_slot_are_both_named() -> None:
    full = agent("codex", active=2)
    result = why(head(1), CLAUDE, full, SHOP, live=4)
    assert result == blocked(
        BlockCode.AGENTS_FULL,
        agents=(
            blocked(BlockCode.NO_SLOT, agent="claude", active=4, slots=4),
            blocked(BlockCode.FULL, agent="codex", active=2, slots=2),
        ),
    )


# --- what is left out whole -----------------------------------------------------------------------------------------


def shut(*agents: AgentState, demand: Demand = ANY, **changes: Any) -> Shut | None:
    return Planner(snapshot(*agents, **{**BOUNDS, **changes})).shut(demand)


def test_tenants_that_get_no_slot_are_left_out() -> None:
    assert shut(CLAUDE, tenants={ACME: 2, GLOBEX: 0}, live=2) == Shut(frozenset({ACME}))
    assert shut(CLAUDE, tenants={ACME: 2, GLOBEX: 1}, live=3) == Shut(frozenset({ACME, GLOBEX}), newcomers=True)
    remote = Demand(hint_of("shop", strict=True), "")
    with_shop: dict[str, Any] = {"tenants": {ACME: 2, GLOBEX: 1}, "live": 3}
    assert shut(CLAUDE, SHOP, demand=remote, **with_shop) == Shut(), "they may have a remote run"
    assert shut(CLAUDE, SHOP, **with_shop) == Shut(frozenset({ACME, GLOBEX}), newcomers=True), "but none here"
    assert shut(CLAUDE, SHOP, demand=remote, **with_shop, remote_live=2, remote_tenants={ACME: 2}) == Shut(
        frozenset({ACME})
    )


def test_what_a_rule_limits_is_left_out_while_as_many_run() -> None:
    demand = Demand(ANY.hint, Constraints(caps=(RuleCap(rule="few", most=1),)).text)
    assert shut(CLAUDE, demand=demand, capped={"few": 1}) is None
    assert shut(CLAUDE, demand=demand, capped={"few": 0}) == Shut()
    assert shut(CLAUDE, demand=demand, capped={"few": 1}, classifier=True) == Shut(), "it may be asked about"


def test_a_demand_that_no_agent_can_meet_is_left_out_unless_tiers_are_asked_for() -> None:
    strict = hint_of("claude", strict=True)
    full = (CLAUDE.model_copy(update={"active": 90}), agent("codex"))
    assert shut(*full, demand=Demand(strict, ""), live=0) is None
    assert shut(*full, demand=Demand(strict, ""), live=0, classifier=True) == Shut()
    for classifier, hints in ((False, {strict}), (True, set())):
        assert Planner(snapshot(*full, live=0, classifier=classifier, **BOUNDS)).exhausted_hints == hints


def test_who_is_left_out_is_known_anew_after_a_start() -> None:
    planner = Planner(snapshot(CLAUDE, **BOUNDS))
    assert planner.shut(ANY) == Shut()
    for number in range(2):
        assert isinstance(planner.consider(head(number, tenant=ACME)), StartRun)
    assert planner.shut(ANY) == Shut(frozenset({ACME}))


@st.composite
def shared(draw: st.DrawFn) -> Snapshot:
    """A queue of several tenants on agents here and elsewhere, some of which have runs."""
    total, remote = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    bounds = {
        "total": total,
        "per_organisation": draw(st.integers(1, total)),
        "remote": remote,
        "remote_per_organisation": draw(st.integers(1, remote)),
    }
    names = [OWN, ACME, GLOBEX, ANN]
    here = Counter(draw(st.lists(st.sampled_from(names), max_size=total)))
    away = Counter(draw(st.lists(st.sampled_from(names), max_size=remote)))
    agents = (
        CLAUDE.model_copy(update={"active": here.total(), "max_concurrent": draw(st.sampled_from([2, 90]))}),
        SHOP.model_copy(update={"active": away.total(), "auto_select": draw(st.booleans())}),
        BARN,
    )
    fields = st.fixed_dictionaries(
        {
            "tenant": st.sampled_from(names),
            "agent_type": st.sampled_from([None, "claude", "shop"]),
            "strict": st.booleans(),
            "constraints": st.sampled_from([Constraints(), Constraints(), AT_BARN]),
        }
    )
    heads = tuple(head(number, **entry) for number, entry in enumerate(draw(st.lists(fields, max_size=12)), 1))
    return snapshot(
        *agents,
        heads=tuple(entry if entry.agent_type else entry.model_copy(update={"strict": False}) for entry in heads),
        live=here.total(),
        tenants={name: number for name, number in here.items() if name != OWN},
        remote_live=away.total(),
        remote_tenants={name: number for name, number in away.items() if name != OWN},
        **bounds,
    )


def _in_use(seen: Snapshot) -> tuple[Counter[str], Counter[str]]:
    """The slots here and elsewhere by tenant, once everything has started, counted by itself."""
    here, away = Counter(seen.tenants), Counter(seen.remote_tenants)
    here[OWN], away[OWN] = seen.live - here.total(), seen.remote_live - away.total()
    remote = {agent.name for agent in seen.agents if agent.remote}
    for start in starts(seen):
        (away if start.decision.agent in remote else here)[start.head.tenant] += 1
    return here, away


@given(shared())
def test_nobody_begins_beyond_its_share_and_the_operators_slot_is_left(seen: Snapshot) -> None:
    rules = seen.rules
    bounds = ((rules.total, rules.per_organisation), (rules.remote, rules.remote_per_organisation))
    grew = {start.head.tenant for start in starts(seen)}
    event(f"{len(grew)} tenants begin")
    remote = {agent.name for agent in seen.agents if agent.remote}
    for pool, (in_use, (total, share)) in enumerate(zip(_in_use(seen), bounds, strict=True)):
        assert total is not None
        assert share is not None
        assert in_use.total() <= total
        own = [start for start in starts(seen) if (start.decision.agent in remote) == bool(pool)]
        for tenant in {start.head.tenant for start in own} - {OWN}:
            assert in_use[tenant] <= share
        if any(start.head.tenant != OWN for start in own):
            assert in_use.total() - in_use[OWN] <= max(1, total - 1)


@given(shared())
def test_who_waits_has_its_share_or_finds_no_agent_or_no_slot_that_is_not_kept(seen: Snapshot) -> None:
    """The operator waits for a slot only if none is free; others only for their share, or for the one that is kept."""
    rules, (here, away) = seen.rules, _in_use(seen)
    running = {start.head.task_id for start in starts(seen)}
    claude = next(agent for agent in seen.agents if agent.name == "claude")
    on_claude = claude.active + sum(start.decision.agent == "claude" for start in starts(seen))
    for waiting in (entry for entry in seen.heads if entry.task_id not in running):
        room_here = on_claude < claude.max_concurrent and _room(
            here, waiting.tenant, rules.total, rules.per_organisation
        )
        room_away = _room(away, waiting.tenant, rules.remote, rules.remote_per_organisation)
        at_barn, at_shop = waiting.constraints == AT_BARN, waiting.agent_type == "shop"
        may_be_here = not at_barn and not at_shop
        may_be_away = (at_barn and not waiting.agent_type) or (at_shop and not at_barn)
        assert not (may_be_here and room_here), waiting
        assert not (may_be_away and room_away), waiting


def _room(in_use: Counter[str], tenant: str, total: int | None, share: int | None) -> bool:
    assert total is not None
    assert share is not None
    if in_use.total() >= total:
        return False
    theirs = in_use.total() - in_use[OWN]
    return tenant == OWN or (in_use[tenant] < share and theirs < max(1, total - 1))


@st.composite
def constrained(draw: st.DrawFn) -> Snapshot:
    """A queue of tasks that were routed, some under rules that limit how many run."""
    seen, caps = draw(snapshots()), (RuleCap(rule="few", most=1),)
    heads = [
        known.model_copy(
            update={
                "constraints": Constraints(
                    agents=draw(st.sampled_from([(), (), ("a", "codex"), ("b",)])),
                    one_of=draw(st.sampled_from([(), (("claude", "c"),)])),
                    excluded_agents=draw(st.sampled_from([(), ("command",), ("a",)])),
                    caps=draw(st.sampled_from([(), caps])),
                )
            }
        )
        for known in seen.heads
    ]
    return seen.model_copy(update={"heads": tuple(heads), "capped": {"few": draw(st.integers(0, 1))}})


@given(shared() | snapshots() | constrained(), st.booleans())
def test_nothing_starts_that_is_left_out(seen: Snapshot, classifier: bool) -> None:
    seen = seen.model_copy(update={"rules": seen.rules.model_copy(update={"classifier": classifier})})
    planner = Planner(seen)
    results = {task.task_id: planner.shut(demand_of(task)) for task in seen.heads}
    left_out = {
        task.task_id for task in seen.heads if (shut := results[task.task_id]) is None or shut.bars(task.tenant)
    }
    event(f"{len(left_out)} are left out")
    assert left_out.isdisjoint(start.head.task_id for start in starts(seen))


@given(shared())
def test_a_planner_that_is_exhausted_starts_nothing_of_anybody(seen: Snapshot) -> None:
    if Planner(seen).exhausted:
        assert not any(isinstance(Planner(seen).consider(entry), StartRun) for entry in seen.heads)
