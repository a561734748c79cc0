"""The server inside a loop: it stops when asked, and finishes what it has begun."""

import asyncio
import http.client
import signal
import socket
import threading
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from claudomator_py.api import server as server_module
from claudomator_py.api.endpoint import bind, bound_address
from claudomator_py.api.guard.protocol import Connection
from claudomator_py.api.server import WebServer
from tests.patience import PATIENCE_S


async def _hello(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


def _get(address: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request("GET", "/")
    response = connection.getresponse()
    try:
        return response.status, response.read()
    finally:
        connection.close()


def test_a_request_at_hand_is_finished_before_the_end() -> None:
    begun = threading.Event()
    answers: list[tuple[int, bytes]] = []

    async def scenario() -> None:
        go_on = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            begun.set()
            await go_on.wait()
            await _hello(scope, receive, send)

        sock = bind("127.0.0.1:0")
        address = bound_address(sock)
        server = WebServer(slow, [sock])
        client = threading.Thread(target=lambda: answers.append(_get(address)))
        client.start()
        serving = asyncio.create_task(server.serve())
        await asyncio.to_thread(begun.wait, 10)
        server.stop()
        server.stop()
        go_on.set()
        await serving
        await asyncio.to_thread(client.join)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(_get, address)

    asyncio.run(scenario())
    assert answers == [(200, b"hello")]


def test_what_is_answered_is_sent_at_once() -> None:
    messages: list[int] = []

    class Noted(Connection):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            connected = transport.get_extra_info("socket")
            messages.append(connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            super().connection_made(transport)

    async def scenario() -> None:
        sock = bind("127.0.0.1:0")
        server = WebServer(_hello, [sock], protocol=Noted)
        serving = asyncio.create_task(server.serve())
        assert await asyncio.to_thread(_get, bound_address(sock)) == (200, b"hello")
        server.stop()
        await serving

    asyncio.run(scenario())
    assert messages == [1], "what follows would wait until the client has acknowledged what came before"


def test_a_cancelled_server_stops_and_lets_go_of_the_port() -> None:
    async def scenario() -> None:
        sock = bind("127.0.0.1:0")
        address = bound_address(sock)
        serving = asyncio.create_task(WebServer(_hello, [sock]).serve())
        assert await asyncio.to_thread(_get, address) == (200, b"hello")
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        bind(address).close()

    asyncio.run(scenario())


def test_signals_are_left_to_the_daemon() -> None:
    async def scenario() -> None:
        sock = bind("127.0.0.1:0")
        address = bound_address(sock)
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        server = WebServer(_hello, [sock])
        serving = asyncio.create_task(server.serve())
        await asyncio.to_thread(_get, address)
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
        server.stop()
        await serving

    asyncio.run(scenario())


def test_a_server_that_nobody_asks_sleeps_and_ends_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> list[object]:
        timers: list[object] = []
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def noted(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
            handle = call_at(*arguments, **options)
            timers.append(handle)
            return handle

        monkeypatch.setattr(loop, "call_at", noted)
        server = WebServer(_hello, [bind("127.0.0.1:0")])
        serving = asyncio.create_task(server.serve())
        await server.until_up()
        for _ in range(10):
            await asyncio.sleep(0)
        idle = list(timers)
        server.stop()
        await serving
        # The only one is the bound on the time that requests at hand get.
        assert all(timer.cancelled() for timer in timers if isinstance(timer, asyncio.TimerHandle))
        return idle

    assert asyncio.run(scenario()) == []


def test_another_thread_may_ask_for_the_end() -> None:
    async def scenario() -> None:
        server = WebServer(_hello, [bind("127.0.0.1:0")])
        serving = asyncio.create_task(server.serve())
        await server.until_up()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        await asyncio.wait_for(serving, PATIENCE_S)
        stopping.join()
        server.stop()

    asyncio.run(scenario())


def test_a_response_has_the_date_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["first", "second"])
    monkeypatch.setattr(server_module, "formatdate", lambda **_: next(times))

    async def scenario() -> list[str | None]:
        sock = bind("127.0.0.1:0")
        server = WebServer(_hello, [sock])
        serving = asyncio.create_task(server.serve())

        def dates() -> list[str | None]:
            connection = http.client.HTTPConnection(bound_address(sock), timeout=PATIENCE_S)
            results = []
            for _ in range(2):
                connection.request("GET", "/")
                response = connection.getresponse()
                response.read()
                results.append(response.headers["date"])
            connection.close()
            return results

        thread = await asyncio.to_thread(dates)
        server.stop()
        await serving
        return thread

    assert asyncio.run(scenario()) == ["first", "second"]
