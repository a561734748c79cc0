"""Forks shims, each ahead of its run: starting one costs a fork instead of an interpreter, and waits for neither.

On the socket at its standard input, which keeps messages apart, it offers one process after the other, as the JSON
``{"pid"}`` together with a socket to it, or ``{"error"}``, and waits for a byte in between. It ends when the other end
closes. Whoever has the socket sends the process its run over that: a length of four bytes, then the JSON
``{"directory", "environ"}``. A process whose socket closes before ends, too.

A process whose run has ended by itself, and has left nothing, says so by a byte and waits for another run: what a fork
costs is for the most part the memory that the two no longer share, so the next run takes a third. One that cannot say
it, since the daemon has closed the socket or is gone, ends, as do all whose run has ended otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import socket

from claudomator_py.hosts.shim import main as shim
from claudomator_py.hosts.shim import procfs

OFFER_BYTES = 1024
AGAIN = b"+"
_LENGTH_BYTES = 4


def serve() -> None:
    """Offer one process after the other until the other end closes."""
    # Shims belong to themselves; the kernel drops them without being waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    procfs.boot_id()  # read once, for all of them
    connection = socket.socket(fileno=0)
    wanted = b"+"
    while wanted:
        try:
            _offer(connection)
            wanted = connection.recv(1)
        except (BrokenPipeError, ConnectionResetError):
            return


def _offer(connection: socket.socket) -> None:
    """Fork a process and hand it over. Raises BrokenPipeError if nobody is there to take it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            pid = os.fork()
        except OSError as problem:
            connection.send(json.dumps({"error": str(problem)}).encode())
            return
        if pid == 0:
            ours.close()
            _become_shim(theirs)
        socket.send_fds(connection, [json.dumps({"pid": pid}).encode()], [ours.fileno()])


def send(connection: socket.socket, message: dict[str, object]) -> None:
    """Send one message. Raises OSError."""
    data = json.dumps(message).encode()
    connection.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


def receive(connection: socket.socket) -> dict[str, object] | None:
    """Return the next message; None when the other end has closed, in the middle of one too. Raises OSError."""
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
    """In the forked child: all that can be done before a run is known, and with that the shim lets go of the standard
    streams, the server's socket so too. Then one run after the other.
    """
    try:
        events = shim.detach()
        while (request := receive(given)) is not None:
            directory, environ = request["directory"], request["environ"]
            if not isinstance(directory, str) or not isinstance(environ, dict):
                break
            if shim.run(directory, environ, events) != shim.CLEAN:
                break
            given.send(AGAIN)
    finally:
        os._exit(0)
