"""/v1/runs: the operations on runs; and their output as bytes, in pages and as a stream."""

import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Literal

from fastapi import Header, Path, Query, Request, Response

from claudomator_py.api.guard.roles import Standing
from claudomator_py.api.operation import Allowed
from claudomator_py.api.request import DIGITS
from claudomator_py.api.served import serve
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
from claudomator_py.domain.errors import BadCursor, Invalid, ServiceError
from claudomator_py.domain.run import Stream
from claudomator_py.resources.runs import LogEndView, LogEntryView, LogPageView, LogTextView, RunCalls
from claudomator_py.resources.runs.logs import LogFeed, LogItem, LogPosition, Logs, LogView
from claudomator_py.resources.runs.service import MAX_LOG_BYTES, Runs
from claudomator_py.resources.session import Session
from claudomator_py.surface import READ_OWN, Operation
from claudomator_py.values import regex

log = logging.getLogger(__name__)

runs = serve("runs", Runs, RunCalls)

LOG_TYPE = "application/octet-stream"
POLL_S = 0.25
IDLE_POLL_S = 1.0
_IDLE_AFTER_S = 30.0
_BUSY_S = 0.02
_PAGE = 200
_READS_OF_PAGE = 64
_POSITION = regex(r"(\d{1,16})(?:\.(\d{1,9}))?", re.ASCII)

AnyView = Literal["raw", "text", "structured"]
RunId = Annotated[str, Path(max_length=128, description="A run's id, or a prefix of it of at least 4 characters.")]
_LOG_RESPONSE = {
    "description": "The run's output from `offset`: its bytes, with secrets and terminal codes; or, with `view`, a "
    "page of text or entries without them; or, with Accept: text/event-stream, a stream of these",
    "model": LogPageView,
    "content": {
        LOG_TYPE: {"schema": {"type": "string", "format": "binary"}},
        **stream_response(
            "Server-sent events: `output` with a piece of text or, with view=structured, `entry`; `id` is where to "
            "continue. Then `end`, when the run has ended; a client that reconnects after that gets 204.",
            'id: 4\nevent: output\ndata: {"offset":0,"next_offset":4,"text":"one\\n"}\n\n',
        ),
    },
    "headers": {
        "Claudomator-Next-Offset": {"description": "Where to continue", "schema": {"type": "integer"}},
        "Claudomator-Ended": {"description": "Nothing follows", "schema": {"enum": ["true", "false"]}},
    },
}
_NOTHING_LEFT = {"description": "For a stream's Last-Event-ID: the run has ended, and everything was sent"}
Cursor = Annotated[str | None, Query(max_length=30, description="With `view`: the next_cursor of the previous page.")]
LastEventId = Annotated[str | None, Header(max_length=30, description="For a stream: the last id received.")]
View = Annotated[
    AnyView | None,
    Query(
        description="`raw`: the bytes; `text`: for people; `structured`: what the agent said and did. By default the "
        "bytes, and the text in an event stream."
    ),
]
Check = Annotated[bool, Query(description="The output of the run's check instead of its agent's.")]


@runs.operation(
    Operation("readLog", "GET", "/v1/runs/{run_id}/log", READ_OWN, "A run's output"),
    response_class=Response,
    responses={200: _LOG_RESPONSE, 204: _NOTHING_LEFT},
)
def read_log(
    granted: Allowed,
    streams: Following,
    standing: Standing,
    request: Request,
    run_id: RunId,
    stream: Annotated[Stream, Query(description="Which of the two output streams.")] = "stdout",
    offset: Annotated[int, Query(ge=0, le=2**53, description="Position of the first byte."), DIGITS] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_LOG_BYTES, description="Bytes; with `view`, items."), DIGITS] = 65_536,
    view: View = None,
    check: Check = False,
    cursor: Cursor = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Return bytes from an offset; with `view`, their contents as items; with Accept: text/event-stream, a stream."""
    if wants_stream(request):
        begin = _position(last_event_id or cursor, offset)
        feed = granted[Logs].open_log(run_id, stream, _readable(view), begin, check=check)
        if last_event_id is not None and not feed.read(1) and feed.ended:
            return Response(status_code=204)
        feed = granted[Logs].open_log(run_id, stream, _readable(view), begin, check=check)
        return EventStream(streams, _follow(granted, streams, run_id, feed, standing))
    if view is None or view == "raw":
        return _bytes(granted, run_id, stream, offset, limit, check=check)
    feed = granted[Logs].open_log(run_id, stream, view, _position(cursor, offset), check=check)
    page = _page(feed, min(limit, _PAGE))
    return Response(page.model_dump_json(), media_type="application/json", headers={"Vary": "Accept"})


def _bytes(granted: Session, run_id: str, stream: Stream, offset: int, limit: int, *, check: bool) -> Response:
    chunk = granted[Runs].log(run_id, stream, offset, limit, check=check)
    headers = {
        "Claudomator-Next-Offset": str(chunk.next_offset),
        "Claudomator-Ended": "true" if chunk.ended else "false",
        "Content-Disposition": "attachment",  # output of an agent must never be rendered as a page
        "Vary": "Accept",
    }
    return Response(chunk.data, headers=headers, media_type=LOG_TYPE)


def _page(feed: LogFeed, most: int) -> LogPageView:
    items: list[LogTextView | LogEntryView] = []
    for _ in range(_READS_OF_PAGE):
        items += [item.view for item in feed.read(most - len(items))]
        if len(items) >= most or feed.caught_up or feed.ended:
            break
    return LogPageView(items=tuple(items), next_cursor=str(feed.position), ended=feed.ended)


async def _follow(
    granted: Session, streams: Streams, run_id: str, feed: LogFeed, standing: Callable[[], bool]
) -> AsyncIterator[bytes]:
    yield opening(feed.position)
    silent_s = 0.0
    since_sent_s = 0.0
    try:
        while not streams.closing:
            begin_s = time.monotonic()
            items = await streams.run(lambda: feed.read(_PAGE))
            busy_s = time.monotonic() - begin_s
            if not standing():
                return  # the token was revoked meanwhile, or the browser logged out
            if items:
                yield b"".join(_message(item) for item in items)
                silent_s = since_sent_s = 0.0
            if feed.ended:
                run = await streams.run(lambda: granted[Runs].get(run_id))
                status = run.outcome.status if run.outcome is not None else None
                end = LogEndView(next_offset=feed.position.offset, state=run.state, status=status)
                yield message("end", end, feed.position)
                return
            if feed.caught_up:
                pause_s = POLL_S if silent_s < _IDLE_AFTER_S else IDLE_POLL_S
                await streams.pause(pause_s)
                silent_s += pause_s
                since_sent_s += pause_s
                if since_sent_s >= HEARTBEAT_S:
                    yield HEARTBEAT
                    since_sent_s = 0.0
            elif busy_s > _BUSY_S:
                await streams.pause(busy_s)  # a flood of output must not starve everything else
    except ServiceError as error:
        log.warning("the stream of a log ends early: %s", error)  # the client reconnects and continues


def _message(item: LogItem) -> bytes:
    return message("output" if isinstance(item.view, LogTextView) else "entry", item.view, item.after)


def _readable(view: AnyView | None) -> LogView:
    if view == "raw":
        raise Invalid("Bytes cannot be sent as events.", remedy="Ask for view=text, or without the event stream.")
    return view or "text"


def _position(text: str | None, offset: int) -> LogPosition:
    if text is None:
        return LogPosition(offset)
    match = _POSITION.fullmatch(text)
    if match is None:
        raise BadCursor("This position was not issued by this service.", remedy="Start again without it.")
    return LogPosition(int(match[1]), int(match[2] or 0))
