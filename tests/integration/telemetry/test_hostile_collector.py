"""A collector that means harm: whatever it does with the connection, sending ends in time, in a fault."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from claudomator_py.ports import ExportFault
from claudomator_py.schema.settings import TelemetrySettings
from claudomator_py.telemetry import otlp
from claudomator_py.telemetry.otlp import OtlpExporter
from tests.integration.telemetry.test_otlp import SPAN

DEADLINE_S = 1.0
HEAD = b"HTTP/1.1 200 OK\r\n"
Served = Callable[[socket.socket, threading.Event], None]


def drip(of: bytes, every: bytes) -> Served:
    """Answers that, and then a little more, without end."""

    def serve(connection: socket.socket, left: threading.Event) -> None:
        connection.sendall(of)
        while not left.wait(0.02):
            connection.sendall(every)

    return serve


def say(what: bytes) -> Served:
    """Answers that, and closes."""

    def serve(connection: socket.socket, left: threading.Event) -> None:
        connection.recv(65_536)
        connection.sendall(what)

    return serve


def reads_nothing(connection: socket.socket, left: threading.Event) -> None:
    left.wait()


WAYS: dict[str, Served] = {
    "closes at once": lambda connection, left: None,
    "reads nothing": reads_nothing,
    "closes within the head": say(HEAD + b"Content-Len"),
    "closes within the body": say(HEAD + b"Content-Length: 100\r\n\r\nshort"),
    "closes within a piece": say(HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\nshort"),
    "a piece of no length": say(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "a length of letters": say(HEAD + b"Content-Length: many\r\n\r\n"),
    "garbage": say(bytes(range(256)) * 16),
    "another protocol": say(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "no such status": say(b"HTTP/1.1 999999 X\r\n\r\n"),
    "drips its head": drip(HEAD + b"X: ", b"x"),
    "heads without end": drip(HEAD, b"X: y\r\n"),
    "early answers without end": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@contextmanager
def collector(serve: Served) -> Iterator[str]:
    """The address of one that does this with each connection."""
    left = threading.Event()

    def run(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            serve(connection, left)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            left.set()
            listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("way", WAYS)
def test_sending_ends_in_time_and_in_a_fault(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", DEADLINE_S)
    with collector(WAYS[way]) as endpoint:
        exporter = OtlpExporter(TelemetrySettings(endpoint=endpoint), {})
        began = time.monotonic()
        with pytest.raises(ExportFault):
            exporter.send([SPAN] * 2_000)
        took_s = time.monotonic() - began
        exporter.close()
    assert took_s < 5 * DEADLINE_S
