"""Events: what happened, in order. Written in the transaction in which it happens."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

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
