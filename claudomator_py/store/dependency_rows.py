"""Dependencies: names, and the tasks they were bound to at first match."""

from collections import deque
from collections.abc import Sequence

from sqlalchemy import Connection, case, delete, insert, select, update

from claudomator_py.core.schedule import DependencyState
from claudomator_py.store.tables import TASK, TASK_DEPENDENCY, Task
from claudomator_py.store.task_rows import task_from


def replace(connection: Connection, task_id: str, names: Sequence[str]) -> None:
    """Set the task's dependencies. A name that it already depended on stays bound to what it was bound to."""
    kept = {
        row.name: row.depends_on_id
        for row in connection.execute(select(TASK_DEPENDENCY).where(TASK_DEPENDENCY.c.task_id == task_id))
    }
    connection.execute(delete(TASK_DEPENDENCY).where(TASK_DEPENDENCY.c.task_id == task_id))
    for name in dict.fromkeys(names):
        bound = kept.get(name) or _newest_named(connection, name, besides=task_id)
        connection.execute(insert(TASK_DEPENDENCY).values(task_id=task_id, name=name, depends_on_id=bound))


def bind(connection: Connection, task: Task) -> Sequence[str]:
    """Bind every name that waits for a task of this name; the ids of the tasks that waited."""
    waiting = list(
        connection.execute(
            select(TASK_DEPENDENCY.c.task_id).where(
                TASK_DEPENDENCY.c.name == task.name,
                TASK_DEPENDENCY.c.depends_on_id.is_(None),
                TASK_DEPENDENCY.c.task_id != task.id,
            )
        ).scalars()
    )
    if waiting:
        connection.execute(
            update(TASK_DEPENDENCY)
            .where(
                TASK_DEPENDENCY.c.name == task.name,
                TASK_DEPENDENCY.c.depends_on_id.is_(None),
                TASK_DEPENDENCY.c.task_id != task.id,
            )
            .values(depends_on_id=task.id)
        )
    return waiting


def states(connection: Connection, task_id: str) -> Sequence[DependencyState]:
    """The task's dependencies, each with the state of the task that it was bound to."""
    query = (
        select(TASK_DEPENDENCY.c.name, TASK.c.state)
        .select_from(TASK_DEPENDENCY.outerjoin(TASK, TASK.c.id == TASK_DEPENDENCY.c.depends_on_id))
        .where(TASK_DEPENDENCY.c.task_id == task_id)
        .order_by(TASK_DEPENDENCY.c.name)
    )
    return [DependencyState(name, state) for name, state in connection.execute(query)]


def bound(connection: Connection, task_id: str) -> Sequence[tuple[str, str | None, str | None]]:
    """Name, task id and state of each dependency."""
    query = (
        select(TASK_DEPENDENCY.c.name, TASK.c.id, TASK.c.state)
        .select_from(TASK_DEPENDENCY.outerjoin(TASK, TASK.c.id == TASK_DEPENDENCY.c.depends_on_id))
        .where(TASK_DEPENDENCY.c.task_id == task_id)
        .order_by(TASK_DEPENDENCY.c.name)
    )
    return [(name, bound_id, state) for name, bound_id, state in connection.execute(query)]


def dependents(connection: Connection, task_id: str) -> Sequence[Task]:
    """The tasks that depend on this one directly, in a fixed order."""
    query = (
        select(TASK)
        .join(TASK_DEPENDENCY, TASK_DEPENDENCY.c.task_id == TASK.c.id)
        .where(TASK_DEPENDENCY.c.depends_on_id == task_id)
        .order_by(TASK.c.created_ms, TASK.c.id)
    )
    return [task_from(row) for row in connection.execute(query)]


def dependencies(connection: Connection, task_id: str) -> Sequence[Task]:
    """The tasks that this one depends on directly, as far as they are known."""
    query = (
        select(TASK)
        .join(TASK_DEPENDENCY, TASK_DEPENDENCY.c.depends_on_id == TASK.c.id)
        .where(TASK_DEPENDENCY.c.task_id == task_id)
        .order_by(TASK.c.created_ms, TASK.c.id)
    )
    return [task_from(row) for row in connection.execute(query)]


def circle(connection: Connection, task: Task, names: Sequence[str]) -> list[str] | None:
    """The names along a circle of bound dependencies that begins and ends with the task, or None.

    names: what the task depends on, or will; the other tasks' dependencies are those that are stored.
    """
    bound_now = _bound_ids(connection, task.id)
    firsts = [(name, bound_now.get(name) or _newest_named(connection, name, besides=task.id)) for name in names]
    frontier: deque[tuple[tuple[str, ...], str]] = deque()
    frontier.extend(((task.name, name), found) for name, found in firsts if found is not None)
    seen: set[str] = set()
    while frontier:
        path, current = frontier.popleft()
        if current == task.id:
            return list(path)
        if current in seen:
            continue
        seen.add(current)
        following = _bound_ids(connection, current)
        frontier.extend(((*path, name), found) for name, found in following.items())
    return None


def _bound_ids(connection: Connection, task_id: str) -> dict[str, str]:
    query = select(TASK_DEPENDENCY.c.name, TASK_DEPENDENCY.c.depends_on_id).where(
        TASK_DEPENDENCY.c.task_id == task_id, TASK_DEPENDENCY.c.depends_on_id.is_not(None)
    )
    return {row.name: row.depends_on_id for row in connection.execute(query.order_by(TASK_DEPENDENCY.c.name))}


def _newest_named(connection: Connection, name: str, besides: str) -> str | None:
    over = case((TASK.c.state.in_(("COMPLETED", "FAILED", "CANCELLED")), 1), else_=0)
    query = (
        select(TASK.c.id)
        .where(TASK.c.name == name, TASK.c.id != besides)
        .order_by(over, TASK.c.created_ms.desc(), TASK.c.id)
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()
