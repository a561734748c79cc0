"""Hold rows: which agents are left alone, until when, and how that is known."""

from sqlalchemy import ColumnElement, Connection, Row, func, insert, or_, select, update

from claudomator_py.core.limits import Hold
from claudomator_py.core.outcome import Provenance, Reason
from claudomator_py.store.tables import HOLD


def add(connection: Connection, hold: Hold, run_id: str | None) -> None:
    """Insert a hold. Holds only add up: an earlier deadline never shortens a later one."""
    connection.execute(
        insert(HOLD).values(
            agent=hold.agent,
            reason=hold.reason.value,
            until_ms=hold.until_ms,
            provenance=hold.provenance.value,
            source=hold.source[:500],
            run_id=run_id,
            created_ms=hold.created_ms,
        )
    )


def in_force(connection: Connection, now_ms: int) -> dict[str, Hold]:
    """By agent, the open hold that lasts longest; one without an end outlasts all."""
    query = select(HOLD).where(_open(now_ms)).order_by(HOLD.c.id)
    longest: dict[str, Hold] = {}
    for row in connection.execute(query):
        hold = _hold(row)
        other = longest.get(hold.agent)
        if other is None or _end(hold) > _end(other):
            longest[hold.agent] = hold
    return longest


def latest(connection: Connection, agent: str) -> Hold | None:
    """The agent's newest hold, in force or not."""
    row = connection.execute(
        select(HOLD).where(HOLD.c.agent == agent).order_by(HOLD.c.id.desc()).limit(1)
    ).one_or_none()
    return None if row is None else _hold(row)


def next_end(connection: Connection, now_ms: int) -> int | None:
    """When the next hold ends by itself (epoch milliseconds), or None."""
    query = select(func.min(HOLD.c.until_ms)).where(HOLD.c.released_ms.is_(None), HOLD.c.until_ms > now_ms)
    earliest: int | None = connection.execute(query).scalar_one()
    return earliest


def release(connection: Connection, agent: str, now_ms: int) -> int:
    """End all holds of the agent; how many were in force."""
    released = connection.execute(update(HOLD).where(HOLD.c.agent == agent, _open(now_ms)).values(released_ms=now_ms))
    return released.rowcount


def _open(now_ms: int) -> ColumnElement[bool]:
    return HOLD.c.released_ms.is_(None) & or_(HOLD.c.until_ms.is_(None), HOLD.c.until_ms > now_ms)


def _end(hold: Hold) -> float:
    return float("inf") if hold.until_ms is None else hold.until_ms


def _hold(row: Row[tuple[object, ...]]) -> Hold:
    columns = row._mapping
    return Hold(
        agent=columns["agent"],
        reason=Reason(columns["reason"]),
        until_ms=columns["until_ms"],
        provenance=Provenance(columns["provenance"]),
        source=columns["source"],
        created_ms=columns["created_ms"],
    )
