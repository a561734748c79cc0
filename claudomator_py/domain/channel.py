"""Channels: their settings, the messages in them, and what becomes of those who should answer."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, Field

from claudomator_py.domain.fields import Count, Directory, Distinct, Duration, EnvName, Line, Name, Strict, Text
from claudomator_py.domain.units import DAY_MS

MAX_KEYWORDS = 100
MAX_OPTED_OUT = 1_000


class TriageReason(StrEnum):
    """The rule that decided. Values are stored and part of the API: never rename them."""

    DIRECT_MENTION = "direct_mention"
    """The message addresses somebody with ``@name``."""
    REPLY_TO_AGENT = "reply_to_agent"
    """The message replies to an agent's message."""
    PRIMARY_AGENT = "primary_agent"
    """The channel's primary answers messages that address nobody."""
    NO_TRIGGER = "no_trigger"
    """Nobody answers."""


class PrimaryRule(StrEnum):
    """When the channel's primary answers a message that addresses nobody."""

    OFF = "off"
    ALWAYS = "always"
    KEYWORDS = "keywords"
    """The message contains one of the channel's keywords."""
    MODEL = "model"
    """A cheap model says yes."""
    CASCADE = "cascade"
    """A keyword, or otherwise the model's yes, if there are keywords and a model."""


class MentionRule(StrEnum):
    """Who answers a message that addresses several agents."""

    ALL = "all"
    FIRST = "first"
    BEST = "best"
    """The agent whose card fits best."""
    ASK = "ask"
    """Nobody, until the author has chosen."""


class Switch(StrEnum):
    """Whether a rule is active."""

    ON = "on"
    OFF = "off"


class MemberRole(StrEnum):
    """Type of participant."""

    AGENT = "agent"
    USER = "user"


class MessageRole(StrEnum):
    """In which role a message was written."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


Keyword = Annotated[Line, Field(max_length=100)]
PersonId = Annotated[Line, Field(max_length=128)]


class TriageSettings(Strict):
    """A channel's settings on who answers."""

    primary: PrimaryRule = Field(
        PrimaryRule.CASCADE, description="When the channel's primary answers messages that address nobody else."
    )
    keywords: Annotated[tuple[Keyword, ...], Field(max_length=MAX_KEYWORDS), Distinct] = Field(
        (), description="Words or phrases that the primary answers to, for `keywords` and `cascade`."
    )
    reply_chains: Switch = Field(Switch.ON, description="Whether an answer to an agent's message goes to that agent.")
    mentions: MentionRule = Field(MentionRule.ALL, description="Who answers a message that mentions several.")
    opt_out: Annotated[tuple[PersonId, ...], Field(max_length=MAX_OPTED_OUT), Distinct] = Field(
        (), description="Participants whose messages the primary does not answer, by id."
    )


class Member(BaseModel, frozen=True):
    """A participant in a channel."""

    id: str
    username: str | None = None
    display_name: str | None = None
    role: MemberRole


BY_WEBHOOK: Final = "webhook:"
BY_SLACK: Final = "slack:"
FROM_OUTSIDE: Final = (BY_WEBHOOK, BY_SLACK)
"""Prefixes of the ids of authors who write through a webhook and are unknown to the daemon."""


class AnsweredMessage(BaseModel, frozen=True):
    """The message that another one replies to."""

    id: str
    author: str
    """Id of the author, who may have left the channel."""
    role: MessageRole


class Incoming(BaseModel, frozen=True):
    """A message for which to decide who answers."""

    author: str
    """Id of the author."""
    role: MessageRole = MessageRole.USER
    content: str
    """Data, whatever it says."""
    reply_to: AnsweredMessage | None = None


class TriageDecision(BaseModel, frozen=True):
    """Who answers a message, and when."""

    reason: TriageReason
    agents: tuple[str, ...] = ()
    """Ids of the agents that answer, in the order of the text."""
    should_respond_immediately: bool = False
    should_respond_after_processing: bool = False
    """After its attachments have been processed."""
    confidence: float = 1.0
    """0 to 1."""
    ambiguous: tuple[str, ...] = ()
    """Mentions that match several participants, as written, without duplicates."""
    ask_among: tuple[str, ...] = ()
    """Ids from which the author must choose, with ``mentions: ask``; none of these agents answers yet."""


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


class Attachment(BaseModel, frozen=True):
    """An attachment of a message."""

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
