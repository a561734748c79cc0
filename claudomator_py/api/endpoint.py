"""Where the daemon listens: a TCP socket for browsers and other machines, a Unix socket for this user's own commands,
and the file with the URL for those commands.
"""

import contextlib
import os
import socket
from pathlib import Path

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.fields import is_wildcard
from claudomator_py.private_files import replacing

ENDPOINT_FILE = "endpoint"
SOCKET_FILE = "api.sock"
ANNOUNCED = (ENDPOINT_FILE, SOCKET_FILE)
"""Files in the state folder of a running daemon. A killed daemon leaves them behind."""
_BACKLOG = 2_048
"""Connections that wait in the kernel's queue until they are accepted."""
_MAX_ADDRESS_LENGTH = 107
"""Bytes of a Unix socket's address. A folder's path may be longer."""


def parse_listen(text: str) -> tuple[str, int]:
    """Return host and port of ``127.0.0.1:8484``, ``localhost:8484`` or ``[::1]:8484``. Raises ValueError."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not separator or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ValueError(f"{text!r} is not an address to listen on; write host:port, such as 127.0.0.1:8484")
    return host, int(port)


def bind(listen: str) -> socket.socket:
    """Return a listening, non-blocking socket; port 0 takes a free one. Raises ValueError, and OSError if the port is
    taken."""
    host, port = parse_listen(listen)
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # Without IPPROTO_TCP, asyncio leaves Nagle's algorithm on, and a second answer on a connection waits 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def bind_own(state_dir: Path) -> socket.socket:
    """Return a listening, non-blocking Unix socket ``<state_dir>/api.sock`` (0600), replacing an old one.

    The caller must hold the state folder. Raises OSError, for example on a file system without sockets.
    """
    folder = os.open(state_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET_FILE, dir_fd=folder)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.fchmod(sock.fileno(), 0o600)  # bind creates the file with the socket's mode
            path = str(state_dir / SOCKET_FILE)  # readable in tools such as ss
            fits = len(os.fsencode(path)) <= _MAX_ADDRESS_LENGTH
            sock.bind(path if fits else f"/proc/self/fd/{folder}/{SOCKET_FILE}")
            sock.listen(_BACKLOG)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return sock
    finally:
        os.close(folder)


def bound_address(sock: socket.socket) -> str:
    """Return the socket's host and port, in the form of ``WebSettings.listen``."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def url_of(sock: socket.socket) -> str:
    """Return the URL of the socket for clients on this machine."""
    host, port = parse_listen(bound_address(sock))
    if is_wildcard(host):
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def publish_endpoint(state_dir: Path, url: str) -> None:
    """Write the URL to ``<state_dir>/endpoint`` (0600), atomically."""
    with replacing(state_dir / ENDPOINT_FILE) as file:
        file.write(f"{url}\n".encode("ascii"))
        crashpoint("endpoint-written")


def withdraw_endpoint(state_dir: Path) -> None:
    """Remove the file and the Unix socket, once nothing listens any more."""
    for name in ANNOUNCED:
        (state_dir / name).unlink(missing_ok=True)
