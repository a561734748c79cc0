"""Tables of the service: answered requests, switches, notices, tokens, sessions, and remembered values."""

from typing import Any

from sqlalchemy import BigInteger, Index, UniqueConstraint
from sqlmodel import Field

from claudomator_py.store.tables.columns import (
    Row,
    RowNumber,
    by_operator,
    json_column,
    partial_index,
    shown_json_column,
    shown_text_column,
)


class AnsweredRequest(Row):
    """The answer to a request with an idempotency key, written in the transaction of its change."""

    __tablename__ = "answered_request"
    __table_args__ = (
        UniqueConstraint("principal", "key", name="uq_answered_request_key"),
        Index("ix_answered_created", "created_ms"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    principal: str = by_operator()
    """The sender; keys are separate for each principal."""
    key: str
    fingerprint: str
    answer: dict[str, Any] = Field(sa_column=shown_json_column())
    created_ms: int = Field(sa_type=BigInteger)


class SwitchRow(Row):
    """A switch that an operator has turned on; no row means off. ``drain``: nothing is started."""

    __tablename__ = "switch"

    name: str = Field(primary_key=True)
    since_ms: int = Field(sa_type=BigInteger)
    reason: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))


class Outbox(Row):
    """A notice to one target: ``pending``, ``delivered``, or ``dead``, which an operator can send again."""

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("target", "event_id", name="uq_outbox_event"),
        partial_index("ix_outbox_pending", "target", "next_ms", where="state = 'pending'"),
        Index("ix_outbox_state", "state", "id"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    target: str
    event_id: int = Field(sa_type=BigInteger)
    notice: dict[str, Any] = Field(sa_column=shown_json_column())
    state: str = "pending"
    attempts: int = 0
    next_ms: int = Field(sa_type=BigInteger)
    error: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    created_ms: int = Field(sa_type=BigInteger)
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)


class OutboxCursor(Row):
    """The last event processed for a target."""

    __tablename__ = "outbox_cursor"

    target: str = Field(primary_key=True)
    event_id: int = Field(sa_type=BigInteger)


class ApiToken(Row):
    """An issued API token."""

    __tablename__ = "api_token"
    __table_args__ = (UniqueConstraint("name"), UniqueConstraint("hash"))

    id: str = Field(primary_key=True)
    name: str
    """The principal's id, never reused."""
    hash: str
    """SHA-256 of the token, in hex."""
    role: str
    """The principal's role."""
    organisation: str | None = None
    """The principal's organisation."""
    creator: str
    """The principal who issued it."""
    created_ms: int = Field(sa_type=BigInteger)
    expires_ms: int | None = Field(default=None, sa_type=BigInteger)
    revoked_ms: int | None = Field(default=None, sa_type=BigInteger)
    used_ms: int | None = Field(default=None, sa_type=BigInteger)
    """Its last use, to within an hour."""


class BrowserSession(Row):
    """A logged-in browser."""

    __tablename__ = "browser_session"
    __table_args__ = (UniqueConstraint("hash"),)

    id: str = Field(primary_key=True)
    hash: str
    """SHA-256 of the cookie's value, in hex."""
    principal: str
    """The principal's id."""
    host: str
    """The only host name for which the cookie is accepted."""
    issuer: str
    """A digest of the operator's token at login; the session ends when that token changes."""
    browser: str
    created_ms: int = Field(sa_type=BigInteger)
    used_ms: int = Field(sa_type=BigInteger)
    """Its last use, to within minutes."""
    expires_ms: int = Field(sa_type=BigInteger)
    """When it expires unless it is used."""
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)


class Remembered(Row):
    """A named value, such as sums of removed rows, or where the daemon works."""

    __tablename__ = "remembered"

    name: str = Field(primary_key=True)
    data: dict[str, Any] = Field(sa_column=json_column())
