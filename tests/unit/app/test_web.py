"""The web server is made for the first connection, and nobody who came before notices."""

import asyncio
import http.client
import logging
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.types import Receive, Scope, Send

from claudomator_py.api.endpoint import bind, bound_address
from claudomator_py.api.server import WebServer
from claudomator_py.app import web
from claudomator_py.app.web import LateServer
from claudomator_py.store import StoreUnavailable
from tests.patience import PATIENCE_S, wait_until


async def _hello(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


class Maker:
    """Makes a server for this socket, unless an error is to be raised."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.address = bound_address(sock)
        self.calls = 0
        self.errors: list[Exception] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self) -> WebServer:
        self.calls += 1
        self.may_go_on.wait(PATIENCE_S)
        if self.errors:
            raise self.errors.pop()
        return WebServer(_hello, [self.sock])

    def get(self) -> bytes:
        """The answer to a request."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/")
            return connection.getresponse().read()
        finally:
            connection.close()


def run(scenario: Callable[[Maker, LateServer], Awaitable[None]]) -> Maker:
    """Run it beside a server, which is stopped after it; return what made the server."""

    async def whole() -> Maker:
        maker = Maker(bind("127.0.0.1:0"))
        server = LateServer([maker.sock], maker)
        await scenario(maker, server)
        server.stop()
        return maker

    return asyncio.run(whole())


def test_all_who_came_before_the_server_get_an_answer() -> None:
    async def scenario(maker: Maker, server: LateServer) -> None:
        maker.may_go_on.clear()
        with ThreadPoolExecutor(20) as clients:
            early = [clients.submit(maker.get) for _ in range(10)]
            serving = asyncio.create_task(server.serve())
            await asyncio.to_thread(wait_until, lambda: maker.calls == 1, "the first connection")
            early += [clients.submit(maker.get) for _ in range(10)]
            maker.may_go_on.set()
            answers = [await asyncio.wrap_future(each) for each in early]
        assert answers == [b"hello"] * 20
        server.stop()
        await serving

    assert run(scenario).calls == 1


def test_it_stops_without_a_connection() -> None:
    async def scenario(maker: Maker, server: LateServer) -> None:
        serving = asyncio.create_task(server.serve())
        await asyncio.sleep(0)
        server.stop()
        await asyncio.wait_for(serving, PATIENCE_S)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(maker.get)

    assert run(scenario).calls == 0


def test_it_stops_while_the_server_is_being_made() -> None:
    async def scenario(maker: Maker, server: LateServer) -> None:
        maker.may_go_on.clear()
        serving = asyncio.create_task(server.serve())
        client = asyncio.create_task(asyncio.to_thread(maker.get))
        await asyncio.to_thread(wait_until, lambda: maker.calls == 1, "the first connection")
        server.stop()
        maker.may_go_on.set()
        await asyncio.wait_for(serving, PATIENCE_S)
        with pytest.raises(ConnectionError):
            await client

    assert run(scenario).calls == 1


@pytest.mark.parametrize(
    ("error", "event", "traced"),
    [
        (ModuleNotFoundError("No module named 'fastapi'"), "web_server_not_made", True),
        (StoreUnavailable("PostgreSQL has no connection left", "end others"), "web_server_waits_for_the_store", False),
    ],
)
def test_a_failure_is_logged_and_the_next_connection_tries_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, event: str, traced: bool
) -> None:
    monkeypatch.setattr(web, "RETRY_S", 0.01)

    async def scenario(maker: Maker, server: LateServer) -> None:
        maker.errors.append(error)
        serving = asyncio.create_task(server.serve())
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            await asyncio.to_thread(maker.get)
        assert await asyncio.to_thread(maker.get) == b"hello"
        server.stop()
        await serving

    with caplog.at_level(logging.WARNING):
        assert run(scenario).calls == 2
    assert [event in record.getMessage() for record in caplog.records] == [True]
    assert str(error) in caplog.text or str(error) in str(vars(caplog.records[0]))
    assert ("Traceback" in caplog.text) is traced


def test_a_stop_after_a_failure_does_not_wait_for_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "RETRY_S", PATIENCE_S * 2)

    async def scenario(maker: Maker, server: LateServer) -> None:
        maker.errors.append(MemoryError())
        serving = asyncio.create_task(server.serve())
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            await asyncio.to_thread(maker.get)
        server.stop()
        await asyncio.wait_for(serving, PATIENCE_S)

    assert run(scenario).calls == 1
