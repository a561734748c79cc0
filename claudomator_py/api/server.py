"""Serving the application inside the daemon's event loop, on sockets that are bound already."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from claudomator_py.api.guard.limits import Crowd
from claudomator_py.api.guard.listener import Listener
from claudomator_py.api.guard.protocol import Connection

_GRACE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 30


class _Server(uvicorn.Server):
    """Leaves the signals to the daemon, takes connections by itself, and says when it answers."""

    def __init__(self, config: uvicorn.Config, protocol: type[Connection], crowd: Crowd) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self._protocol = protocol
        self._crowd = crowd

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        listeners = [self._listener(sock) for sock in sockets or ()]
        self.servers = cast("list[asyncio.base_events.Server]", listeners)
        self.started = True
        self.up.set()

    def _listener(self, sock: socket.socket) -> Listener:
        crowd = Crowd() if sock.family == socket.AF_UNIX else self._crowd
        return Listener(sock, lambda: self._connection(crowd), crowd, self._protocol.head_s)

    def _connection(self, crowd: Crowd) -> Connection:
        return self._protocol(
            crowd=crowd, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """One server on all the sockets. Closes them at its end. on_stop: ends what would go on by itself.

    protocol, crowd: how connections are served, and how many. Those of a Unix socket are a crowd of their own, which
    no other user's connections can get in the way of.
    """

    def __init__(
        self,
        app: ASGIApp,
        sockets: Sequence[socket.socket],
        on_stop: Callable[[], None] = lambda: None,
        *,
        protocol: type[Connection] = Connection,
        crowd: Crowd | None = None,
    ) -> None:
        self._sockets = list(sockets)
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
            ),
            protocol,
            crowd or Crowd(),
        )

    async def serve(self) -> None:
        """Answer requests until ``stop`` is called; then finish those at hand, for five seconds at most.

        When cancelled, it stops in the same way before it lets the cancellation through.
        """
        serving = asyncio.ensure_future(self._server.serve(sockets=self._sockets))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.stop()
            await serving
            raise
        finally:
            for sock in self._sockets:
                sock.close()

    async def until_up(self) -> None:
        """Return once requests are answered; ``serve`` is to run beside it."""
        await self._server.up.wait()

    def stop(self) -> None:
        """Ask for the end. May be called from a signal handler of the loop, and more than once."""
        self._on_stop()
        self._server.should_exit = True
