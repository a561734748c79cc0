"""Named values that no other row holds, such as sums of removed rows; and answers to requests with idempotency keys."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from claudomator_py.domain.principal import KEPT_MS, MAX_KEPT
from claudomator_py.store.statement import Statement
from claudomator_py.store.tables import ANSWERED_REQUEST, REMEMBERED, AnsweredRequest


def find_answer(connection: Connection, principal: str, key: str, now_ms: int) -> AnsweredRequest | None:
    """Return the answer to the principal's request with this key, or None if there is none or it has expired."""
    return AnsweredRequest.find(
        connection,
        ANSWERED_REQUEST.c.principal == principal,
        ANSWERED_REQUEST.c.key == key,
        ANSWERED_REQUEST.c.created_ms > now_ms - KEPT_MS,
    )


def keep_answer(
    connection: Connection, principal: str, key: str, fingerprint: str, answer: Mapping[str, Any], now_ms: int
) -> None:
    """Store the answer, and remove expired and surplus ones."""
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


# Compiled once, as each decision on a task runs it.
_FIND = Statement(select(REMEMBERED.c.data).where(REMEMBERED.c.name == bindparam("of")))


def find(connection: Connection, name: str) -> Mapping[str, Any]:
    """Return the value with this name; empty if there is none."""
    data: Mapping[str, Any] | None = _FIND.value(connection, of=name)
    return data or {}


def keep(connection: Connection, name: str, data: Mapping[str, Any]) -> None:
    """Store the value under this name, replacing the former one."""
    changed = connection.execute(update(REMEMBERED).where(REMEMBERED.c.name == name).values(data=dict(data)))
    if changed.rowcount == 0:
        connection.execute(insert(REMEMBERED).values(name=name, data=dict(data)))
