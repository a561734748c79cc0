"""Tables of channels, their members and messages, and the specialists who are to answer."""

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
    """Incremented by each change of its settings and members."""
    primary_agent: str | None = None
    """The specialist who answers messages that name none."""
    settings: dict[str, Any] = Field(sa_column=json_column())
    """See ``domain.channel.ChannelSettings``."""
    creator: str
    """The principal whose specialists may take part."""
    organisation: str | None = None
    """The owner; None: no organisation."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)


class ChannelMember(Row):
    """A member of a channel."""

    __tablename__ = "channel_member"

    channel_id: str = Field(primary_key=True, foreign_key="channel.id")
    id: str = Field(primary_key=True)
    """The id of a specialist or principal, or a name given by an incoming webhook."""
    role: str
    """See ``domain.channel.MemberRole``."""
    username: str | None = None
    display_name: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    """None for a specialist, whose card has it."""
    muted_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """The member is asked nothing until then."""
    joined_ms: int = Field(sa_type=BigInteger)


class ChannelMessage(Row):
    """A message in a channel."""

    __tablename__ = "channel_message"
    __table_args__ = (
        Index("ix_message_channel", "channel_id", "id"),
        Index("ix_message_reason", "channel_id", "reason", "created_ms"),
        partial_index("uq_message_external", "channel_id", "external_id", where="external_id IS NOT NULL", unique=True),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    channel_id: str = Field(foreign_key="channel.id")
    author: str
    """A present or former member's id."""
    role: str
    """See ``domain.channel.MessageRole``."""
    content: str = Field(sa_column=shown_text_column())
    reply_to: int | None = Field(default=None, sa_type=RowNumber)
    """The message that it replies to."""
    attachments: list[dict[str, Any]] = Field(sa_column=shown_json_column(items=dict))
    """See ``domain.channel.Attachment``."""
    hops: int = 0
    """Length of the chain of agents' messages that led to it, itself included; 0: a person wrote it."""
    external_id: str | None = None
    """The id by which an incoming webhook avoids duplicates."""
    reason: str
    """The rule that decided, see ``domain.channel.TriageReason``."""
    decision: dict[str, Any] = Field(sa_column=shown_json_column())
    """See ``domain.channel.TriageDecision``."""
    shadow: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """The decision by the channel's shadow settings."""
    verdict: str | None = None
    """An operator's verdict on the decision, see ``domain.channel.MarkVerdict``."""
    marked_by: str | None = None
    """The operator who gave the verdict."""
    created_ms: int = Field(sa_type=BigInteger)


class ChannelAnswer(Row):
    """A specialist's answer to a message, open or given. The row makes sure that it is given once, despite crashes."""

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
    """The task whose result is the answer; retention may have removed it."""
    given_id: int | None = Field(default=None, sa_type=RowNumber)
    """The message that is the answer."""
    at_ms: int = Field(sa_type=BigInteger)
