"""/v1/events: what happens, as a stream or in pages."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated

from fastapi import Header, Request, Response

from claudomator_py.api.guard.roles import Standing
from claudomator_py.api.operation import Allowed
from claudomator_py.api.served import serve
from claudomator_py.api.streams import (
    HEARTBEAT,
    HEARTBEAT_S,
    EventStream,
    Following,
    Streams,
    message,
    opening,
    wants_stream,
)
from claudomator_py.domain.errors import Gone, Invalid, ServiceError
from claudomator_py.domain.shape import Page
from claudomator_py.domain.units import format_instant
from claudomator_py.resources import cursors
from claudomator_py.resources.events import EventCalls, EventView
from claudomator_py.resources.events.service import Events
from claudomator_py.store.events import EventQuery
from claudomator_py.surface import answers
from claudomator_py.values import dataclass

log = logging.getLogger(__name__)

PAGE = 100
_LAST_ID = 2**53
_MAX_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class _EventsRequest:
    """The events for one request, which may ask for a stream."""

    events: Events
    streams: Streams
    standing: Callable[[], bool]
    request: Request
    response: Response
    last_event_id: str | None

    @answers(EventCalls.list_events)
    def listed(
        self,
        *,
        task: str | None,
        kind: list[str] | None,
        by: str | None,
        last: int | None,
        after: int | None,
        cursor: str | None,
        limit: int,
    ) -> Page[EventView] | Response:
        events = self.events
        wanted = events.event_filter(task, kind or (), by)
        if wants_stream(self.request):
            return self._stream(wanted, after)
        self.response.headers["Vary"] = "Accept"
        if last is not None:
            if cursor is not None or after is not None:
                raise Invalid("`last` counts from the end.", remedy="Leave out `after` and `cursor`.")
            return Page[EventView](items=events.last_events(wanted, last).items)
        listed = {"list": "events", "task": wanted.task_id, "kinds": sorted(wanted.kinds), "by": wanted.caused_by}
        start = cursors.read_number(cursor, listed) or after or 0
        if 0 < start < events.events_gone():
            raise Gone(
                f"Events after {start} are no longer kept.",
                remedy="Use after=0 for all that are kept, or keep events longer with retention.events.",
            )
        page = events.events(wanted, start, limit)
        following = cursors.write((page.upto,), listed) if page.more else None
        return Page[EventView](items=page.items, next_cursor=following)

    def _stream(self, wanted: EventQuery, after: int | None) -> EventStream:
        newest = self.events.newest_event()
        start = newest if after is None else after
        if self.last_event_id is not None:
            start = _read_id(self.last_event_id)
        # An id that was never used is from another database: waiting for it would miss what happens now. After an id
        # before the oldest event kept, some are missing.
        known = start <= newest and not 0 < start < self.events.events_gone()
        return EventStream(self.streams, self._follow(wanted, start if known else newest, reset=not known))

    async def _follow(self, wanted: EventQuery, after: int, *, reset: bool) -> AsyncIterator[bytes]:
        yield opening(after)
        if reset:
            at = format_instant(time.time_ns() // 1_000_000)
            yield message("reset", EventView(id=after, at=at, kind="reset"), after)
        try:
            while not self.streams.closing:
                bell = self.streams.bell()
                page = await self.streams.run(partial(self.events.events, wanted, after, PAGE))
                after = page.upto
                if not self.standing():
                    return  # the token was revoked, or the browser logged out
                if page.items:
                    yield b"".join(message(event.kind, event, event.id) for event in page.items)
                if page.more:
                    continue
                while not await self.streams.wait(bell, HEARTBEAT_S):
                    if not self.standing():
                        return
                    yield HEARTBEAT
        except ServiceError as error:
            log.warning("an event stream ends early: %s", error)  # the client reconnects, and continues where it was


def _asked(
    granted: Allowed,
    streams: Following,
    standing: Standing,
    request: Request,
    response: Response,
    last_event_id: Annotated[
        str | None, Header(max_length=200, description="The last id seen. Overrides `after`.")
    ] = None,
) -> _EventsRequest:
    return _EventsRequest(granted[Events], streams, standing, request, response, last_event_id)


def _read_id(text: str) -> int:
    """Return the id, or one that is never used if the text is not an id."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MAX_ID_LENGTH else _LAST_ID


events = serve("events", _asked, EventCalls)
