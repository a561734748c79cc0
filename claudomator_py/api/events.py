"""/v1/events: what happens, as a stream of events or in pages."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from claudomator_py.api.guard.asking import Standing
from claudomator_py.api.guard.roles import READ
from claudomator_py.api.operation import Allowed, Operations
from claudomator_py.api.problem import Refused
from claudomator_py.domain.errors import Gone, Invalid, ServiceError
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views import EventView, Page
from claudomator_py.queries import cursors
from claudomator_py.queries.event_stream import EventFilter, Live

T = TypeVar("T")

events = Operations("events")

MEDIA_TYPE = "text/event-stream"
MOST_STREAMS = 64
HEARTBEAT_S = 15.0
RETRY_MS = 2_000
"""How long a client waits before it connects again."""
HEARTBEAT = b":\n\n"

_READERS = 4
"""Threads that read for all streams together, so that no other request ever waits for one."""
_GATHER_S = 0.02


class Streams:
    """All event streams of one server. ``wake`` and ``close`` may be called from any thread."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
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
        """How many there are."""
        return self._open

    @property
    def closing(self) -> bool:
        """Whether every stream is to end."""
        return self._closing

    @contextmanager
    def place(self, whose: Principal) -> Iterator[None]:
        """A stream's place among those there may be. Raises Refused when all that it may have are taken.

        The last quarter is the operator's: nobody to whom a token was given can keep its giver from looking.
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
        """Something has changed: let every stream look. Never waits."""
        loop = self._loop
        if loop is None or self._ringing:
            return
        self._ringing = True
        try:
            loop.call_soon_threadsafe(self._ring)
        except RuntimeError:  # the loop has ended, and every stream with it
            return

    def close(self) -> None:
        """End every stream, and let none begin."""
        self._closing = True
        self.wake()

    def bell(self) -> asyncio.Event:
        """What the next change sets. Take it before reading, so that no change is missed."""
        return self._bell

    async def wait(self, bell: asyncio.Event, seconds: float) -> bool:
        """Wait for the bell; False if that long nothing has changed. Changes that come together are waited for."""
        try:
            async with asyncio.timeout(seconds):
                await bell.wait()
        except TimeoutError:
            return False
        if not self._closing:
            await asyncio.sleep(_GATHER_S)
        return True

    async def pause(self, seconds: float) -> None:
        """Wait that long, or until every stream is to end."""
        try:
            async with asyncio.timeout(seconds):
                await self._end.wait()
        except TimeoutError:
            return

    async def run(self, read: Callable[[], T]) -> T:
        """What ``read`` returns or raises, on a thread of the streams."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, read)

    def _ring(self) -> None:
        self._ringing = False
        if self._closing:
            self._end.set()
        rung, self._bell = self._bell, asyncio.Event()
        rung.set()


class EventStream(StreamingResponse):
    """The response that is an event stream."""

    media_type = MEDIA_TYPE

    def __init__(self, streams: Streams, content: AsyncIterator[bytes]) -> None:
        # Proxies that gather what passes would hold back events.
        super().__init__(content, headers={"X-Accel-Buffering": "no"})
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Refused, before anything is sent, when there is no place."""
        with self._streams.place(scope["state"]["principal"]):
            await super().__call__(scope, receive, send)


def wants_stream(request: Request) -> bool:
    """Whether the client asks for an event stream, as a browser's EventSource does."""
    accepted = request.headers.get("accept", "")
    return any(part.partition(";")[0].strip().lower() == MEDIA_TYPE for part in accepted.split(","))


def opening(last_id: object) -> bytes:
    """What a stream begins with: when to come again, and where it begins, so that even a silent one is resumed."""
    return f"retry: {RETRY_MS}\nid: {last_id}\n\n".encode()


def message(kind: str, data: BaseModel, last_id: object) -> bytes:
    """One event. JSON has no line ends, so the data is one line."""
    return f"id: {last_id}\nevent: {_line(kind)}\ndata: {data.model_dump_json()}\n\n".encode()


def stream_response(description: str, examples: str) -> dict[str, Any]:
    """The event stream as the API's document tells it."""
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


log = logging.getLogger(__name__)

PAGE = 100
_LAST_ID = 2**53
_LONGEST_ID = 16
_STREAM = stream_response(
    "Server-sent events: `id` is the event's id, `event` its kind, `data` the event as JSON. When nothing happens, a "
    "comment every 15 seconds. An event of kind `reset` says that the position to continue from is not known, or that "
    "events after it are not kept any more, and that the stream begins with what happens from now on.",
    'id: 12\nevent: state\ndata: {"id":12,"at":"2026-12-01T08:00:00.000Z","task_id":"…","run_id":null,"kind":"state",'
    '"data":{}}\n\n',
)

TaskRef = Annotated[str | None, Query(max_length=128, description="Only events of this task.")]
Kinds = Annotated[list[str] | None, Query(max_length=20, description="Only events of these kinds.")]
After = Annotated[int | None, Query(ge=0, le=_LAST_ID, description="Start after this id; 0: from the beginning.")]
LastEventId = Annotated[str | None, Header(max_length=200, description="The last id seen. Overrides `after`.")]
Cursor = Annotated[str | None, Query(max_length=500, description="The next_cursor of the previous page.")]
ByName = Annotated[
    str | None,
    Query(alias="by", max_length=128, description="Only events caused by this principal, such as a token's name."),
]
Last = Annotated[
    int | None,
    Query(ge=1, le=500, description="Only this many of the newest, oldest first. Not with `after` or `cursor`."),
]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of events, 1 to 500.")]


async def _streams(request: Request) -> Streams:
    streams: Streams = request.app.state.streams
    return streams


Following = Annotated[Streams, Depends(_streams)]
"""The event streams of this server."""


@events.operation(
    "GET /v1/events",
    "listEvents",
    READ,
    "What happened, oldest first; with Accept: text/event-stream, what happens from now on",
    refuses=(404, 409, 410),
    response_model=Page[EventView],
    responses={200: {"content": _STREAM}},
)
def list_events(
    granted: Allowed,
    streams: Following,
    standing: Standing,
    request: Request,
    response: Response,
    task: TaskRef = None,
    kind: Kinds = None,
    caused_by: ByName = None,
    last: Last = None,
    after: After = None,
    last_event_id: LastEventId = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> Page[EventView] | Response:
    """Ids rise in the order of events and none becomes visible late: a stream continues after the last one seen."""
    live = granted.queries.live
    wanted = live.event_filter(task, kind or (), caused_by)
    if wants_stream(request):
        return _stream(live, streams, wanted, last_event_id, after, standing)
    response.headers["Vary"] = "Accept"
    if last is not None:
        if cursor is not None or after is not None:
            raise Invalid("`last` counts from the end.", remedy="Leave out `after` and `cursor`.")
        return Page[EventView](items=live.last_events(wanted, last).items)
    listed = {"list": "events", "task": wanted.task_id, "kinds": sorted(wanted.kinds), "by": wanted.by}
    start = cursors.read_number(cursor, listed) if cursor is not None else after or 0
    if 0 < start < live.events_gone():
        raise Gone(
            f"Events after {start} are no longer kept.",
            remedy="Use after=0 for all that are, or keep events longer with retention.events.",
        )
    page = live.events(wanted, start, limit)
    following = cursors.write_number(page.upto, listed) if page.more else None
    return Page[EventView](items=page.items, next_cursor=following)


def _stream(
    live: Live,
    streams: Streams,
    wanted: EventFilter,
    last_event_id: str | None,
    after: int | None,
    standing: Callable[[], bool],
) -> EventStream:
    newest = live.newest_event()
    start = newest if after is None else after
    if last_event_id is not None:
        start = _read_id(last_event_id)
    # An id that was never given out is from another database: to wait for it would be to miss what happens now. After
    # one before the oldest that is kept, others are missing.
    known = start <= newest and not 0 < start < live.events_gone()
    begin = start if known else newest
    return EventStream(streams, _follow(live, streams, wanted, begin, standing, reset=not known))


async def _follow(
    live: Live, streams: Streams, wanted: EventFilter, after: int, standing: Callable[[], bool], *, reset: bool
) -> AsyncIterator[bytes]:
    yield opening(after)
    if reset:
        at = format_instant(time.time_ns() // 1_000_000)
        yield message("reset", EventView(id=after, at=at, kind="reset"), after)
    try:
        while not streams.closing:
            bell = streams.bell()
            page = await streams.run(partial(live.events, wanted, after, PAGE))
            after = page.upto
            if not standing():
                return  # the token was revoked meanwhile, or the browser logged out
            if page.items:
                yield b"".join(message(event.kind, event, event.id) for event in page.items)
            if page.more:
                continue
            while not await streams.wait(bell, HEARTBEAT_S):
                if not standing():
                    return
                yield HEARTBEAT
    except ServiceError as error:
        log.warning("an event stream ends early: %s", error)  # its client comes again, and continues where it was


def _read_id(text: str) -> int:
    """The id; for what is none, one that was never given out."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST_ID else _LAST_ID
