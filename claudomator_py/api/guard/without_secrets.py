"""The last filter for secrets in whatever leaves the daemon over HTTP: pages, JSON and streams.

What is stored is clean already. This covers what an earlier version stored, and what is sent without being stored. The
raw bytes of a log are left as they are, as they are requested as such.
"""

import json
from collections.abc import Callable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from claudomator_py.domain.redaction import Redactor, clean

_DATA = b"data: "
UNFILTERED = "unfiltered"
"""Key in the request's state: the answer is sent as it is. It is a secret that was created for the client, or the same
for everybody."""


class WithoutSecrets:
    """ASGI middleware. redactor: returns the current one; called once for each answer."""

    def __init__(self, app: ASGIApp, *, redactor: Callable[[], Redactor]) -> None:
        self._app = app
        self._redactor = redactor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        await self._app(scope, receive, _Cleaned(send, self._redactor(), lambda: bool(state.get(UNFILTERED))))


class _Cleaned:
    """Sends one answer, which is buffered in full unless it is a stream."""

    def __init__(self, send: Send, redactor: Redactor, given: Callable[[], bool]) -> None:
        self._send = send
        self._given = given
        self._redactor = redactor
        self._clean: Callable[[bytes], bytes] | None = None
        self._start: Message | None = None
        self._parts: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._given():
            await self._send(message)
        elif message["type"] == "http.response.start":
            kind = MutableHeaders(raw=message["headers"]).get("content-type", "").partition(";")[0]
            if kind == "text/event-stream":
                self._clean = self._events
            elif kind in ("text/html", "text/plain"):
                self._clean, self._start = self._text, message
            elif kind == "application/json" or kind.endswith("+json"):
                self._clean, self._start = self._json, message
            if self._start is None:
                await self._send(message)
        elif message["type"] == "http.response.body" and self._start is not None and self._clean is not None:
            self._parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._send_whole(self._start, b"".join(self._parts), self._clean)
        elif message["type"] == "http.response.body" and self._clean is not None:
            await self._send({**message, "body": self._clean(message.get("body", b""))})
        else:
            await self._send(message)

    async def _send_whole(self, start: Message, body: bytes, clean: Callable[[bytes], bytes]) -> None:
        cleaned = clean(body)
        if cleaned is not body:
            MutableHeaders(raw=start["headers"])["content-length"] = str(len(cleaned))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": cleaned})

    def _text(self, body: bytes) -> bytes:
        # No secret contains markup, so the text can be searched for values as a page writes them.
        text = body.decode(errors="replace")
        cleaned = self._redactor.redact_cut(text)
        return body if cleaned is text else cleaned.encode()

    def _json(self, body: bytes) -> bytes:
        if not self._redactor.finds(body.decode(errors="replace")):
            return body
        document: Any = json.loads(body)
        return json.dumps(clean(document, self._redactor)).encode()

    def _events(self, chunk: bytes) -> bytes:
        if not self._redactor.finds(chunk.decode(errors="replace")):
            return chunk
        lines = chunk.split(b"\n")
        return b"\n".join(
            _DATA + self._json(line.removeprefix(_DATA)) if line.startswith(_DATA) else line for line in lines
        )
