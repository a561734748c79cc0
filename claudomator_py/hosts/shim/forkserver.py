"""Forks a shim per request, and one ahead: starting one costs a fork instead of an interpreter, and waits for neither.

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
    spare = _fork_spare()
    while (request := receive(connection)) is not None:
        try:
            answer: dict[str, object] = {"pid": _begin(spare, request)}
        except OSError as problem:
            answer = {"error": str(problem)}
        send(connection, answer)
        spare = _fork_spare()


class Spare:
    """A process, forked already, that waits to be given a run. It ends when this one does without having given it one.

    So nobody waits for a fork, and for most of the memory that the two share until one of them writes to it.
    """

    def __init__(self) -> None:
        """Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.pid = os.fork()
            except OSError:
                ours.close()
                raise
            if self.pid == 0:
                ours.close()
                _become_shim(theirs)
        self._socket = ours

    def begin(self, request: dict[str, object]) -> int:
        """Give it this run; its pid. Raises OSError if it is gone."""
        with self._socket:
            send(self._socket, request)
        return self.pid


def _fork_spare() -> Spare | None:
    """None where no process can be made now."""
    try:
        return Spare()
    except OSError:
        return None


def _begin(spare: Spare | None, request: dict[str, object]) -> int:
    """Raises OSError."""
    if spare is not None:
        try:
            return spare.begin(request)
        except OSError:
            pass  # somebody ended it while it waited
    return Spare().begin(request)


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


def _become_shim(given: socket.socket) -> None:
    """In the forked child: all that can be done before the run is known, and with that the shim lets go of the standard
    streams, the server's socket so too.
    """
    code = shim.BROKEN
    try:
        events = shim.detach()
        with given:
            request = receive(given)
        if request is None:
            code = shim.LEFT
        else:
            directory, environ = request["directory"], request["environ"]
            if isinstance(directory, str) and isinstance(environ, dict):
                code = shim.run(directory, environ, events)
    finally:
        os._exit(code)
