"""Forks a shim per request: starting one costs a fork instead of an interpreter.

It is asked over the socket on its standard input, one request at a time, and ends when the other end closes. A message
is a length of four bytes, then JSON: ``{"directory", "environ"}``, answered by ``{"pid"}`` or ``{"error"}``.
"""

from __future__ import annotations

import json
import os
import signal
import socket

from claudomator_py.hosts.shim import main as shim
from claudomator_py.hosts.shim import procfs

_LENGTH_BYTES = 4


def serve() -> None:
    """Answer requests until the other end closes."""
    # Shims belong to themselves; the kernel drops them without being waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    procfs.boot_id()  # read once, for all of them
    connection = socket.socket(fileno=0)
    while (request := receive(connection)) is not None:
        try:
            answer: dict[str, object] = {"pid": _fork(request)}
        except OSError as problem:
            answer = {"error": str(problem)}
        send(connection, answer)


def send(connection: socket.socket, message: dict[str, object]) -> None:
    """Send one message. Raises OSError."""
    data = json.dumps(message).encode()
    connection.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


def receive(connection: socket.socket) -> dict[str, object] | None:
    """The next message; None when the other end has closed, in the middle of one too. Raises OSError."""
    length = _receive_exactly(connection, _LENGTH_BYTES)
    if length is None:
        return None
    data = _receive_exactly(connection, int.from_bytes(length, "big"))
    if data is None:
        return None
    message: dict[str, object] = json.loads(data)
    return message


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    chunks = []
    while size:
        chunk = connection.recv(min(size, 65536))
        if not chunk:
            return None
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _fork(request: dict[str, object]) -> int:
    """Fork a shim and return its pid. The shim's first act is to let go of the standard streams, the socket so too."""
    pid = os.fork()
    if pid:
        return pid
    code = shim.BROKEN
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        directory, environ = request["directory"], request["environ"]
        if isinstance(directory, str) and isinstance(environ, dict):
            code = shim.run(directory, environ)
    finally:
        os._exit(code)
