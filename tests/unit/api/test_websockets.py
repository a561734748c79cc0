"""What WebSockets may take of the daemon: frames of every kind have a pace, and places go to those who use them."""

import asyncio
import base64
import os
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage

from claudomator_py.api.endpoint import bind, bound_address
from claudomator_py.api.guard.limits import MAX_UNFINISHED_BYTES, ConnectionLimit
from claudomator_py.api.guard.pace import ONE_PRINCIPAL, Paces
from claudomator_py.api.guard.websocket import FRAMES
from claudomator_py.api.server import WebServer
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.protocols.hub.methods import MAX_BYTES
from tests.patience import PATIENCE_S

PING, PONG, TEXT, CONTINUATION = 0x89, 0x8A, 0x01, 0x00
FLOOD = FRAMES.burst + 10 * int(FRAMES.per_second)


GUEST = Principal("guest", Role.OPERATE, "acme")


ENDED: list[str] = []
"""What was taken last of each connection."""


class DEBTOR:
    """Who owes something, by a clock that is put forward."""

    now_s = 0.0
    pace: Any = None
    among: Any = None


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer each message with its length. ``register`` keeps the place, ``share`` asks how many there may be, ``owe``
    has it owe more than it may, ``owe nothing`` nothing, ``join`` makes it the guest's, ``fail`` is a fault, and
    ``enough`` the last that is taken.
    """
    seat = scope["state"]["seat"]

    async def answer(message: Mapping[str, Any]) -> bool:
        if message["type"] != "websocket.receive":
            ENDED.append(message["type"])
            return False
        text = message["text"]
        if text == "register":
            seat.keep()
        if text.startswith("owe"):
            DEBTOR.among = Paces(lambda: DEBTOR.now_s)
            seat.pace = DEBTOR.pace = DEBTOR.among.of(GUEST)
            DEBTOR.pace.charge(2 * ONE_PRINCIPAL.burst_s if text == "owe" else 0)
        if text == "join":
            seat.pace = DEBTOR.among.of(GUEST)
        if text == "fail":
            raise ValueError(text)
        await send({"type": "websocket.send", "text": str(seat.share if text == "share" else len(text))})
        return bool(text != "enough")

    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    seat.hand_over(answer)


def served(scenario: Callable[[str], Awaitable[None]], most: int = 100, ping_s: float | None = None) -> None:
    """Run the scenario with the address of a server that has room for so many WebSockets.

    ping_s: how often clients are asked whether they are there, and how long for; None: the server's own.
    """

    async def run() -> None:
        sock = bind("127.0.0.1:0")
        server = WebServer(echo, [sock], websockets=ConnectionLimit(most=most))
        if ping_s is not None:
            server._server.config.ws_ping_interval = server._server.config.ws_ping_timeout = ping_s
        serving = asyncio.create_task(server.serve())
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scenario(bound_address(sock))
        finally:
            server.stop()
            await serving

    asyncio.run(run())


async def opened(address: str) -> ClientConnection:
    return await connect(f"ws://{address}/", proxy=None, ping_interval=None)


async def told(connection: ClientConnection, text: str) -> str:
    await connection.send(text)
    return str(await connection.recv())


async def is_closed(connection: ClientConnection) -> bool:
    with suppress(ConnectionClosed):
        await connection.recv()
        return False
    return True


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A short frame of a client, masked with zeros."""
    return bytes((kind, 0x80 | len(payload), 0, 0, 0, 0)) + payload


async def close_code_after(address: str, flood: bytes) -> int:
    """Open a WebSocket by hand, send the flood, and return the code with which it is closed."""
    reader, writer = await asyncio.open_connection(*address.split(":"))
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    sending = asyncio.ensure_future(_send(writer, flood))
    try:
        while True:
            kind, size = await reader.readexactly(2)
            payload = await reader.readexactly(size)
            if kind == 0x88:
                code: int = struct.unpack("!H", payload[:2])[0]
                return code
    finally:
        writer.transport.abort()  # it may never be read to its end
        with suppress(ConnectionError):
            await sending


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(ConnectionError):
        for start in range(0, len(data), 1_000):
            writer.write(data[start : start + 1_000])
            await writer.drain()


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(frame(PING) * FLOOD, id="pings"),
        pytest.param(frame(PONG) * FLOOD, id="pongs"),
        pytest.param(frame(TEXT) + frame(CONTINUATION) * FLOOD, id="empty-fragments"),
    ],
)
def test_a_flood_of_frames_that_are_no_messages_ends_its_connection(flood: bytes) -> None:
    async def scenario(address: str) -> None:
        other = await opened(address)
        assert await close_code_after(address, flood) == 1008
        assert await told(other, "hello") == "5"
        await other.close()

    served(scenario)


def test_who_works_never_meets_the_pace() -> None:
    """The longest message in fragments of a few kilobytes, and a ping for each of many more."""

    async def scenario(address: str) -> None:
        connection = await opened(address)
        part = "x" * 2_048
        await connection.send(part for _ in range(MAX_BYTES // len(part)))
        assert await connection.recv() == str(MAX_BYTES)
        for _ in range(200):
            await (await connection.ping())
        assert await told(connection, "hello") == "5"
        await connection.close()

    served(scenario)


def test_who_is_silent_makes_room_and_who_has_registered_stays() -> None:
    async def scenario(address: str) -> None:
        agent, spoken, silent = [await opened(address) for _ in range(3)]
        assert await told(agent, "register") == "8"
        assert await told(spoken, "hello") == "5"
        newcomers = [await opened(address)]
        assert await is_closed(silent)
        newcomers.append(await opened(address))
        assert await is_closed(spoken), "it has been silent for longer than the newcomer"
        assert await told(agent, "still here") == "10"
        assert await told(newcomers[-1], "hello") == "5"
        for connection in (agent, *newcomers):
            await connection.close()

    served(scenario, most=3)


@pytest.mark.parametrize("pieces", [1, 14], ids=["frames", "fragments"])
def test_messages_that_nobody_finishes_are_bounded_together(pieces: int) -> None:
    """Over however many connections of one principal; what is finished, or whose connection has ended, is not held."""
    DEBTOR.among = Paces()
    held = DEBTOR.among._unfinished._held
    size = MAX_BYTES * 9 // 10 // pieces
    kinds = [TEXT, *[CONTINUATION] * (pieces - 1)]
    unfinished = b"".join(struct.pack("!BBQI", kind, 0xFF, size, 0) + bytes(size) for kind in kinds)[
        : -1 if pieces == 1 else None
    ]

    async def scenario(address: str) -> None:
        honest = await opened(address)
        assert await told(honest, "join") == "4"
        flood = frame(TEXT | 0x80, b"join") + unfinished
        floods = [asyncio.ensure_future(close_code_after(address, flood)) for _ in range(25)]
        ended, _ = await asyncio.wait(floods, return_when=asyncio.FIRST_COMPLETED)
        assert {entry.result() for entry in ended} == {1008}
        assert MAX_UNFINISHED_BYTES // 2 < held[GUEST] < MAX_UNFINISHED_BYTES * 1.2
        for task in floods:
            task.cancel()
        while held:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        for _ in range(20):
            assert await told(honest, "x" * MAX_BYTES) == str(MAX_BYTES)
        await honest.close()

    served(scenario)


def test_where_all_have_registered_a_newcomer_finds_no_place() -> None:
    async def scenario(address: str) -> None:
        agents = [await opened(address) for _ in range(2)]
        for agent in agents:
            assert await told(agent, "register") == "8"
        with pytest.raises((InvalidMessage, OSError)):
            await opened(address)
        await agents.pop().close()
        newcomer = await opened(address)
        assert await told(newcomer, "hello") == "5"
        for connection in (*agents, newcomer):
            await connection.close()

    served(scenario, most=2)


def test_one_principal_may_have_half_of_the_places() -> None:
    async def scenario(address: str) -> None:
        connection = await opened(address)
        assert await told(connection, "share") == "5"
        await connection.close()

    served(scenario, most=10)


def test_of_who_owes_nothing_is_read_until_it_is_even() -> None:
    """Pings too, which never come as far as the application."""

    async def scenario(address: str) -> None:
        debtor, other = [await opened(address) for _ in range(2)]
        assert await told(debtor, "owe") == "3"
        await (await debtor.ping())  # what comes now is charged, and finds that something is owed
        pongs = [asyncio.ensure_future(await debtor.ping()) for _ in range(3)]
        for _ in range(50):
            assert await told(other, "hello") == "5"
        assert not any(pong.done() for pong in pongs)
        DEBTOR.now_s += 2 * ONE_PRINCIPAL.burst_s / ONE_PRINCIPAL.of_one
        await asyncio.gather(*pongs)
        assert await told(debtor, "hello") == "5"
        for connection in (debtor, other):
            await connection.close()

    served(scenario)


@pytest.mark.parametrize("pings", [1, 7, 1_500])
def test_nothing_is_looked_at_while_the_operator_waits_and_nothing_is_lost(
    pings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than is read at once, too."""
    for name in ("MAX_AHEAD_S", "MAX_BEHIND_S"):
        monkeypatch.setattr(f"{Paces.__module__}.{name}", 2 * PATIENCE_S)

    async def scenario(address: str) -> None:
        guest, other = [await opened(address) for _ in range(2)]
        assert await told(guest, "owe nothing") == "11"
        with DEBTOR.among.desk.ahead() as leave:
            pongs = [asyncio.ensure_future(await guest.ping()) for _ in range(pings)]
            answer = asyncio.ensure_future(told(guest, "x" * 30_000))
            for _ in range(50):
                assert await told(other, "hello") == "5"
            assert not any(pong.done() for pong in pongs)
            leave()
            await asyncio.gather(*pongs)
            assert await answer == "30000"
        for connection in (guest, other):
            await connection.close()

    served(scenario)


def test_who_owes_and_goes_leaves_nothing_behind() -> None:
    async def scenario(address: str) -> None:
        debtor = await opened(address)
        assert await told(debtor, "owe") == "3"
        await (await debtor.ping())
        waiting = len(asyncio.all_tasks())
        debtor.transport.abort()
        while len(asyncio.all_tasks()) >= waiting:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)

    # Nothing is read of it, so only an unanswered ping tells that it has gone.
    served(scenario, ping_s=0.3)


def test_no_task_waits_for_a_silent_connection_and_its_end_is_taken() -> None:
    async def scenario(address: str) -> None:
        before = len(asyncio.all_tasks())
        connections = [await opened(address) for _ in range(20)]
        assert await told(connections[0], "hello") == "5"
        # Two tasks of each are the client's own, which is of this loop as well.
        assert len(asyncio.all_tasks()) <= before + 2 * len(connections) + 1
        ENDED.clear()
        for connection in connections:
            await connection.close()
        while len(ENDED) < len(connections):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)

    served(scenario)


def test_messages_are_taken_one_after_the_other_in_their_order() -> None:
    async def scenario(address: str) -> None:
        connection = await opened(address)
        for length in range(300):
            await connection.send("x" * length)
        assert [await connection.recv() for _ in range(300)] == [str(length) for length in range(300)]
        await connection.close()

    served(scenario)


@pytest.mark.parametrize("last", ["enough", "fail"])
def test_who_takes_no_more_or_fails_ends_the_connection(last: str) -> None:
    async def scenario(address: str) -> None:
        connection, other = [await opened(address) for _ in range(2)]
        await connection.send(last)
        if last == "enough":
            assert await connection.recv() == "6"
        assert await is_closed(connection)
        assert await told(other, "hello") == "5"
        await other.close()

    served(scenario)


def test_when_the_server_ends_so_do_those_who_are_silent() -> None:
    connections = []

    async def scenario(address: str) -> None:
        ENDED.clear()
        connections.extend([await opened(address) for _ in range(5)])

    served(scenario)
    assert ENDED == ["websocket.disconnect"] * 5
