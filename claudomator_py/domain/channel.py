"""Channels: what they are set to, what is written in them, and what becomes of those who are to answer."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.fields import Count, Directory, Distinct, Duration, EnvName, Line, Name, Strict, Text
from claudomator_py.domain.triage import TriageSettings
from claudomator_py.domain.units import DAY_MS

MAX_MESSAGE_LENGTH: Final = 50_000
MAX_ATTACHMENT_LENGTH: Final = 200_000
MAX_ATTACHMENTS: Final = 20
MAX_PARTICIPANTS: Final = 500


class WebhookKind(StrEnum):
    """Who sends messages to a channel's incoming webhook."""

    PLAIN = "plain"
    """JSON of our own shape."""
    SLACK = "slack"
    """Events of Slack."""


class WebhookSettings(Strict):
    """How messages come in from outside. One of secret_env and secret_file."""

    kind: WebhookKind = Field(WebhookKind.PLAIN, description="Who sends: `plain` JSON, or `slack`.")
    secret_env: EnvName | None = Field(
        None, description="Environment variable of the daemon that holds the secret for the signature."
    )
    secret_file: Directory | None = Field(None, description="File that holds it, readable by the daemon's user alone.")


class ChannelSettings(TriageSettings):
    """What a channel is set to."""

    working_dir: Directory | None = Field(
        None, description="Where the tasks of its messages run. Default: a scratch folder for each."
    )
    rate_limit: Count = Field(30, ge=0, le=10_000, description="Most answers of one specialist within an hour.")
    cooldown: Duration = Field(
        0, ge=0, le=DAY_MS, description="Pause after a specialist was asked, before it is asked again."
    )
    max_hops: Count = Field(
        2, ge=0, le=10, description="Most messages of agents in a row, each caused by the one before."
    )
    webhook: WebhookSettings | None = Field(None, description="How messages come in from outside. Default: not at all.")
    shadow: TriageSettings | None = Field(
        None, description="Other settings to decide by as well, whose decisions are only counted."
    )


class AttachmentState(StrEnum):
    """How far an attachment is processed."""

    PENDING = "pending"
    PROCESSED = "processed"
    FAILED = "failed"


class NewAttachment(Strict):
    """An attachment on its way in. With its text it is processed already."""

    id: Annotated[Line, Field(max_length=100)] = Field(description="Its id, within the message.")
    name: Annotated[Line, Field(max_length=300)] = Field(description="Its file name.")
    media_type: Annotated[Line, Field(max_length=200)] = Field(
        "application/octet-stream", description="Its media type, such as text/plain."
    )
    text: Annotated[Text, Field(max_length=MAX_ATTACHMENT_LENGTH)] | None = Field(
        None, description="Its content as text. Default: it is processed later."
    )


class Attachment(BaseModel):
    """An attachment of a message."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    media_type: str
    state: AttachmentState
    text: str | None = None
    """Its content, as far as it is known."""


class NewMessage(Strict):
    """A message on its way in."""

    content: Text = Field(max_length=MAX_MESSAGE_LENGTH, description="What it says.")
    reply_to: Count | None = Field(None, ge=1, description="The message that it answers, by id.")
    attachments: Annotated[tuple[NewAttachment, ...], Field(max_length=MAX_ATTACHMENTS)] = Field(
        (), description="What comes with it."
    )


class NewChannel(Strict):
    """A channel on its way in."""

    name: Name = Field(description="Lower-case letters, digits, `-`, `_` and `.`.")
    primary: Name | None = Field(
        None, description="The specialist who answers messages that address nobody, by its id."
    )
    participants: Annotated[tuple[Name, ...], Field(max_length=MAX_PARTICIPANTS), Distinct] = Field(
        (), description="Specialists who take part from the beginning, by their ids."
    )
    settings: ChannelSettings = Field(ChannelSettings(), description="Its settings.")


class AnswerState(StrEnum):
    """What becomes of somebody who is to answer a message. Values are stored: they are never renamed."""

    HELD = "held"
    """Attachments are processed first."""
    ASKED = "asked"
    """There is a task."""
    ANSWERED = "answered"
    """What came of the task is a message."""
    SKIPPED = "skipped"
    """Nothing is asked of them, for the reason that is given."""


class SkipReason(StrEnum):
    """Why somebody who was to answer is not asked. Values are stored: they are never renamed."""

    MUTED = "muted"
    """An operator has muted it in the channel for a time."""
    COOLING = "cooling"
    """It was asked less than the channel's `cooldown` ago."""
    RATE_LIMITED = "rate_limited"
    """It was asked as often in the last hour as the channel's `rate_limit` allows."""
    LOOP = "loop"
    """Agents would talk among themselves for longer than the channel allows, or one would come to itself."""
    GONE = "gone"
    """There is no such specialist for the channel's creator any more."""
    REFUSED = "refused"
    """No task can be made, as the channel's working directory is not to be had."""


class MarkVerdict(StrEnum):
    """What an operator says of a decision."""

    RIGHT = "right"
    SHOULD_HAVE = "should_have"
    """Somebody should have answered."""
    SHOULD_NOT_HAVE = "should_not_have"
    """Somebody answered who should not have."""
