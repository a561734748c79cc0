"""What a connection has to keep to before there is a request that the application could judge.

uvicorn waits for the head of a request for ever, and answers a malformed one, and one connection too many, in plain
text. Here a head has its time, and such refusals are problems like all others.
"""

import asyncio
import contextlib
import sys
from typing import Any, Final

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from claudomator_py.web.problem import Refused
from claudomator_py.web.security import HEADERS, OPEN_PATHS

HEAD_BYTES: Final = 32 * 1024
"""The longest head of a request: its first line and all headers."""

_HEAD_TOO_LARGE = Refused(
    431,
    "headers_too_large",
    f"The head of the request is larger than {HEAD_BYTES} bytes.",
    "Send fewer or shorter headers; a browser sends less once the cookies of other programs on this host are deleted.",
)
_MALFORMED = Refused(400, "bad_http", "This is no HTTP/1.1 request.", "Send the request with an HTTP client.")
_TOO_SLOW = Refused(408, "head_timeout", "The head of the request did not come in time.", "Send it again, at once.")
_BUSY = Refused(
    503,
    "too_many_connections",
    "There are too many connections to the daemon.",
    "Close some, such as pages that are open in browsers, and send the request again.",
    headers={"Retry-After": "1", "Connection": "close"},
)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with bounds. head_s: seconds that a head may take from its first byte, or from the connection's begin.

    connections: beyond so many only health is answered; beyond twice as many, nothing is.
    """

    head_s = 10.0
    connections_at_most = 256
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with the wait for a first head."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream's transport is one
        super().connection_made(transport)
        if len(self.connections) > 2 * self.connections_at_most:
            transport.abort()
            return
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take what came, and see whether it made the head complete."""
        # By what there is now, not when the connection was made: connections come and go.
        too_many = len(self.connections) > self.connections_at_most
        self.app = _health_only(self.config.loaded_app) if too_many else self.config.loaded_app
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._unwatch_head()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what h11 could not take: that is the exception which is being handled."""
        error = sys.exception()
        too_large = isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431
        self._refuse(_HEAD_TOO_LARGE if too_large else _MALFORMED)

    def _watch_head(self) -> None:
        """Run the timer while the head of a request is awaited, from its first byte on."""
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
            self.transport.close()  # nothing was asked, so nobody waits for an answer

    def _refuse(self, refused: Refused) -> None:
        """Answer without the application, and close. What cannot be answered any more is only closed."""
        response = refused.response("/")
        headers = [*response.raw_headers, *HEADERS.items(), (b"connection", b"close")]
        whole = (
            h11.Response(status_code=response.status_code, headers=headers),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        )
        with contextlib.suppress(h11.LocalProtocolError):  # another answer has begun
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in whole))
        self.transport.close()


def _health_only(app: Any) -> Any:
    """The application for one connection too many: supervisors hear the truth, all others that it is busy."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in OPEN_PATHS:
            await app(scope, receive, send)
        else:
            response = _BUSY.response(scope["path"])
            response.raw_headers.extend(HEADERS.items())
            await response(scope, receive, send)

    return answer
