"""Reads the rows that a plan depends on into a snapshot, and plans."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from heapq import heappop, heappush

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
"""Tasks per slot whose tier is asked for in advance."""
LOOK = 8
"""Tasks of a demand that are read in the queue's order at once."""


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """A queued task: its row, its content, and its form for planning."""

    task: Task
    spec: TaskSpec
    """The content with the specialist's settings applied."""
    head: QueueHead
    content: TaskSpec
    """The content as submitted."""
    card: Card | None = None
    """The specialist's card, if any."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot and the plan for it."""

    snapshot: Snapshot
    actions: tuple[Action, ...]
    """The plan, in the order of the snapshot's heads."""
    tasks: Mapping[str, QueuedTask]
    """The tasks of the actions, by id."""
    again_ms: int | None = None
    """When the next task that waits for its preferred agent may use another, in epoch milliseconds."""

    @property
    def starts(self) -> list[StartRun]:
        """The runs to start."""
        return [action for action in self.actions if isinstance(action, StartRun)]

    def without(self, task_ids: Set[str]) -> "Observation":
        """Return a copy without the starts of these tasks."""
        kept = [
            action for action in self.actions if not (isinstance(action, StartRun) and action.head.task_id in task_ids)
        ]
        return replace(self, actions=tuple(kept))

    @property
    def questions(self) -> list[AskTier]:
        """The tiers to ask for."""
        return [action for action in self.actions if isinstance(action, AskTier)]


@dataclass(frozen=True, slots=True)
class _LaneHead:
    """The next task of a lane."""

    task: Task
    item: Item
    queued: QueuedTask | None
    """None if its content cannot be read."""
    asked: bool
    """Whether its tier is known or has been asked for."""

    @property
    def position(self) -> queue.Position:
        """Position in the queue."""
        return queue.position(self.task)

    def fits(self, taken: Taken) -> bool:
        """Return whether its directory and thread are free."""
        return taken.leaves(self.task.id, self.task.dir_key, self.task.thread)


@dataclass(frozen=True, slots=True)
class _Context:
    """Rows that queued tasks refer to."""

    questions: Mapping[tuple[str, int], ClassificationRow] = field(default_factory=dict)
    """Questions about tiers, by task id and generation."""
    cards: Mapping[str, Card] = field(default_factory=dict)
    """Cards of their specialists, by id."""


_Planned = tuple[QueuedTask, Action]


class _Front:
    """The queue as far as it has been read: demands with which a task might start, and the lanes found so far.

    As long as that starts something, tasks are read in the queue's order, a few at a time. If it does not, lanes are
    read from the index, because behind a blocked task there may be thousands of its lane.
    """

    def __init__(self, connection: Connection, planner: Planner, paused: Set[str]) -> None:
        """paused: tasks to leave out."""
        self._connection = connection
        self._planner = planner
        self._paused = paused
        known = queue.demands(connection, planner.exhausted_hints)
        self._shut = {demand: shut for demand in known if (shut := planner.shut(demand)) is not None}
        self._unread = dict.fromkeys(self._shut, queue.FRONT)
        """Demands of which not all lanes are known, with the position up to which tasks have been read."""
        self._lanes: set[str] = set()

    def reaches(self, position: queue.Position | None) -> bool:
        """Return whether tasks that have not been read may come before that position. None: the end of the queue."""
        return bool(self._unread) and (position is None or position > min(self._unread.values()))

    def next_tasks(self) -> list[str]:
        """Read on in order. Return the tasks by which further lanes begin, among those that fit."""
        found: list[queue.Place] = []
        for demand, after in list(self._unread.items()):
            places = queue.first_places(self._connection, demand, LOOK, after)
            if len(places) < LOOK:
                del self._unread[demand]
            else:
                self._unread[demand] = places[-1].position
            shut = self._shut[demand]
            found += [place for place in places if not shut.bars(place.tenant) and self._fits(place)]
        begun: list[str] = []
        for place in found:
            if place.lane not in self._lanes:
                self._lanes.add(place.lane)
                begun.append(place.position[-1])
        return begun

    def _fits(self, place: queue.Place) -> bool:
        *_, task_id = place.position
        return task_id not in self._paused and self._planner.taken.leaves(task_id, place.dir_key, place.thread)

    def other_lanes(self) -> set[str]:
        """Return all lanes that are not known yet, of demands that have not been read to the end."""
        taken = self._planner.taken
        lanes = {
            lane for demand in self._unread for lane in queue.lanes(self._connection, demand, taken, self._shut[demand])
        }
        self._unread.clear()
        others = lanes - self._lanes
        self._lanes |= others
        return others


def _preferring_until(verdict: Blocked) -> int | None:
    """Return when the task may use another agent, in epoch milliseconds; None unless it waits only for its preferred
    agent."""
    return verdict.until if verdict.code is BlockCode.PREFERRED_FULL else None


class Observer:
    """Reads the current state and plans.

    rules: returns those in force. disk_low: returns whether the disk is too full to start anything. budgets: None for
    no limits. faults: of starts; None for none. closed_hosts: see ``RunHost.closed``.
    """

    def __init__(
        self,
        registry: AgentRegistry,
        rules: Callable[[], Rules],
        clock: Clock,
        disk_low: Callable[[], bool],
        budgets: Budgets | None = None,
        faults: Faults | None = None,
        closed_hosts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._registry = registry
        self._closed_hosts = closed_hosts
        self._rules = rules
        self._clock = clock
        self._disk_low = disk_low
        self._budgets = budgets or Budgets()
        self._faults = faults or Faults(clock)
        self.check_slots = CheckSlots()
        """Slots of checks."""

    @property
    def accounts(self) -> Set[tuple[str, str]]:
        """Kinds and accounts of the configured agents."""
        return {(agent.kind, agent.quota_account) for agent in self._registry.agents}

    def observe(self, connection: Connection) -> Observation:
        """Return the current state and the plan. Of the queue, the snapshot holds only the tasks that the plan starts
        or asks a tier for."""
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
        """Yield the starts that examining every queued task would yield, in order, and questions about tasks that would
        start if their tier were known, and about the first task without a tier of each lane that is blocked otherwise.

        The lanes are merged in queue order, each from its first task whose directory and thread are free. When no agent
        can take that task, the lane is skipped until a start changes what is free; neither its other tasks nor tasks in
        busy directories are examined. Lanes are read as far as they are needed, see ``_Front``. times: receives when
        tasks that wait for their preferred agent may use another.
        """
        paused, waited_ms = self._paused(connection), planner.now - rules.prefer_wait
        front = _Front(connection, planner, paused)
        heads: dict[str, _LaneHead] = {}
        order: list[tuple[queue.Position, str]] = []
        blocked: set[str] = set()
        waited: dict[str, int] = {}
        to_ask = AHEAD * rules.total
        known: set[str] = set()
        in_order = not rules.classifier  # or else what is known depends on all lanes
        while not planner.exhausted:
            if front.reaches(order[0][0] if order else None):
                if in_order:
                    read = self._as_heads(connection, queue.contents(connection, front.next_tasks()))
                else:
                    read = self._lane_heads(connection, front.other_lanes(), planner, without=paused)
                heads |= read
                known |= {lane_head.task.eligibility for lane_head in read.values() if lane_head.asked}
                for name, other in read.items():
                    heappush(order, (other.position, name))
                in_order = False  # before another start
                continue
            if not order:
                break
            position, lane = heappop(order)
            lane_head = heads.get(lane)
            if lane_head is None or lane_head.position != position:
                continue  # a stale entry: the lane has a newer head
            again = {lane}
            queued, verdict = lane_head.queued, self._verdict(planner, lane_head)
            if queued is not None and isinstance(verdict, StartRun):
                yield queued, verdict
                taken = planner.taken
                again |= blocked | waited.keys()  # the start may have filled their agent, which changes the obstacle
                again |= {name for name, other in heads.items() if not other.fits(taken)}
                blocked.clear()
                waited.clear()
                in_order = not rules.classifier
            elif isinstance(verdict, Blocked) and (until := _preferring_until(verdict)) and lane not in waited:
                waited[lane] = waited_ms
                # Another task of the lane may have waited long enough, or will have sooner.
                since_ms = queue.waiting_since(
                    connection, lane, planner.taken, after=lane_head.position, without=paused, queued_after=waited_ms
                )
                times.append(until if since_ms is None else min(until, since_ms + rules.prefer_wait))
            elif queued is not None and isinstance(verdict, Blocked):
                asking = verdict.why is Why.CLASSIFYING
                if to_ask > 0 and not lane_head.asked and (asking or lane_head.task.eligibility not in known):
                    yield from self._question(planner, lane_head, queued, verdict)
                known.add(lane_head.task.eligibility)
                # An open question, to a model or a person, blocks only its task; any other obstacle blocks the lane.
                is_own = asking or queued.head.asks
                to_ask -= 1 if is_own else 0
                if not (is_own and (queued.head.asked is not None or to_ask > 0)):
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
        """Return the decision on a lane's first task; None if it cannot be read or considering it fails."""
        if lane_head.queued is None:
            return None
        return self._faults.attempt(lane_head.item, partial(planner.consider, lane_head.queued.head), whole=False)

    def _question(
        self, planner: Planner, lane_head: _LaneHead, queued: QueuedTask, verdict: Blocked
    ) -> Iterator[_Planned]:
        """Yield the question to ask about a blocked task, if any."""
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
        """Return the next task of each lane that has any left."""
        rows = queue.heads(connection, lanes, planner.taken, after=after, without=without, queued_by=queued_by or {})
        return self._as_heads(connection, rows.values())

    def _as_heads(self, connection: Connection, rows: Collection[tuple[Task, queue.Content]]) -> dict[str, _LaneHead]:
        """Return tasks, of which each is in another lane, by lane."""
        context = self._context(connection, [task for task, _ in rows])
        return {str(task.lane): self._lane_head(task, spec, context) for task, spec in rows}

    def _lane_head(self, task: Task, spec: queue.Content, context: "_Context") -> _LaneHead:
        item = item_of(Activity.START, task)
        reading = partial(self._queued, task, spec, context)
        queued: QueuedTask | None = self._faults.attempt(item, reading, whole=False)
        pinned = queued is not None and queued.head.tier is not None
        asked = task.asked_tier is not None or task.tier is not None or pinned
        return _LaneHead(task, item, queued, asked)

    def _queued(self, task: Task, content: queue.Content, context: "_Context") -> QueuedTask:
        return self._with_card(task, task_rows.read_spec(content), context)

    def _with_card(self, task: Task, content: TaskSpec, context: "_Context") -> QueuedTask:
        question = context.questions.get((task.id, task.generation))
        asked = None if question is None else _asked(question, self._registry)
        card = context.cards.get(task.specialist or "")
        spec = done_by(content, card, Constraints.parse(task.constraints))
        return QueuedTask(task, spec, self.head(task, spec, asked), content, card)

    def _context(self, connection: Connection, tasks: Sequence[Task]) -> "_Context":
        ids = [task.id for task in tasks]
        questions = classification_rows.of_tasks(connection, ids) if self._rules().classifier else {}
        specialists = {task.specialist for task in tasks if task.specialist is not None}
        return _Context(questions, specialist_rows.cards(connection, specialists))

    def _paused(self, connection: Connection) -> set[str]:
        """Return the tasks that pause after a fault of their own when started."""
        now_ms = self._clock()
        starts = [fault.item for fault in self._faults.all() if fault.item.doing is Activity.START]
        items = {item.id: item for item in starts if self._faults.is_paused(item, now_ms)}
        tasks = [task for task, _ in queue.contents(connection, sorted(items))]
        return {task.id for task in tasks if item_of(Activity.START, task).content == items[task.id].content}

    def _ahead(self, connection: Connection, planner: Planner, number: int, *, without: Set[str]) -> Iterator[_Planned]:
        """Yield questions about the tiers of the next tasks, so that these are known when a slot becomes free.

        Because answers cost money, only the next tasks are asked about. Lanes that wait for more than a slot do not
        count, nor do those of tenants that have used their share. without: tasks with an action already.
        """
        firsts = {lane: queue.first(connection, lane, number) for lane in queue.all_lanes(connection)}
        samples = queue.contents(connection, [positions[0][2] for positions in firsts.values()])
        context = self._context(connection, [task for task, _ in samples])
        heads = {str(task.lane): self._lane_head(task, spec, context) for task, spec in samples}
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
            lane_head = self._lane_head(task, spec, _Context())
            if (queued := lane_head.queued) is None:
                continue
            considered = self._faults.attempt(lane_head.item, partial(planner.consider, queued.head), whole=False)
            if isinstance(considered, Blocked):
                yield from self._question(planner, lane_head, queued, considered)

    def heads(self, connection: Connection, tasks: Sequence[tuple[Task, TaskSpec]]) -> dict[str, QueueHead]:
        """Return the tasks in their form for planning, by id, without those that cannot be read."""
        context, heads = self._context(connection, [task for task, _ in tasks]), {}
        for task, spec in tasks:
            with suppress(ValueError):
                heads[task.id] = self._with_card(task, spec, context).head
        return heads

    def head(self, task: Task, spec: TaskSpec, asked: AskedTier | None = None) -> QueueHead:
        """Return the task in its form for planning. asked: the question about its tier, if any."""
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
            asks=spec.approval and task.approved_ms is None,
            names_specialist=spec.specialist is not None or specialist_meant(task) is not None,
            tenant=tenant_of(task.creator, task.organisation),
        )

    @property
    def routes(self) -> bool:
        """Whether tasks are routed, or judged by a policy."""
        return self._rules().routing

    def check_waits(self, run_id: str) -> Blocked | None:
        """Return why the run's check waits for a slot, or None if it does not."""
        return self.check_slots.waits(run_id, self._rules())

    def check_obstacle(self, run: Run) -> Blocked | None:
        """Request a slot for the check of an ended run. Return why it has to wait, or None if it may begin."""
        return self.check_slots.obstacle(run, self._rules())

    @property
    def budgets(self) -> Budgets:
        """The budgets in force."""
        return self._budgets

    def day_end(self, now_ms: int) -> int | None:
        """Return when the current day of the budgets ends, in epoch milliseconds; None if there are no budgets."""
        limited = any(agent.budget.units for agent in self._registry.agents) or self._budgets.total.units
        return self._budgets.day(now_ms).end_ms if limited else None

    def present(self, connection: Connection) -> Snapshot:
        """Return the current state without the queue."""
        now_ms = self._clock()
        live = run_rows.live(connection)
        if any(agent.hosts != (LOCAL,) for agent in self._registry.configured):
            drained = {
                name: f"takes no new runs until `claudomator undrain --host {name}`"
                for name in hold_rows.drained_hosts(connection)
            }
            self._registry.closed_hosts = {**self._closed_hosts(), **drained}
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
        """Return the model that each agent last chose for a run that named none."""
        return {agent.name: run_rows.default_model(connection, agent.name) for agent in self._registry.agents}

    def _spent_holds(self, connection: Connection, spent: Spent | None, now_ms: int) -> dict[str, list[ActiveHold]]:
        """Return the holds by the agents' own budgets, by agent."""
        by_agent: dict[str, list[ActiveHold]] = {}
        for agent in self._registry.agents:
            holds = [] if spent is None else self._budgets.day_holds(agent, spent)
            if self._budgets.keeps_windows(agent):
                windows = spending_rows.windows(connection, agent.kind, agent.quota_account)
                holds += self._budgets.window_holds(agent, windows, now_ms)
            by_agent[agent.name] = holds
        return by_agent


def _asked(row: ClassificationRow, registry: AgentRegistry) -> AskedTier:
    agent, reported = registry.find(row.agent), row.said_agent
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
            "said_agent": reported if reported and all(differs(reported, name) for name in known) else None,
        }
    )
