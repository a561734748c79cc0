"""Forks shims ahead of their runs: a start costs a fork instead of an interpreter, and waits for neither.

Standard input is a socket that preserves message boundaries. On it, the server offers one process after another, as the
JSON ``{"pid"}`` together with a socket to the process, or ``{"error"}``, and waits for a byte after each. It ends when
the other end closes. The daemon sends a process its run over its socket: a length of four bytes, then the JSON
``{"directory", "environ"}``. A process whose socket closes before that exits.

A process whose run has ended by itself without leaving anything reports that by a byte and waits for another run. Most
of the cost of a fork is memory that the processes no longer share, so the next run costs a third. A process that cannot
report it, because the daemon has closed the socket or is gone, exits, as does each process whose run ended otherwise.
"""

from __future__ import annotations

import os
import socket

from claudomator_py.hosts.shim import main as shim
from claudomator_py.hosts.shim import procfs
from claudomator_py.hosts.shim.builtin import dumps, loads, signal

OFFER_BYTES = 1024
AGAIN = b"+"
_LENGTH_BYTES = 4


def serve() -> None:
    """Offer one process after another until the other end closes."""
    # Shims are on their own: the kernel reaps them without a wait.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    procfs.boot_id()  # read once for all of them
    connection = socket.socket(fileno=0)
    wanted = b"+"
    while wanted:
        try:
            _offer(connection)
            wanted = connection.recv(1)
        except (BrokenPipeError, ConnectionResetError):
            return


def _offer(connection: socket.socket) -> None:
    """Fork a process and hand it over. Raises BrokenPipeError if the other end is closed."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            pid = os.fork()
        except OSError as problem:
            connection.send(dumps({"error": str(problem)}))
            return
        if pid == 0:
            ours.close()
            _become_shim(theirs)
        socket.send_fds(connection, [dumps({"pid": pid})], [ours.fileno()])


def send(connection: socket.socket, message: dict[str, object]) -> None:
    """Send one message. Raises OSError."""
    data = dumps(message)
    connection.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


def receive(connection: socket.socket) -> dict[str, object] | None:
    """Return the next message; None if the other end has closed, even within a message. Raises OSError."""
    length = _receive_exactly(connection, _LENGTH_BYTES)
    if length is None:
        return None
    data = _receive_exactly(connection, int.from_bytes(length, "big"))
    if data is None:
        return None
    message: dict[str, object] = loads(data)
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


def _report(connection: socket.socket) -> None:
    """Tell the daemon that the run has ended by itself, and that this process can take another one."""
    try:
        connection.send(AGAIN)
    except OSError:
        pass  # the daemon is gone, as the next read shows


def _become_shim(given: socket.socket) -> None:
    """Prepare the forked child as far as possible without a run, which also closes the standard streams and with them
    the server's socket. Then supervise one run after another."""
    try:
        events = shim.detach()
        while (request := receive(given)) is not None:
            directory, environ = request["directory"], request["environ"]
            if not isinstance(directory, str) or not isinstance(environ, dict):
                break
            if shim.run(directory, environ, events, lambda: _report(given)) != shim.CLEAN:
                break
    finally:
        os._exit(0)
