"""What the daemon keeps for those who talk to it: answers, switches, notifications, tokens, sessions, sums."""

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
    """What a request with an idempotency key was answered, written in the transaction of the change that it made."""

    __tablename__ = "answered_request"
    __table_args__ = (
        UniqueConstraint("principal", "key", name="uq_answered_request_key"),
        Index("ix_answered_created", "created_ms"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    principal: str = by_operator()
    """Who sent it; the keys of one say nothing of another's."""
    key: str
    fingerprint: str
    answer: dict[str, Any] = Field(sa_column=shown_json_column())
    created_ms: int = Field(sa_type=BigInteger)


class SwitchRow(Row):
    """What an operator has switched on, by name; a row that is there means on. ``drain``: nothing is started."""

    __tablename__ = "switch"

    name: str = Field(primary_key=True)
    since_ms: int = Field(sa_type=BigInteger)
    reason: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))


class Outbox(Row):
    """A notice on its way to one target: ``pending``, ``delivered``, or ``dead``, which an operator may send again."""

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
    """The last event that was looked at for a target."""

    __tablename__ = "outbox_cursor"

    target: str = Field(primary_key=True)
    event_id: int = Field(sa_type=BigInteger)


class ApiToken(Row):
    """A token that was given out."""

    __tablename__ = "api_token"
    __table_args__ = (UniqueConstraint("name"), UniqueConstraint("hash"))

    id: str = Field(primary_key=True)
    name: str
    """The principal's id, never given twice."""
    hash: str
    """SHA-256 of the token, in hex."""
    role: str
    """The principal's."""
    organisation: str | None = None
    """See ``role``."""
    creator: str
    """Who made it."""
    created_ms: int = Field(sa_type=BigInteger)
    expires_ms: int | None = Field(default=None, sa_type=BigInteger)
    revoked_ms: int | None = Field(default=None, sa_type=BigInteger)
    used_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When it was last seen, to within an hour."""


class BrowserSession(Row):
    """A browser that is logged in."""

    __tablename__ = "browser_session"
    __table_args__ = (UniqueConstraint("hash"),)

    id: str = Field(primary_key=True)
    hash: str
    """SHA-256 of what is in its cookie, in hex."""
    principal: str
    """Whose it is, by its id."""
    host: str
    """The only name by which the cookie counts."""
    issuer: str
    """A digest of the operator's token at that time; the session ends with that."""
    browser: str
    created_ms: int = Field(sa_type=BigInteger)
    used_ms: int = Field(sa_type=BigInteger)
    """When it was last seen, to within minutes."""
    expires_ms: int = Field(sa_type=BigInteger)
    """When it ends unless it is used."""
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)


class Remembered(Row):
    """What has to be known of rows that were removed for their age, and where the daemon works, by name."""

    __tablename__ = "remembered"

    name: str = Field(primary_key=True)
    data: dict[str, Any] = Field(sa_column=json_column())
