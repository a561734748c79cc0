"""Serving the application inside the daemon's event loop, on sockets that are bound already."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from claudomator_py.api.guard.limits import ConnectionLimit, socket_limit
from claudomator_py.api.guard.listener import Listener
from claudomator_py.api.guard.protocol import Connection
from claudomator_py.protocols.hub.methods import MAX_BYTES

_GRACE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 30
_QUEUED_FRAMES = 16

log = logging.getLogger(__name__)


def _websocket(**server: Any) -> asyncio.Protocol:
    """The protocol of a connection that becomes a WebSocket; imported by the first."""
    from claudomator_py.api.guard.websocket import GuardedWebSocket

    return GuardedWebSocket(**server)


class _NotifyingSet(set[Any]):
    """A set that tells when the last one has left."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()
        self.gone.set()

    def add(self, one: object) -> None:
        super().add(one)
        self.gone.clear()

    def discard(self, one: object) -> None:
        super().discard(one)
        if not self:
            self.gone.set()


class _ServerState(ServerState):
    """Tells the date when a response asks for it; uvicorn writes it down every second, whether anybody asks or not."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = self.open = _NotifyingSet()
        self.tasks = self.at_hand = _NotifyingSet()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"date", formatdate(usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, _: list[tuple[bytes, bytes]]) -> None:
        """What uvicorn begins with is nothing."""


class _Server(uvicorn.Server):
    """Leaves the signals to the daemon, takes connections by itself, says when it answers, and sleeps until asked."""

    def __init__(
        self, config: uvicorn.Config, protocol: type[Connection], limit: ConnectionLimit, sockets: ConnectionLimit
    ) -> None:
        super().__init__(config)
        self.server_state: _ServerState = _ServerState()
        self.up = asyncio.Event()
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._protocol = protocol
        self._limit = limit
        self._sockets = sockets

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await self.lifespan.startup()
        listeners = [self._listener(sock) for sock in sockets or ()]
        self.servers = cast("list[asyncio.base_events.Server]", listeners)
        self.started = True
        self.up.set()

    def end(self) -> None:
        """Ask for the end, on any thread; more than once is as once."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and so has the server
                self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        # uvicorn's looks ten times a second whether it is to end.
        if not self.should_exit:
            await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        del sockets  # the owner closes them
        for listener in self.servers:
            listener.close()
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                for listener in self.servers:
                    await listener.wait_closed()
                for connection in list(self.server_state.connections):
                    connection.shutdown()
                while self.server_state.open or self.server_state.at_hand:
                    await self.server_state.open.gone.wait()
                    await self.server_state.at_hand.gone.wait()
        except TimeoutError:
            tasks = self.server_state.at_hand
            log.error("Cancel %s running task(s), timeout graceful shutdown exceeded", len(tasks))
            for task in list(tasks):
                task.cancel()

    def _listener(self, sock: socket.socket) -> Listener:
        is_own = sock.family == socket.AF_UNIX
        limit, sockets = (ConnectionLimit(), socket_limit()) if is_own else (self._limit, self._sockets)
        return Listener(sock, lambda: self._connection(limit, sockets), limit, self._protocol.head_s)

    def _connection(self, limit: ConnectionLimit, sockets: ConnectionLimit) -> Connection:
        return self._protocol(
            limit=limit,
            sockets=sockets,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """One server on all the sockets. Closes them at its end. on_stop: ends what would continue by itself.

    protocol, limit, websockets: how connections are served, how many, and how many of those that became WebSockets.
    Those of a Unix socket have limits of their own: no other user's connections can get in their way.
    """

    def __init__(
        self,
        app: ASGIApp,
        sockets: Sequence[socket.socket],
        on_stop: Callable[[], None] = lambda: None,
        *,
        protocol: type[Connection] = Connection,
        limit: ConnectionLimit | None = None,
        websockets: ConnectionLimit | None = None,
    ) -> None:
        self._sockets = list(sockets)
        self._on_stop = on_stop
        self._server = _Server(
            uvicorn.Config(
                app,
                http=protocol,
                ws=cast("type[asyncio.Protocol]", _websocket),
                ws_max_size=MAX_BYTES,
                ws_max_queue=_QUEUED_FRAMES,
                ws_per_message_deflate=False,  # what is small on the way could be large here
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            ),
            protocol,
            limit or ConnectionLimit(),
            websockets or socket_limit(),
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
        """Ask for the end. May be called on any thread or from a signal handler of the loop, and more than once."""
        self._on_stop()
        self._server.end()
