"""/v1/events: what happens, as a stream of events or in pages."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request, Response

from claudomator_py.api.guard.asking import Standing
from claudomator_py.api.operation import Allowed, Operations
from claudomator_py.api.request import DIGITS
from claudomator_py.api.streams import (
    HEARTBEAT,
    HEARTBEAT_S,
    EventStream,
    Following,
    Streams,
    message,
    opening,
    stream_response,
    wants_stream,
)
from claudomator_py.domain.errors import Gone, Invalid, ServiceError
from claudomator_py.domain.units import format_instant
from claudomator_py.domain.views.base import EventView, Page
from claudomator_py.queries import cursors
from claudomator_py.queries.event_stream import EventFilter, Live
from claudomator_py.queries.queries import Queries
from claudomator_py.surface.operation import READ

events = Operations("events")

log = logging.getLogger(__name__)

PAGE = 100
_LAST_ID = 2**53
_MAX_ID_LENGTH = 16
_STREAM = stream_response(
    "Server-sent events: `id` is the event's id, `event` its kind, `data` the event as JSON. When nothing happens, a "
    "comment every 15 seconds. An event of kind `reset` says that the position to continue from is not known, or that "
    "events after it are not kept any more, and that the stream begins with what happens from now on.",
    'id: 12\nevent: state\ndata: {"id":12,"at":"2026-12-01T08:00:00.000Z","task_id":"…","run_id":null,"kind":"state",'
    '"data":{}}\n\n',
)

TaskRef = Annotated[str | None, Query(max_length=128, description="Only events of this task.")]
Kinds = Annotated[list[str] | None, Query(max_length=20, description="Only events of these kinds.")]
After = Annotated[
    int | None, Query(ge=0, le=_LAST_ID, description="Start after this id; 0: from the beginning."), DIGITS
]
LastEventId = Annotated[str | None, Header(max_length=200, description="The last id seen. Overrides `after`.")]
Cursor = Annotated[str | None, Query(max_length=500, description="The next_cursor of the previous page.")]
ByName = Annotated[
    str | None,
    Query(alias="by", max_length=128, description="Only events caused by this principal, such as a token's name."),
]
Last = Annotated[
    int | None,
    Query(ge=1, le=500, description="Only this many of the newest, oldest first. Not with `after` or `cursor`."),
    DIGITS,
]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of events, 1 to 500."), DIGITS]


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
    live = granted[Queries].live
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
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MAX_ID_LENGTH else _LAST_ID
