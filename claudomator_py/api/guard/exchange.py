"""ASGI requests and responses: repeated headers, a bounded body, and security headers on every response."""

import asyncio
from collections.abc import Callable, Mapping

from starlette.types import Message, Receive, Scope, Send

from claudomator_py.api.problem import Refused

SECURITY_HEADERS: Mapping[bytes, bytes] = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
_MAX_FIELDS = 1_000


class RequestHeaders:
    """A request's headers, which may be repeated."""

    def __init__(self, scope: Scope) -> None:
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]

    def all(self, name: bytes) -> list[bytes]:
        """Return every value of a header."""
        return [value for key, value in self._headers if key == name]

    def bearer(self) -> bytes | None:
        """Return the bearer token; None unless there is exactly one Authorization header with one."""
        given = self.all(b"authorization")
        if len(given) != 1:
            return None
        scheme, _, token = given[0].partition(b" ")
        return token.strip() if scheme.lower() == b"bearer" else None

    def cookies(self, name: bytes) -> list[str]:
        """Return all cookies of that name: another program on this host may have set one that hides ours."""
        pairs = [pair.strip().partition(b"=") for header in self.all(b"cookie") for pair in header.split(b";")]
        return [value.decode("latin-1") for key, _, value in pairs if key == name]


class ResponseHeaders:
    """Sends the response with the security headers added, and notes that it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._over: asyncio.Event | None = None
        self.started = False
        self.begins: Callable[[], None] = lambda: None
        """Called when the response begins."""

    def only_head(self, receive: Receive) -> Receive:
        """Send no body. Return a ``receive`` that reports a disconnect once the head is sent, as streams never end."""
        over = self._over = asyncio.Event()

        async def receive_until_over() -> Message:
            receiving, ending = asyncio.ensure_future(receive()), asyncio.ensure_future(over.wait())
            try:
                await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
                return receiving.result() if receiving.done() else {"type": "http.disconnect"}
            finally:
                receiving.cancel()
                ending.cancel()

        return receive_until_over

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.begins()
            present = {key.lower() for key, _ in message.get("headers", ())}
            added = [(key, value) for key, value in SECURITY_HEADERS.items() if key not in present]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        if self._over is None:
            await self._send(message)
        elif not self._over.is_set():
            await self._send(message)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            self._over.set()


class GoneError(Exception):
    """The client disconnected before its request was complete."""


async def bounded(
    headers: RequestHeaders, receive: Receive, most: int, patience_s: float, hold: Callable[[int], bool]
) -> Receive:
    """Return a ``receive`` that replays the body, which was read in full. Raises Refused, GoneError.

    most: the limit in bytes. patience_s: how long the body may take. hold: counts so many bytes more, or fewer, of
    incomplete bodies of this client; False if they are too many.
    """
    declared = headers.all(b"content-length")
    if any(not value.isdigit() or int(value) > most for value in declared):
        raise _too_large(most)
    messages: list[Message] = []
    size = 0
    more = bool(declared or headers.all(b"transfer-encoding"))
    try:
        async with asyncio.timeout(patience_s):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise GoneError
                messages.append(message)
                more = message.get("more_body", False)
                arrived = len(message.get("body", b""))
                size += arrived
                may_hold = hold(arrived)
                if size > most:
                    raise _too_large(most)
                if more and not may_hold:
                    raise _too_many_unfinished()
    except TimeoutError:
        raise _too_slow(patience_s) from None
    finally:
        hold(-size)
    is_form = any(b"x-www-form-urlencoded" in value.lower() for value in headers.all(b"content-type"))
    # A body of separators alone would make the parser loop over each of them.
    if is_form and sum(message.get("body", b"").count(b"&") for message in messages) > _MAX_FIELDS:
        raise _too_many_fields()
    pending = iter(messages)

    async def replay() -> Message:
        for message in pending:
            return message
        return await receive()

    return replay


def _too_slow(patience_s: float) -> Refused:
    return Refused(
        408,
        "body_timeout",
        f"The body did not arrive within {patience_s:g} seconds.",
        "Retry, and send the whole body without pauses.",
        headers={"Connection": "close"},
    )


def _too_many_unfinished() -> Refused:
    return Refused(
        429,
        "too_many_bodies",
        "Too many request bodies of this client are incomplete at the same time.",
        "Send each body without pauses, and fewer large ones at once.",
        headers={"Connection": "close", "Retry-After": "1"},
    )


def _too_many_fields() -> Refused:
    return Refused(
        413,
        "too_large",
        f"The form has more than {_MAX_FIELDS:,} fields.",
        "Send fewer fields.",
        headers={"Connection": "close"},
    )


def _too_large(most: int) -> Refused:
    return Refused(
        413,
        "too_large",
        f"The body is larger than {most} bytes.",
        "Put long material into a file in the task's working directory and refer to it in the instructions.",
        headers={"Connection": "close"},
    )
