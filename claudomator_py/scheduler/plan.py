"""From a snapshot to the runs to start and the tiers to ask for: a fold over the queue heads in order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.blocked import Blocked, Why
from claudomator_py.domain.principal import OWN
from claudomator_py.scheduler.admission import admit, decide, exhausted_hints, hinted_by, is_exhausted
from claudomator_py.scheduler.lanes import Demand, constraints_of, may_be_met, visible_to
from claudomator_py.scheduler.load import NEWCOMER, SHARES, Shut, Taken, load_of
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.scheduler.snapshot import AgentState, QueueHead, Rules, Snapshot
from claudomator_py.scheduler.tiers import AskTier, question
from claudomator_py.values import dataclass


def decided_again(snapshot: Snapshot) -> Mapping[str, DecisionRecord]:
    """Return the decision on where each task starts, by task id; tasks that do not start in that tick are absent."""
    return {action.head.task_id: action.decision for action in plan(snapshot) if isinstance(action, StartRun)}


def under(snapshot: Snapshot, agents: Sequence[AgentSpec] | None, rules: Rules) -> Snapshot:
    """Return what that tick would have observed with these agents and rules. agents: None keeps those observed. An
    agent that existed keeps its live runs and holds. A new one has neither and is assumed to work."""
    observed = {agent.name: agent for agent in snapshot.agents}
    states = []
    for spec in sorted(agents or (), key=lambda spec: spec.name):
        earlier = observed.get(spec.name)
        if earlier is not None and earlier.kind != spec.kind:
            earlier = None
        states.append(
            AgentState(
                name=spec.name,
                kind=spec.kind,
                active=earlier.active if earlier is not None else 0,
                max_concurrent=spec.max_concurrent,
                auto_select=spec.auto_select,
                problem=earlier.problem if earlier is not None else None,
                holds=earlier.holds if earlier is not None else (),
                near_limit=earlier.near_limit if earlier is not None else False,
                models=spec.models,
                default_tier=spec.default_tier,
                fallback_model=spec.fallback_model,
                remote=spec.info.remote,
            )
        )
    if agents is None:
        states = list(snapshot.agents)
    # The snapshot contains what had been routed and judged by then: nothing waits for what was not asked. Nor is a
    # classifier asked now that was not asked then: the task gets the tier it would get without an answer.
    then = snapshot.rules
    settled: dict[str, bool | None] = {
        "routing": then.routing,
        "policed": then.policed,
        "classifier": rules.classifier and then.classifier,
    }
    if then.remote is None:
        # An earlier version recorded neither the tenants of runs nor which runs were remote.
        settled |= {"per_organisation": None, "remote": None, "remote_per_organisation": None}
    rules = rules.model_copy(update=settled)
    return snapshot.model_copy(update={"agents": tuple(states), "rules": rules})


def first_difference(stored: Any, replayed: Any, at: str = "") -> str | None:
    """Return where two JSON values first differ, as a path with both values; None if they are equal."""
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for key in sorted(stored.keys() | replayed.keys()):
            difference = first_difference(stored.get(key), replayed.get(key), f"{at}.{key}" if at else key)
            if difference is not None:
                return difference
        return None
    if isinstance(stored, list) and isinstance(replayed, list) and len(stored) == len(replayed):
        for index, (first, other) in enumerate(zip(stored, replayed, strict=True)):
            if (difference := first_difference(first, other, f"{at}[{index}]")) is not None:
                return difference
        return None
    return None if stored == replayed else f"{at}: {stored!r} was recorded, {replayed!r} is decided"


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start this task, provided its version is unchanged."""

    head: QueueHead
    decision: DecisionRecord
    chosen_model: str | None = None
    """The model that the agent would choose if none is named; see ``AgentState.default_model``."""


Action = StartRun | AskTier


class Planner:
    """The fold. Each start it decides takes its slots before the next head is considered.

    Observation folds while it fetches heads, as it needs to know which lanes are blocked; ``plan`` folds over the heads
    of the resulting snapshot in the same order. So the two always agree.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._rules = snapshot.rules
        self._agents = {agent.name: agent for agent in snapshot.agents}
        self._load = load_of(snapshot)
        self._taken: Taken | None = None
        self._usable_by: Mapping[str, Sequence[AgentState]] | None = None
        self._is_exhausted: bool | None = None

    @property
    def exhausted(self) -> bool:
        """True if no further head can start, whatever it is."""
        if self._is_exhausted is None:
            load = self._load
            closed = load.disk_low or load.drained or (load.day is not None and load.day.spent)
            self._is_exhausted = closed or not load.has_slot(OWN, self._agents.values(), self._rules)
        return self._is_exhausted

    @property
    def exhausted_hints(self) -> frozenset[str]:
        """Hints with which no task of anybody can start; see ``admission.exhausted_hints``. Empty if tiers are asked
        for, as tasks are asked about while they wait for an agent."""
        return frozenset() if self._rules.classifier else exhausted_hints(self._seen_by(OWN), self._rules)

    def shut(self, demand: Demand) -> Shut | None:
        """Return for whom no task with that demand can start now; None if for nobody one can."""
        if not self._rules.classifier and self._load.full_cap(constraints_of(demand)) is not None:
            return None
        agents = tuple(self._agents.values())
        met = {tenant: self._is_met(demand, usable, agents) for tenant, usable in self._usable.items()}
        if not met[OWN]:
            return None
        return Shut(frozenset(tenant for tenant, is_met in met.items() if not is_met) - {NEWCOMER}, not met[NEWCOMER])

    def _is_met(self, demand: Demand, usable: Sequence[AgentState], agents: Sequence[AgentState]) -> bool:
        """Return whether a task with the demand might start, or have its tier asked for."""
        asked = self._rules.classifier and any(agent.auto_select for agent in usable)
        return asked or may_be_met(demand, usable, agents)

    @property
    def _usable(self) -> Mapping[str, Sequence[AgentState]]:
        """Agents on which a task might start, by tenant that has live runs, for a newcomer and for the operator."""
        if self._usable_by is None:
            tenants = (*self._load.here.tenants, *self._load.remote.tenants, NEWCOMER, OWN)
            self._usable_by = {tenant: tuple(filter(self._is_usable, self._seen_by(tenant))) for tenant in tenants}
        return self._usable_by

    def _is_usable(self, agent: AgentState) -> bool:
        return agent.free if self._rules.classifier else not is_exhausted(agent, self._rules)

    @property
    def slots_used(self) -> bool:
        """True if no run that needs a processor on this machine can start."""
        return self._load.no_slot(OWN, self._rules, remote=False) is not None

    def shares_used(self, head: QueueHead) -> bool:
        """Return whether a limit on tenants, rather than a lack of free slots as such, blocks the head."""
        seen = self._load.seen_by(head.tenant, visible_to(head.constraints, tuple(self._agents.values())), self._rules)
        return any(agent.closed is not None and agent.closed.code in SHARES for agent in seen)

    def _seen_by(self, tenant: str) -> tuple[AgentState, ...]:
        return self._load.seen_by(tenant, tuple(self._agents.values()), self._rules)

    @property
    def now(self) -> int:
        """Time of the snapshot, in epoch milliseconds."""
        return self._load.now

    @property
    def taken(self) -> Taken:
        """Where nothing more can start, counting the runs that this planner has decided to start."""
        if self._taken is None:
            self._taken = self._load.taken(self._rules)
        return self._taken

    def decide(self, head: QueueHead) -> DecisionRecord | Blocked:
        """Return the decision for the head regardless of its directory, and so for its whole lane. Takes no slots."""
        return self._load.full_cap(head.constraints) or decide(
            head, tuple(self._agents.values()), self._rules, self._load.now
        )

    def consider(self, head: QueueHead) -> StartRun | Blocked:
        """Decide on the next head, and take the slots it uses."""
        agents = tuple(self._agents.values())
        verdict = admit(head, agents, self._rules, self._load)
        if isinstance(verdict, Blocked):
            return verdict
        chosen = self._agents[verdict.agent]
        buckets = chosen.buckets_of(verdict.model)
        self._agents = {name: agent.with_run(buckets) for name, agent in self._agents.items()}
        begun = self._agents[verdict.agent]
        self._agents[verdict.agent] = begun.model_copy(update={"active": begun.active + 1})
        self._load = self._load.with_run(head, self._rules, remote=chosen.remote)
        self._taken = self._usable_by = self._is_exhausted = None
        return StartRun(head, verdict, chosen.default_model if verdict.model is None else None)

    def question(self, head: QueueHead, verdict: Blocked) -> AskTier | None:
        """Return the tier question for a head that does not start yet, so that the answer is there when it can start.
        verdict: what blocks the head; nothing is asked about a head that no agent can take."""
        if not self._rules.classifier or verdict.why is Why.AGENT:
            return None
        agents = visible_to(head.constraints, tuple(self._agents.values()))
        hinted = () if self._rules.type_hint == "ignore" and not head.strict else hinted_by(head, agents)
        asked = question(head, hinted, agents, self._rules.near_limit)
        return None if asked is None else replace(asked, urgent=verdict.why is Why.CLASSIFYING)


def plan(snapshot: Snapshot) -> tuple[Action, ...]:
    """Return the runs to start and the questions to ask, in order. Deterministic. A tick gets its plan while it
    observes; this function is for stored snapshots."""
    planner = Planner(snapshot)
    actions: list[Action] = []
    for head in snapshot.heads:
        verdict = planner.consider(head)
        action = verdict if isinstance(verdict, StartRun) else planner.question(head, verdict)
        if action is not None:
            actions.append(action)
    return tuple(actions)
