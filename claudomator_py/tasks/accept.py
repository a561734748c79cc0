"""Accepting a new task and replacing a task's content, inside one transaction."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from sqlalchemy import Connection

from claudomator_py.domain import lifecycle
from claudomator_py.domain.budget import Spending, is_spent
from claudomator_py.domain.lifecycle import ENDED, BecameReady, Queued, Waiting, WaitReason, rank, readiness
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.worktree import Isolation
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.schema.taskfile import content_hash
from claudomator_py.store import dependency_rows, reads, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Task, TaskRevision
from claudomator_py.tasks.readiness import propagate_rank, ready, ready_dependents
from claudomator_py.tasks.renewal import renew
from claudomator_py.values import dataclass

_NEW = Waiting(WaitReason.DEPENDENCY)
"""State of a task before its readiness has been worked out."""


@dataclass(frozen=True, slots=True)
class NewTask:
    """A validated task that is about to be inserted."""

    spec: TaskSpec
    dir_key: str
    """Key of the working directory."""
    source: str
    """``file``, ``api``, ``schedule`` or ``run``."""
    file_path: str | None = None
    place: int = 0
    """Position among the tasks submitted with it; breaks ties in their order."""
    creator: str = OPERATOR.id
    """The principal who creates it."""
    organisation: str | None = None
    """The organisation that owns it, if any."""
    channel: str | None = None
    """Id of the channel whose message the task was made from."""
    parent_run: str | None = None
    """Id of the run that creates the task."""
    context: str | None = None
    """The creator's name for the conversation that the task belongs to."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Task ids, by the name that the content uses for the task, where they are already known."""

    @property
    def shared(self) -> str:
        """The directory that only one run may use at a time; empty if each generation has its own work tree."""
        return "" if self.spec.isolation is Isolation.WORKTREE else self.dir_key


def in_context(connection: Connection, order: NewTask, context: str, by: Principal) -> NewTask:
    """Return the task as part of the conversation that ``by`` calls ``context``: it continues the conversation's
    newest task that has not failed or been cancelled, or is the first."""
    last = reads.last_of_context(connection, context, by)
    if last is None or last.name == order.spec.name:
        return replace(order, context=context)
    spec = order.spec.model_copy(update={"continues": last.name})
    return replace(order, spec=spec, context=context, meant={last.name: last.id})


def is_ready_when_new(spec: TaskSpec, now_ms: int) -> bool:
    """Return whether a new task with that content can be queued at once."""
    if spec.prerequisites or is_spent(spec.budget, Spending):
        return False
    return isinstance(readiness((), spec.not_before_ms, None, now_ms), Queued)


def accept(connection: Connection, order: NewTask, now_ms: int) -> Task:
    """Insert the task, in the state in which its readiness puts it."""
    spec = order.spec
    if is_ready_when_new(spec, now_ms):
        [(task, _)] = accept_ready(connection, [(order, now_ms)])
        _bind_waiters(connection, task, now_ms)
        return task_rows.get(connection, task.id)
    task = _new_task(order, now_ms)
    task_rows.add(connection, task, now_ms, settled=bool(spec.prerequisites))
    task_rows.add_content(connection, task.id, 1, spec, order.shared, now_ms)
    dependency_rows.replace(connection, task.id, spec.prerequisites, order.meant)
    task = ready(connection, task, spec, now_ms)
    propagate_rank(connection, task, now_ms)
    _bind_waiters(connection, task, now_ms)
    # The task may already have failed because of its own dependency; tasks waiting for its name must see that.
    ready_dependents(connection, task, now_ms)
    return task_rows.get(connection, task.id)


def accept_ready(connection: Connection, orders: Sequence[tuple[NewTask, int]]) -> list[tuple[Task, TaskRevision]]:
    """Insert tasks that are ready on arrival and that no other task waits for by name; return each with its content.
    orders: each with its time, in epoch milliseconds. Any number of orders takes one statement per table."""
    event = BecameReady()
    tasks = [_new_task(order, now_ms, lifecycle.transition(_NEW, event), version=2) for order, now_ms in orders]
    task_rows.add_all(connection, tasks, event)
    contents = [
        task_rows.content_row(task.id, 1, order.spec, order.shared, now_ms)
        for task, (order, now_ms) in zip(tasks, orders, strict=True)
    ]
    task_rows.add_revisions(connection, contents)
    return list(zip(tasks, contents, strict=True))


def _new_task(order: NewTask, now_ms: int, state: lifecycle.State = _NEW, version: int = 1) -> Task:
    """Build the row of a new task in the given state."""
    spec = order.spec
    return Task(
        id=str(uuid.uuid4()),
        name=spec.name,
        version=version,
        **task_rows.columns_of(state),
        priority=int(spec.priority),
        rank_ms=rank(spec.priority, now_ms + order.place),
        **lane_columns(spec),
        dir_key=order.shared,
        tags=list(spec.tags),
        source=order.source,
        file_path=order.file_path,
        creator=order.creator,
        organisation=order.organisation,
        channel=order.channel,
        parent_run=order.parent_run,
        context=order.context,
        created_ms=now_ms,
        updated_ms=now_ms,
    )


def rename(connection: Connection, task: Task, name: str, now_ms: int) -> Task:
    """Rename the task and change nothing else, as when its file is renamed."""
    record(connection, now_ms, "renamed", task_id=task.id, data={"from": task.name, "to": name})
    task = task_rows.change(connection, task, now_ms, name=name)
    _bind_waiters(connection, task, now_ms)
    ready_dependents(connection, task, now_ms)
    return task_rows.get(connection, task.id)


def _bind_waiters(connection: Connection, task: Task, now_ms: int) -> None:
    """Make the tasks that wait for a task of this name wait for this task."""
    for waiter in dependency_rows.bind(connection, task):
        propagate_rank(connection, task_rows.get(connection, waiter), now_ms)
        record(connection, now_ms, "dependency_bound", task_id=waiter, data={"name": task.name, "to": task.id})


def replace_content(connection: Connection, task: Task, order: NewTask, now_ms: int) -> Task:
    """Replace the task's content: at once if it waits, after its run if it is running, as a new generation if it has
    ended.

    If the content equals what is already running, the pending revision is withdrawn, so an undone edit causes no second
    run.
    """
    revision = task_rows.newest_revision(connection, task.id) + 1
    task_rows.add_content(connection, task.id, revision, order.spec, order.shared, now_ms)
    taken_back = task.next_revision is not None and _runs_already(connection, task, order.spec)
    data = {"revision": revision, **({"taken_back": task.next_revision} if taken_back else {})}
    record(connection, now_ms, "content_changed", task_id=task.id, data=data)
    if task.state == "RUNNING":
        return task_rows.change(connection, task, now_ms, next_revision=None if taken_back else revision)
    return renew(connection, task, now_ms, revision=revision, new_generation=task.state in ENDED, place=order.place)


def _runs_already(connection: Connection, task: Task, spec: TaskSpec) -> bool:
    """Whether the current revision has this content, or was derived from it, and no restart is to follow its run."""
    content = task_rows.revision_of(connection, task.id, task.revision)
    if content.derived_from is not None:
        content = task_rows.revision_of(connection, task.id, content.derived_from)
    return task.restart_requested is None and content.content_hash == content_hash(spec)
