"""Messages from outside, whose senders prove by a signature that they know the channel's secret.
The secret is in an environment variable of the daemon, or in a file only its user may read; the database has just the
name of it. Until the signature is known to be good, everything wrong with a request gets the same answer, which tells
nothing.
``plain``: ``X-Claudomator-Signature: v1=`` with the HMAC-SHA256, in hex, of ``<channel id>.<timestamp>.<body>``, the
timestamp being that in ``X-Claudomator-Timestamp``. ``slack``: ``X-Slack-Signature: v0=`` with that of
``v0:<timestamp>:<body>``, and ``X-Slack-Request-Timestamp``, as in Slack's "Verifying requests from Slack". Timestamps
are epoch seconds.
"""

import hashlib
import hmac
import html
import json
import logging
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from claudomator_py.api.operation import UnlistedRoutes, access_of
from claudomator_py.api.problem import Refused
from claudomator_py.domain.channel import (
    BY_SLACK,
    BY_WEBHOOK,
    MAX_ATTACHMENTS,
    MAX_MESSAGE_LENGTH,
    NewAttachment,
    NewMessage,
    WebhookKind,
    WebhookSettings,
)
from claudomator_py.domain.errors import Conflict, Invalid, NotFound, Problem
from claudomator_py.domain.fields import Count, Line, Strict, Text
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS
from claudomator_py.ports import Clock
from claudomator_py.resources.channels import ChannelView
from claudomator_py.resources.channels.service import Channels
from claudomator_py.schema.validation import has_too_many_parts, validate, value_problems
from claudomator_py.surface import OPEN
from claudomator_py.tasks.messages import PostedMessage
from claudomator_py.values import regex

log = logging.getLogger("claudomator.channels")
B = TypeVar("B", bound=BaseModel)

UNBOUND_UNTIL_MS: Final = 1_811_808_000_000
"""2027-06-01T00:00Z: from then on a signature has to cover the channel."""
_UNBOUND: Final = "accepted until 1 June 2027: sign the channel's id, timestamp and body"
WINDOW_MS: Final = 5 * MINUTE_MS
"""A request is good for this long before and after its timestamp."""
_SHORTEST_SECRET: Final = 16
_MAX_SECRET_LENGTH: Final = 4_096
_STAMP = regex(r"[0-9]{1,12}")
_BY_PEOPLE: Final = (None, "file_share", "thread_broadcast", "me_message")
"""Slack's subtypes of messages that a person has written; the others are edits, joins and the like."""
_IN_SLACK: Final = "The content of this file is in Slack and was not sent along."
_SLACK_LINK = regex(r"<(https?://[^|>\s]+)(?:\|[^>]*)?>")


class NotSigned(Exception):
    """The request does not prove that its sender knows the secret; the reason never leaves the daemon."""


class PlainMessage(Strict):
    """A message, as a ``plain`` webhook takes it."""

    id: Annotated[Line, Field(max_length=200)] = Field(description="The event's id; one seen before is ignored.")
    author: Annotated[Line, Field(max_length=100)] = Field(description="Who wrote it, by any id the sender uses.")
    display_name: Annotated[Line, Field(max_length=100)] | None = Field(None, description="The author's name.")
    content: Text = Field(max_length=MAX_MESSAGE_LENGTH, description="The text.")
    reply_to: Count | None = Field(None, ge=1, description="The id of the message in the channel it replies to.")
    attachments: Annotated[tuple[NewAttachment, ...], Field(max_length=MAX_ATTACHMENTS)] = Field(
        (), description="What comes with it."
    )


class IncomingWebhooks:
    """Takes messages from outside. environ: has the secrets that are variables."""

    def __init__(self, channels: Channels, environ: Mapping[str, str], clock: Clock) -> None:
        self._channels = channels
        self._environ = environ
        self._clock = clock

    def take(self, channel_id: str, header: Callable[[str], str | None], body: bytes) -> dict[str, Any]:
        """Take a request for the channel with that id, and return the answer.
        header: returns the value of a header, None unless it is there exactly once. Raises NotSigned, and Invalid for a
        request that is signed.
        """
        try:
            channel = self._channels.as_(OPERATOR).get(channel_id)
        except (Conflict, NotFound):
            raise NotSigned from None
        hook = channel.settings.webhook
        if hook is None or channel.id != channel_id:
            raise NotSigned
        self._check(hook, channel, header, body)
        document = _document(body)
        by = Principal(f"{BY_WEBHOOK}{channel.name}", Role.OPERATE, channel.organisation)
        if hook.kind is WebhookKind.SLACK:
            if document.get("type") == "url_verification":
                return {"challenge": str(document.get("challenge", ""))[:_MAX_SECRET_LENGTH]}
            written = _of_slack(document)
        else:
            written = _of_plain(document)
        if written is None:
            return {}
        taken = {
            name.casefold()
            for participant in channel.participants
            for name in (participant.id, participant.username, participant.display_name)
            if name
        }
        if written.display_name is not None and written.display_name.casefold() in taken:
            # Nobody outside makes a participant's name ambiguous.
            written = replace(written, display_name=None)
        posted = self._channels.as_(by).write(channel.id, written)
        return {"message": posted.id}

    def _check(
        self, hook: WebhookSettings, channel: ChannelView, header: Callable[[str], str | None], body: bytes
    ) -> None:
        slack = hook.kind is WebhookKind.SLACK
        stamp = header("X-Slack-Request-Timestamp" if slack else "X-Claudomator-Timestamp") or ""
        given = header("X-Slack-Signature" if slack else "X-Claudomator-Signature") or ""
        secret = self._secret(hook, channel.name)
        if secret is None or not _STAMP.fullmatch(stamp) or not given.isascii():
            raise NotSigned
        if abs(self._clock() - int(stamp) * SECOND_MS) > WINDOW_MS:
            raise NotSigned
        expected = [signature(hook.kind, secret, stamp, body, channel.id)]
        if not slack and self._clock() < UNBOUND_UNTIL_MS:
            expected.append(_unbound_signature(secret, stamp, body))
        matching = [hmac.compare_digest(given, signature) for signature in expected]
        if not any(matching):
            raise NotSigned
        if not matching[0]:
            log.warning("a message for channel %s has a signature without the channel, %s", channel.name, _UNBOUND)

    def _secret(self, hook: WebhookSettings, channel: str) -> bytes | None:
        if hook.secret_env is not None:
            secret = self._environ.get(hook.secret_env, "").encode()
        elif hook.secret_file is not None:
            try:
                secret = _read_private(Path(hook.secret_file).expanduser())
            except OSError as error:
                log.error("the secret of channel %s cannot be read: %s", channel, error.strerror or error)
                return None
        else:
            return None
        if len(secret) < _SHORTEST_SECRET:
            log.error("the secret of channel %s is missing, or shorter than %d bytes", channel, _SHORTEST_SECRET)
            return None
        return secret


def signature(kind: WebhookKind, secret: bytes, stamp: str, body: bytes, channel: str) -> str:
    """Return the header as it has to be. stamp: the request's timestamp; channel: the channel's id.
    Slack's form (https://docs.slack.dev/authentication/verifying-requests-from-slack) does not cover which channel of
    ours a request is for.
    """
    slack = kind is WebhookKind.SLACK
    signed = f"v0:{stamp}:".encode() + body if slack else f"{channel}.{stamp}.".encode() + body
    return ("v0=" if slack else "v1=") + hmac.digest(secret, signed, hashlib.sha256).hex()


def _unbound_signature(secret: bytes, stamp: str, body: bytes) -> str:
    """Return the header in the earlier form, which is good for every channel with the same secret."""
    return "sha256=" + hmac.digest(secret, f"{stamp}.".encode() + body, hashlib.sha256).hex()


def _read_private(path: Path) -> bytes:
    """Return the file's text, stripped. Raises OSError, also if other users may read or write it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise OSError("other users can read or change it: chmod 600")
        return file.read(_MAX_SECRET_LENGTH).strip()


def _document(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode()
        document = None if has_too_many_parts(text) else json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise Invalid.of([Problem(message="the body is not a JSON object", remedy="send one")])
    return document


def _of_plain(document: dict[str, Any]) -> PostedMessage:
    parsed = _valid(PlainMessage, document)
    message = NewMessage(content=parsed.content, reply_to=parsed.reply_to, attachments=parsed.attachments)
    return PostedMessage(
        f"{BY_WEBHOOK}{parsed.author}", message, display_name=parsed.display_name, external_id=f"plain:{parsed.id}"
    )


def _of_slack(document: dict[str, Any]) -> PostedMessage | None:
    """Return the message of an event; None unless a person wrote it."""
    event, event_id = document.get("event"), document.get("event_id")
    if document.get("type") != "event_callback" or not isinstance(event, dict) or not isinstance(event_id, str):
        return None
    user, text = event.get("user"), event.get("text")
    # For the same message, Slack may also send an `app_mention`, under another id.
    if event.get("type") != "message" or event.get("subtype") not in _BY_PEOPLE or event.get("bot_id"):
        return None
    if not isinstance(user, str) or not isinstance(text, str):
        return None
    # Slack escapes three characters, and writes links in angle brackets.
    plain = html.unescape(_SLACK_LINK.sub(r"\1", text))
    content = {"content": plain[:MAX_MESSAGE_LENGTH], "attachments": _slack_files(event.get("files"))}
    message = _valid(NewMessage, content)
    return PostedMessage(f"{BY_SLACK}{user[:100]}", message, external_id=f"slack:{event_id[:200]}")


def _valid(shape: type[B], document: dict[str, Any]) -> B:
    """Return what the document describes. Raises Invalid."""
    parsed = value_problems(document, {}) or validate(shape, document, {})
    if isinstance(parsed, list):
        raise Invalid.of(parsed)
    return parsed


def _slack_files(files: object) -> list[dict[str, str]]:
    """Return the named files of a message. Reading them takes a token of Slack's, so nothing waits for their
    content."""
    listed = files if isinstance(files, list) else []
    named = [
        attachment for attachment in listed if isinstance(attachment, dict) and isinstance(attachment.get("id"), str)
    ]
    return [
        {
            "id": attachment["id"],
            "name": str(attachment.get("name") or attachment["id"])[:300],
            "media_type": str(attachment.get("mimetype") or "application/octet-stream")[:200],
            "text": _IN_SLACK,
        }
        for attachment in named[:MAX_ATTACHMENTS]
    ]


incoming = UnlistedRoutes()
"""Documented with channels rather than in the API's document, as the sender determines what it takes. Requests are
signed."""


@incoming.post("/v1/channels/{channel_id}/incoming", OPEN)
async def take(request: Request, channel_id: str) -> JSONResponse:
    """Take a message, or anything else the service sends. 401 does not say why."""

    def header(name: str) -> str | None:
        given = request.headers.getlist(name)
        return given[0] if len(given) == 1 else None

    body = await request.body()
    try:
        answer: dict[str, Any] = await run_in_threadpool(
            access_of(request)[IncomingWebhooks].take, channel_id, header, body
        )
    except NotSigned:
        raise Refused(
            401, "not_authorised", "The request is not signed.", "Sign it with the channel's secret."
        ) from None
    return JSONResponse(answer)
