"""/channels: the channels there are, and one conversation, to be read and written in."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Query
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page.channel_model import page_of, row_of, url_of
from claudomator_py.api.page.rendering import render
from claudomator_py.api.page.wanted import read_fields
from claudomator_py.api.section import guarded
from claudomator_py.domain.channel import LONGEST_MESSAGE, NewChannel, NewMessage
from claudomator_py.domain.errors import Conflict, Invalid, ServiceError
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.views.channels import JoinRequest, MarkRequest, MuteRequest
from claudomator_py.service.access import Access, Granted

_PART = 50
Cursor = Annotated[str | None, Query(max_length=500)]
ChannelRef = Annotated[str, Path(max_length=128)]
MemberId = Annotated[str, Path(max_length=128)]
MessageId = Annotated[int, Path(ge=1, le=2**53)]
ReplyTo = Annotated[int | None, Query(alias="reply", ge=1, le=2**53)]
Short = Annotated[str, Form(max_length=2_000)]
MessageText = Annotated[str, Form(max_length=2 * LONGEST_MESSAGE)]
_STATUS: dict[type[ServiceError], int] = {Conflict: 409, Invalid: 422}


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = guarded("/channels")

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
            made = granted.channels.create(read_fields(NewChannel, fields))
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
            # A form sends the line ends of another system.
            fields: dict[str, object] = {"content": text.replace("\r\n", "\n")}
            if reply_to.isdecimal():
                fields["reply_to"] = int(reply_to[:16])
            posted = granted.channels.post(channel, read_fields(NewMessage, fields))
        except (Conflict, Invalid) as refusal:
            return _page(granted, channel, by, refusal=refusal, text=text)
        return RedirectResponse(f"{url_of(granted.channels.one(channel).id)}#message-{posted.id}", 303)

    @routes.post("/{channel}/messages/{message}/verdict")
    def mark(by: Asking, channel: ChannelRef, message: MessageId, verdict: Short = "") -> Response:
        granted = access.as_(by)
        granted.channels.mark(channel, message, read_fields(MarkRequest, {"verdict": verdict or None}))
        return RedirectResponse(f"{url_of(channel)}#message-{message}", 303)

    @routes.post("/{channel}/join")
    def join(by: Asking, channel: ChannelRef, specialist: Short = "") -> Response:
        granted = access.as_(by)
        try:
            granted.channels.join(channel, read_fields(JoinRequest, {"specialist": specialist.strip()}))
        except (Conflict, Invalid) as refusal:
            return _page(granted, channel, by, refusal=refusal)
        return RedirectResponse(f"{url_of(channel)}#participants", 303)

    @routes.post("/{channel}/participants/{member}/leave")
    def leave(by: Asking, channel: ChannelRef, member: MemberId) -> Response:
        access.as_(by).channels.leave(channel, member)
        return RedirectResponse(f"{url_of(channel)}#participants", 303)

    @routes.post("/{channel}/participants/{member}/mute")
    def mute(by: Asking, channel: ChannelRef, member: MemberId, duration: Short = "") -> Response:
        granted = access.as_(by)
        granted.channels.mute(channel, member, read_fields(MuteRequest, {"duration": duration or None}))
        return RedirectResponse(f"{url_of(channel)}#participants", 303)

    return routes


def _list(
    granted: Granted,
    by: Principal,
    cursor: str | None,
    refusal: ServiceError | None = None,
    given: dict[str, str] | None = None,
) -> Response:
    part = granted.channels.page(cursor, _PART)
    values = {
        "rows": [row_of(one) for one in part.items],
        "next_cursor": part.next_cursor,
        "refusal": refusal,
        "given": given or {"name": "", "specialists": "", "primary": ""},
    }
    return render("channels.html", values, _status(refusal), by=by)


def _page(
    granted: Granted,
    channel: str,
    by: Principal,
    *,
    cursor: str | None = None,
    reply_to: int | None = None,
    refusal: ServiceError | None = None,
    text: str = "",
) -> Response:
    found = granted.channels.one(channel)
    part = granted.channels.messages(found.id, cursor, _PART)
    values = {
        "page": page_of(found, part.items, granted.channels.stats(found.id)),
        "next_cursor": part.next_cursor,
        "reply_to": reply_to,
        "refusal": refusal,
        "text": text,
    }
    return render("channel.html", values, _status(refusal), by=by)


def _status(refusal: ServiceError | None) -> int:
    return 200 if refusal is None else _STATUS[type(refusal)]
