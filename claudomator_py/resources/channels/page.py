"""/channels: the channels, and one conversation, to read and to write in."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Form, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import LINES, PART, Cursor, Field, Ref, read_fields
from claudomator_py.api.page.rendering import button, render
from claudomator_py.api.request import DIGITS
from claudomator_py.domain.channel import (
    MAX_MESSAGE_LENGTH,
    AnswerState,
    MarkVerdict,
    MemberRole,
    NewChannel,
    NewMessage,
    TriageReason,
)
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError
from claudomator_py.domain.units import counted
from claudomator_py.resources.channels import AnswerView, ChannelCalls, ChannelView, MessageView
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.session import Session
from claudomator_py.surface.table import Link

ReplyTo = Annotated[int | None, Query(alias="reply", ge=1, le=2**53), DIGITS]
MessageText = Annotated[str, Form(max_length=2 * MAX_MESSAGE_LENGTH), LINES]
_REASONS = {
    TriageReason.DIRECT_MENTION: "mentioned",
    TriageReason.REPLY_TO_AGENT: "a reply to an agent",
    TriageReason.PRIMARY_AGENT: "for the primary",
    TriageReason.NO_TRIGGER: "for nobody",
}
_STATES = {
    AnswerState.HELD: "waits for attachments",
    AnswerState.ASKED: "was asked",
    AnswerState.ANSWERED: "answered",
    AnswerState.SKIPPED: "was not asked",
}
VERDICTS = {
    MarkVerdict.RIGHT: "Right",
    MarkVerdict.SHOULD_HAVE: "Should have been answered",
    MarkVerdict.SHOULD_NOT_HAVE: "Should not have been answered",
}


routes = UnlistedRoutes("/channels")


@routes.get("", "listChannels")
def show_all(granted: Allowed, cursor: Cursor = None) -> Response:
    return _list(granted, cursor)


@routes.post("", "createChannel")
def create(granted: Allowed, name: Field = "", specialists: Field = "", primary: Field = "") -> Response:
    try:
        fields = {"name": name.strip(), "participants": specialists.replace(",", " ").split()}
        if primary.strip():
            fields["primary"] = primary.strip()
        made = granted[Channels].create(read_fields(NewChannel, fields))
    except (Conflict, Invalid) as refusal:
        return _list(granted, None, refusal, {"name": name, "specialists": specialists, "primary": primary})
    return RedirectResponse(url_of(made.id), 303)


@routes.get("/{channel}", "getChannel")
def show(granted: Allowed, channel: Ref, cursor: Cursor = None, reply_to: ReplyTo = None) -> Response:
    return _page(granted, channel, cursor=cursor, reply_to=reply_to)


@routes.post("/{channel}/messages", "postMessage")
def post(granted: Allowed, channel: Ref, text: MessageText = "", reply_to: Field = "") -> Response:
    try:
        fields: dict[str, object] = {"content": text}
        if reply_to.isascii() and reply_to.isdecimal():
            fields["reply_to"] = int(reply_to[:16])
        posted = granted[Channels].post(channel, read_fields(NewMessage, fields))
    except (Conflict, Invalid) as refusal:
        return _page(granted, channel, refusal=refusal, text=text)
    return RedirectResponse(f"{url_of(granted[Channels].get(channel).id)}#message-{posted.id}", 303)


def _list(
    granted: Session,
    cursor: str | None,
    refusal: ServiceError | None = None,
    given: dict[str, str] | None = None,
) -> Response:
    part = granted[Channels].page(cursor, PART)
    values = {
        "rows": [(channel, _facts_of(channel)) for channel in part.items],
        "next_cursor": part.next_cursor,
        "given": given or {"name": "", "specialists": "", "primary": ""},
    }
    return render("channels.html", values, granted, refusal=refusal)


def _page(
    granted: Session,
    channel: str,
    *,
    cursor: str | None = None,
    reply_to: int | None = None,
    refusal: ServiceError | None = None,
    text: str = "",
) -> Response:
    view = granted[Channels].get(channel)
    part = granted[Channels].messages(view.id, cursor, PART)
    messages = [
        (message, view.name if message.author == view.id else message.author, _about(view, message))
        for message in reversed(part.items)
    ]
    values = {
        "channel": view,
        "url": url_of(view.id),
        "settings": _settings_of(view),
        "messages": messages,
        "last": f", last by {messages[-1][1]}" if messages else "",
        "stats": granted[Channels].stats(view.id),
        "reasons": _REASONS,
        "verdicts": VERDICTS,
        "next_cursor": part.next_cursor,
        "reply_to": reply_to,
        "text": text,
    }
    return render("channel.html", values, granted, refusal=refusal)


_PARTICIPANTS = "/channels/{channel}#participants"
button(
    routes,
    "/{channel}/join",
    ChannelCalls.join_channel,
    Channels,
    _PARTICIPANTS,
    again=lambda granted, given, refusal: _page(granted, given["channel"], refusal=refusal),
)
button(routes, "/{channel}/participants/{participant}/leave", ChannelCalls.leave_channel, Channels, _PARTICIPANTS)
button(routes, "/{channel}/participants/{participant}/mute", ChannelCalls.mute_participant, Channels, _PARTICIPANTS)
button(
    routes,
    "/{channel}/messages/{message}/verdict",
    ChannelCalls.mark_message,
    Channels,
    "/channels/{channel}#message-{message}",
)


def url_of(channel_id: str) -> str:
    """Return the path of its page."""
    return f"/channels/{channel_id}"


def _facts_of(channel: ChannelView) -> tuple[str, ...]:
    """Return the facts of a row of the list, in words."""
    agents = sum(participant.role is MemberRole.AGENT for participant in channel.participants)
    people = len(channel.participants) - agents
    meta = [counted(agents, "specialist"), "1 person" if people == 1 else f"{people:,} people"]
    if channel.primary is not None:
        meta.append(f"primary {channel.primary}, {channel.settings.primary.value}")
    meta.append(f"by {channel.creator}" + (f" of {channel.organisation}" if channel.organisation else ""))
    return tuple(meta)


def _settings_of(channel: ChannelView) -> Sequence[tuple[str, str | None]]:
    settings = channel.settings
    return [
        ("Primary", f"{channel.primary or 'nobody'}, {settings.primary.value}"),
        ("Keywords", ", ".join(settings.keywords)),
        ("Replies to agents", settings.reply_chains.value),
        ("Several mentions", settings.mentions.value),
        ("Most answers", f"{settings.rate_limit} an hour by each specialist"),
        ("Agents in a row", str(settings.max_hops)),
        ("Works in", settings.working_dir),
        ("Incoming webhook", None if settings.webhook is None else settings.webhook.kind.value),
    ]


def _about(channel: ChannelView, message: MessageView) -> Sequence[Link]:
    """Return which rule decided who answers, and who was chosen, with a link to the task or to the answer. A person
    whose message nobody answers is told whom it could have addressed."""
    decision = message.decision
    is_silent = decision.reason is TriageReason.NO_TRIGGER and not message.hops
    silence = channel.silence(message.content) if is_silent else None
    words = [f"message {message.id}", silence or _REASONS[decision.reason]]
    if decision.ambiguous:
        words.append(f"ambiguous: {', '.join(decision.ambiguous)}")
    if decision.ask_among:
        words.append(f"to choose from: {', '.join(decision.ask_among)}")
    return [*map(Link, words), *map(_answer, message.answers)]


def _answer(answer: AnswerView) -> Link:
    words = f"{answer.specialist} {_STATES[answer.state]}" + (f": {answer.skipped}" if answer.skipped else "")
    if answer.message_id is not None:
        return Link(words, f"#message-{answer.message_id}")
    return Link(words, None if answer.task_id is None else f"/tasks/{answer.task_id}")
