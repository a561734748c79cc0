"""Routing a task that was accepted: who does it, and in which lane it waits."""

from sqlalchemy import Connection

from claudomator_py.domain.lifecycle import STATE_NAMES, NeedsInput, Queued, Waiting
from claudomator_py.domain.routing import Routing
from claudomator_py.store import task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Task

ROUTED = "routed"
"""The event: ``specialist``, ``skill``, ``risk`` and ``constraints``, as far as there are any."""
_BEFORE_A_RUN = frozenset(STATE_NAMES[state] for state in (Waiting, Queued, NeedsInput))


def route(connection: Connection, task: Task, routing: Routing, now_ms: int) -> Task:
    """Write where the task was routed in its present generation; it is in the lane that follows from that.

    task: as it was when it was decided. What was planned for its former lane is void, as its version rises. Raises
    VersionConflict if it has changed since, or neither waits for its run nor for a person.
    """
    if task.state not in _BEFORE_A_RUN:
        raise task_rows.VersionConflict(task.id, task.version)
    columns = {
        "specialist": routing.specialist,
        "skill": routing.skill,
        "risk": None if routing.risk is None else routing.risk.value,
        "constraints": routing.constraints.text,
    }
    if all(getattr(task, name) == value for name, value in columns.items()):
        return task
    task_rows.change(connection, task, now_ms, **columns)
    told = {name: value for name, value in columns.items() if value is not None}
    record(connection, now_ms, ROUTED, task_id=task.id, data=told)
    return task_rows.get(connection, task.id)
