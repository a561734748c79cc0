"""Reading for people: lists with filters and cursors, and finding a task by what somebody typed."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, String, cast, func, select, tuple_

from claudomator_py.core.views import TaskFilter
from claudomator_py.store.tables import RUN, TASK, Run, Task
from claudomator_py.store.task_rows import task_from

SHORTEST_PREFIX = 4
Position = tuple[int, str]


def page(connection: Connection, wanted: TaskFilter, before: Position | None, limit: int) -> Sequence[Task]:
    """Tasks, newest first. before: creation time and id of the last one seen."""
    if any("\0" in text for text in wanted.model_dump(exclude_none=True).values()):
        # PostgreSQL refuses such a text altogether.
        return []
    query = select(TASK)
    if wanted.state is not None:
        query = query.where(TASK.c.state == wanted.state)
    if wanted.name is not None:
        query = query.where(TASK.c.name == wanted.name)
    if wanted.text is not None:
        query = query.where(func.lower(TASK.c.name).contains(wanted.text.lower(), autoescape=True))
    if wanted.source is not None:
        query = query.where(TASK.c.source == wanted.source)
    if wanted.tag is not None:
        # The tag as JSON writes it. Not LIKE, which ignores case with SQLite.
        tags = cast(TASK.c.tags, String)
        query = query.where(func.replace(tags, json.dumps(wanted.tag), "") != tags)
    if wanted.agent is not None:
        query = query.join(RUN, RUN.c.id == TASK.c.last_run_id).where(RUN.c.agent == wanted.agent)
    if before is not None:
        query = query.where(tuple_(TASK.c.created_ms, TASK.c.id) < before)
    query = query.order_by(TASK.c.created_ms.desc(), TASK.c.id.desc()).limit(limit)
    return [task_from(row) for row in connection.execute(query)]


def in_states(connection: Connection, states: Collection[str], limit: int, *, since_ms: int = 0) -> Sequence[Task]:
    """Tasks in these states that changed since then, the latest change first."""
    query = select(TASK).where(TASK.c.state.in_(sorted(states)), TASK.c.updated_ms >= since_ms)
    query = query.order_by(TASK.c.updated_ms.desc(), TASK.c.id).limit(limit)
    return [task_from(row) for row in connection.execute(query)]


def in_queue_order(connection: Connection, limit: int) -> Sequence[Task]:
    """Queued tasks in the order in which they would start, then waiting ones by the time they wait for."""
    queued = select(TASK).where(TASK.c.state == "QUEUED").order_by(TASK.c.rank_ms, TASK.c.created_ms, TASK.c.id)
    found = [task_from(row) for row in connection.execute(queued.limit(limit))]
    waiting = (
        select(TASK).where(TASK.c.state == "WAITING").order_by(TASK.c.until_ms.is_(None), TASK.c.until_ms, TASK.c.id)
    )
    found += [task_from(row) for row in connection.execute(waiting.limit(limit - len(found)))]
    return found


def matching(connection: Connection, ref: str) -> Sequence[Task]:
    """The task of that id; else the newest of that name; else all whose id begins so (4 characters or more)."""
    if "\0" in ref:
        return []
    exact = connection.execute(select(TASK).where(TASK.c.id == ref)).one_or_none()
    if exact is not None:
        return [task_from(exact)]
    newest = select(TASK).where(TASK.c.name == ref).order_by(TASK.c.created_ms.desc(), TASK.c.id.desc()).limit(1)
    named = connection.execute(newest).one_or_none()
    if named is not None:
        return [task_from(named)]
    if len(ref) < SHORTEST_PREFIX:
        return []
    prefixed = select(TASK).where(TASK.c.id.startswith(ref, autoescape=True)).order_by(TASK.c.created_ms.desc())
    return [task_from(row) for row in connection.execute(prefixed.limit(10))]


def names_like(connection: Connection, limit: int = 200) -> list[str]:
    """Names of the newest tasks, to suggest one from."""
    query = select(TASK.c.name).order_by(TASK.c.created_ms.desc()).limit(limit)
    return list(dict.fromkeys(connection.execute(query).scalars()))


def runs_of(connection: Connection, task_ids: Collection[str]) -> Mapping[str, Sequence[Run]]:
    """The runs of these tasks, oldest first, by task."""
    query = select(RUN).where(RUN.c.task_id.in_(sorted(task_ids))).order_by(RUN.c.generation, RUN.c.seq)
    runs: dict[str, list[Run]] = defaultdict(list)
    for row in connection.execute(query):
        runs[row._mapping["task_id"]].append(Run(**row._mapping))
    return runs
