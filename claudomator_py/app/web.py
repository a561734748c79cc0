"""The daemon's sockets, and the web server on them, which is imported and made for the first connection."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from claudomator_py.api.endpoint import publish_endpoint, url_of, withdraw_endpoint
from claudomator_py.app.assemble import Components
from claudomator_py.app.listening import open_sockets
from claudomator_py.daemon.loop import Daemon
from claudomator_py.imports import bulk_import
from claudomator_py.log import get_logger
from claudomator_py.protocols.hub import Hub
from claudomator_py.protocols.hub.waking import wake_remote_agent
from claudomator_py.schema.settings import Http
from claudomator_py.store import explain

if TYPE_CHECKING:
    from claudomator_py.api.server import WebServer

log = get_logger("claudomator")

RETRY_S = 1.0
"""Pause after a failure to make the server, however many connections come."""


class Web:
    """The web server and the hub. The sockets listen after construction."""

    def __init__(self, daemon: Components, loop: Daemon, settings: Http, token: str, listen: str, state: Path) -> None:
        """listen: the address. state: the state folder, in which clients find the address. Raises CannotListen,
        ValueError."""
        around = daemon.surroundings
        self.hub = Hub(around.database, around.host, around.registry, wake_remote_agent)
        around.registry.is_present = self.hub.is_present
        around.database.on_commit(self.hub.wake)
        sockets = open_sockets(listen, state)
        self.url = url_of(sockets[0])

        def make() -> "WebServer":
            daemon.desk()  # before the block, as bulk imports on two threads would undo each other's settings
            with bulk_import():
                from claudomator_py.app.web_server import make_server

            return make_server(daemon, loop, self.hub, settings, token, state, sockets)

        self.server = LateServer(sockets, make)


class LateServer:
    """A server that is made when the first connection comes; until then, connections wait in the kernel's queue.

    With what it imports, it is a sixth of the daemon's memory and a quarter of its start. ``make`` is called on a
    thread, so that ticks and signals go on.
    """

    def __init__(self, sockets: Sequence[socket.socket], make: Callable[[], "WebServer"]) -> None:
        self._sockets = sockets
        self._make = make
        self._server: WebServer | None = None
        self._news = asyncio.Event()
        """Set when a connection comes or ``stop`` is called."""
        self._is_stopping = False

    async def serve(self) -> None:
        """Serve until ``stop`` is called; see ``WebServer.serve``."""
        try:
            while self._server is None and await self._is_called():
                await self._try_to_make()
            if self._server is not None and not self._is_stopping:
                await self._server.serve()
        finally:
            for sock in self._sockets:
                sock.close()

    def stop(self) -> None:
        """Ask the server to stop. Call it on the loop."""
        self._is_stopping = True
        self._news.set()
        if self._server is not None:
            self._server.stop()

    async def _is_called(self) -> bool:
        """Return True when a connection has come, False when the server is to stop."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            loop.add_reader(sock, self._news.set)
        try:
            await self._news.wait()
        finally:
            for sock in self._sockets:
                loop.remove_reader(sock)
        self._news.clear()
        return not self._is_stopping

    async def _try_to_make(self) -> None:
        try:
            self._server = await asyncio.to_thread(self._make)
        except Exception as error:
            if (trouble := explain(error)) is not None:
                log.warning("web_server_waits_for_the_store", problem=str(trouble))
            else:
                log.exception(
                    "web_server_not_made", remedy="repair what the error names; the next connection tries again"
                )
            for sock in self._sockets:
                _drop_waiting(sock)
            # Nothing but ``stop`` ends the pause.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), RETRY_S)


def _drop_waiting(listener: socket.socket) -> None:
    """Close the connections in the kernel's queue."""
    with contextlib.suppress(OSError):  # there are no more, or no file can be opened
        while True:
            connection, _address = listener.accept()
            connection.close()


def publish(url: str, state: Path, in_place: Callable[[], bool], stack: ExitStack) -> None:
    """Publish the address, by which commands find the daemon, until the stack is closed."""
    stack.callback(withdraw, state, in_place)
    publish_endpoint(state, url)


def withdraw(state: Path, in_place: Callable[[], bool]) -> None:
    """Withdraw the published address, unless the state folder is another daemon's by now."""
    if in_place():
        withdraw_endpoint(state)
