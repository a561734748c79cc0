"""Rows for spans: tasks with their runs, decisions and changes of state; and the cursor of what was sent."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, select

from claudomator_py.scheduler.records import DecisionKind
from claudomator_py.store import events, reads, remembered
from claudomator_py.store.events import EventQuery
from claudomator_py.store.tables import DECISION, EVENT, RUN, TASK, Decision, Event, Run, Task
from claudomator_py.values import dataclass

_REMEMBERED = "telemetry"
_CHANGES = ("state",)


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """A task with its history so far."""

    task: Task
    runs: Sequence[Run]
    """In the order of their starts."""
    decisions: Sequence[Decision]
    """Oldest first."""
    changes: Sequence[Event]
    """Changes of its state, in order."""
    tasks_of_runs: Mapping[str, str]
    """The task ids of runs that it refers to, by run id, without removed runs."""


def cursor(connection: Connection) -> int | None:
    """Return the last event whose spans were sent, or None if none ever were."""
    data = remembered.find(connection, _REMEMBERED)
    return int(data["event"]) if data else None


def move_cursor(connection: Connection, event_id: int) -> None:
    """Record that the spans of the events up to this one were sent."""
    remembered.keep(connection, _REMEMBERED, {"event": event_id})


def changes_after(connection: Connection, event_id: int, limit: int) -> Sequence[Event]:
    """Return tasks' changes of state after the event, in order."""
    return events.following(connection, event_id, limit, EventQuery(kinds=_CHANGES))


def histories(connection: Connection, task_ids: Collection[str]) -> Sequence[TaskHistory]:
    """Return the histories of those of the tasks that still exist."""
    ids = sorted(task_ids)
    tasks = Task.rows(connection, select(TASK).where(TASK.c.id.in_(ids)))
    runs = reads.runs_of(connection, ids)
    decisions: dict[str, list[Decision]] = defaultdict(list)
    # Shadow decisions are no part of what happened, and may be recorded after the end.
    decided = select(DECISION).where(DECISION.c.task_id.in_(ids), DECISION.c.kind != DecisionKind.SHADOW.value)
    decided = decided.order_by(DECISION.c.at_ms, DECISION.c.id)
    for decision in Decision.rows(connection, decided):
        decisions[str(decision.task_id)].append(decision)
    changes: dict[str, list[Event]] = defaultdict(list)
    changed = select(EVENT).where(EVENT.c.task_id.in_(ids), EVENT.c.kind.in_(_CHANGES)).order_by(EVENT.c.id)
    for event in Event.rows(connection, changed):
        changes[str(event.task_id)].append(event)
    referred = {run.resumes for of_task in runs.values() for run in of_task} | {task.parent_run for task in tasks}
    owners = _tasks_of(connection, {run_id for run_id in referred if run_id is not None})
    return [TaskHistory(task, runs.get(task.id, ()), decisions[task.id], changes[task.id], owners) for task in tasks]


def _tasks_of(connection: Connection, run_ids: Collection[str]) -> Mapping[str, str]:
    if not run_ids:
        return {}
    rows = connection.execute(select(RUN.c.id, RUN.c.task_id).where(RUN.c.id.in_(sorted(run_ids))))
    return {row.id: row.task_id for row in rows}
