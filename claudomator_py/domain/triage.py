"""Who answers a message in a channel: what a channel says of it, what a message is, and the decision as a value."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.fields import Distinct, Line, Strict

MAX_KEYWORDS = 100
MAX_OPTED_OUT = 1_000


class TriageReason(StrEnum):
    """Which rule decided. Values are stored and shown to programs: they are never renamed."""

    DIRECT_MENTION = "direct_mention"
    """The message addresses somebody with ``@name``."""
    REPLY_TO_AGENT = "reply_to_agent"
    """It answers a message of an agent."""
    PRIMARY_AGENT = "primary_agent"
    """The channel's primary answers messages that address nobody."""
    NO_TRIGGER = "no_trigger"
    """Nobody answers."""


class PrimaryRule(StrEnum):
    """When the channel's primary answers a message that addresses nobody."""

    OFF = "off"
    ALWAYS = "always"
    KEYWORDS = "keywords"
    """It has one of the channel's keywords."""
    MODEL = "model"
    """A cheap model says yes."""
    CASCADE = "cascade"
    """A keyword, or else the model's yes, as far as there are keywords and a model."""


class MentionRule(StrEnum):
    """Who answers a message that addresses several."""

    ALL = "all"
    FIRST = "first"
    BEST = "best"
    """The one whose card fits it best."""
    ASK = "ask"
    """Nobody, until the author has said who."""


class Switch(StrEnum):
    """Whether a rule is in use."""

    ON = "on"
    OFF = "off"


class Role(StrEnum):
    """Who takes part."""

    AGENT = "agent"
    USER = "user"


class MessageRole(StrEnum):
    """As what a message was written."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


Keyword = Annotated[Line, Field(max_length=100)]
PersonId = Annotated[Line, Field(max_length=128)]


class TriageSettings(Strict):
    """What a channel says of who answers."""

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
    """Somebody who takes part in a channel."""

    model_config = ConfigDict(frozen=True)

    id: str
    username: str | None = None
    display_name: str | None = None
    role: Role


BY_WEBHOOK: Final = "webhook:"
BY_SLACK: Final = "slack:"
FROM_OUTSIDE: Final = (BY_WEBHOOK, BY_SLACK)
"""What the id of an author begins with who writes through a webhook, and whom the daemon does not know."""


class AnsweredMessage(BaseModel):
    """The message that another one answers."""

    model_config = ConfigDict(frozen=True)

    id: str
    author: str
    """Id of who wrote it, whether or not they still take part."""
    role: MessageRole


class Incoming(BaseModel):
    """A message about which it is to be decided who answers."""

    model_config = ConfigDict(frozen=True)

    author: str
    """Id."""
    role: MessageRole = MessageRole.USER
    content: str
    """Data, whatever it says."""
    reply_to: AnsweredMessage | None = None


class TriageDecision(BaseModel):
    """Who answers a message, and when."""

    model_config = ConfigDict(frozen=True)

    reason: TriageReason
    agents: tuple[str, ...] = ()
    """Ids of those who answer, in the order of the text."""
    should_respond_immediately: bool = False
    should_respond_after_processing: bool = False
    """Once its attachments have been processed."""
    confidence: float = 1.0
    """0 to 1."""
    ambiguous: tuple[str, ...] = ()
    """Mentions that fit several who take part, as written, each once."""
    ask_among: tuple[str, ...] = ()
    """Ids of those of whom the author is to choose, with ``mentions: ask``; none of them answers yet."""
