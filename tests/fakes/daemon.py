"""A daemon over real HTTP on a free port: the real application and server on a service, its files in a state folder."""

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from claudomator_py.api.app import create_app
from claudomator_py.api.endpoint import bind, bind_own, bound_address, publish_endpoint, url_of
from claudomator_py.api.guard.limits import ConnectionLimit, RequestLimits
from claudomator_py.api.guard.operator_token import ensure_token
from claudomator_py.api.guard.protocol import Connection
from claudomator_py.api.server import WebServer
from claudomator_py.api.settings import WebSettings
from claudomator_py.api.streams import Streams
from claudomator_py.client.http import Client
from claudomator_py.daemon.metering import Meter
from claudomator_py.resources.access.service import Keyring
from claudomator_py.resources.session import Access
from docs.reference.api import openapi
from tests.environment import made_once
from tests.patience import PATIENCE_S


@cache
def openapi_document() -> dict[str, Any]:
    """The OpenAPI document, for which nobody has to be asked. Made once, for all workers of a test run: it takes longer
    than most tests that need it.

    It is the same in every daemon of this version. Change nothing in it.
    """
    document: dict[str, Any] = made_once("openapi.json", openapi)
    return document


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as it came over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Daemon:
    """Where it is, and how to ask it anything, well-formed or not."""

    url: str
    address: str
    token: str
    state_dir: Path

    @property
    def page_host(self) -> str:
        """Where browsers log in."""
        return WebSettings(token=self.token, listen=self.address).page_host

    def client(self) -> Client:
        return Client(self.url, self.token, timeout_s=PATIENCE_S)

    def ask(
        self,
        method: str,
        path: str,
        *,
        json_body: object = None,
        body: bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """One request. headers: None leaves one out that is otherwise sent."""
        whole: dict[str, str | None] = {"Host": self.address, "Authorization": f"Bearer {self.token}"}
        if json_body is not None:
            body = json.dumps(json_body).encode()
            whole["Content-Type"] = "application/json"
        if isinstance(body, bytes):
            whole["Content-Length"] = str(len(body))
        elif body is not None:
            whole["Transfer-Encoding"] = "chunked"
        whole.update(headers or {})
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in whole.items():
                if value is not None:
                    connection.putheader(name, value)
            _send_body(connection, body)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


def _send_body(connection: http.client.HTTPConnection, body: bytes | Iterator[bytes] | None) -> None:
    connection.endheaders()
    try:
        if isinstance(body, bytes):
            connection.send(body)
        elif body is not None:
            for chunk in body:
                connection.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            connection.send(b"0\r\n\r\n")
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before it was all sent; the answer is there to be read


class Patient(Connection):
    """Waits longer for a head than a busy machine keeps a client from sending it."""

    head_s = PATIENCE_S


class Served(Protocol):
    """What has a service, and keeps what that needs."""

    @property
    def access(self) -> Access:
        """The service for each who asks."""

    @property
    def keyring(self) -> Keyring:
        """Who has which token besides the operator."""


PATIENT = RequestLimits(body_s=PATIENCE_S, login_body_s=PATIENCE_S)


@contextmanager
def running(
    served: Served,
    state_dir: Path,
    *,
    allowed_hosts: tuple[str, ...] = (),
    meter: Meter | None = None,
    limits: RequestLimits | None = None,
    protocol: type[Connection] = Patient,
    connection_limit: ConnectionLimit | None = None,
    listen: str = "127.0.0.1:0",
) -> Iterator[Daemon]:
    """A daemon of that service, until the block ends. meter: what is measured, if anything is."""
    state_dir.mkdir(mode=0o700, exist_ok=True)
    token = ensure_token(state_dir)
    sock = bind(listen)
    address, url = bound_address(sock), url_of(sock)
    publish_endpoint(state_dir, url)
    streams = Streams()
    settings = WebSettings(token=token, listen=address, allowed_hosts=allowed_hosts, limits=limits or PATIENT)
    app = create_app(served.access, settings, served.keyring, meter, streams=streams)
    app.openapi = openapi_document  # type: ignore[method-assign]  # else each makes its own
    server = WebServer(app, [sock, bind_own(state_dir)], streams.close, protocol=protocol, limit=connection_limit)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), name="daemon")
    thread.start()
    try:
        yield Daemon(url, address, token, state_dir)
    finally:
        server.stop()
        thread.join()
