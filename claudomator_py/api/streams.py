"""Event streams (server-sent events): their number, what wakes them, and the form of their events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from claudomator_py.api.problem import Refused
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.texts import escaped

T = TypeVar("T")

MEDIA_TYPE = "text/event-stream"
MAX_STREAMS = 64
HEARTBEAT_S = 15.0
RETRY_MS = 2_000
"""How long a client waits before it reconnects."""
HEARTBEAT = b":\n\n"

_READERS = 4
"""Threads that read for all streams together, so that no other request waits for one."""
_GATHER_S = 0.02


class Streams:
    """All event streams of a server. ``wake`` and ``close`` may be called from any thread."""

    def __init__(self, most: int = MAX_STREAMS) -> None:
        self._most = most
        self._open = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        self._end = asyncio.Event()
        self._ringing = False
        self._closing = False
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="stream-reader")

    @property
    def open(self) -> int:
        """The number of open streams."""
        return self._open

    @property
    def closing(self) -> bool:
        """Whether all streams are to end."""
        return self._closing

    @contextmanager
    def place(self, whose: Principal) -> Iterator[None]:
        """Hold a place for a stream. Raises Refused when the principal's places are taken.

        The last quarter is reserved for the operator, so that the holders of tokens cannot lock the operator out.
        """
        self._loop = asyncio.get_running_loop()
        most = self._most if whose == OPERATOR else self._most - self._most // 4
        if self._closing or self._open >= most:
            raise _no_place(most)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def wake(self) -> None:
        """Make every stream check for changes. Never blocks."""
        loop = self._loop
        if loop is None or self._ringing:
            return
        self._ringing = True
        try:
            loop.call_soon_threadsafe(self._ring)
        except RuntimeError:  # the loop has ended, and every stream with it
            return

    def close(self) -> None:
        """End all streams, and refuse new ones."""
        self._closing = True
        self.wake()

    def bell(self) -> asyncio.Event:
        """Return the event that the next change sets. Take it before reading, so that no change is missed."""
        return self._bell

    async def wait(self, bell: asyncio.Event, seconds: float) -> bool:
        """Wait for the bell, and a moment more to gather changes; False if nothing changed in that time."""
        try:
            async with asyncio.timeout(seconds):
                await bell.wait()
        except TimeoutError:
            return False
        if not self._closing:
            await asyncio.sleep(_GATHER_S)
        return True

    async def pause(self, seconds: float) -> None:
        """Wait that long, or until the streams are to end."""
        try:
            async with asyncio.timeout(seconds):
                await self._end.wait()
        except TimeoutError:
            return

    async def run(self, read: Callable[[], T]) -> T:
        """Return what ``read`` returns or raises, on a thread of the streams."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, read)

    def _ring(self) -> None:
        self._ringing = False
        if self._closing:
            self._end.set()
        rung, self._bell = self._bell, asyncio.Event()
        rung.set()


class EventStream(StreamingResponse):
    """An event stream as a response."""

    media_type = MEDIA_TYPE

    def __init__(self, streams: Streams, content: AsyncIterator[bytes]) -> None:
        # Buffering proxies would hold back events.
        super().__init__(content, headers={"X-Accel-Buffering": "no"})
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Refused, before anything is sent, if there is no place."""
        with self._streams.place(scope["state"]["principal"]):
            await super().__call__(scope, receive, send)


def wants_stream(request: Request) -> bool:
    """Return whether the client asks for an event stream, as a browser's EventSource does."""
    accepted = request.headers.get("accept", "")
    return any(part.partition(";")[0].strip().lower() == MEDIA_TYPE for part in accepted.split(","))


def opening(last_id: object) -> bytes:
    """Return the beginning of a stream: the reconnection delay, and the position, so that even a silent stream can be
    resumed."""
    return f"retry: {RETRY_MS}\nid: {last_id}\n\n".encode()


def message(kind: str, data: BaseModel, last_id: object) -> bytes:
    """Return one event, with data in one line, also for clients that end a line at every line separator of Unicode."""
    return f"id: {last_id}\nevent: {_line(kind)}\ndata: {escaped(data.model_dump_json())}\n\n".encode()


def stream_response(description: str, examples: str) -> dict[str, Any]:
    """Return the description of an event stream in the OpenAPI document."""
    return {MEDIA_TYPE: {"schema": {"type": "string", "description": description}, "example": examples}}


def _line(text: str) -> str:
    return " ".join(text.split())


def _no_place(most: int) -> Refused:
    return Refused(
        503,
        "too_many_streams",
        f"There are {most} event streams open, which is the maximum.",
        "Close a page, a `logs -f` or a `status --watch`; or ask without `Accept: text/event-stream`.",
        headers={"Retry-After": "10"},
    )


async def _streams(request: Request) -> Streams:
    streams: Streams = request.app.state.streams
    return streams


Following = Annotated[Streams, Depends(_streams)]
"""The event streams of this server."""
