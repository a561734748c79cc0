"""Rows of dependencies: names, and the tasks to which they were bound at the first match."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from sqlalchemy import Connection, String, bindparam, case, delete, exists, insert, select, update

from claudomator_py.domain.lifecycle import ENDED, UNSUCCESSFUL, DependencyState
from claudomator_py.domain.outcome import Reason
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.tables import TASK, TASK_DEPENDENCY, Task
from claudomator_py.store.tables.columns import bytewise
from claudomator_py.store.task_rows import find

_NOTHING_MEANT: Mapping[str, str] = MappingProxyType({})

# Compiled once, as they run for every task.
_OF = TASK_DEPENDENCY.c.task_id == bindparam("task")
_OF_TASK = Statement(select(TASK_DEPENDENCY.c.name, TASK_DEPENDENCY.c.depends_on_id).where(_OF))
_WAITS_FOR = (
    TASK_DEPENDENCY.c.name == bindparam("called"),
    TASK_DEPENDENCY.c.depends_on_id.is_(None),
    TASK_DEPENDENCY.c.task_id != bindparam("bound_to"),
    exists().where(
        TASK.c.id == TASK_DEPENDENCY.c.task_id,
        TASK.c.organisation.is_not_distinct_from(bindparam("its_organisation", type_=String)),
    ),
)
_UNBOUND = Statement(select(TASK_DEPENDENCY.c.task_id).where(*_WAITS_FOR))
_BIND = Statement(update(TASK_DEPENDENCY).where(*_WAITS_FOR))
_BOUND = Statement(
    select(TASK_DEPENDENCY.c.name, TASK.c.id, TASK.c.state)
    .select_from(TASK_DEPENDENCY.outerjoin(TASK, TASK.c.id == TASK_DEPENDENCY.c.depends_on_id))
    .where(_OF)
    .order_by(bytewise(TASK_DEPENDENCY.c.name))
)
_FIRST_DEPENDENT = Statement(
    select(TASK_DEPENDENCY.c.task_id).where(TASK_DEPENDENCY.c.depends_on_id == bindparam("task")).limit(1)
)
_FIRST_FOLLOWER = Statement(
    select(TASK.c.id)
    .join(TASK_DEPENDENCY, TASK_DEPENDENCY.c.task_id == TASK.c.id)
    .where(TASK_DEPENDENCY.c.depends_on_id == bindparam("task"), TASK.c.thread.is_not(None))
    .limit(1)
)
_DEPENDENTS = Selection(
    Task,
    select(TASK)
    .join(TASK_DEPENDENCY, TASK_DEPENDENCY.c.task_id == TASK.c.id)
    .where(TASK_DEPENDENCY.c.depends_on_id == bindparam("task"))
    .order_by(TASK.c.created_ms, TASK.c.id),
)
_DEPENDENCIES = Selection(
    Task,
    select(TASK)
    .join(TASK_DEPENDENCY, TASK_DEPENDENCY.c.depends_on_id == TASK.c.id)
    .where(_OF)
    .order_by(TASK.c.created_ms, TASK.c.id),
)
_BOUND_IDS = Statement(
    select(TASK_DEPENDENCY.c.name, TASK_DEPENDENCY.c.depends_on_id)
    .where(_OF, TASK_DEPENDENCY.c.depends_on_id.is_not(None))
    .order_by(bytewise(TASK_DEPENDENCY.c.name))
)


def replace(
    connection: Connection, task_id: str, names: Sequence[str], meant: Mapping[str, str] = _NOTHING_MEANT
) -> None:
    """Set the task's dependencies. A name that it already depended on keeps its binding. meant: task ids by name; any
    other name is bound to the newest task with that name."""
    kept: dict[str, str | None] = dict(_OF_TASK.rows(connection, task=task_id))
    if kept:
        connection.execute(delete(TASK_DEPENDENCY).where(TASK_DEPENDENCY.c.task_id == task_id))
    for name in dict.fromkeys(names):
        bound = kept.get(name) or meant.get(name) or _newest_named(connection, name, besides=task_id)
        connection.execute(insert(TASK_DEPENDENCY).values(task_id=task_id, name=name, depends_on_id=bound))


def bind(connection: Connection, task: Task) -> Sequence[str]:
    """Bind unbound dependencies on the task's name in its organisation. Return the ids of the tasks that waited."""
    given = {"called": task.name, "bound_to": task.id, "its_organisation": task.organisation}
    waiting = _UNBOUND.values(connection, **given)
    if waiting:
        _BIND.run(connection, **given, depends_on_id=task.id)
    return waiting


def states(connection: Connection, task_id: str) -> Sequence[DependencyState]:
    """Return the task's dependencies with the states of the tasks they are bound to."""
    return [DependencyState(name, state) for name, _, state in _BOUND.rows(connection, task=task_id)]


def bound(connection: Connection, task_id: str) -> Sequence[tuple[str, str | None, str | None]]:
    """Return name, task id and state of each dependency."""
    return [(name, bound_id, state) for name, bound_id, state in _BOUND.rows(connection, task=task_id)]


def dependents(connection: Connection, task_id: str) -> Sequence[Task]:
    """Return the tasks that depend on this one directly, in a fixed order."""
    # Most have none, which a statement without the many columns of tasks says in a third of the time.
    return _DEPENDENTS.all(connection, task=task_id) if _FIRST_DEPENDENT.rows(connection, task=task_id) else ()


def dependencies(connection: Connection, task_id: str) -> Sequence[Task]:
    """Return the tasks that this one depends on directly, without unbound names."""
    return _DEPENDENCIES.all(connection, task=task_id)


def first_failed(connection: Connection, task_id: str) -> list[str]:
    """Return the names of the tasks that failed first, directly or through others: their restart revives this one."""
    names: list[str] = []
    seen, left = {task_id}, [task_id]
    while left:
        for task in dependencies(connection, left.pop()):
            if task.state in UNSUCCESSFUL and task.id not in seen:
                seen.add(task.id)
                if task.reason == Reason.DEPENDENCY_FAILED:
                    left.append(task.id)
                else:
                    names.append(task.name)
    return names


def cycle(
    connection: Connection, wanted: Mapping[str, Sequence[str]], coming: Mapping[str, Sequence[str]]
) -> list[str] | None:
    """Return the names along a cycle through one of these tasks, the first repeated at the end, or None.

    wanted: the tasks' new dependencies, by task id; coming: those of other tasks being added. Any other task has the
    stored ones.
    """
    known = {**coming, **wanted}
    done: set[str] = set()
    for start in wanted:
        path: dict[str, str] = {start: ""}
        stack = [] if start in done else [_edges(connection, start, known)]
        while stack:
            edge = next(stack[-1], None)
            if edge is None:
                stack.pop()
                done.add(path.popitem()[0])
                continue
            name, task_id = edge
            if task_id in path:
                ids = list(path)
                return [name, *(path[between] for between in ids[ids.index(task_id) + 1 :]), name]
            if task_id not in done:
                path[task_id] = name
                stack.append(_edges(connection, task_id, known))
    return None


def _edges(connection: Connection, task_id: str, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Return name and id of each task that this one depends on, without unbound names."""
    bound_now = _bound_ids(connection, task_id)
    if task_id not in wanted:
        return iter(bound_now.items())
    rows = ((name, bound_now.get(name) or _newest_named(connection, name, besides=task_id)) for name in wanted[task_id])
    return ((name, dependency) for name, dependency in rows if dependency is not None)


def _bound_ids(connection: Connection, task_id: str) -> dict[str, str]:
    return dict(_BOUND_IDS.rows(connection, task=task_id))


def dependency(connection: Connection, task: Task, name: str) -> Task | None:
    """Return the task that this one's dependency of that name is bound to, if any."""
    task_id = _bound_ids(connection, task.id).get(name)
    return None if task_id is None else find(connection, task_id)


def _newest_named(connection: Connection, name: str, besides: str) -> str | None:
    """Return the task that a dependency of ``besides`` on this name means: unfinished before finished, newest first.
    Only tasks of its own organisation count, so that a name reveals nothing of others' tasks and binds to none."""
    over = case((TASK.c.state.in_(ENDED), 1), else_=0)
    dependent = TASK.alias("dependent")
    own = select(dependent.c.organisation).where(dependent.c.id == besides).scalar_subquery()
    query = (
        select(TASK.c.id)
        .where(TASK.c.name == name, TASK.c.id != besides, TASK.c.organisation.is_not_distinct_from(own))
        .order_by(over, TASK.c.created_ms.desc(), TASK.c.id)
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


def is_followed(connection: Connection, task_id: str) -> bool:
    """Return whether another task continues in this one's thread."""
    return bool(_FIRST_FOLLOWER.rows(connection, task=task_id))
