"""Serve the application inside the daemon's event loop, on sockets that are already bound."""

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
    """Return the protocol of a WebSocket; imported for the first one."""
    from claudomator_py.api.guard.websocket import GuardedWebSocket

    return GuardedWebSocket(**server)


class _NotifyingSet(set[Any]):
    """A set with an event for being empty."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()
        self.gone.set()

    def add(self, task: object) -> None:
        super().add(task)
        self.gone.clear()

    def discard(self, task: object) -> None:
        super().discard(task)
        if not self:
            self.gone.set()


class _ServerState(ServerState):
    """Computes the Date header when a response needs it; uvicorn does so every second, idle or not."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = self.open = _NotifyingSet()
        self.tasks = self.at_hand = _NotifyingSet()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"date", formatdate(usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, _: list[tuple[bytes, bytes]]) -> None:
        """Ignore uvicorn's initial value, which is empty."""


class _Server(uvicorn.Server):
    """Leaves signals to the daemon, accepts connections itself, reports when it is up, and does not poll."""

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
        """Ask the server to end, from any thread; repeated calls change nothing."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the server
                self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        # uvicorn's own loop checks ten times a second whether to end.
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
    """One server on all sockets, which it closes at its end. on_stop: ends what would go on otherwise.

    protocol, limit, websockets: how connections are served, how many there may be, and how many of those that become
    WebSockets. A Unix socket has limits of its own, so that no other user's connections get in its way.
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
                ws_per_message_deflate=False,  # small compressed messages could become huge
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
        """Serve until ``stop`` is called; then finish pending requests, for five seconds at most.

        When cancelled, stop in the same way before raising the cancellation.
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
        """Return once requests are served; ``serve`` must run concurrently."""
        await self._server.up.wait()

    def stop(self) -> None:
        """Ask the server to stop. May be called on any thread, from a signal handler of the loop, and repeatedly."""
        self._on_stop()
        self._server.end()
