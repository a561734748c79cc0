"""Channels: their settings, the messages in them, and what becomes of those who should answer."""

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
    """How messages come in from outside. Exactly one of secret_env and secret_file is needed."""

    kind: WebhookKind = Field(WebhookKind.PLAIN, description="Who sends: `plain` JSON, or `slack`.")
    secret_env: EnvName | None = Field(
        None, description="Environment variable of the daemon that holds the secret for the signature."
    )
    secret_file: Directory | None = Field(None, description="File that holds it, readable by the daemon's user alone.")


class ChannelSettings(TriageSettings):
    """A channel's settings."""

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
    """How far an attachment has been processed."""

    PENDING = "pending"
    PROCESSED = "processed"
    FAILED = "failed"


class NewAttachment(Strict):
    """An attachment being submitted. If its text is included, it counts as processed."""

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
    """Its content, as far as known."""


class NewMessage(Strict):
    """A message being submitted."""

    content: Text = Field(max_length=MAX_MESSAGE_LENGTH, description="What it says.")
    reply_to: Count | None = Field(None, ge=1, description="The message that it answers, by id.")
    attachments: Annotated[tuple[NewAttachment, ...], Field(max_length=MAX_ATTACHMENTS)] = Field(
        (), description="What comes with it."
    )


class NewChannel(Strict):
    """A channel being created."""

    name: Name = Field(description="Lower-case letters, digits, `-`, `_` and `.`.")
    primary: Name | None = Field(
        None, description="The specialist who answers messages that address nobody, by its id."
    )
    participants: Annotated[tuple[Name, ...], Field(max_length=MAX_PARTICIPANTS), Distinct] = Field(
        (), description="Specialists who take part from the beginning, by their ids."
    )
    settings: ChannelSettings = Field(ChannelSettings(), description="Its settings.")


class AnswerState(StrEnum):
    """State of a specialist that should answer a message. Values are stored: never rename them."""

    HELD = "held"
    """Attachments are processed first."""
    ASKED = "asked"
    """A task was created."""
    ANSWERED = "answered"
    """The task's result was posted as a message."""
    SKIPPED = "skipped"
    """The specialist is not asked, for the reason given."""


class SkipReason(StrEnum):
    """Why a specialist that should answer is not asked. Values are stored: never rename them."""

    MUTED = "muted"
    """An operator has temporarily muted it in the channel."""
    COOLING = "cooling"
    """It was asked less than the channel's `cooldown` ago."""
    RATE_LIMITED = "rate_limited"
    """It was asked as often in the last hour as the channel's `rate_limit` allows."""
    LOOP = "loop"
    """Agents would talk among themselves for longer than the channel allows, or an agent would answer itself."""
    GONE = "gone"
    """The specialist no longer exists for the channel's creator."""
    REFUSED = "refused"
    """No task can be made because the channel's working directory is unavailable."""


class MarkVerdict(StrEnum):
    """An operator's judgement of a decision."""

    RIGHT = "right"
    SHOULD_HAVE = "should_have"
    """Somebody should have answered."""
    SHOULD_NOT_HAVE = "should_not_have"
    """Somebody answered who should not have."""
