"""The shapes and operations of channels. Field order is the order of the JSON."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from claudomator_py.domain.channel import (
    MAX_ATTACHMENT_LENGTH,
    AnswerState,
    AttachmentState,
    ChannelSettings,
    MarkVerdict,
    MemberRole,
    MessageRole,
    NewChannel,
    NewMessage,
    TriageDecision,
    TriageReason,
)
from claudomator_py.domain.fields import Duration, Name, Strict, Text
from claudomator_py.domain.shape import Instant, Page, View, all_items
from claudomator_py.domain.units import DAY_MS
from claudomator_py.surface import (
    OPERATE,
    READ,
    Calls,
    Cursor,
    Days,
    InPath,
    JsonBody,
    JsonField,
    Key,
    Limit,
    Version,
    operation,
)


class ParticipantView(View):
    """Somebody who takes part."""

    id: str
    username: str | None = None
    display_name: str | None = None
    role: MemberRole
    muted_until: Instant | None = None
    """A specialist is not asked anything until then."""


class ChannelView(View):
    """A channel."""

    id: str
    name: str
    version: int
    """Rises with each change of its settings and participants."""
    primary: str | None = None
    """The specialist who answers messages that name none."""
    organisation: str | None = None
    """The organisation that owns it."""
    creator: str
    """The specialists that may take part are the creator's."""
    settings: ChannelSettings
    participants: tuple[ParticipantView, ...] = ()
    created_at: Instant
    updated_at: Instant

    def silence(self, content: str) -> str | None:
        """Return, as a sentence, whom a message that nobody answers could have addressed; None if it addresses nobody,
        or if nobody could answer."""
        names = [f"@{member.id}" for member in self.participants if member.role == "agent"]
        if not names or "@" not in content or any(name in content for name in names):
            return None
        return f"It addresses nobody here; those who answer are {', '.join(names)}."


class AttachmentView(View):
    """An attachment of a message."""

    id: str
    name: str
    media_type: str
    state: AttachmentState
    chars: int | None = None
    """The length of its text; null: unknown."""


class TriageView(TriageDecision, View):
    """Who answers a message, by which rule, and how certain that is."""


class AnswerView(View):
    """Somebody who was chosen to answer a message, and what came of it."""

    specialist: str
    state: AnswerState
    skipped: str | None = None
    """Why they are not asked, such as ``muted``."""
    task_id: str | None = None
    message_id: int | None = None
    """The message that is the answer."""


class MessageView(View):
    """A message."""

    id: int
    """Ids rise in the order of messages."""
    author: str
    role: MessageRole
    content: str
    reply_to: int | None = None
    attachments: tuple[AttachmentView, ...] = ()
    decision: TriageView
    answers: tuple[AnswerView, ...] = ()
    hops: int
    """The number of agents' messages that led to it, including itself; 0: a person wrote it."""
    verdict: MarkVerdict | None = None
    """What an operator says of the choice of who answered."""
    marked_by: str | None = None
    created_at: Instant


class SettingsRequest(Strict):
    """The settings of a channel, complete: what is left out gets its default."""

    primary: Name | None = Field(None, description="The specialist who answers messages that address nobody, by id.")
    settings: ChannelSettings = Field(ChannelSettings(), description="The channel's settings.")


class JoinRequest(Strict):
    """Who is to take part."""

    specialist: Name = Field(description="A specialist, by the id of its card.")


class MuteRequest(Strict):
    """How long to mute a specialist."""

    duration: Annotated[Duration, Field(gt=0, le=365 * DAY_MS)] | None = Field(
        None, description="How long, from now. Default: unmute."
    )


class AttachmentRequest(Strict):
    """The result of processing an attachment."""

    state: AttachmentState = Field(description="The state of its processing.")
    text: Annotated[Text, Field(max_length=MAX_ATTACHMENT_LENGTH)] | None = Field(
        None, description="Its content as text, if it has any."
    )


class MarkRequest(Strict):
    """What an operator says of the choice of who answered a message."""

    verdict: MarkVerdict | None = Field(None, description="The verdict. Default: clear it.")


class RuleStatsView(View):
    """How often a rule decided, and what operators said of its decisions."""

    reason: TriageReason
    messages: int
    right: int
    should_have: int
    should_not_have: int
    shadow_differs: int
    """Those of its messages that the shadow settings would have decided differently."""


class StrategiesView(View):
    """How the channel's settings and its shadow settings did on the same messages: those that both decided and an
    operator has marked."""

    marked: int
    right: int
    """Decided rightly by the channel's settings."""
    shadow_right: int
    """Decided rightly by the shadow settings."""


class ChannelStatsView(View):
    """How triage did in a channel over the last days."""

    days: int
    messages: int
    """By people and agents."""
    rules: tuple[RuleStatsView, ...]
    shadowed: int
    """Messages that the shadow settings decided as well."""
    compared: StrategiesView
    skipped: dict[str, int]
    """How many were chosen to answer but not asked, by the reason."""
    answered: int


Channel = Annotated[str, InPath("A channel's id or name.", ambiguous=True)]
Participant = Annotated[str, InPath("A participant's id.")]
Message = Annotated[int, InPath("A message's id.")]
Attachment = Annotated[str, InPath("An attachment's id, within its message.", 100)]
_CREATED = {
    "the_least": {"name": "shop"},
    "with_settings": {
        "name": "support",
        "settings": {"primary": "keywords", "keywords": ["help", "broken"], "cooldown": "30s"},
    },
}
_POSTED = {
    "a_question": {"content": "@plumber, why does the tap drip?"},
    "with_an_attachment": {
        "content": "What does this say?",
        "attachments": [{"id": "a1", "name": "log.txt", "media_type": "text/plain", "text": "error 7"}],
    },
}
_SET = {"nobody_by_itself": {"primary": None, "settings": {"primary": "off"}}}
_MUTED = {"for_a_time": {"duration": "2h"}, "no_longer": {"duration": None}}
_PROCESSED = {"with_text": {"state": "processed", "text": "Invoice 7"}}
_MARKED = {"nobody_should": {"verdict": "should_not_have"}, "nothing_more": {"verdict": None}}


class ChannelCalls(Calls):
    """The operations on channels, as the client calls them."""

    @operation("GET /v1/channels", "listChannels", READ, "Channels, by id")
    def channels(self, *, cursor: Cursor = None, limit: Limit = 50) -> Page[ChannelView]:
        """Those of the caller's organisation; all if the caller has none. Any other answers 404, as if it did not
        exist."""

    def all_channels(self) -> Iterator[ChannelView]:
        """Return all channels, by id, fetched as they are read."""
        return all_items(lambda cursor, limit: self.channels(cursor=cursor, limit=limit))

    @operation(
        "POST /v1/channels",
        "createChannel",
        OPERATE,
        "Create a channel",
        status=201,
        answer_note="Created: it is durable",
        location="/v1/channels/{id}",
    )
    def create_channel(
        self, wanted: Annotated[NewChannel, JsonBody(_CREATED)], *, idempotency_key: Key = None
    ) -> ChannelView:
        """The specialists named have to exist for the caller. 409 for a name that is taken."""

    @operation("GET /v1/channels/{channel}", "getChannel", READ, "One channel")
    def channel(self, channel: Channel) -> ChannelView:
        """The channel with its settings and participants. With If-None-Match, 304 if neither has changed since."""

    @operation("PUT /v1/channels/{channel}/settings", "changeChannelSettings", OPERATE, "Change a channel's settings")
    def change_channel_settings(
        self, channel: Channel, wanted: Annotated[SettingsRequest, JsonBody(_SET)], *, if_version: Version = None
    ) -> ChannelView:
        """Replaces the settings and the primary, who takes part from then on. Only an administrator of the daemon may
        set up a webhook, which names a secret of the daemon."""

    @operation("DELETE /v1/channels/{channel}", "deleteChannel", OPERATE, "Delete a channel", status=204)
    def delete_channel(self, channel: Channel, *, if_version: Version = None) -> None:
        """Delete it with its messages. The tasks by which specialists answer stay, and nobody posts their results."""

    @operation("POST /v1/channels/{channel}/participants", "joinChannel", OPERATE, "Add a specialist to a channel")
    def join_channel(
        self,
        channel: Channel,
        specialist: Annotated[str, JsonField(JoinRequest, {"a_specialist": {"specialist": "plumber"}})],
    ) -> ChannelView:
        """Repeating it changes nothing. People join by writing."""

    @operation(
        "DELETE /v1/channels/{channel}/participants/{participant}", "leaveChannel", OPERATE, "Remove a participant"
    )
    def leave_channel(self, channel: Channel, participant: Participant) -> ChannelView:
        """Repeating it changes nothing. Their messages stay."""

    @operation(
        "POST /v1/channels/{channel}/participants/{participant}/mute",
        "muteParticipant",
        OPERATE,
        "Mute a specialist for a time",
    )
    def mute_participant(
        self, channel: Channel, participant: Participant, wanted: Annotated[MuteRequest | None, JsonBody(_MUTED)] = None
    ) -> ChannelView:
        """Nobody answers messages to it from that time, not even later. Without a duration, it is unmuted."""

    @operation("GET /v1/channels/{channel}/messages", "listMessages", READ, "Messages of a channel, newest first")
    def messages(self, channel: Channel, *, cursor: Cursor = None, limit: Limit = 50) -> Page[MessageView]:
        """Each with the decision on who answers it, and what came of that."""

    @operation(
        "POST /v1/channels/{channel}/messages",
        "postMessage",
        OPERATE,
        "Post a message",
        status=201,
        answer_note="Posted: it is durable, and it is decided who answers",
    )
    def post_message(
        self, channel: Channel, message: Annotated[NewMessage, JsonBody(_POSTED)], *, idempotency_key: Key = None
    ) -> MessageView:
        """As the caller. Each specialist that answers gets a task, whose result is posted as a reply to the message."""

    @operation("GET /v1/channels/{channel}/messages/{message}", "getMessage", READ, "One message")
    def message(self, channel: Channel, message: Message) -> MessageView:
        """The message with the decision on who answers it, and what came of that."""

    @operation(
        "PUT /v1/channels/{channel}/messages/{message}/attachments/{attachment}",
        "processAttachment",
        OPERATE,
        "Record the result of processing an attachment",
    )
    def process_attachment(
        self,
        channel: Channel,
        message: Message,
        attachment: Attachment,
        wanted: Annotated[AttachmentRequest, JsonBody(_PROCESSED)],
    ) -> MessageView:
        """After the last one, the specialists that wait for the attachments are asked."""

    @operation(
        "PUT /v1/channels/{channel}/messages/{message}/verdict",
        "markMessage",
        OPERATE,
        "Mark whether the right participants answered a message",
    )
    def mark_message(
        self,
        channel: Channel,
        message: Message,
        verdict: Annotated[MarkVerdict | None, JsonField(MarkRequest, _MARKED, required=False)],
    ) -> MessageView:
        """Counted by rule in the channel's statistics. Without a verdict, the mark is cleared."""

    @operation("GET /v1/channels/{channel}/stats", "getChannelStats", READ, "Triage statistics of a channel")
    def channel_stats(self, channel: Channel, *, days: Days = 30) -> ChannelStatsView:
        """How often each rule decided, how operators marked its decisions, and how often the settings in `shadow` would
        have decided differently."""
