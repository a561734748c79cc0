"""What is to be known and no other row says.

By name: sums of rows that were removed, and where the daemon works. And answered requests: what was told to a request
with an idempotency key, for those who ask again.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from claudomator_py.domain.principal import KEPT_MS, MAX_KEPT
from claudomator_py.store.statement import Statement
from claudomator_py.store.tables import ANSWERED_REQUEST, REMEMBERED, AnsweredRequest


def find_answer(connection: Connection, principal: str, key: str, now_ms: int) -> AnsweredRequest | None:
    """Return what that principal's request of that key was told, or None; None as well once it was kept long enough."""
    query = select(ANSWERED_REQUEST).where(
        ANSWERED_REQUEST.c.principal == principal,
        ANSWERED_REQUEST.c.key == key,
        ANSWERED_REQUEST.c.created_ms > now_ms - KEPT_MS,
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else AnsweredRequest(**row._mapping)


def keep_answer(
    connection: Connection, principal: str, key: str, fingerprint: str, answer: Mapping[str, Any], now_ms: int
) -> None:
    """Keep the answer, and let go of those that are too old or too many."""
    connection.execute(delete(ANSWERED_REQUEST).where(ANSWERED_REQUEST.c.created_ms <= now_ms - KEPT_MS))
    row = {
        "principal": principal,
        "key": key,
        "fingerprint": fingerprint,
        "answer": dict(answer),
        "created_ms": now_ms,
    }
    number = connection.execute(insert(ANSWERED_REQUEST).values(**row).returning(ANSWERED_REQUEST.c.id)).scalar_one()
    connection.execute(delete(ANSWERED_REQUEST).where(ANSWERED_REQUEST.c.id <= number - MAX_KEPT))


# Asked with each decision on a task.
_FIND = Statement(select(REMEMBERED.c.data).where(REMEMBERED.c.name == bindparam("of")))


def find(connection: Connection, name: str) -> Mapping[str, Any]:
    """Return what is kept under that name; empty: nothing."""
    data: Mapping[str, Any] | None = _FIND.value(connection, of=name)
    return data or {}


def keep(connection: Connection, name: str, data: Mapping[str, Any]) -> None:
    """Keep this under that name, instead of what was."""
    changed = connection.execute(update(REMEMBERED).where(REMEMBERED.c.name == name).values(data=dict(data)))
    if changed.rowcount == 0:
        connection.execute(insert(REMEMBERED).values(name=name, data=dict(data)))
