"""Rows of the outbox: notices, each to one target, and each target's cursor in the events."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update

from claudomator_py.domain.units import DAY_MS
from claudomator_py.store.tables import EVENT, OUTBOX, OUTBOX_CURSOR, RUN, TASK, Outbox

DELIVERED_KEPT_MS = 7 * DAY_MS
DEAD_KEPT_MS = 30 * DAY_MS


def cursor(connection: Connection, target: str) -> int | None:
    """Return the last event processed for the target, or None for a new target."""
    query = select(OUTBOX_CURSOR.c.event_id).where(OUTBOX_CURSOR.c.target == target)
    event_id: int | None = connection.execute(query).scalar_one_or_none()
    return event_id


def move_cursor(connection: Connection, target: str, event_id: int) -> None:
    """Record that the events up to this one are processed."""
    moved = connection.execute(update(OUTBOX_CURSOR).where(OUTBOX_CURSOR.c.target == target).values(event_id=event_id))
    if moved.rowcount == 0:
        connection.execute(insert(OUTBOX_CURSOR).values(target=target, event_id=event_id))


def events_after(connection: Connection, event_id: int, kinds: Collection[str], limit: int) -> Sequence[dict[str, Any]]:
    """Return events of these kinds in order, with the columns of task and run that notices need."""
    query = (
        select(
            EVENT,
            TASK.c.name.label("task_name"),
            RUN.c.agent.label("agent"),
            RUN.c.outcome.label("outcome"),
        )
        .select_from(EVENT.outerjoin(TASK, TASK.c.id == EVENT.c.task_id).outerjoin(RUN, RUN.c.id == EVENT.c.run_id))
        .where(EVENT.c.id > event_id, EVENT.c.kind.in_(sorted(kinds)))
        .order_by(EVENT.c.id)
        .limit(limit)
    )
    return [dict(row._mapping) for row in connection.execute(query)]


def add(connection: Connection, target: str, event_id: int, notice: dict[str, Any], now_ms: int) -> None:
    """Insert a pending notice."""
    connection.execute(
        insert(OUTBOX).values(
            target=target,
            event_id=event_id,
            notice=notice,
            state="pending",
            attempts=0,
            next_ms=now_ms,
            created_ms=now_ms,
        )
    )


def due(connection: Connection, target: str, now_ms: int) -> Outbox | None:
    """Return the oldest notice to the target that is due, or None."""
    query = select(OUTBOX).where(OUTBOX.c.state == "pending", OUTBOX.c.target == target, OUTBOX.c.next_ms <= now_ms)
    return Outbox.one(connection, query.order_by(OUTBOX.c.id).limit(1))


def next_due(connection: Connection, target: str) -> int | None:
    """Return when the next notice to the target is due, in epoch milliseconds, or None."""
    query = select(func.min(OUTBOX.c.next_ms)).where(OUTBOX.c.state == "pending", OUTBOX.c.target == target)
    earliest: int | None = connection.execute(query).scalar_one()
    return earliest


def change(connection: Connection, row_id: int, **changes: Any) -> bool:
    """Update columns of the notice. Return False if it is no longer pending."""
    changed = connection.execute(
        update(OUTBOX).where(OUTBOX.c.id == row_id, OUTBOX.c.state == "pending").values(**changes)
    )
    return changed.rowcount == 1


def find(connection: Connection, row_id: int) -> Outbox | None:
    """Return the notice, or None."""
    return Outbox.find(connection, OUTBOX.c.id == row_id)


def counts(connection: Connection) -> Mapping[str, int]:
    """Return the number of notices in each state, without states that none is in."""
    query = select(OUTBOX.c.state, func.count()).group_by(OUTBOX.c.state)
    return {row[0]: row[1] for row in connection.execute(query)}


def page(connection: Connection, state: str | None, before: int | None, limit: int) -> Sequence[Outbox]:
    """Return notices, newest first. before: only those with a smaller id."""
    query = select(OUTBOX)
    if state is not None:
        query = query.where(OUTBOX.c.state == state)
    if before is not None:
        query = query.where(OUTBOX.c.id < before)
    return Outbox.rows(connection, query.order_by(OUTBOX.c.id.desc()).limit(limit))


def revive(connection: Connection, row_id: int, now_ms: int) -> bool:
    """Make a dead notice pending again. Return False if it is not dead."""
    revived = connection.execute(
        update(OUTBOX)
        .where(OUTBOX.c.id == row_id, OUTBOX.c.state == "dead")
        .values(state="pending", attempts=0, next_ms=now_ms, ended_ms=None)
    )
    return revived.rowcount == 1


def has_old(connection: Connection, now_ms: int) -> bool:
    """Return whether ``forget_old`` would remove any."""
    return connection.execute(select(OUTBOX.c.id).where(_old(now_ms)).limit(1)).first() is not None


def forget_old(connection: Connection, now_ms: int) -> None:
    """Remove notices delivered a week ago or dead for thirty days."""
    connection.execute(delete(OUTBOX).where(_old(now_ms)))


def _old(now_ms: int) -> ColumnElement[bool]:
    kept = (("delivered", DELIVERED_KEPT_MS), ("dead", DEAD_KEPT_MS))
    return or_(*(and_(OUTBOX.c.state == state, OUTBOX.c.ended_ms < now_ms - kept_ms) for state, kept_ms in kept))
