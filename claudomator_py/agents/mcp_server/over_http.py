"""The MCP server over HTTP on loopback (transport ``streamable HTTP``), for agents that accept no other.

It answers each message with JSON and sends nothing by itself. Requests need a secret, which is new for each run, as
other users of the machine, and pages in a browser, can reach the port as well.
"""

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Mapping
from typing import BinaryIO, Final

from claudomator_py.agents.mcp_server.main import MAX_LINE_LENGTH, Server, reply

_HOST: Final = "127.0.0.1"
_PATH: Final = "/mcp"
_MAX_HEADERS: Final = 100
_MAX_HEADER_LENGTH: Final = 16 * 1024
_IDLE_S: Final = 600.0
_MAX_CONNECTIONS: Final = 16
_LINGER_S: Final = 2.0
_MAX_LINGER: Final = 16 * 1024 * 1024
_REASONS: Final = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
}


class HttpServer:
    """The server, which runs until the process ends."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._secret = secrets.token_urlsafe(32)
        self._free = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._listening = socket.create_server((_HOST, 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://{_HOST}:{self._listening.getsockname()[1]}{_PATH}"

    @property
    def authorization(self) -> str:
        """The ``Authorization`` header of each request."""
        return f"Bearer {self._secret}"

    def _accept(self) -> None:
        while True:
            self._free.acquire()
            connection, _ = self._listening.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as source:
                connection.settimeout(_IDLE_S)
                while (answered := self._answered(source)) is not None:
                    connection.sendall(answered)
                    if b"\r\nConnection: close\r\n" in answered:
                        _let_go(connection)
                        return
        except (OSError, ValueError):
            pass
        finally:
            self._free.release()

    def _answered(self, source: BinaryIO) -> bytes | None:
        """Return the answer to the next request; None: there is none."""
        words = source.readline(_MAX_HEADER_LENGTH).split()
        if len(words) != 3:
            return None if not words else _response(400)
        headers: dict[str, str] = {}
        while (line := source.readline(_MAX_HEADER_LENGTH).strip()) and len(headers) < _MAX_HEADERS:
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if not hmac.compare_digest(headers.get("authorization", "").encode(), self.authorization.encode()):
            return _response(401)
        method, path = words[0], words[1].decode("latin-1")
        if path != _PATH:
            return _response(404)
        if method != b"POST":
            return _response(405)
        length = headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_LINE_LENGTH:
            return _response(413)
        answer = reply(source.read(int(length)), self._server)
        return _response(202, last=False) if answer is None else _response(200, answer, last=False)


def _let_go(connection: socket.socket) -> None:
    """Read what is still on its way, within bounds: closing earlier would reset the client, which loses the answer."""
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(_LINGER_S)
    left = _MAX_LINGER
    while left > 0 and (read := len(connection.recv(64 * 1024))):
        left -= read


def _response(status: int, body: Mapping[str, object] | None = None, *, last: bool = True) -> bytes:
    """Return a response. last: whether it closes the connection, as the rest of the request was not read."""
    data = b"" if body is None else json.dumps(body).encode("ascii")
    head = [f"HTTP/1.1 {status} {_REASONS[status]}", f"Content-Length: {len(data)}", "Content-Type: application/json"]
    head += ["Connection: close"] if last else []
    return "\r\n".join([*head, "", ""]).encode() + data
