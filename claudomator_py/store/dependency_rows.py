"""Dependencies: names, and the tasks they were bound to at first match."""

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


def cycle_through(connection: Connection, name: str, names: Sequence[str], task_id: str | None) -> list[str] | None:
    """The names of a circle that a task of this name with these dependencies would close, or None."""
    trail: dict[str, str] = {}
    frontier = list(dict.fromkeys(names))
    for first in frontier:
        trail[first] = name
    while frontier:
        current = frontier.pop(0)
        if current == name:
            return _circle(trail, name)
        query = select(TASK_DEPENDENCY.c.name).where(
            TASK_DEPENDENCY.c.task_id.in_(_open_tasks_named(connection, current, besides=task_id))
        )
        for following in connection.execute(query).scalars():
            if following not in trail:
                trail[following] = current
                frontier.append(following)
    return None


def _circle(trail: dict[str, str], name: str) -> list[str]:
    circle = [name]
    current = trail[name]
    while current != name:
        circle.append(current)
        current = trail[current]
    circle.append(name)
    return list(reversed(circle))


def _open_tasks_named(connection: Connection, name: str, besides: str | None) -> list[str]:
    query = select(TASK.c.id).where(
        TASK.c.name == name, TASK.c.state.in_(("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT"))
    )
    return [found for found in connection.execute(query).scalars() if found != besides]


def _newest_named(connection: Connection, name: str, besides: str) -> str | None:
    over = case((TASK.c.state.in_(("COMPLETED", "FAILED", "CANCELLED")), 1), else_=0)
    query = (
        select(TASK.c.id)
        .where(TASK.c.name == name, TASK.c.id != besides)
        .order_by(over, TASK.c.created_ms.desc(), TASK.c.id)
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()
