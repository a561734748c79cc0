"""/channels: the channels, and one conversation, to read and to write in."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Path, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.guard.roles import Asking
from claudomator_py.api.operation import guarded
from claudomator_py.api.page.formatting import read_fields
from claudomator_py.api.page.rendering import render
from claudomator_py.api.problem import status_of
from claudomator_py.api.request import DIGITS
from claudomator_py.domain.channel import MAX_MESSAGE_LENGTH, AnswerState, MarkVerdict, NewChannel, NewMessage
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.triage import Role, TriageReason
from claudomator_py.resources.channels import (
    AnswerView,
    ChannelStatsView,
    ChannelView,
    JoinRequest,
    MarkRequest,
    MessageView,
    MuteRequest,
    ParticipantView,
    RuleStatsView,
    StrategiesView,
)
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.session import Access, Session
from claudomator_py.values import dataclass

_PART = 50
Cursor = Annotated[str | None, Query(max_length=500)]
ChannelRef = Annotated[str, Path(max_length=128)]
MemberId = Annotated[str, Path(max_length=128)]
MessageId = Annotated[int, Path(ge=1, le=2**53), DIGITS]
ReplyTo = Annotated[int | None, Query(alias="reply", ge=1, le=2**53), DIGITS]
Short = Annotated[str, Form(max_length=2_000)]
MessageText = Annotated[str, Form(max_length=2 * MAX_MESSAGE_LENGTH)]
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


def router(access: Access) -> APIRouter:
    """Return the routes."""
    routes = guarded("/channels")
    _add_message_routes(routes, access)
    _add_participant_routes(routes, access)
    return routes


def _add_message_routes(routes: APIRouter, access: Access) -> None:
    @routes.get("")
    def show_all(by: Asking, cursor: Cursor = None) -> Response:
        return _list(access.as_(by), by, cursor)

    @routes.post("")
    def create(by: Asking, name: Short = "", specialists: Short = "", primary: Short = "") -> Response:
        granted = access.as_(by)
        try:
            fields = {"name": name.strip(), "participants": specialists.replace(",", " ").split()}
            if primary.strip():
                fields["primary"] = primary.strip()
            made = granted[Channels].create(read_fields(NewChannel, fields))
        except (Conflict, Invalid) as refusal:
            return _list(granted, by, None, refusal, {"name": name, "specialists": specialists, "primary": primary})
        return RedirectResponse(url_of(made.id), 303)

    @routes.get("/{channel}")
    def show(by: Asking, channel: ChannelRef, cursor: Cursor = None, reply_to: ReplyTo = None) -> Response:
        return _page(access.as_(by), channel, by, cursor=cursor, reply_to=reply_to)

    @routes.post("/{channel}/messages")
    def post(by: Asking, channel: ChannelRef, text: MessageText = "", reply_to: Short = "") -> Response:
        granted = access.as_(by)
        try:
            # A form sends CRLF line ends.
            fields: dict[str, object] = {"content": text.replace("\r\n", "\n")}
            if reply_to.isascii() and reply_to.isdecimal():
                fields["reply_to"] = int(reply_to[:16])
            posted = granted[Channels].post(channel, read_fields(NewMessage, fields))
        except (Conflict, Invalid) as refusal:
            return _page(granted, channel, by, refusal=refusal, text=text)
        return RedirectResponse(f"{url_of(granted[Channels].get(channel).id)}#message-{posted.id}", 303)

    @routes.post("/{channel}/messages/{message}/verdict")
    def mark(by: Asking, channel: ChannelRef, message: MessageId, verdict: Short = "") -> Response:
        granted = access.as_(by)
        granted[Channels].mark(channel, message, read_fields(MarkRequest, {"verdict": verdict}))
        return RedirectResponse(f"{url_of(channel)}#message-{message}", 303)


def _add_participant_routes(routes: APIRouter, access: Access) -> None:
    @routes.post("/{channel}/join")
    def join(by: Asking, channel: ChannelRef, specialist: Short = "") -> Response:
        granted = access.as_(by)
        try:
            granted[Channels].join(channel, read_fields(JoinRequest, {"specialist": specialist.strip()}))
        except (Conflict, Invalid) as refusal:
            return _page(granted, channel, by, refusal=refusal)
        return RedirectResponse(f"{url_of(channel)}#participants", 303)

    @routes.post("/{channel}/participants/{member}/leave")
    def leave(by: Asking, channel: ChannelRef, member: MemberId) -> Response:
        access.as_(by)[Channels].leave(channel, member)
        return RedirectResponse(f"{url_of(channel)}#participants", 303)

    @routes.post("/{channel}/participants/{member}/mute")
    def mute(by: Asking, channel: ChannelRef, member: MemberId, duration: Short = "") -> Response:
        granted = access.as_(by)
        granted[Channels].mute(channel, member, read_fields(MuteRequest, {"duration": duration}))
        return RedirectResponse(f"{url_of(channel)}#participants", 303)


def _list(
    granted: Session,
    by: Principal,
    cursor: str | None,
    refusal: ServiceError | None = None,
    given: dict[str, str] | None = None,
) -> Response:
    part = granted[Channels].page(cursor, _PART)
    values = {
        "rows": [row_of(channel) for channel in part.items],
        "next_cursor": part.next_cursor,
        "refusal": refusal,
        "given": given or {"name": "", "specialists": "", "primary": ""},
    }
    return render("channels.html", values, status_of(refusal), by=by)


def _page(
    granted: Session,
    channel: str,
    by: Principal,
    *,
    cursor: str | None = None,
    reply_to: int | None = None,
    refusal: ServiceError | None = None,
    text: str = "",
) -> Response:
    view = granted[Channels].get(channel)
    part = granted[Channels].messages(view.id, cursor, _PART)
    values = {
        "page": page_of(view, part.items, granted[Channels].stats(view.id)),
        "next_cursor": part.next_cursor,
        "reply_to": reply_to,
        "refusal": refusal,
        "text": text,
    }
    return render("channel.html", values, status_of(refusal), by=by)


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A row of the list."""

    id: str
    name: str
    url: str
    meta: tuple[str, ...]
    """Other facts, in words."""
    changed: str
    """An instant."""


@dataclass(frozen=True, slots=True)
class AnswerShown:
    """Somebody who was chosen to answer a message."""

    words: str
    url: str | None
    """Of the task, or of the message that is the answer."""


@dataclass(frozen=True, slots=True)
class MessageShown:
    """A message of the conversation."""

    id: int
    author: str
    by_agent: bool
    content: str
    reply_to: int | None
    at: str
    """An instant."""
    attachments: tuple[str, ...]
    """In words."""
    reason: str
    """Which rule decided who answers, in words."""
    notes: tuple[str, ...]
    """Other facts about the decision."""
    answers: tuple[AnswerShown, ...]
    verdict: str | None
    """See ``MarkVerdict``."""


@dataclass(frozen=True, slots=True)
class MemberShown:
    """A participant."""

    id: str
    name: str
    agent: bool
    primary: bool
    muted_until: str | None
    """An instant."""
    url: str | None
    """Of the specialist's page."""


@dataclass(frozen=True, slots=True)
class ChannelPage:
    """One channel."""

    id: str
    name: str
    url: str
    facts: tuple[tuple[str, str], ...]
    members: tuple[MemberShown, ...]
    messages: tuple[MessageShown, ...]
    """Oldest first."""
    rules: tuple[tuple[str, RuleStatsView], ...]
    """Each with its words; empty if there are no messages."""
    shadowed: int
    compared: StrategiesView
    verdicts: tuple[tuple[str, str], ...]
    """What an operator may say of a decision, with the words for it."""
    summary: str
    """Read out to screen readers."""


def url_of(channel_id: str) -> str:
    """Return the path of its page."""
    return f"/channels/{channel_id}"


def row_of(channel: ChannelView) -> ChannelRow:
    """Return a row of the list."""
    agents = sum(participant.role is Role.AGENT for participant in channel.participants)
    meta = [f"{agents} specialist{'s' if agents != 1 else ''}", f"{len(channel.participants) - agents} people"]
    if channel.primary is not None:
        meta.append(f"primary {channel.primary}, {channel.settings.primary.value}")
    meta.append(f"by {channel.creator}" + (f" of {channel.organisation}" if channel.organisation else ""))
    return ChannelRow(channel.id, channel.name, url_of(channel.id), tuple(meta), channel.updated_at)


def page_of(channel: ChannelView, newest_first: Sequence[MessageView], stats: ChannelStatsView) -> ChannelPage:
    """Return the page of one channel."""
    settings = channel.settings
    facts = [("Primary", f"{channel.primary or 'nobody'}, {settings.primary.value}")]
    if settings.keywords:
        facts.append(("Keywords", ", ".join(settings.keywords)))
    facts += [
        ("Replies to agents", settings.reply_chains.value),
        ("Several mentions", settings.mentions.value),
        ("Most answers", f"{settings.rate_limit} an hour by each specialist"),
        ("Agents in a row", str(settings.max_hops)),
    ]
    if settings.working_dir is not None:
        facts.append(("Works in", settings.working_dir))
    if settings.webhook is not None:
        facts.append(("Incoming webhook", settings.webhook.kind.value))
    messages = tuple(_message(message, channel) for message in reversed(newest_first))
    last = f", last by {messages[-1].author}" if messages else ""
    return ChannelPage(
        id=channel.id,
        name=channel.name,
        url=url_of(channel.id),
        facts=tuple(facts),
        members=tuple(_member(participant, channel) for participant in channel.participants),
        messages=messages,
        rules=tuple((_REASONS[rule.reason], rule) for rule in stats.rules) if stats.messages else (),
        shadowed=stats.shadowed,
        compared=stats.compared,
        verdicts=tuple((verdict.value, words) for verdict, words in VERDICTS.items()),
        summary=f"{stats.messages} messages{last}",
    )


def _member(participant: ParticipantView, channel: ChannelView) -> MemberShown:
    agent = participant.role is Role.AGENT
    url = f"/specialists/{participant.id}" if agent else None
    name = participant.display_name or participant.username or participant.id
    return MemberShown(participant.id, name, agent, participant.id == channel.primary, participant.muted_until, url)


def _message(message: MessageView, channel: ChannelView) -> MessageShown:
    decision = message.decision
    notes = []
    if decision.ambiguous:
        notes.append(f"ambiguous: {', '.join(decision.ambiguous)}")
    if decision.ask_among:
        notes.append(f"to choose from: {', '.join(decision.ask_among)}")
    return MessageShown(
        id=message.id,
        author=channel.name if message.author == channel.id else message.author,
        by_agent=message.hops > 0,
        content=message.content,
        reply_to=message.reply_to,
        at=message.created_at,
        attachments=tuple(f"{each.name} ({each.state.value})" for each in message.attachments),
        reason=_REASONS[decision.reason],
        notes=tuple(notes),
        answers=tuple(map(_answer, message.answers)),
        verdict=None if message.verdict is None else message.verdict.value,
    )


def _answer(answer: AnswerView) -> AnswerShown:
    words = f"{answer.specialist} {_STATES[answer.state]}" + (f": {answer.skipped}" if answer.skipped else "")
    if answer.message_id is not None:
        return AnswerShown(words, f"#message-{answer.message_id}")
    return AnswerShown(words, None if answer.task_id is None else f"/tasks/{answer.task_id}")
