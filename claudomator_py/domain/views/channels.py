"""The JSON shapes of channels. Field order is the order of the JSON."""

from typing import Annotated

from pydantic import Field

from claudomator_py.domain.channel import (
    LONGEST_ATTACHMENT,
    AnswerState,
    AttachmentState,
    ChannelSettings,
    MarkVerdict,
)
from claudomator_py.domain.fields import Duration, Name, Strict, Text
from claudomator_py.domain.triage import MessageRole, Role, TriageReason
from claudomator_py.domain.units import DAY_MS
from claudomator_py.domain.views.base import Instant, View


class ParticipantView(View):
    """Somebody who takes part. muted_until: a specialist is asked nothing until then."""

    id: str
    username: str | None = None
    display_name: str | None = None
    role: Role
    muted_until: Instant | None = None


class ChannelView(View):
    """A channel. version: rises with each change of its settings and participants."""

    id: str
    name: str
    version: int
    primary: str | None = None
    """The specialist who answers messages that name none."""
    organisation: str | None = None
    """Whose it is."""
    creator: str
    """Whose specialists may take part."""
    settings: ChannelSettings
    participants: tuple[ParticipantView, ...] = ()
    created_at: Instant
    updated_at: Instant


class AttachmentView(View):
    """An attachment of a message. chars: of its text; None: that is not known."""

    id: str
    name: str
    media_type: str
    state: AttachmentState
    chars: int | None = None


class TriageView(View):
    """Who answers a message, by which rule, and how certain that is, 0 to 1."""

    reason: TriageReason
    agents: tuple[str, ...] = ()
    should_respond_immediately: bool = False
    should_respond_after_processing: bool = False
    confidence: float = 1.0
    ambiguous: tuple[str, ...] = ()
    """Mentions that fit several who take part, as written."""
    ask_among: tuple[str, ...] = ()
    """Of whom the author is to choose."""


class AnswerView(View):
    """Somebody who is to answer a message, and what became of that."""

    specialist: str
    state: AnswerState
    skipped: str | None = None
    """Why nothing is asked of them, such as ``muted``."""
    task_id: str | None = None
    message_id: int | None = None
    """The message that is the answer."""


class MessageView(View):
    """A message. Ids rise in the order of messages. verdict: what an operator says of who answered."""

    id: int
    author: str
    role: MessageRole
    content: str
    reply_to: int | None = None
    attachments: tuple[AttachmentView, ...] = ()
    decision: TriageView
    answers: tuple[AnswerView, ...] = ()
    hops: int
    """How many messages of agents led to it, itself included; 0: a person wrote it."""
    verdict: MarkVerdict | None = None
    marked_by: str | None = None
    created_at: Instant


class SettingsRequest(Strict):
    """What a channel is to be set to: all of it, as what is left out has its default."""

    primary: Name | None = Field(
        None, description="The specialist who answers messages that address nobody, by its id."
    )
    settings: ChannelSettings = Field(ChannelSettings(), description="Its settings.")


class JoinRequest(Strict):
    """Who is to take part."""

    specialist: Name = Field(description="A specialist, by the id of its card.")


class MuteRequest(Strict):
    """For how long to ask a specialist nothing."""

    duration: Annotated[Duration, Field(gt=0, le=365 * DAY_MS)] | None = Field(
        None, description="How long, from now. Default: unmute it."
    )


class AttachmentRequest(Strict):
    """What came of processing an attachment."""

    state: AttachmentState = Field(description="State of its processing.")
    text: Annotated[Text, Field(max_length=LONGEST_ATTACHMENT)] | None = Field(
        None, description="Its content as text, if it has any."
    )


class MarkRequest(Strict):
    """What an operator says of who answered a message."""

    verdict: MarkVerdict | None = Field(None, description="The verdict. Default: clear it.")


class RuleStatsView(View):
    """How often a rule decided, and what operators said of that."""

    reason: TriageReason
    messages: int
    right: int
    should_have: int
    should_not_have: int
    shadow_differs: int
    """Of its messages, those about which the channel's other settings would have decided differently."""


class StrategiesView(View):
    """How the channel's settings and its other ones did on the same messages: those about which both decided and an
    operator has said what was right."""

    marked: int
    right: int
    """Decided right by the channel's settings."""
    shadow_right: int
    """Decided right by the other ones."""


class ChannelStatsView(View):
    """How triage did in a channel in the last days."""

    days: int
    messages: int
    """Of people and agents."""
    rules: tuple[RuleStatsView, ...]
    shadowed: int
    """Messages about which the channel's other settings decided as well."""
    compared: StrategiesView
    skipped: dict[str, int]
    """Those who were to answer and were not asked, by why."""
    answered: int
