"""Rows of those who use the API: tokens, browser sessions, and answers to requests with idempotency keys. Neither
tokens nor cookies are stored in the clear."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, not_, select, update

from claudomator_py.domain.principal import KEPT_MS, MAX_KEPT
from claudomator_py.store.tables import (
    ANSWERED_REQUEST,
    API_TOKEN,
    BROWSER_SESSION,
    AnsweredRequest,
    ApiToken,
    BrowserSession,
)


def current_sessions(connection: Connection, issuer: str, now_ms: int) -> Sequence[BrowserSession]:
    """Return the issuer's sessions that have neither ended nor expired."""
    query = select(BROWSER_SESSION).where(_is_current(issuer, now_ms))
    return BrowserSession.rows(connection, query)


def add_session(connection: Connection, session: BrowserSession) -> None:
    """Insert a session, and delete those that are over or have another issuer."""
    connection.execute(delete(BROWSER_SESSION).where(not_(_is_current(session.issuer, session.created_ms))))
    session.insert(connection)


def note_session_use(connection: Connection, session_id: str, used_ms: int, expires_ms: int) -> None:
    """Record the last use of a session, and its new expiry."""
    changed = update(BROWSER_SESSION).where(BROWSER_SESSION.c.id == session_id)
    connection.execute(changed.values(used_ms=used_ms, expires_ms=expires_ms))


def end_sessions(connection: Connection, session_ids: Collection[str], now_ms: int) -> Sequence[BrowserSession]:
    """End the sessions permanently. Return those that had not ended before."""
    changed = update(BROWSER_SESSION).where(BROWSER_SESSION.c.id.in_(session_ids), BROWSER_SESSION.c.ended_ms.is_(None))
    return BrowserSession.rows(connection, changed.values(ended_ms=now_ms).returning(*BROWSER_SESSION.c))


def _is_current(issuer: str, now_ms: int) -> ColumnElement[bool]:
    table = BROWSER_SESSION.c
    return and_(table.issuer == issuer, table.ended_ms.is_(None), table.expires_ms > now_ms)


def tokens(connection: Connection) -> Sequence[ApiToken]:
    """Return every token ever issued, newest first."""
    query = select(API_TOKEN).order_by(API_TOKEN.c.created_ms.desc(), API_TOKEN.c.id)
    return ApiToken.rows(connection, query)


def find_token(connection: Connection, ref: str) -> ApiToken | None:
    """Return the token with this id, else the one with this name, else None."""
    return ApiToken.find(connection, API_TOKEN.c.id == ref) or token_named(connection, ref)


def token_named(connection: Connection, name: str) -> ApiToken | None:
    """Return the token with this name, or None."""
    return ApiToken.find(connection, API_TOKEN.c.name == name)


def change_token(connection: Connection, token_id: str, **changes: Any) -> None:
    """Update columns of the token."""
    connection.execute(update(API_TOKEN).where(API_TOKEN.c.id == token_id).values(**changes))


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
    row = {"principal": principal, "key": key, "fingerprint": fingerprint, "answer": dict(answer), "created_ms": now_ms}
    number = connection.execute(insert(ANSWERED_REQUEST).values(**row).returning(ANSWERED_REQUEST.c.id)).scalar_one()
    connection.execute(delete(ANSWERED_REQUEST).where(ANSWERED_REQUEST.c.id <= number - MAX_KEPT))
