"""Observing: from rows to a snapshot, and to the plan that follows from it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from heapq import heapify, heappop, heappush

from sqlalchemy import Connection

from claudomator_py.dispatch.agent_states import CheckSlots, agent_states, probed, slots_in_use, tries
from claudomator_py.dispatch.spending import Budgets, Spent
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, Why
from claudomator_py.domain.card import Card
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import tenant_of
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.faults import Activity, Faults, Item, item_of
from claudomator_py.ports import Clock
from claudomator_py.prompts.conversations import resumption_of
from claudomator_py.routing.role import done_by
from claudomator_py.scheduler.classification import differs
from claudomator_py.scheduler.lanes import held_by
from claudomator_py.scheduler.load import Taken
from claudomator_py.scheduler.plan import Action, Planner, StartRun
from claudomator_py.scheduler.snapshot import (
    ActiveHold,
    AskedTier,
    Kept,
    QueueHead,
    Rules,
    Snapshot,
)
from claudomator_py.scheduler.tiers import AskTier
from claudomator_py.store import (
    classification_rows,
    hold_rows,
    queue,
    run_rows,
    specialist_rows,
    spending_rows,
    task_rows,
)
from claudomator_py.store.tables import ClassificationRow, Run, Task
from claudomator_py.tasks.inputs import specialist_meant
from claudomator_py.values import dataclass

AHEAD = 2
"""For so many tasks a slot is asked how strong a model they need before it is free."""


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """A queued task as it was read: its row, its content, and how planning sees it."""

    task: Task
    spec: TaskSpec
    """As the specialist is given it."""
    head: QueueHead
    content: TaskSpec
    """As it came."""
    card: Card | None = None
    """Of the specialist who does it; None: no specialist."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tick saw and what follows from it."""

    snapshot: Snapshot
    actions: tuple[Action, ...]
    """What ``plan`` makes of the snapshot, in the same order."""
    tasks: Mapping[str, QueuedTask]
    """The tasks that the actions are for, by id."""
    again_ms: int | None = None
    """When the next task that waits for the agent that it prefers may go elsewhere, in epoch milliseconds."""

    @property
    def starts(self) -> list[StartRun]:
        """The runs to start."""
        return [action for action in self.actions if isinstance(action, StartRun)]

    def without(self, task_ids: Set[str]) -> "Observation":
        """Return the same, and these tasks do not start."""
        kept = [one for one in self.actions if not (isinstance(one, StartRun) and one.head.task_id in task_ids)]
        return replace(self, actions=tuple(kept))

    @property
    def questions(self) -> list[AskTier]:
        """The tiers to ask for."""
        return [action for action in self.actions if isinstance(action, AskTier)]


@dataclass(frozen=True, slots=True)
class _LaneHead:
    """The next task of a lane. asked: whether somebody has asked for its tier, or need not, as it is known."""

    task: Task
    item: Item
    queued: QueuedTask | None
    """None: it cannot be understood."""
    asked: bool

    @property
    def position(self) -> queue.Position:
        """Where it is in the queue's order."""
        return queue.position(self.task)

    def fits(self, taken: Taken) -> bool:
        """Whether it works where nothing is taken."""
        task = self.task
        placed = task.dir_key not in taken.dir_keys or task.id in taken.keepers
        return placed and ((task.thread or task.id) not in taken.threads or task.id in taken.in_turn)


@dataclass(frozen=True, slots=True)
class _Context:
    """What is known of queued tasks from other rows."""

    questions: Mapping[tuple[str, int], ClassificationRow] = field(default_factory=dict)
    """Those for their tiers, by the task's id and generation."""
    cards: Mapping[str, Card] = field(default_factory=dict)
    """Of the specialists who do them, by id."""


_Planned = tuple[QueuedTask, Action]


def _preferring_until(verdict: Blocked) -> int | None:
    """When it may go elsewhere, if all that it waits for is the agent that it prefers, in epoch milliseconds."""
    return verdict.until if verdict.code is BlockCode.PREFERRED_FULL else None


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
        self.check_slots = CheckSlots()
        """Which checks wait for a slot."""

    @property
    def accounts(self) -> Set[tuple[str, str]]:
        """Kind and account of the configured agents."""
        return {(agent.kind, agent.quota_account) for agent in self._registry.agents}

    def observe(self, connection: Connection) -> Observation:
        """Return the present and what to do about it. Of the queue the snapshot has the heads for which something is
        done and no more: those that start, and those of which is to be asked how strong a model they need."""
        present = self.present(connection)
        planner = Planner(present)
        times: list[int] = []
        planned = [] if planner.exhausted else list(self._walk_lanes(connection, planner, present.rules, times))
        if present.rules.classifier and (planner.exhausted or planner.slots_used) and not present.drained:
            known = {queued.task.id for queued, _ in planned}
            planned += self._ahead(connection, planner, AHEAD * present.rules.total, without=known)
        return Observation(
            present.model_copy(update={"heads": tuple(queued.head for queued, _ in planned)}),
            tuple(action for _, action in planned),
            {queued.task.id: queued for queued, _ in planned},
            min(times, default=None),
        )

    def _walk_lanes(
        self, connection: Connection, planner: Planner, rules: Rules, times: list[int]
    ) -> Iterator[_Planned]:
        """Yield what a look at every queued task would start, in order, and between them questions about what would
        start if its tier were known; of lanes left out for another reason, about the first task without a tier.

        All lanes are followed at once, each from its first task that works where nothing is taken. When no agent can
        take that one, its lane is left out until a start changes what is free: neither its tasks nor those in a busy
        directory are looked at. times: takes when tasks that wait for the agent that they prefer may go elsewhere.
        """
        paused, waited_ms = self._paused(connection), planner.now - rules.prefer_wait
        # Of lanes that are left out nothing is asked either.
        shut = replace(planner.shut, hints=frozenset()) if rules.classifier else planner.shut
        lanes = set(queue.lanes(connection, planner.taken, shut))
        heads = self._lane_heads(connection, lanes, planner, without=paused)
        order = [(lane_head.position, lane) for lane, lane_head in heads.items()]
        heapify(order)
        blocked: set[str] = set()
        waited: dict[str, int] = {}
        to_ask = AHEAD * rules.total
        known = {lane_head.task.eligibility for lane_head in heads.values() if lane_head.asked}
        while heads and not planner.exhausted:
            position, lane = heappop(order)
            lane_head = heads.get(lane)
            if lane_head is None or lane_head.position != position:
                continue  # another one has come in its place
            again = {lane}
            queued, verdict = lane_head.queued, self._verdict(planner, lane_head)
            if queued is not None and isinstance(verdict, StartRun):
                yield queued, verdict
                taken = planner.taken
                again |= blocked | waited.keys()  # it may have filled or limited the agent that they were for
                again |= {name for name, other in heads.items() if not other.fits(taken)}
                blocked.clear()
                waited.clear()
            elif isinstance(verdict, Blocked) and (until := _preferring_until(verdict)) and lane not in waited:
                waited[lane] = waited_ms
                # Others of the lane may have waited long enough for the agent that they prefer, or will have sooner.
                since_ms = queue.waiting_since(
                    connection, lane, planner.taken, after=lane_head.position, without=paused, queued_after=waited_ms
                )
                times.append(until if since_ms is None else min(until, since_ms + rules.prefer_wait))
            elif queued is not None and isinstance(verdict, Blocked):
                asking = verdict.why is Why.CLASSIFYING
                if to_ask > 0 and not lane_head.asked and (asking or lane_head.task.eligibility not in known):
                    yield from self._question(planner, lane_head, queued, verdict)
                known.add(lane_head.task.eligibility)
                to_ask -= 1 if asking else 0
                # An open question is about that task alone; what blocks it otherwise blocks its lane.
                if not (asking and (queued.head.asked is not None or to_ask > 0)):
                    blocked.add(lane)
                    again = set()
            for name in (lane, *again):
                heads.pop(name, None)
            if again and not planner.exhausted:
                renewed = self._lane_heads(connection, again, planner, after=position, without=paused, queued_by=waited)
                heads |= renewed
                for name, other in renewed.items():
                    heappush(order, (other.position, name))

    def _verdict(self, planner: Planner, lane_head: _LaneHead) -> StartRun | Blocked | None:
        """Return what becomes of a lane's first task; None: there is none, or it cannot be judged."""
        if lane_head.queued is None:
            return None
        return self._faults.attempt(lane_head.item, partial(planner.consider, lane_head.queued.head), whole=False)

    def _question(
        self, planner: Planner, lane_head: _LaneHead, queued: QueuedTask, verdict: Blocked
    ) -> Iterator[_Planned]:
        """What to ask about a task that does not start yet, if anything."""
        asking = partial(planner.question, queued.head, verdict)
        question: AskTier | None = self._faults.attempt(lane_head.item, asking, whole=False)
        if question is not None:
            yield queued, question

    def _lane_heads(
        self,
        connection: Connection,
        lanes: Set[str],
        planner: Planner,
        *,
        without: Set[str],
        after: queue.Position | None = None,
        queued_by: Mapping[str, int] | None = None,
    ) -> dict[str, _LaneHead]:
        """By lane, the next task of it. A lane in which nothing is left has none."""
        found = queue.heads(connection, lanes, planner.taken, after=after, without=without, queued_by=queued_by or {})
        about = self._about(connection, [task for task, _ in found.values()])
        return {lane: self._front(task, spec, about) for lane, (task, spec) in found.items()}

    def _front(self, task: Task, spec: queue.Content, about: "_Context") -> _LaneHead:
        item = item_of(Activity.START, task)
        reading = partial(self._queued, task, spec, about)
        queued: QueuedTask | None = self._faults.attempt(item, reading, whole=False)
        pinned = queued is not None and queued.head.tier is not None
        asked = task.asked_tier is not None or task.tier is not None or pinned
        return _LaneHead(task, item, queued, asked)

    def _queued(self, task: Task, content: queue.Content, about: "_Context") -> QueuedTask:
        return self._given(task, task_rows.read_spec(content), about)

    def _given(self, task: Task, content: TaskSpec, about: "_Context") -> QueuedTask:
        question = about.questions.get((task.id, task.generation))
        asked = None if question is None else _asked(question, self._registry)
        card = about.cards.get(task.specialist or "")
        spec = done_by(content, card, Constraints.parse(task.constraints))
        return QueuedTask(task, spec, self.head(task, spec, asked), content, card)

    def _about(self, connection: Connection, tasks: Sequence[Task]) -> "_Context":
        ids = [task.id for task in tasks]
        questions = classification_rows.of_tasks(connection, ids) if self._rules().classifier else {}
        specialists = {task.specialist for task in tasks if task.specialist is not None}
        return _Context(questions, specialist_rows.cards(connection, specialists))

    def _paused(self, connection: Connection) -> set[str]:
        """The tasks that are not tried now, as starting them has failed by a fault of their own."""
        now_ms = self._clock()
        starts = [fault.item for fault in self._faults.all() if fault.item.doing is Activity.START]
        items = {item.id: item for item in starts if self._faults.is_paused(item, now_ms)}
        tasks = [task for task, _ in queue.contents(connection, sorted(items))]
        return {task.id for task in tasks if item_of(Activity.START, task).content == items[task.id].content}

    def _ahead(self, connection: Connection, planner: Planner, number: int, *, without: Set[str]) -> Iterator[_Planned]:
        """Questions about those of the next tasks of which nobody has asked yet how strong a model they need, so that
        they have their tier when a slot is free; no more than that are next, as an answer costs money. Lanes that wait
        for more than a slot are not counted, nor are those of tenants that have their share.

        without: tasks that are dealt with already.
        """
        firsts = {lane: queue.first(connection, lane, number) for lane in queue.lanes(connection, Taken())}
        samples = queue.contents(connection, [found[0][2] for found in firsts.values()])
        about = self._about(connection, [task for task, _ in samples])
        heads = {str(task.lane): self._front(task, spec, about) for task, spec in samples}
        near: list[queue.Position] = []
        for lane, lane_head in heads.items():
            if (queued := lane_head.queued) is None or planner.shares_used(queued.head):
                continue
            verdict = self._faults.attempt(lane_head.item, partial(planner.decide, queued.head), whole=False)
            if verdict is not None and (
                not isinstance(verdict, Blocked) or verdict.why in (Why.CLASSIFYING, Why.SLOTS)
            ):
                near += firsts[lane]
        tasks = queue.contents(connection, [task_id for *_, task_id in sorted(near)[:number]])
        for task, spec in tasks:
            if task.asked_tier is not None or task.id in without:
                continue
            lane_head = self._front(task, spec, _Context())
            if (queued := lane_head.queued) is None:
                continue
            considered = self._faults.attempt(lane_head.item, partial(planner.consider, queued.head), whole=False)
            if isinstance(considered, Blocked):
                yield from self._question(planner, lane_head, queued, considered)

    def heads(self, connection: Connection, tasks: Sequence[tuple[Task, TaskSpec]]) -> dict[str, QueueHead]:
        """Return, by id, each of these tasks as planning sees it, but for those that cannot be read."""
        about, found = self._about(connection, [task for task, _ in tasks]), {}
        for task, spec in tasks:
            with suppress(ValueError):
                found[task.id] = self._given(task, spec, about).head
        return found

    def head(self, task: Task, spec: TaskSpec, asked: AskedTier | None = None) -> QueueHead:
        """Return the task as planning sees it. asked: what was asked about its tier."""
        constraints = Constraints.parse(task.constraints)
        return QueueHead(
            task_id=task.id,
            version=task.version,
            name=task.name,
            lane=task.lane or "",
            dir_key=task.dir_key,
            rank=task.rank_ms,
            created=task.created_ms,
            agent_type=spec.agent.type,
            tier=spec.agent.tier,
            kept_tier=Tier(task.tier) if task.tier is not None else None,
            asked=asked,
            cannot=self._registry.unable(spec, constraints),
            model=spec.agent.model,
            strict=spec.agent.strict,
            conversation=held_by(resumption_of(task), spec),
            thread=task.thread,
            failed_on=task.failed_on,
            failed_for=Reason(task.failed_for) if task.failed_for is not None else None,
            queued=task.updated_ms,
            specialist=task.specialist,
            skill=task.skill,
            constraints=constraints,
            routed=task.constraints is not None,
            names_specialist=spec.specialist is not None or specialist_meant(task) is not None,
            tenant=tenant_of(task.creator, task.organisation),
        )

    @property
    def routes(self) -> bool:
        """Whether tasks are routed, or judged by a policy."""
        return self._rules().routing

    def check_waits(self, run_id: str) -> Blocked | None:
        """Return why the check of that run waits for a slot; None: it does not."""
        return self.check_slots.waits(run_id, self._rules())

    def check_obstacle(self, run: Run) -> Blocked | None:
        """Return why the check of that run, which has ended, has to wait; None: it is to begin."""
        return self.check_slots.obstacle(run, self._rules())

    @property
    def budgets(self) -> Budgets:
        """What may be spent."""
        return self._budgets

    def day_end(self, now_ms: int) -> int | None:
        """Return when the day is over for which there are budgets, in epoch milliseconds; None without any."""
        limited = any(agent.budget.units for agent in self._registry.agents) or self._budgets.total.units
        return self._budgets.day(now_ms).end_ms if limited else None

    def present(self, connection: Connection) -> Snapshot:
        """Return the present without the queue."""
        now_ms = self._clock()
        live = run_rows.live(connection)
        if any(agent.hosts != (LOCAL,) for agent in self._registry.configured):
            self._registry.drained_hosts = frozenset(hold_rows.drained_hosts(connection))
        spent = self._budgets.spent(connection, now_ms) if self.day_end(now_ms) is not None else None
        (in_force, over), rules = hold_rows.in_force_and_over(connection, now_ms), self._rules()
        if rules.routing and not rules.policed and not specialist_rows.exist(connection):
            rules = rules.model_copy(update={"routing": False})
        slots = slots_in_use(live, rules, self.check_slots.to_check)
        spent_holds = self._spent_holds(connection, spent, now_ms)
        narrow = [hold.bucket.family for hold in (*in_force, *over)]
        narrow += [hold.family for holds in spent_holds.values() for hold in holds]
        return Snapshot(
            now=now_ms,
            rules=rules,
            agents=agent_states(
                self._registry,
                live,
                in_force,
                tries(connection, live, in_force, now_ms) if rules.when_all_limited == "try" else {},
                probed(connection, live, now_ms, over),
                run_rows.warned(connection, now_ms),
                spent_holds,
                self._default_models(connection) if any(narrow) else {},
            ),
            live=slots.here.live,
            tenants=dict(sorted(slots.here.tenants.items())),
            remote_live=slots.remote.live,
            remote_tenants=dict(sorted(slots.remote.tenants.items())),
            busy=dict(sorted(Counter(run.dir_key for run in live if run.dir_key).items())),
            kept=tuple(Kept(**columns) for columns in queue.kept(connection, now_ms)),
            capped=dict(sorted(queue.caps_in_use(connection).items())) if rules.policed else {},
            threads=tuple(sorted(run.thread or run.task_id for run in live)),
            in_turn=queue.in_turn(connection),
            disk_low=self._disk_low(),
            drained=hold_rows.find_switch(connection, hold_rows.DRAIN) is not None,
            day=None if spent is None else self._budgets.day_left(spent),
        )

    def _default_models(self, connection: Connection) -> dict[str, str | None]:
        """By agent, what it chose last for a run that asked for no model."""
        return {agent.name: run_rows.default_model(connection, agent.name) for agent in self._registry.agents}

    def _spent_holds(self, connection: Connection, spent: Spent | None, now_ms: int) -> dict[str, list[ActiveHold]]:
        """What their own budgets keep from beginning on the agents, by agent."""
        found: dict[str, list[ActiveHold]] = {}
        for agent in self._registry.agents:
            holds = [] if spent is None else self._budgets.day_holds(agent, spent)
            if self._budgets.keeps_windows(agent):
                said = spending_rows.windows(connection, agent.kind, agent.quota_account)
                holds += self._budgets.window_holds(agent, said, now_ms)
            found[agent.name] = holds
        return found


def _asked(row: ClassificationRow, registry: AgentRegistry) -> AskedTier:
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
