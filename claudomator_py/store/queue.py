"""The queue: heads of lanes, tasks that are due, and the next time at which something is."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, and_, exists, func, or_, select, tuple_

from claudomator_py.store.tables import TASK, TASK_DEPENDENCY, TASK_REVISION, Task
from claudomator_py.store.task_rows import task_from

Position = tuple[int, int, str]
_KEEPING = ("NEEDS_INPUT", "WAITING", "QUEUED")


def heads(
    connection: Connection, *, blocked_lanes: Collection[str], after: Position | None, limit: int
) -> Sequence[tuple[Task, dict[str, object]]]:
    """The next queued tasks in order, with their content, leaving out the blocked lanes.

    after: rank, creation time and id of the last one seen.
    """
    query = select(TASK, TASK_REVISION.c.spec).join(
        TASK_REVISION, and_(TASK_REVISION.c.task_id == TASK.c.id, TASK_REVISION.c.revision == TASK.c.revision)
    )
    query = query.where(TASK.c.state == "QUEUED")
    if blocked_lanes:
        query = query.where(TASK.c.lane.not_in(sorted(blocked_lanes)))
    if after is not None:
        query = query.where(tuple_(TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id) > after)
    query = query.order_by(TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id).limit(limit)
    found = []
    for row in connection.execute(query):
        columns = dict(row._mapping)
        spec = columns.pop("spec")
        found.append((Task(**columns), spec))
    return found


def due(connection: Connection, now_ms: int, limit: int) -> Sequence[Task]:
    """Waiting tasks whose time has come."""
    query = select(TASK).where(TASK.c.state == "WAITING", TASK.c.until_ms <= now_ms).order_by(TASK.c.until_ms)
    return [task_from(row) for row in connection.execute(query.limit(limit))]


def waiting_on_ended(connection: Connection, limit: int) -> Sequence[Task]:
    """Tasks that wait for dependencies although all of them have ended, or one ended badly.

    The end of a task readies its dependents in its own transaction; this finds none, unless an older version of the
    program left some behind.
    """
    dependency = TASK.alias("dependency")
    bound = TASK_DEPENDENCY.join(dependency, dependency.c.id == TASK_DEPENDENCY.c.depends_on_id)
    failed = (
        exists()
        .select_from(bound)
        .where(TASK_DEPENDENCY.c.task_id == TASK.c.id, dependency.c.state.in_(("FAILED", "CANCELLED")))
    )
    open_dependency = (
        exists()
        .select_from(TASK_DEPENDENCY.outerjoin(dependency, dependency.c.id == TASK_DEPENDENCY.c.depends_on_id))
        .where(
            TASK_DEPENDENCY.c.task_id == TASK.c.id, or_(dependency.c.id.is_(None), dependency.c.state != "COMPLETED")
        )
    )
    query = select(TASK).where(TASK.c.state == "WAITING", TASK.c.reason == "dependency", or_(failed, ~open_dependency))
    return [task_from(row) for row in connection.execute(query.limit(limit))]


def next_due(connection: Connection) -> int | None:
    """When the next waiting task is due (epoch milliseconds), or None."""
    query = select(func.min(TASK.c.until_ms)).where(TASK.c.state == "WAITING")
    earliest: int | None = connection.execute(query).scalar_one()
    return earliest


def kept(connection: Connection, now_ms: int) -> list[dict[str, Any]]:
    """Directories that are kept for tasks: dir_key, task_id, name, until and lane, in a fixed order."""
    until = TASK.c.kept_until_ms
    query = select(TASK.c.dir_key, TASK.c.id.label("task_id"), TASK.c.name, until.label("until"), TASK.c.lane)
    query = query.where(until > now_ms, TASK.c.state.in_(_KEEPING), TASK.c.dir_key != "")
    return [dict(row._mapping) for row in connection.execute(query.order_by(TASK.c.dir_key, TASK.c.id))]


def next_kept_end(connection: Connection, now_ms: int) -> int | None:
    """When the next directory is no longer kept (epoch milliseconds), or None."""
    query = select(func.min(TASK.c.kept_until_ms)).where(TASK.c.kept_until_ms > now_ms, TASK.c.state.in_(_KEEPING))
    earliest: int | None = connection.execute(query).scalar_one()
    return earliest


def running(connection: Connection) -> Sequence[Task]:
    """The tasks of which a run lives."""
    return [task_from(row) for row in connection.execute(select(TASK).where(TASK.c.state == "RUNNING"))]


def with_intent(connection: Connection) -> Sequence[Task]:
    """Tasks whose cancellation or forced restart was asked for and is not done yet."""
    query = select(TASK).where(or_(TASK.c.cancel_requested_ms.is_not(None), TASK.c.restart_requested.is_not(None)))
    return [task_from(row) for row in connection.execute(query)]


def in_turn(connection: Connection) -> dict[str, str]:
    """Of each thread that several tasks are in, the task in the midst of its turn: it has begun, and is to go on."""
    not_ended = TASK.c.state.in_(("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT"))
    continuing = select(TASK).where(TASK.c.thread.is_not(None), not_ended)
    tasks = [task_from(row) for row in connection.execute(continuing)]
    if not tasks:
        return {}
    began = select(TASK).where(TASK.c.id.in_({task.thread for task in tasks}), not_ended)
    tasks += [task_from(row) for row in connection.execute(began) if row.thread is None]
    first: dict[str, str] = {}
    for task in sorted(tasks, key=lambda task: (task.rank_ms, task.created_ms, task.id)):
        waits = task.state == "WAITING" and task.reason == "dependency"
        if task.seq > 0 and task.state != "RUNNING" and not waits:
            first.setdefault(task.thread or task.id, task.id)
    return first


def counts(connection: Connection) -> dict[str, int]:
    """How many tasks there are in each state."""
    query = select(TASK.c.state, func.count().label("number")).group_by(TASK.c.state)
    return {row.state: row.number for row in connection.execute(query)}
