"""/v1/channels: where people and specialists write to each other, who takes part, and who answers what."""

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.api.conditional import NOT_MODIFIED, IdempotencyKey, IfMatch, IfNoneMatch
from claudomator_py.api.operation import Allowed, Operations, Tagged, body, location
from claudomator_py.api.request import DIGITS, PageQuery, WholeNumber
from claudomator_py.domain.channel import NewChannel, NewMessage
from claudomator_py.domain.views import Page
from claudomator_py.domain.views.channels import (
    AttachmentRequest,
    ChannelStatsView,
    ChannelView,
    JoinRequest,
    MarkRequest,
    MessageView,
    MuteRequest,
    SettingsRequest,
)
from claudomator_py.surface.operation import OPERATE, READ

channels = Operations("channels")

ChannelRef = Annotated[str, Path(max_length=128, description="A channel's id or name.")]
ParticipantId = Annotated[str, Path(max_length=128, description="A participant's id.")]
MessageId = Annotated[int, Path(ge=1, le=2**53, description="A message's id."), DIGITS]
AttachmentId = Annotated[str, Path(max_length=100, description="An attachment's id, within its message.")]


class ChannelStatsQuery(BaseModel):
    """Of which time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: WholeNumber = Field(default=30, ge=1, le=365, description="Number of days to count, up to now, 1 to 365.")


@channels.operation("GET /v1/channels", "listChannels", READ, "Channels, by id")
def list_channels(granted: Allowed, query: Annotated[PageQuery, Query()]) -> Page[ChannelView]:
    """Those of the organisation of whoever asks; without one, all. Others are refused as what does not exist."""
    return granted.channels.page(query.cursor, query.limit)


@channels.operation(
    "POST /v1/channels",
    "createChannel",
    OPERATE,
    "Create a channel",
    status=201,
    refuses=(403,),
    told="Created: it is durable",
    headers=location("URL of the channel"),
)
def create(
    granted: Allowed,
    wanted: Annotated[
        NewChannel,
        body(
            NewChannel,
            required=True,
            the_least={"name": "shop"},
            with_settings={
                "name": "support",
                "settings": {"primary": "keywords", "keywords": ["help", "broken"], "cooldown": "30s"},
            },
        ),
    ],
    key: IdempotencyKey,
    tagged: Tagged,
    response: Response,
) -> ChannelView:
    """With these specialists, who have to exist for whoever asks. 409 for a name that is taken."""
    view = tagged(granted.channels.create(wanted, key=key))
    response.headers["Location"] = f"/v1/channels/{view.id}"
    return view


@channels.operation(
    "GET /v1/channels/{channel}",
    "getChannel",
    READ,
    "One channel",
    refuses=(404, 409),
    responses={304: NOT_MODIFIED},
    response_model=ChannelView,
)
def get_channel(
    granted: Allowed, channel: ChannelRef, if_none_match: IfNoneMatch, tagged: Tagged
) -> ChannelView | Response:
    """The channel with its settings and participants. With If-None-Match, 304 says that neither has changed since."""
    return tagged.unless(if_none_match, granted.channels.one(channel))


@channels.operation(
    "PUT /v1/channels/{channel}/settings",
    "changeChannelSettings",
    OPERATE,
    "Change a channel's settings",
    refuses=(403, 404, 409),
)
def change_settings(
    granted: Allowed,
    channel: ChannelRef,
    wanted: Annotated[
        SettingsRequest,
        body(SettingsRequest, required=True, nobody_by_itself={"primary": None, "settings": {"primary": "off"}}),
    ],
    if_match: IfMatch,
    tagged: Tagged,
) -> ChannelView:
    """Replace its settings and its primary, who takes part from then on. A webhook, which names a secret of the daemon,
    is set up by an administrator of the daemon."""
    return tagged(granted.channels.change_settings(channel, wanted, versions=if_match))


@channels.operation(
    "POST /v1/channels/{channel}/participants",
    "joinChannel",
    OPERATE,
    "Add a specialist to a channel",
    refuses=(404, 409),
)
def join(
    granted: Allowed,
    channel: ChannelRef,
    wanted: Annotated[JoinRequest, body(JoinRequest, required=True, a_specialist={"specialist": "plumber"})],
    tagged: Tagged,
) -> ChannelView:
    """Harmless when repeated. People join by writing."""
    return tagged(granted.channels.join(channel, wanted))


@channels.operation(
    "DELETE /v1/channels/{channel}/participants/{participant}",
    "leaveChannel",
    OPERATE,
    "Remove a participant",
    refuses=(404, 409),
)
def leave(granted: Allowed, channel: ChannelRef, participant: ParticipantId, tagged: Tagged) -> ChannelView:
    """Harmless when repeated. What they have written stays."""
    return tagged(granted.channels.leave(channel, participant))


@channels.operation(
    "POST /v1/channels/{channel}/participants/{participant}/mute",
    "muteParticipant",
    OPERATE,
    "Mute a specialist for a time",
    refuses=(404, 409),
)
def mute(
    granted: Allowed,
    channel: ChannelRef,
    participant: ParticipantId,
    wanted: Annotated[MuteRequest, body(MuteRequest, for_a_time={"duration": "2h"}, no_longer={"duration": None})],
    tagged: Tagged,
) -> ChannelView:
    """Its messages of that time are answered by nobody, later either. Without a duration, it is asked again."""
    return tagged(granted.channels.mute(channel, participant, wanted))


@channels.operation(
    "GET /v1/channels/{channel}/messages",
    "listMessages",
    READ,
    "Messages of a channel, newest first",
    refuses=(404, 409),
)
def list_messages(granted: Allowed, channel: ChannelRef, query: Annotated[PageQuery, Query()]) -> Page[MessageView]:
    """Each with the decision who answers it, and what became of that."""
    return granted.channels.messages(channel, query.cursor, query.limit)


@channels.operation(
    "POST /v1/channels/{channel}/messages",
    "postMessage",
    OPERATE,
    "Post a message",
    status=201,
    refuses=(404, 409),
    told="Posted: it is durable, and who answers is decided",
)
def post(
    granted: Allowed,
    channel: ChannelRef,
    message: Annotated[
        NewMessage,
        body(
            NewMessage,
            required=True,
            a_question={"content": "@plumber, why does the tap drip?"},
            with_an_attachment={
                "content": "What does this say?",
                "attachments": [{"id": "a1", "name": "log.txt", "media_type": "text/plain", "text": "error 7"}],
            },
        ),
    ],
    key: IdempotencyKey,
) -> MessageView:
    """As whoever asks. Who answers gets a task, whose result is posted as a message that answers this one."""
    return granted.channels.post(channel, message, key=key)


@channels.operation(
    "GET /v1/channels/{channel}/messages/{message}", "getMessage", READ, "One message", refuses=(404, 409)
)
def get_message(granted: Allowed, channel: ChannelRef, message: MessageId) -> MessageView:
    """The message with the decision who answers it, and what became of that."""
    return granted.channels.message(channel, message)


@channels.operation(
    "PUT /v1/channels/{channel}/messages/{message}/attachments/{attachment}",
    "processAttachment",
    OPERATE,
    "Record the result of processing an attachment",
    refuses=(404, 409),
)
def process_attachment(
    granted: Allowed,
    channel: ChannelRef,
    message: MessageId,
    attachment: AttachmentId,
    wanted: Annotated[
        AttachmentRequest,
        body(AttachmentRequest, required=True, with_text={"state": "processed", "text": "Invoice 7"}),
    ],
) -> MessageView:
    """After the last one, those are asked who were to answer once all are processed."""
    return granted.channels.processed(channel, message, attachment, wanted)


@channels.operation(
    "PUT /v1/channels/{channel}/messages/{message}/verdict",
    "markMessage",
    OPERATE,
    "Mark whether the right participants answered a message",
    refuses=(404, 409),
)
def mark(
    granted: Allowed,
    channel: ChannelRef,
    message: MessageId,
    wanted: Annotated[
        MarkRequest, body(MarkRequest, nobody_should={"verdict": "should_not_have"}, nothing_more={"verdict": None})
    ],
) -> MessageView:
    """Counted by rule in the channel's statistics. Without a verdict, nothing is said any more."""
    return granted.channels.mark(channel, message, wanted)


@channels.operation(
    "GET /v1/channels/{channel}/stats", "getChannelStats", READ, "Triage statistics of a channel", refuses=(404, 409)
)
def stats(granted: Allowed, channel: ChannelRef, query: Annotated[ChannelStatsQuery, Query()]) -> ChannelStatsView:
    """How often each rule decided, what operators said of that, and how often the settings of `shadow` would have
    decided differently."""
    return granted.channels.stats(channel, query.days)
