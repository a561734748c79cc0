"""Who answers a message in a channel: the channel's settings, the message, and the decision as a value."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.fields import Distinct, Line, Strict

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


class Role(StrEnum):
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


class Member(BaseModel):
    """A participant in a channel."""

    model_config = ConfigDict(frozen=True)

    id: str
    username: str | None = None
    display_name: str | None = None
    role: Role


BY_WEBHOOK: Final = "webhook:"
BY_SLACK: Final = "slack:"
FROM_OUTSIDE: Final = (BY_WEBHOOK, BY_SLACK)
"""Prefixes of the ids of authors who write through a webhook and are unknown to the daemon."""


class AnsweredMessage(BaseModel):
    """The message that another one replies to."""

    model_config = ConfigDict(frozen=True)

    id: str
    author: str
    """Id of the author, who may have left the channel."""
    role: MessageRole


class Incoming(BaseModel):
    """A message for which to decide who answers."""

    model_config = ConfigDict(frozen=True)

    author: str
    """Id of the author."""
    role: MessageRole = MessageRole.USER
    content: str
    """Data, whatever it says."""
    reply_to: AnsweredMessage | None = None


class TriageDecision(BaseModel):
    """Who answers a message, and when."""

    model_config = ConfigDict(frozen=True)

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
