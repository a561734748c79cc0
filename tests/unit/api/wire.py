"""Requests by hand on a socket: halves of them, too many of them, and none at all."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fakes.daemon import Answer, Daemon
from tests.patience import PATIENCE_S


def code(answer: Answer) -> tuple[int, str]:
    record = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert record["status"] == answer.status
    assert record["remedy"]
    return answer.status, str(record["code"])


@contextmanager
def connected(daemon: Daemon) -> Iterator[socket.socket]:
    host, _, port = daemon.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as sock:
        yield sock


def ask(daemon: Daemon, sock: socket.socket, path: str) -> tuple[int, bytes]:
    """One request on that connection, answered whole."""
    head = f"GET {path} HTTP/1.1\r\nHost: {daemon.address}\r\nAuthorization: Bearer {daemon.token}\r\n\r\n"
    sock.sendall(head.encode())
    response = http.client.HTTPResponse(sock)
    response.begin()
    return response.status, response.read()


def rest_of(sock: socket.socket) -> bytes:
    """Everything until the server closes."""
    return b"".join(iter(lambda: sock.recv(65_536), b""))


def raw_problem(answer: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    assert b"connection: close" in head.lower()
    assert b"x-content-type-options: nosniff" in head.lower()
    payload: dict[str, Any] = json.loads(body)
    assert payload["remedy"]
    return int(head.split(b" ")[1]), payload


def begin(daemon: Daemon, sock: socket.socket, *, authorised: bool) -> None:
    """Send half of a request, and wait until the daemon has read the head and knows whose it is."""
    credentials = f"Authorization: Bearer {daemon.token}\r\n" if authorised else "Sec-Fetch-Site: same-origin\r\n"
    path = "/v1/tasks" if authorised else "/login"
    head = f"POST {path} HTTP/1.1\r\nHost: {daemon.address}\r\n{credentials}Content-Type: application/json\r\n"
    sock.sendall(head.encode() + b"Content-Length: 10\r\nExpect: 100-continue\r\n\r\n")
    assert sock.recv(100).startswith(b"HTTP/1.1 100")
    sock.sendall(b"{")


def is_closed(sock: socket.socket) -> bool:
    try:
        return rest_of(sock) == b""
    except ConnectionResetError:
        return True
