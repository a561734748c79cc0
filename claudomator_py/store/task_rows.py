"""Task rows: how a state is written in columns, and the one way to change it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, insert, select, update

from claudomator_py.domain import lifecycle
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
from claudomator_py.domain.task import TaskSpec
from claudomator_py.store.events import NewEvent, record, record_all
from claudomator_py.store.statement import Statement, changer, loader, writer
from claudomator_py.store.stored_json import keeping_reader, raw, reader
from claudomator_py.store.tables import TASK, TASK_REVISION, Task, TaskRevision

task_from = loader(Task)
"""The row as a Task."""
_changed = changer(Task)
_revision_from = loader(TaskRevision)

# On the way of every task.
_FIND = Statement(select(TASK).where(TASK.c.id == bindparam("task")))
_NAMES = Statement(select(TASK.c.id, TASK.c.name).where(TASK.c.id.in_(bindparam("tasks", expanding=True))))
_ADD = Statement(insert(TASK))
_CHANGE = Statement(update(TASK).where(TASK.c.id == bindparam("task"), TASK.c.version == bindparam("version_read")))
_ADD_REVISION = Statement(insert(TASK_REVISION))
_REVISION = Statement(
    select(TASK_REVISION).where(
        TASK_REVISION.c.task_id == bindparam("task"), TASK_REVISION.c.revision == bindparam("number")
    )
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
"""What makes content of the text that a row has of it. Raises ValidationError."""
readable_spec = keeping_reader(TaskSpec, read_spec)
"""The same; None: it cannot be read."""
_stored = writer(TASK)
_stored_revision = writer(TASK_REVISION)


class VersionConflict(Exception):
    """The task was changed by someone else since it was read."""

    def __init__(self, task_id: str, version: int) -> None:
        super().__init__(f"task {task_id} is no longer at version {version}")
        self.task_id = task_id
        self.version = version


def state_of(task: Task) -> State:
    """Return the state that the row's columns say."""
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
    raise ValueError(f"task {task.id} has the unknown state {task.state!r}")


def columns_of(state: State) -> dict[str, Any]:
    """Return the columns that say this state."""
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


def names_of(connection: Connection, task_ids: Collection[str]) -> Mapping[str, str]:
    """Return the names of these tasks, by id."""
    return {row[0]: row[1] for row in _NAMES.rows(connection, tasks=sorted(task_ids))} if task_ids else {}


def find(connection: Connection, task_id: str) -> Task | None:
    """Return the task, or None."""
    row = _FIND.row(connection, task=task_id)
    return None if row is None else task_from(row)


def get(connection: Connection, task_id: str) -> Task:
    """Return the task. Raises LookupError."""
    task = find(connection, task_id)
    if task is None:
        raise LookupError(f"there is no task {task_id}")
    return task


def queued_for(connection: Connection, specialist_id: str) -> list[Task]:
    """Return the tasks that were routed to the specialist and of which nothing has run yet in their generation."""
    query = select(TASK).where(TASK.c.state == "QUEUED", TASK.c.specialist == specialist_id, TASK.c.seq == 0)
    return [task_from(row) for row in connection.execute(query.order_by(TASK.c.id))]


def unended_of_thread(connection: Connection, thread: str) -> list[Task]:
    """Return the tasks that continue what this one began, and have not ended."""
    open_states = ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT")
    query = select(TASK).where(TASK.c.state.in_(open_states), TASK.c.thread == thread)
    return [task_from(row) for row in connection.execute(query.order_by(TASK.c.created_ms, TASK.c.id))]


def add(connection: Connection, task: Task, now_ms: int, *, settled: bool = True) -> None:
    """Insert a new task and the event of its acceptance. settled: its state is one to tell of, not to leave at once."""
    _ADD.run(connection, **_stored(task))
    record(connection, now_ms, "accepted", task_id=task.id, data=_as_accepted(task))
    if settled:
        record(connection, now_ms, "state", task_id=task.id, data=_described(task))


def add_all(connection: Connection, tasks: Sequence[Task], event: lifecycle.Event) -> None:
    """Insert new tasks, and the events of their acceptance and of what led to their state in the same moment.

    However many they are, they take a statement for themselves and one for all that is said of them.
    """
    told = []
    for task in tasks:
        told.append(NewEvent(task.created_ms, "accepted", task.id, data=_as_accepted(task)))
        told.append(NewEvent(task.created_ms, "state", task.id, data=_told(task, event)))
    _ADD.run_all(connection, [_stored(task) for task in tasks])
    record_all(connection, told)


def change(connection: Connection, task: Task, now_ms: int, **changes: Any) -> Task:
    """Write the columns if the task is still at this version. Raises VersionConflict.

    The lane of the task that it returns is the one from before: it is the database that knows it.
    """
    values = {**changes, "version": task.version + 1, "updated_ms": now_ms}
    if _CHANGE.run(connection, task=task.id, version_read=task.version, **values) != 1:
        raise VersionConflict(task.id, task.version)
    return _changed(task, values)


def note_asked_tier(connection: Connection, task_id: str, generation: int, asked: str) -> None:
    """Note what became of the question for its tier. No change of the task's own: what was planned of it stays
    planned."""
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
    """Let the event happen to the task: the state it leads to, further columns, and the row that says so.

    Raises IllegalTransition or VersionConflict, and has written nothing then.
    """
    state = lifecycle.transition(state_of(task), event)
    changed = change(connection, task, now_ms, **columns_of(state), **changes)
    record(connection, now_ms, "state", task_id=task.id, run_id=run_id, data=_told(changed, event, data))
    return changed


def add_revisions(connection: Connection, revisions: Sequence[TaskRevision]) -> None:
    """Insert versions of the content of tasks."""
    _ADD_REVISION.run_all(connection, [_stored_revision(revision) for revision in revisions])


def revision_of(connection: Connection, task_id: str, revision: int) -> TaskRevision:
    """Return one version of a task's content. Raises LookupError."""
    row = _REVISION.row(connection, task=task_id, number=revision)
    if row is None:
        raise LookupError(f"task {task_id} has no revision {revision}")
    return _revision_from(row)


def newest_revision(connection: Connection, task_id: str) -> int:
    """Return the number of the task's newest content."""
    query = select(func.max(TASK_REVISION.c.revision)).where(TASK_REVISION.c.task_id == task_id)
    return int(connection.execute(query).scalar_one())


def newest_given_revision(connection: Connection, task_id: str) -> int:
    """Return the number of the latest content that came from outside; not of what was made of one."""
    given = (TASK_REVISION.c.task_id == task_id, TASK_REVISION.c.derived_from.is_(None))
    return int(connection.execute(select(func.max(TASK_REVISION.c.revision)).where(*given)).scalar_one())


def coming_contents(connection: Connection) -> Sequence[tuple[str, TaskSpec]]:
    """Return the content that running tasks get when their runs end, by the id of each task."""
    query = select(TASK.c.id, TASK_REVISION.c.spec).join(
        TASK_REVISION,
        and_(TASK_REVISION.c.task_id == TASK.c.id, TASK_REVISION.c.revision == TASK.c.next_revision),
    )
    rows = connection.execute(query.where(TASK.c.state == "RUNNING").order_by(TASK.c.id))
    return [(task_id, TaskSpec.model_validate(spec)) for task_id, spec in rows]


def spec_of(connection: Connection, task_id: str, revision: int) -> TaskSpec:
    """Return the content as it was parsed. Raises LookupError."""
    row = _SPEC.row(connection, task=task_id, number=revision)
    if row is None:
        raise LookupError(f"task {task_id} has no revision {revision}")
    return read_spec(row[0])


def specs_shown(connection: Connection, tasks: Collection[Task]) -> Mapping[str, TaskSpec]:
    """Return the content of each task as it is shown, by id; where it cannot be read, the name with a sentence that
    says so. Raises LookupError where there is none."""
    if not tasks:
        return {}
    wanted = {task.id: task.revision for task in tasks}
    rows = _CONTENTS.rows(connection, tasks=sorted(wanted), numbers=sorted(set(wanted.values())))
    found = {task_id: readable_spec(text) for task_id, revision, text in rows if wanted[task_id] == revision}
    if missing := wanted.keys() - found.keys():
        raise LookupError(f"tasks without their content: {', '.join(sorted(missing))}")
    return {task.id: found[task.id] or _unreadable(task) for task in tasks}


def _unreadable(task: Task) -> TaskSpec:
    told = {"name": task.name, "instructions": "What was stored of this task cannot be read.", "schedule": None}
    return TaskSpec.model_validate(told)


def _as_accepted(task: Task) -> dict[str, Any]:
    return {"name": task.name, "source": task.source}


def _told(task: Task, event: lifecycle.Event, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What is said of the event that led to the task's present state."""
    return {"event": type(event).__name__, **_described(task), **(data or {})}


def _described(task: Task) -> dict[str, Any]:
    told = {"state": task.state, "phase": task.phase, "reason": task.reason, "until": task.until_ms}
    return {"generation": task.generation} | {key: value for key, value in told.items() if value is not None}
