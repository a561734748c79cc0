"""Outbox rows: notices on their way, each to one target, and how far the events have been looked at for it."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update

from claudomator_py.domain.units import DAY_MS
from claudomator_py.store.tables import EVENT, OUTBOX, OUTBOX_CURSOR, RUN, TASK, Outbox

DELIVERED_KEPT_MS = 7 * DAY_MS
DEAD_KEPT_MS = 30 * DAY_MS


def cursor(connection: Connection, target: str) -> int | None:
    """Return the last event that was looked at for the target; None: it is new."""
    query = select(OUTBOX_CURSOR.c.event_id).where(OUTBOX_CURSOR.c.target == target)
    found: int | None = connection.execute(query).scalar_one_or_none()
    return found


def move_cursor(connection: Connection, target: str, event_id: int) -> None:
    """Record that the events up to this one have been looked at."""
    moved = connection.execute(update(OUTBOX_CURSOR).where(OUTBOX_CURSOR.c.target == target).values(event_id=event_id))
    if moved.rowcount == 0:
        connection.execute(insert(OUTBOX_CURSOR).values(target=target, event_id=event_id))


def events_after(connection: Connection, event_id: int, kinds: Collection[str], limit: int) -> Sequence[dict[str, Any]]:
    """Return events of these kinds with what notices say of their task and run, in order."""
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
    """Put the notice on its way."""
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
    """Return the oldest notice that may be sent to the target now."""
    query = select(OUTBOX).where(OUTBOX.c.state == "pending", OUTBOX.c.target == target, OUTBOX.c.next_ms <= now_ms)
    row = connection.execute(query.order_by(OUTBOX.c.id).limit(1)).one_or_none()
    return None if row is None else Outbox(**row._mapping)


def next_due(connection: Connection, target: str) -> int | None:
    """Return when the next notice to the target may be sent (epoch milliseconds), or None."""
    query = select(func.min(OUTBOX.c.next_ms)).where(OUTBOX.c.state == "pending", OUTBOX.c.target == target)
    earliest: int | None = connection.execute(query).scalar_one()
    return earliest


def change(connection: Connection, row_id: int, **changes: Any) -> bool:
    """Write the columns if the notice is still pending. False: it no longer is."""
    changed = connection.execute(
        update(OUTBOX).where(OUTBOX.c.id == row_id, OUTBOX.c.state == "pending").values(**changes)
    )
    return changed.rowcount == 1


def find(connection: Connection, row_id: int) -> Outbox | None:
    """Return the notice, or None."""
    row = connection.execute(select(OUTBOX).where(OUTBOX.c.id == row_id)).one_or_none()
    return None if row is None else Outbox(**row._mapping)


def page(connection: Connection, state: str | None, before: int | None, limit: int) -> Sequence[Outbox]:
    """Return notices, newest first. before: the id of the last one seen."""
    query = select(OUTBOX)
    if state is not None:
        query = query.where(OUTBOX.c.state == state)
    if before is not None:
        query = query.where(OUTBOX.c.id < before)
    return [Outbox(**row._mapping) for row in connection.execute(query.order_by(OUTBOX.c.id.desc()).limit(limit))]


def revive(connection: Connection, row_id: int, now_ms: int) -> bool:
    """Send a dead notice again. False: it is not dead."""
    revived = connection.execute(
        update(OUTBOX)
        .where(OUTBOX.c.id == row_id, OUTBOX.c.state == "dead")
        .values(state="pending", attempts=0, next_ms=now_ms, ended_ms=None)
    )
    return revived.rowcount == 1


def has_old(connection: Connection, now_ms: int) -> bool:
    """Return whether there is any for ``forget_old``."""
    return connection.execute(select(OUTBOX.c.id).where(_old(now_ms)).limit(1)).first() is not None


def forget_old(connection: Connection, now_ms: int) -> None:
    """Forget those that were delivered a week ago, and those that have been dead for thirty days."""
    connection.execute(delete(OUTBOX).where(_old(now_ms)))


def _old(now_ms: int) -> ColumnElement[bool]:
    kept = (("delivered", DELIVERED_KEPT_MS), ("dead", DEAD_KEPT_MS))
    return or_(*(and_(OUTBOX.c.state == state, OUTBOX.c.ended_ms < now_ms - kept_ms) for state, kept_ms in kept))
