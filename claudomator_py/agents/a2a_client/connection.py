"""HTTP with one origin: no redirects, no proxy, bounded answers, and always known whether a request was sent."""

import contextlib
import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from claudomator_py.agents.client_output import End
from claudomator_py.certificates import certificate_problem
from claudomator_py.values import dataclass

MAX_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of an answer."""
MAX_EVENT: Final = 4 * 1024 * 1024
"""Bytes of an event in a stream."""
MAX_STREAM: Final = 64 * 1024 * 1024
"""Bytes of a stream."""
_PIECE: Final = 64 * 1024
CONNECT_S: Final = 15.0
READ_S: Final = 60.0
MIN_HOLD_S: Final = 1.0
MAX_HOLD_S: Final = 24 * 3600.0
"""A longer ``Retry-After`` is cut to this, so that one digit too many does not hold the agent for a year."""


class Unsent(Exception):
    """No connection could be made, so the request was not sent."""

    outcome = "unreachable"
    """Outcome of a run that ends because of this."""


class Untrusted(Unsent):
    """The server's certificate is not trusted."""

    outcome = "setup"


class Cut(Exception):
    """The connection broke before the whole answer came, so the fate of the request is unknown."""

    outcome = "unreachable"
    """See ``Unsent``; for a request that may be repeated."""


@dataclass(frozen=True)
class Origin:
    """Scheme, host and port: what a secret may be sent to. Source: RFC 6454."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def address(url: str) -> tuple[Origin, str]:
    """Return the URL's origin, and its path with the query. Raises End for a URL that nothing may be sent to."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise End("setup", f"{url!r} is not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
        raise End("setup", f"{url!r} is not an address; write https://HOST/PATH")
    if parts.scheme == "http" and not _is_loopback(host):
        raise End("setup", f"{url} would be sent unencrypted; use https, as http is for this machine alone")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Origin(parts.scheme, host, port or (443 if parts.scheme == "https" else 80)), path


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class HttpAnswer:
    """A complete answer."""

    status: int
    headers: Message
    body: bytes


class RemoteServer:
    """The server of one origin. headers: sent with every request to it, and to nobody else."""

    def __init__(self, origin: Origin, headers: Mapping[str, str]) -> None:
        self.origin = origin
        self._headers = dict(headers)
        self._tls: ssl.SSLContext | None = None

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout_s: float | None = READ_S,
    ) -> HttpAnswer:
        """Return the answer. timeout_s: how long the server may be silent; None: forever, while its machine is up.
        Raises Unsent, Cut, and End for a redirect or an answer that is too large."""
        with self._answered(method, path, body, headers or {}, timeout_s) as response:
            return self._whole(response)

    @contextlib.contextmanager
    def stream(
        self, path: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> "Iterator[HttpAnswer | ServerEvents]":
        """Yield the server-sent events, or an answer that is no stream. Raises as ``request``."""
        asked = {**headers, "Accept": "text/event-stream"}
        with self._answered("POST", path, body, asked, timeout_s) as response:
            kind = response.headers.get_content_type()
            yield ServerEvents(response) if kind == "text/event-stream" else self._whole(response)

    def _whole(self, response: http.client.HTTPResponse) -> HttpAnswer:
        try:
            body = response.read(MAX_ANSWER + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Cut(f"the answer of {self.origin} broke off: {_words(error)}") from error
        if len(body) > MAX_ANSWER:
            raise End("too_large", f"an answer of {self.origin} is larger than {MAX_ANSWER} bytes")
        declared = response.headers.get("Content-Length", "")
        if declared.isdigit() and len(body) < int(declared):
            raise Cut(f"the answer of {self.origin} broke off after {len(body)} of {declared} bytes")
        return HttpAnswer(response.status, response.headers, body)

    @contextlib.contextmanager
    def _answered(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connected(timeout_s)
        try:
            try:
                connection.request(method, path, body, {**self._headers, **headers})
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise Cut(f"{self.origin} did not answer: {_words(error)}") from error
            except ValueError as error:
                # The exception quotes the header or the path, which are secret.
                why = "the request cannot be written: the address or the agent's secret has characters that HTTP lacks"
                raise End("setup", why) from error
            if 300 <= response.status < 400:
                why = f"{self.origin} redirects, which is not followed; configure the address that the run's log names"
                raise End("setup", why, elsewhere=response.headers.get("Location", "nowhere"))
            yield response
        finally:
            connection.close()

    def _connected(self, timeout_s: float | None) -> http.client.HTTPConnection:
        host, port = self.origin.host, self.origin.port
        if self.origin.scheme == "http":
            connection = http.client.HTTPConnection(host, port, timeout=CONNECT_S)
        else:
            self._tls = self._tls or ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=self._tls)
        try:
            connection.connect()
            connection.sock.settimeout(timeout_s)
            _keep_alive(connection.sock)
        except ssl.SSLCertVerificationError as error:
            connection.close()
            self._tls = None  # the file with the trusted authorities may be another one by the next request
            raise Untrusted(f"the certificate of {self.origin} {certificate_problem(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unsent(f"{self.origin} cannot be reached: {_words(error)}") from error
        return connection


def _keep_alive(sock: socket.socket) -> None:
    """Have the kernel notice within two minutes that the other machine has gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class ServerEvents:
    """The data of server-sent events as they arrive, None for any other line, which is a sign of life. They end with
    the connection, whatever ends it. Source: HTML Living Standard, 9.2.6; of its fields only ``data`` matters here."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.is_whole = False
        """Whether the server itself ended the stream."""

    def __iter__(self) -> Iterator[bytes | None]:
        data: list[bytes] = []
        size = total = 0
        for line in self._lines():
            size, total = size + len(line), total + len(line)
            if size > MAX_EVENT or total > MAX_STREAM:
                raise _too_large()
            line = line.rstrip(b"\r")
            if not line:
                if data:
                    yield b"\n".join(data)
                data, size = [], 0
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            else:
                yield None

    def _lines(self) -> Iterator[bytes]:
        """Yield complete lines without their ends; a broken last line is dropped."""
        rest = b""
        try:
            while piece := self._response.read1(_PIECE):
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
                if len(rest) > MAX_EVENT:
                    raise _too_large()
        except (OSError, http.client.HTTPException):
            return
        self.is_whole = self._response.chunked  # without chunks, a broken stream looks like a finished one


def _too_large() -> End:
    return End("too_large", f"an event is larger than {MAX_EVENT} bytes, or a stream than {MAX_STREAM}")


def refusal(server: RemoteServer, answer: HttpAnswer) -> End | None:
    """Return the end that the HTTP status means; None: success."""
    status, message = answer.status, f"{server.origin} answered with HTTP {answer.status}{excerpt(answer.body)}"
    if 200 <= status < 300:
        return None
    if status in (401, 403):
        return End("auth", message)
    if status == 402:
        return End("no_credit", message)
    if status in (429, 503):
        wait = retry_after_s(answer.headers.get("Retry-After"), time.time())
        if wait is not None:
            return End("limited", message, reset_at=round((time.time() + wait) * 1000), retry_after_s=wait)
        return End("limited" if status == 429 else "overloaded", message)
    if status in (404, 405, 410):
        return End("setup", f"{message}; check the agent's `url` and `protocol`")
    return End("invalid" if status < 500 else "failed", message)


def excerpt(body: bytes) -> str:
    words = " ".join(body[:500].decode(errors="replace").split())[:200]
    return f": {words}" if words else ""


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """Return the seconds that ``Retry-After`` asks for: a number or an HTTP date; None: not readable. Source: RFC 9110,
    10.2.3. It has no fractions; services send them anyway."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now_s
        except (ValueError, OverflowError):
            return None
    if seconds != seconds:  # NaN
        return None
    return min(max(seconds, MIN_HOLD_S), MAX_HOLD_S)
