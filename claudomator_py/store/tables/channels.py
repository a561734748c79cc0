"""Channels: who takes part, what is written, and who is to answer it."""

from typing import Any

from sqlalchemy import BigInteger, Index
from sqlmodel import Field

from claudomator_py.store.tables.columns import (
    Row,
    RowNumber,
    json_column,
    partial_index,
    shown_json_column,
    shown_text_column,
)


class Channel(Row):
    """A place where people and specialists write to each other."""

    __tablename__ = "channel"
    __table_args__ = (
        partial_index("uq_channel_name", "name", where="organisation IS NULL", unique=True),
        partial_index(
            "uq_channel_organisation_name", "organisation", "name", where="organisation IS NOT NULL", unique=True
        ),
    )

    id: str = Field(primary_key=True)
    name: str
    version: int = 1
    """Rises with each change of its settings and participants."""
    primary_agent: str | None = None
    """The specialist who answers messages that name none."""
    settings: dict[str, Any] = Field(sa_column=json_column())
    """See ``domain.channel.ChannelSettings``."""
    creator: str
    """Whose specialists may take part."""
    organisation: str | None = None
    """Whose it is."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)


class ChannelMember(Row):
    """Somebody who takes part."""

    __tablename__ = "channel_member"

    channel_id: str = Field(primary_key=True, foreign_key="channel.id")
    id: str = Field(primary_key=True)
    """Of a specialist, or of a principal, or as an incoming webhook names somebody."""
    role: str
    """See ``domain.triage.Role``."""
    username: str | None = None
    display_name: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    """Of a specialist, the card has it."""
    muted_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """Until then it is asked nothing."""
    joined_ms: int = Field(sa_type=BigInteger)


class ChannelMessage(Row):
    """What somebody has written."""

    __tablename__ = "channel_message"
    __table_args__ = (
        Index("ix_message_channel", "channel_id", "id"),
        Index("ix_message_reason", "channel_id", "reason", "created_ms"),
        partial_index("uq_message_external", "channel_id", "external_id", where="external_id IS NOT NULL", unique=True),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    channel_id: str = Field(foreign_key="channel.id")
    author: str
    """A member's id, whether or not they still take part."""
    role: str
    """See ``domain.triage.MessageRole``."""
    content: str = Field(sa_column=shown_text_column())
    reply_to: int | None = Field(default=None, sa_type=RowNumber)
    """The message that it answers."""
    attachments: list[dict[str, Any]] = Field(sa_column=shown_json_column(items=dict))
    """See ``domain.channel.Attachment``."""
    hops: int = 0
    """How many messages of agents led to it, itself included; 0: a person wrote it."""
    external_id: str | None = None
    """By which an incoming webhook tells one message from another."""
    reason: str
    """The rule that decided, see ``domain.triage.TriageReason``."""
    decision: dict[str, Any] = Field(sa_column=shown_json_column())
    """See ``domain.triage.TriageDecision``."""
    shadow: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """What the channel's other settings would have decided."""
    verdict: str | None = None
    """What an operator says of the decision, see ``domain.channel.MarkVerdict``."""
    marked_by: str | None = None
    """Who."""
    created_ms: int = Field(sa_type=BigInteger)


class ChannelAnswer(Row):
    """Somebody who is to answer a message: the mark by which each answer is given once, whatever becomes of the
    daemon."""

    __tablename__ = "channel_answer"
    __table_args__ = (
        Index("ix_answer_member", "channel_id", "specialist", "at_ms"),
        Index("ix_answer_given", "given_id"),
        partial_index("ix_answer_open", "task_id", where="state = 'asked'"),
    )

    message_id: int = Field(primary_key=True, sa_type=RowNumber, foreign_key="channel_message.id")
    specialist: str = Field(primary_key=True)
    channel_id: str
    state: str
    """See ``domain.channel.AnswerState``."""
    skipped: str | None = None
    """See ``domain.channel.SkipReason``."""
    task_id: str | None = None
    """Whose result is the answer; it may have gone for its age since."""
    given_id: int | None = Field(default=None, sa_type=RowNumber)
    """The message that is the answer."""
    at_ms: int = Field(sa_type=BigInteger)
