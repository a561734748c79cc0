"""/v1/events: what happens, as a stream of events or in pages."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from claudomator_py.core.errors import Gone, Invalid, ServiceError
from claudomator_py.core.units import format_instant
from claudomator_py.core.views import EventView, Page
from claudomator_py.service.answers import cursors
from claudomator_py.service.answers.live import EventFilter, Live
from claudomator_py.service.desk.desk import Desks
from claudomator_py.web.asking import Asking, Standing
from claudomator_py.web.openapi import problems
from claudomator_py.web.streams import (
    HEARTBEAT,
    HEARTBEAT_S,
    EventStream,
    Streams,
    message,
    opening,
    stream_response,
    wants_stream,
)

log = logging.getLogger(__name__)

PAGE = 100
_LAST_ID = 2**53
_LONGEST_ID = 16
_STREAM = stream_response(
    "Server-sent events: `id` is the event's id, `event` its kind, `data` the event as JSON. When nothing happens, a "
    "comment every 15 seconds. An event of kind `reset` says that the place to go on from is not known, or that events "
    "after it are not kept any more, and that the stream begins with what happens from now on.",
    'id: 12\nevent: state\ndata: {"id":12,"at":"2026-12-01T08:00:00.000Z","task_id":"…","run_id":null,"kind":"state",'
    '"data":{}}\n\n',
)

TaskRef = Annotated[str | None, Query(max_length=128, description="Only events of this task.")]
Kinds = Annotated[list[str] | None, Query(max_length=20, description="Only events of these kinds.")]
After = Annotated[int | None, Query(ge=0, le=_LAST_ID, description="Begin after this id; 0: from the beginning.")]
LastEventId = Annotated[str | None, Header(max_length=200, description="The id last seen; goes before `after`.")]
Cursor = Annotated[str | None, Query(max_length=500, description="The next_cursor of the part before.")]
ByName = Annotated[
    str | None, Query(alias="by", max_length=128, description="Only what this name caused, such as a token's.")
]
Last = Annotated[
    int | None, Query(ge=1, le=500, description="Only the newest so many, oldest first; not with `after` or `cursor`.")
]
Limit = Annotated[int, Query(ge=1, le=500, description="How many events at most, from 1 to 500.")]


def router(desks: Desks, streams: Streams) -> APIRouter:
    """The routes, on these desks."""
    routes = APIRouter(prefix="/v1/events", tags=["events"])

    @routes.get(
        "",
        operation_id="listEvents",
        summary="What happened, oldest first; with Accept: text/event-stream, what happens from now on",
        response_model=Page[EventView],
        responses={200: {"content": _STREAM}, **problems(404, 409, 410, 422, 503)},
    )
    def events(
        by: Asking,
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
        """Ids rise in the order of happening; none becomes visible late, so a stream goes on from the last one seen."""
        live = desks.as_(by).live
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
                f"Events after {start} are not kept any more.",
                remedy="Ask with after=0 for all that are, or keep them longer: retention.events.",
            )
        page = live.events(wanted, start, limit)
        following = cursors.write_number(page.upto, listed) if page.more else None
        return Page[EventView](items=page.items, next_cursor=following)

    return routes


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
            page = await streams.run(lambda: live.events(wanted, after, PAGE))  # noqa: B023 - awaited at once
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
        log.warning("an event stream ends early: %s", error)  # its client comes again, and goes on where it was


def _read_id(text: str) -> int:
    """The id; for what is none, one that was never given out."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST_ID else _LAST_ID
