"""Events: what happened, in order. Written in the transaction in which it happens."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, insert, select

from claudomator_py.store.tables import EVENT, Event


def record(
    connection: Connection,
    at_ms: int,
    kind: str,
    *,
    task_id: str | None = None,
    run_id: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Append one event."""
    connection.execute(
        insert(EVENT).values(at_ms=at_ms, task_id=task_id, run_id=run_id, kind=kind, data=dict(data or {}))
    )


def of_task(connection: Connection, task_id: str, limit: int = 500) -> Sequence[Event]:
    """The task's newest events, oldest first."""
    query = select(EVENT).where(EVENT.c.task_id == task_id).order_by(EVENT.c.id.desc()).limit(limit)
    return [Event(**row._mapping) for row in reversed(connection.execute(query).all())]


def last_id(connection: Connection) -> int:
    """The id of the newest event; 0 when there is none."""
    newest: int | None = connection.execute(select(func.max(EVENT.c.id))).scalar_one()
    return newest or 0


def following(
    connection: Connection, after: int, limit: int, *, task_id: str | None = None, kinds: Collection[str] = ()
) -> Sequence[Event]:
    """Events with a greater id, in order, at most limit. task_id, kinds: only those; none: all."""
    query = select(EVENT).where(EVENT.c.id > after)
    if task_id is not None:
        query = query.where(EVENT.c.task_id == task_id)
    if kinds:
        query = query.where(EVENT.c.kind.in_(sorted(kinds)))
    return [Event(**row._mapping) for row in connection.execute(query.order_by(EVENT.c.id).limit(limit))]
