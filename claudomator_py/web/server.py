"""Serving the application inside the daemon's event loop, on a socket that is bound already."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from claudomator_py.web.connection import Connection
from claudomator_py.web.protocol import HEAD_BYTES

_GRACE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 30


class _Server(uvicorn.Server):
    """Leaves the signals to the daemon, and says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """One server on one socket. Closes the socket at its end. on_stop: ends what would go on by itself."""

    def __init__(
        self,
        app: ASGIApp,
        sock: socket.socket,
        on_stop: Callable[[], None] = lambda: None,
        *,
        protocol: type[Connection] = Connection,
    ) -> None:
        self._socket = sock
        self._on_stop = on_stop
        self._server = _Server(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
                h11_max_incomplete_event_size=HEAD_BYTES,
            )
        )

    async def serve(self) -> None:
        """Answer requests until ``stop`` is called; then finish those at hand, for five seconds at most.

        When cancelled, it stops in the same way before it lets the cancellation through.
        """
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.stop()
            await serving
            raise
        finally:
            self._socket.close()

    async def until_up(self) -> None:
        """Return once requests are answered; ``serve`` is to run beside it."""
        await self._server.up.wait()

    def stop(self) -> None:
        """Ask for the end. May be called from a signal handler of the loop, and more than once."""
        self._on_stop()
        self._server.should_exit = True
