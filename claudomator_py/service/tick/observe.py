"""Observing: from rows to the snapshot that ``plan`` decides on."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

from sqlalchemy import Connection

from claudomator_py.core.agent import AgentSpec, Tier
from claudomator_py.core.conversation import Resumption
from claudomator_py.core.limits import Bucket, Hold
from claudomator_py.core.outcome import Reason
from claudomator_py.core.task import OnLimit, TaskSpec
from claudomator_py.planning.admission import CLASSIFYING, CONVERSATION, KEPT, Blocked
from claudomator_py.planning.plan import Planner
from claudomator_py.planning.snapshot import (
    FALLS_BACK,
    AgentSeen,
    AskedTier,
    Head,
    HeldBy,
    HoldSeen,
    Kept,
    Rules,
    Snapshot,
)
from claudomator_py.routing.tier import differs
from claudomator_py.service.briefing.resuming import resumption_of
from claudomator_py.service.faults import Doing, Faults, item_of
from claudomator_py.service.ports import Clock
from claudomator_py.service.registry import AgentRegistry
from claudomator_py.service.tick.probing import Probed, probed, tries
from claudomator_py.service.tick.spending import Budgets, Spent
from claudomator_py.store import classification_rows, hold_rows, queue, run_rows, spending_rows, switch_rows
from claudomator_py.store.tables import Classification, Run, Task

PAGE = 64
MOST_LANES = 5_000
MOST_PASSED_OVER = 2_000
AHEAD = 2


class Observer:
    """Reads the present. rules: those in force. disk_low: whether there is too little room left to start anything.

    budgets: what may be spent; None: anything. faults: of starts; None: there are none.
    """

    def __init__(
        self,
        registry: AgentRegistry,
        rules: Callable[[], Rules],
        clock: Clock,
        disk_low: Callable[[], bool],
        budgets: Budgets | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._registry = registry
        self._rules = rules
        self._clock = clock
        self._disk_low = disk_low
        self._budgets = budgets or Budgets()
        self._faults = faults or Faults(clock)

    def snapshot(self, connection: Connection) -> Snapshot:
        """The present, with the heads that ``plan`` has to look at and no more.

        Pages through the queue until slots or lanes are exhausted; a lane whose head is blocked is left out from there
        on, so that a long queue behind one busy directory hides nothing. With a classifier it goes on for twice as
        many heads as there are slots, so that they have their tier when a slot is free.
        """
        present = self.present(connection)
        planner = Planner(present)
        heads: list[Head] = []
        blocked: set[str] = set()
        # With a hold on one family, what blocks a task depends on its tier, which is not a matter of its lane alone.
        by_tier = any(hold.family is not None for agent in present.agents for hold in agent.holds)
        blocked_tiers: set[tuple[str, Tier | None]] = set()
        keepers = {kept.lane for kept in present.kept}
        passed_over = 0
        after: queue.Position | None = None
        ahead = AHEAD * present.rules.total if present.rules.classifier and not present.drained else 0
        while (not planner.exhausted or ahead > 0) and len(blocked) < MOST_LANES and passed_over < MOST_PASSED_OVER:
            page = queue.heads(connection, blocked_lanes=blocked, after=after, limit=PAGE)
            if not page:
                break
            asked = self._questions(connection, [task for task, _ in page])
            failed = self.failed(connection, [task for task, _ in page])
            for task, spec in page:
                after = (task.rank_ms, task.created_ms, task.id)
                exhausted = planner.exhausted
                if task.lane in blocked or (exhausted and ahead <= 0):
                    continue
                item = item_of(Doing.START, task)
                heading = partial(self._head_of, task, spec, asked.get(task.id), failed.get(task.id))
                head = self._faults.attempt(item, heading, whole=False)
                if head is None:
                    passed_over += 1
                    continue
                tier = head.tier or head.kept_tier or (head.asked.tier if head.asked is not None else None)
                if (task.lane, tier) in blocked_tiers:
                    passed_over += 1
                    continue
                verdict = self._faults.attempt(item, partial(planner.consider, head), whole=False)
                if verdict is None:
                    passed_over += 1
                    continue
                heads.append(head)
                if not isinstance(verdict, Blocked):
                    continue
                if exhausted or verdict.reason == CLASSIFYING:
                    ahead -= 1
                elif verdict.reason == CONVERSATION and not (head.thread and planner.is_live(head.thread)):
                    # What is behind it in its lane may be what it waits for, or in another thread.
                    passed_over += 1
                elif verdict.reason == KEPT and task.lane in keepers:
                    # For whom the directory is kept may come later in this lane.
                    passed_over += 1
                elif by_tier:
                    blocked_tiers.add((task.lane, tier))
                else:
                    blocked.add(task.lane)
        return present.model_copy(update={"heads": tuple(heads)})

    def _head_of(
        self, task: Task, spec: dict[str, object], question: Classification | None, failed: tuple[str, Reason] | None
    ) -> Head:
        asked = None if question is None else _asked(question, self._registry)
        return self.head(task, TaskSpec.model_validate(spec), asked, failed)

    def asked(self, connection: Connection, tasks: Sequence[Task]) -> dict[str, AskedTier]:
        """What was asked about the tiers of these tasks in their present generation."""
        questions = self._questions(connection, tasks)
        return {task_id: _asked(question, self._registry) for task_id, question in questions.items()}

    def _questions(self, connection: Connection, tasks: Sequence[Task]) -> dict[str, Classification]:
        if not self._rules().classifier:
            return {}
        rows = classification_rows.of_tasks(connection, [task.id for task in tasks])
        present = ((task, rows.get((task.id, task.generation))) for task in tasks)
        return {task.id: row for task, row in present if row is not None}

    def failed(self, connection: Connection, tasks: Sequence[Task]) -> dict[str, tuple[str, Reason]]:
        """By task, the agent on which its last run did not get its model, and why; where there may be another model."""
        if not any(agent.fallback_model is not None for agent in self._registry.agents):
            return {}
        last = [task.last_run_id for task in tasks if task.seq > 0 and task.last_run_id is not None]
        return run_rows.failed_for(connection, last, FALLS_BACK)

    def head(
        self,
        task: Task,
        spec: TaskSpec,
        asked: AskedTier | None = None,
        failed: tuple[str, Reason] | None = None,
    ) -> Head:
        """The task as planning sees it. asked, failed: see those of this class."""
        return Head(
            task_id=task.id,
            version=task.version,
            name=task.name,
            lane=task.lane,
            dir_key=task.dir_key,
            rank=task.rank_ms,
            created=task.created_ms,
            agent_type=spec.agent.type,
            tier=spec.agent.tier,
            kept_tier=Tier(task.tier) if task.tier is not None else None,
            asked=asked,
            cannot=self._registry.lacking(spec),
            model=spec.agent.model,
            strict=spec.agent.strict,
            conversation=_held_by(resumption_of(task), spec),
            thread=task.thread,
            failed_on=failed[0] if failed is not None else None,
            failed_for=failed[1] if failed is not None else None,
            queued=task.updated_ms,
        )

    @property
    def budgets(self) -> Budgets:
        """What may be spent."""
        return self._budgets

    def day_end(self, now_ms: int) -> int | None:
        """When the day is over for which there are budgets, in epoch milliseconds; None without any."""
        limited = any(agent.budget.units for agent in self._registry.agents) or self._budgets.total.units
        return self._budgets.day(now_ms).end_ms if limited else None

    def present(self, connection: Connection) -> Snapshot:
        """The present without the queue."""
        now_ms = self._clock()
        live = run_rows.live(connection)
        spent = self._budgets.spent(connection, now_ms) if self.day_end(now_ms) is not None else None
        in_force, rules = hold_rows.in_force(connection, now_ms), self._rules()
        return Snapshot(
            now=now_ms,
            rules=rules,
            agents=_agents(
                self._registry,
                live,
                in_force,
                tries(connection, live, in_force, now_ms) if rules.when_all_limited == "try" else {},
                probed(connection, live, now_ms),
                run_rows.warned(connection, now_ms),
                self._spent_holds(connection, spent, now_ms),
            ),
            live=len(live),
            busy=dict(sorted(Counter(run.dir_key for run in live if run.dir_key).items())),
            kept=tuple(Kept(**columns) for columns in queue.kept(connection, now_ms)),
            threads=tuple(sorted(run.thread or run.task_id for run in live)),
            in_turn=queue.in_turn(connection),
            disk_low=self._disk_low(),
            drained=switch_rows.find(connection, switch_rows.DRAIN) is not None,
            day=None if spent is None else self._budgets.day_left(spent),
        )

    def _spent_holds(self, connection: Connection, spent: Spent | None, now_ms: int) -> dict[str, list[HoldSeen]]:
        """What their own budgets keep from beginning on the agents, by agent."""
        found = {}
        for agent in self._registry.agents:
            if spent is not None and agent.budget.units:
                found[agent.name] = self._budgets.day_holds(agent, spent)
            if agent.budget.window is not None:
                said = spending_rows.windows(connection, agent.kind, agent.quota_account)
                found.setdefault(agent.name, []).extend(self._budgets.window_holds(agent, said, now_ms))
        return found


def _agents(
    registry: AgentRegistry,
    live: Sequence[Run],
    holds: Sequence[Hold],
    tries: Mapping[Bucket, int],
    probed: Sequence[Probed],
    warned: Set[tuple[str, str]],
    spent: Mapping[str, Sequence[HoldSeen]],
) -> tuple[AgentSeen, ...]:
    active = Counter(run.agent for run in live)
    return tuple(
        AgentSeen(
            name=agent.name,
            kind=agent.kind,
            active=active[agent.name],
            max_concurrent=agent.max_concurrent,
            auto_select=agent.auto_select,
            problem=registry.health(agent.name).problem,
            holds=(
                *_holds_seen(
                    agent, [*((hold, None) for hold in holds), *((one.hold, one.room) for one in probed)], tries
                ),
                *spent.get(agent.name, ()),
            ),
            near_limit=(agent.kind, agent.quota_account) in warned,
            models=agent.models,
            default_tier=agent.default_tier,
            fallback_model=agent.fallback_model,
        )
        for agent in sorted(registry.agents, key=lambda agent: agent.name)
    )


def _held_by(resumption: Resumption | None, spec: TaskSpec) -> HeldBy | None:
    if resumption is None or resumption.given_up:
        return None
    held = HeldBy(run=resumption.run_id, agent=resumption.agent, kind=resumption.kind, optional=resumption.optional)
    if resumption.follows is None:
        return held
    of = spec.continues if resumption.run_id == resumption.follows else None
    yields = "limited" if spec.on_limit is OnLimit.FAILOVER else "unable"
    return held.model_copy(update={"of": of, "yields": yields})


def _asked(row: Classification, registry: AgentRegistry) -> AskedTier:
    agent, said = registry.find(row.agent), row.said_agent
    known = (row.agent, agent.kind) if agent is not None else (row.agent,)
    return AskedTier.model_validate(
        {
            "agent": row.agent,
            "deadline": row.deadline_ms,
            "answered": row.answered_ms is not None,
            "source": row.source,
            "tier": row.tier,
            "cause": row.cause,
            "detail": row.detail,
            "said_agent": said if said and all(differs(said, name) for name in known) else None,
        }
    )


def _holds_seen(
    agent: AgentSpec, holds: Sequence[tuple[Hold, int | None]], tries: Mapping[Bucket, int]
) -> tuple[HoldSeen, ...]:
    return tuple(
        HoldSeen(
            bucket=hold.bucket.label,
            reason=hold.reason,
            until=hold.until_ms,
            provenance=hold.provenance,
            source=hold.source,
            family=hold.bucket.family,
            window=hold.window,
            room=room,
            tries=tries.get(hold.bucket) if room is None else None,
        )
        for hold, room in holds
        if hold.bucket.is_of(agent.name, agent.kind, agent.quota_account)
    )
