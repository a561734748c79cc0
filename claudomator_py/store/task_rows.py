"""Rows of tasks: the encoding of a state in columns, and the only way to change it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, insert, select, update

from claudomator_py.domain import lifecycle
from claudomator_py.domain.errors import Conflict
from claudomator_py.domain.lifecycle import (
    Cancelled,
    Completed,
    Failed,
    InputKind,
    NeedsInput,
    Phase,
    Queued,
    QueueReason,
    Running,
    State,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.run import ResumedConversation
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.taskfile import content_hash
from claudomator_py.store.events import NewEvent, record, record_all
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.stored_json import cached_reader, raw, readable, reader
from claudomator_py.store.tables import TASK, TASK_REVISION, Task, TaskRevision

# Compiled once, as they run for every task.
_FIND = Selection(Task, select(TASK).where(TASK.c.id == bindparam("task")))
_NAMES = Statement(select(TASK.c.id, TASK.c.name).where(TASK.c.id.in_(bindparam("tasks", expanding=True))))
_ADD = Statement(insert(TASK))
_CHANGE = Statement(update(TASK).where(TASK.c.id == bindparam("task"), TASK.c.version == bindparam("version_read")))
_ADD_REVISION = Statement(insert(TASK_REVISION))
_REVISION = Selection(
    TaskRevision,
    select(TASK_REVISION).where(
        TASK_REVISION.c.task_id == bindparam("task"), TASK_REVISION.c.revision == bindparam("number")
    ),
)
_CONTENTS = Statement(
    select(TASK_REVISION.c.task_id, TASK_REVISION.c.revision, raw(TASK_REVISION.c.spec)).where(
        TASK_REVISION.c.task_id.in_(bindparam("tasks", expanding=True)),
        TASK_REVISION.c.revision.in_(bindparam("numbers", expanding=True)),
    )
)
_SPEC = Statement(
    select(raw(TASK_REVISION.c.spec)).where(
        TASK_REVISION.c.task_id == bindparam("task"), TASK_REVISION.c.revision == bindparam("number")
    )
)
read_spec = reader(TaskSpec)
"""Parses a stored spec. Raises ValidationError."""
readable_spec = cached_reader(TaskSpec, read_spec)
"""The same, but returns None for an unreadable spec."""


class VersionConflict(Exception):
    """The task was changed by someone else since it was read."""

    def __init__(self, task_id: str, version: int) -> None:
        super().__init__(f"task {task_id} is no longer at version {version}")
        self.task_id = task_id
        self.version = version


def state_of(task: Task) -> State:
    """Return the state in the row's columns. Raises Conflict for an unknown one, which somebody wrote by hand."""
    try:
        return _state_of(task)
    except ValueError as error:
        remedy = "Give it a state again that exists, in the database, or delete it there."
        raise Conflict(f"The row of {task.name} in the database cannot be read: {error}.", remedy=remedy) from None


def _state_of(task: Task) -> State:
    match task.state:
        case "WAITING":
            return Waiting(WaitReason(str(task.reason)), task.until_ms)
        case "QUEUED":
            return Queued(QueueReason(str(task.reason)), task.until_ms)
        case "RUNNING":
            return Running(Phase(str(task.phase)))
        case "NEEDS_INPUT":
            return NeedsInput(InputKind(str(task.reason)), task.until_ms)
        case "COMPLETED":
            return Completed()
        case "FAILED":
            return Failed(Reason(str(task.reason)))
        case "CANCELLED":
            return Cancelled()
    raise ValueError(f"{task.state!r} is no state")


def columns_of(state: State) -> dict[str, Any]:
    """Return the columns that encode the state."""
    columns: dict[str, Any] = {
        "state": lifecycle.STATE_NAMES[type(state)],
        "phase": None,
        "reason": None,
        "until_ms": None,
    }
    match state:
        case Waiting(reason, until) | Queued(reason, until):
            columns |= {"reason": reason.value, "until_ms": until}
        case Running(phase):
            columns["phase"] = phase.value
        case NeedsInput(kind, until):
            columns |= {"reason": kind.value, "until_ms": until}
        case Failed(failure):
            columns["reason"] = failure.value
    return columns


def resumption_of(task: Task) -> ResumedConversation | None:
    """Return the conversation that the task is to continue, if any."""
    return readable(ResumedConversation, task.resume)


def names_of(connection: Connection, task_ids: Collection[str]) -> Mapping[str, str]:
    """Return the names of the tasks, by id."""
    return {row[0]: row[1] for row in _NAMES.rows(connection, tasks=sorted(task_ids))} if task_ids else {}


def find(connection: Connection, task_id: str) -> Task | None:
    """Return the task, or None."""
    return _FIND.first(connection, task=task_id)


def get(connection: Connection, task_id: str) -> Task:
    """Return the task. Raises LookupError."""
    task = find(connection, task_id)
    if task is None:
        raise LookupError(f"there is no task {task_id}")
    return task


def queued_for(connection: Connection, specialist_id: str) -> list[Task]:
    """Return the queued tasks routed to the specialist that have had no run in their generation."""
    query = select(TASK).where(TASK.c.state == "QUEUED", TASK.c.specialist == specialist_id, TASK.c.seq == 0)
    return Task.rows(connection, query.order_by(TASK.c.id))


def unended_of_thread(connection: Connection, thread: str) -> list[Task]:
    """Return the tasks of the thread that have not ended."""
    query = select(TASK).where(TASK.c.state.in_(lifecycle.UNENDED), TASK.c.thread == thread)
    return Task.rows(connection, query.order_by(TASK.c.created_ms, TASK.c.id))


def add(connection: Connection, task: Task, now_ms: int, *, settled: bool = True) -> None:
    """Insert a new task with the event of its acceptance. settled: also record its state, as it is not left at once."""
    _ADD.run_all(connection, [task.stored()])
    record(connection, now_ms, "accepted", task_id=task.id, data=_as_accepted(task))
    if settled:
        record(connection, now_ms, "state", task_id=task.id, data=_described(task))


def add_all(connection: Connection, tasks: Sequence[Task], event: lifecycle.Event) -> None:
    """Insert new tasks, with events for their acceptance and for ``event``, which led to their state. This takes two
    statements, however many tasks there are."""
    data = []
    for task in tasks:
        data.append(NewEvent(task.created_ms, "accepted", task.id, data=_as_accepted(task)))
        data.append(NewEvent(task.created_ms, "state", task.id, data=_event_data(task, event)))
    _ADD.run_all(connection, [task.stored() for task in tasks])
    record_all(connection, data)


def change(connection: Connection, task: Task, now_ms: int, **changes: Any) -> Task:
    """Update columns of the task. Raises VersionConflict if it is no longer at this version. The returned task has its
    former lane, as only the database computes lanes."""
    values = {**changes, "version": task.version + 1, "updated_ms": now_ms}
    if _CHANGE.run(connection, task=task.id, version_read=task.version, **values) != 1:
        raise VersionConflict(task.id, task.version)
    return task.changed(values)


def note_asked_tier(connection: Connection, task_id: str, generation: int, asked: str) -> None:
    """Record the state of the question about the task's tier. The version stays, so that plans remain valid."""
    changing = update(TASK).where(TASK.c.id == task_id, TASK.c.generation == generation)
    connection.execute(changing.values(asked_tier=asked))


def advance(
    connection: Connection,
    task: Task,
    event: lifecycle.Event,
    now_ms: int,
    *,
    run_id: str | None = None,
    data: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Task:
    """Apply an event to the task: write the resulting state and further columns, and record the event. Raises
    IllegalTransition or VersionConflict without having written anything."""
    state = lifecycle.transition(state_of(task), event)
    changed = change(connection, task, now_ms, **columns_of(state), **changes)
    record(connection, now_ms, "state", task_id=task.id, run_id=run_id, data=_event_data(changed, event, data))
    return changed


def add_revisions(connection: Connection, revisions: Sequence[TaskRevision]) -> None:
    """Insert revisions of tasks' specs."""
    _ADD_REVISION.run_all(connection, [revision.stored() for revision in revisions])


def add_content(
    connection: Connection,
    task_id: str,
    revision: int,
    spec: TaskSpec,
    dir_key: str,
    now_ms: int,
    derived_from: int | None = None,
) -> None:
    """Insert one version of a task's content."""
    add_revisions(connection, [content_row(task_id, revision, spec, dir_key, now_ms, derived_from)])


def content_row(
    task_id: str, revision: int, spec: TaskSpec, dir_key: str, now_ms: int, derived_from: int | None = None
) -> TaskRevision:
    """Return the row of one version of a task's content."""
    return TaskRevision(
        task_id=task_id,
        revision=revision,
        spec=spec.model_dump(mode="json"),
        content_hash=content_hash(spec),
        dir_key=dir_key,
        derived_from=derived_from,
        created_ms=now_ms,
    )


def revision_of(connection: Connection, task_id: str, revision: int) -> TaskRevision:
    """Return a revision of the task's spec. Raises LookupError."""
    row = _REVISION.first(connection, task=task_id, number=revision)
    if row is None:
        raise LookupError(f"task {task_id} has no revision {revision}")
    return row


def newest_revision(connection: Connection, task_id: str) -> int:
    """Return the number of the task's newest revision."""
    query = select(func.max(TASK_REVISION.c.revision)).where(TASK_REVISION.c.task_id == task_id)
    return int(connection.execute(query).scalar_one())


def newest_submitted_revision(connection: Connection, task_id: str) -> int:
    """Return the number of the task's newest revision that was submitted, as opposed to derived from another."""
    given = (TASK_REVISION.c.task_id == task_id, TASK_REVISION.c.derived_from.is_(None))
    return int(connection.execute(select(func.max(TASK_REVISION.c.revision)).where(*given)).scalar_one())


def coming_contents(connection: Connection) -> Sequence[tuple[str, TaskSpec]]:
    """Return the specs that running tasks get when their runs end, with the tasks' ids."""
    query = select(TASK.c.id, TASK_REVISION.c.spec).join(
        TASK_REVISION,
        and_(TASK_REVISION.c.task_id == TASK.c.id, TASK_REVISION.c.revision == TASK.c.next_revision),
    )
    rows = connection.execute(query.where(TASK.c.state == "RUNNING").order_by(TASK.c.id))
    return [(task_id, TaskSpec.model_validate(spec)) for task_id, spec in rows]


def spec_of(connection: Connection, task_id: str, revision: int) -> TaskSpec:
    """Return a revision's spec. Raises LookupError, and ValidationError if it is unreadable."""
    row = _SPEC.row(connection, task=task_id, number=revision)
    if row is None:
        raise LookupError(f"task {task_id} has no revision {revision}")
    return read_spec(row[0])


def specs_shown(connection: Connection, tasks: Collection[Task]) -> Mapping[str, TaskSpec]:
    """Return the tasks' specs for display, by id. An unreadable spec is replaced by the name and a note. Raises
    LookupError if one is missing."""
    if not tasks:
        return {}
    wanted = {task.id: task.revision for task in tasks}
    rows = _CONTENTS.rows(connection, tasks=sorted(wanted), numbers=sorted(set(wanted.values())))
    specs = {task_id: readable_spec(text) for task_id, revision, text in rows if wanted[task_id] == revision}
    if missing := wanted.keys() - specs.keys():
        raise LookupError(f"tasks without their content: {', '.join(sorted(missing))}")
    return {task.id: specs[task.id] or _unreadable(task) for task in tasks}


def _unreadable(task: Task) -> TaskSpec:
    fields = {"name": task.name, "instructions": "What was stored of this task cannot be read.", "schedule": None}
    return TaskSpec.model_validate(fields)


def _as_accepted(task: Task) -> dict[str, Any]:
    return {"name": task.name, "source": task.source}


def _event_data(task: Task, event: lifecycle.Event, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the data of a ``state`` event: the lifecycle event and the state that it led to."""
    return {"event": type(event).__name__, **_described(task), **(data or {})}


def _described(task: Task) -> dict[str, Any]:
    data = {"state": task.state, "phase": task.phase, "reason": task.reason, "until": task.until_ms}
    return {"generation": task.generation} | {key: value for key, value in data.items() if value is not None}
