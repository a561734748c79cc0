"""Reads queued tasks in the form for planning."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import field

from sqlalchemy import Connection

from claudomator_py.domain.agent import Tier, reads_task
from claudomator_py.domain.card import Card
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import tenant_of
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.faults import Activity, Faults, Item, item_of
from claudomator_py.routing.role import done_by
from claudomator_py.scheduler.classification import differs
from claudomator_py.scheduler.lanes import held_by
from claudomator_py.scheduler.load import Taken
from claudomator_py.scheduler.snapshot import AskedTier, QueueHead, Rules
from claudomator_py.store import classification_rows, queue, specialist_rows, task_rows
from claudomator_py.store.tables import ClassificationRow, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks.inputs import specialist_meant
from claudomator_py.values import dataclass


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

    @property
    def is_deserted(self) -> bool:
        """True if the card of the task's specialist is gone, or cannot be read."""
        return self.task.specialist is not None and self.card is None


@dataclass(frozen=True, slots=True)
class LaneHead:
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
class HeadContext:
    """Rows that queued tasks refer to."""

    questions: Mapping[tuple[str, int], ClassificationRow] = field(default_factory=dict)
    """Questions about tiers, by task id and generation."""
    cards: Mapping[str, Card] = field(default_factory=dict)
    """Cards of their specialists, by id."""


class HeadReader:
    """Reads queued tasks with the rows that they refer to.

    rules: returns those in force. faults: of starts.
    """

    def __init__(self, registry: AgentRegistry, rules: Callable[[], Rules], faults: Faults) -> None:
        self._registry = registry
        self._rules = rules
        self._faults = faults

    def next_of(
        self,
        connection: Connection,
        lanes: Set[str],
        taken: Taken,
        *,
        without: Set[str],
        after: queue.Position | None,
        queued_by: Mapping[str, int] | None,
    ) -> dict[str, LaneHead]:
        """Return the next task of each lane that has any left."""
        rows = queue.heads(connection, lanes, taken, after=after, without=without, queued_by=queued_by or {})
        return self.by_lane(connection, rows.values())

    def by_lane(self, connection: Connection, rows: Collection[tuple[Task, queue.Content]]) -> dict[str, LaneHead]:
        """Return tasks, of which each is in another lane, by lane."""
        context = self.context(connection, [task for task, _ in rows])
        return {str(task.lane): self.lane_head(task, spec, context) for task, spec in rows}

    def lane_head(self, task: Task, spec: queue.Content, context: HeadContext) -> LaneHead:
        item = item_of(Activity.START, task)
        queued = self._faults.attempt(
            item, lambda: self._with_card(task, task_rows.read_spec(spec), context), whole=False
        )
        pinned = queued is not None and queued.head.tier is not None
        asked = task.asked_tier is not None or task.tier is not None or pinned
        return LaneHead(task, item, queued, asked)

    def _with_card(self, task: Task, content: TaskSpec, context: HeadContext) -> QueuedTask:
        question = context.questions.get((task.id, task.generation))
        asked = None if question is None else _asked(question, self._registry)
        card = context.cards.get(task.specialist or "")
        spec = done_by(content, card, Constraints.parse(task.constraints))
        return QueuedTask(task, spec, self.head(task, spec, asked), content, card)

    def context(self, connection: Connection, tasks: Sequence[Task]) -> HeadContext:
        ids = [task.id for task in tasks]
        questions = classification_rows.of_tasks(connection, ids) if self._rules().classifier else {}
        specialists = {task.specialist for task in tasks if task.specialist is not None}
        return HeadContext(questions, specialist_rows.cards(connection, specialists))

    def heads(self, connection: Connection, tasks: Sequence[tuple[Task, TaskSpec]]) -> dict[str, QueueHead]:
        """Return the tasks in their form for planning, by id, without those that cannot be read."""
        context, heads = self.context(connection, [task for task, _ in tasks]), {}
        for task, spec in tasks:
            with suppress(ValueError):
                heads[task.id] = self._with_card(task, spec, context).head
        return heads

    def head(self, task: Task, spec: TaskSpec, asked: AskedTier | None = None) -> QueueHead:
        """Return the task in its form for planning. asked: the question about its tier, if any."""
        constraints = Constraints.parse(task.constraints)
        is_named = spec.specialist is not None or specialist_meant(task) is not None
        is_routed = task.constraints is not None
        reads = is_named or reads_task(spec.agent.type, self._registry.agents)
        is_unjudged = not is_routed and reads and self._rules().routing
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
            routed=is_routed,
            asks=is_unjudged or (spec.approval and task.approved_ms is None),
            names_specialist=is_named,
            tenant=tenant_of(task.creator, task.organisation),
        )


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
