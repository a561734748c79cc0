"""The limits of a connection, before there is a request that the application could judge.

uvicorn waits forever for the head of a request, does not limit silent connections, and answers a malformed request in
plain text. Here a head has a time limit, newcomers find room, and refusals are problem documents like all others.
"""

import asyncio
import contextlib
import fcntl
import struct
import sys
import termios
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from claudomator_py.api.guard.exchange import SECURITY_HEADERS
from claudomator_py.api.guard.limits import ConnectionLimit
from claudomator_py.api.guard.security import ServerLoad
from claudomator_py.api.problem import Refused
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.values import regex

HEAD_BYTES: Final = 32 * 1024
"""Maximum length of a request's head: its first line and all headers."""
HEADERS: Final = 100
"""Maximum number of headers of a request."""
CHUNKS: Final = 4_096
"""Maximum number of chunks of a body: the largest body in chunks of 256 bytes."""

_OTHER_LINES = 2  # the request line, and the empty line at the end
_END = regex(rb"\n\r?\n")


class Parser(h11.Connection):
    """The server's side of a connection. Raises h11.RemoteProtocolError with status 431 or 413 beyond the limits."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, HEAD_BYTES)
        self._chunks = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event from the client."""
        if self.their_state is h11.IDLE:
            self._chunks = 0
            _check_head(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            if self._chunks > CHUNKS:
                raise h11.RemoteProtocolError("too many chunks", error_status_hint=413)
        return event


def _check_head(received: bytes) -> None:
    match = _END.search(received, 0, HEAD_BYTES)
    end = match.end() if match else len(received)
    if end > HEAD_BYTES or received.count(b"\n", 0, end) > HEADERS + _OTHER_LINES:
        raise h11.RemoteProtocolError("head too large", error_status_hint=431)


_HEAD_TOO_LARGE = Refused(
    431,
    "headers_too_large",
    f"The head of the request is larger than {HEAD_BYTES} bytes, or has more than {HEADERS} headers.",
    "Send fewer or shorter headers. In a browser, delete the cookies of other programs on this host.",
)
_TOO_MANY_CHUNKS = Refused(
    413, "too_large", f"The body is sent in more than {CHUNKS} chunks.", "Send it in larger ones, or with its length."
)
_MALFORMED = Refused(400, "bad_http", "This is not an HTTP/1.1 request.", "Send the request with an HTTP client.")
_TOO_SLOW = Refused(
    408, "head_timeout", "The request headers did not arrive in time.", "Retry, and send the headers without pauses."
)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with limits.

    head_s: seconds that a head may take from its first byte, or from the beginning of the connection.
    """

    head_s = 10.0
    _head_timer: asyncio.TimerHandle | None = None
    _is_websocket = False

    def __init__(self, *, limit: ConnectionLimit, sockets: ConnectionLimit, **server: Any) -> None:
        """limit: of the server's connections. sockets: of those that become WebSockets. server: uvicorn's arguments."""
        super().__init__(**server)
        self.conn = Parser()
        self._limit = limit
        make = cast("Callable[..., asyncio.Protocol]", self.ws_protocol_class)
        self.ws_protocol_class = cast("type[asyncio.Protocol]", partial(make, limit=sockets))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first head."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream's transport is one
        super().connection_made(transport)
        if self._limit.enter(self):
            self._watch_head()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take data, and check whether the head is complete."""
        super().data_received(data)
        if not self._is_websocket:
            self._watch_head()
            self._update_limit()

    def handle_events(self) -> None:
        """Handle the complete events, and note the load for them."""
        # The load of this moment, not of when the connection was made.
        self.app_state = {
            "load": ServerLoad.FULL
            if self._limit.full
            else ServerLoad.CROWDED
            if self._limit.crowded
            else ServerLoad.FREE
        }
        super().handle_events()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to the WebSocket protocol, which has limits of its own."""
        self._is_websocket = True
        self._unwatch_head()
        self._limit.leave(self)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._update_limit()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is closed."""
        self._unwatch_head()
        self._limit.leave(self)
        super().connection_lost(exc)

    def may_go(self) -> bool:
        """Return whether it may be closed: its client has shown no credentials, or no request is pending. A request of
        anybody but the operator counts as pending only once its body is complete."""
        at_hand = self.conn.their_state is not h11.IDLE and not self.cycle.response_complete
        by = self.scope["state"].get("principal") if at_hand else None
        return by is None or (by != OPERATOR and self.conn.their_state is h11.SEND_BODY)

    def drop(self) -> None:
        """Close it at once."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be parsed, by the exception that is being handled."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        self._refuse({431: _HEAD_TOO_LARGE, 413: _TOO_MANY_CHUNKS}.get(status, _MALFORMED))

    def _update_limit(self) -> None:
        """Note whether the connection waits for its client, whose head or body is incomplete, or for the server."""
        if self.conn.their_state is h11.IDLE or self.conn.their_state is h11.SEND_BODY:
            self._limit.waits(self)
        else:
            self._limit.works(self)

    def _watch_head(self) -> None:
        """Run the timer while the head of a request is incomplete."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._unwatch_head()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._give_up)

    def _unwatch_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            self._refuse(_TOO_SLOW)
        else:
            self.transport.close()  # nothing was asked, so there is nothing to answer

    def _refuse(self, refused: Refused) -> None:
        """Answer without the application, and close. If another answer has begun, only close."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application sees a disconnect
            self.cycle.message_event.set()
        response = refused.response("/")
        headers = [*response.raw_headers, *SECURITY_HEADERS.items(), (b"connection", b"close")]
        whole = (
            h11.Response(status_code=response.status_code, headers=headers),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        )
        with contextlib.suppress(h11.LocalProtocolError):  # another answer has begun
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in whole))
        self.transport.close()


PATIENCE_S = 60.0
LAST_PATIENCE_S = 0.5
"""How long a stopping server waits for a client that does not read."""


class Connection(GuardedProtocol):
    """Drops the connection when its client reads nothing for a minute, while there is something to read.

    Without this, the application would wait for such a client forever.
    """

    patience_s = PATIENCE_S
    _left = 0
    _timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Watch a client that lags behind."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Stop watching a client that has caught up."""
        self._unwatch()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is closed."""
        self._unwatch()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Stop with the server: finish what the client is reading, but do not wait for it."""
        self.patience_s = LAST_PATIENCE_S
        super().shutdown()
        self._watch()

    def _watch(self) -> None:
        self._unwatch()
        self._left = self._untaken()
        if self._left:
            self._timer = self.loop.call_later(self.patience_s, self._look)

    def _look(self) -> None:
        if self._untaken() >= self._left:
            self.transport.abort()
        else:
            self._watch()

    def _untaken(self) -> int:
        """Return how many bytes the client has not read, those in the kernel included: it buffers megabytes, and
        reports room only when much of that is gone."""
        socket = self.transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return 0
        in_kernel: int = struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return self.transport.get_write_buffer_size() + in_kernel

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
