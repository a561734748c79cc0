"""What the fakes of model services have in common: a server on loopback that follows a script and keeps what it heard.

The script is a list of steps; each request of the agent's own loop takes the next, and the last goes on for ever.
Requests beside the loop (titles, model lists) get a short answer and take no step.
"""

import json
import re
import socket
import ssl
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

INPUT_TOKENS = 1200
OUTPUT_TOKENS = 25


@dataclass(frozen=True)
class Text:
    """An answer. pause: seconds between its words. stop: why it ends, as the service says it; None: it is whole."""

    text: str = "All done."
    pause: float = 0.0
    stop: str | None = None

    def words(self) -> list[str]:
        return [word for word in re.findall(r"\S*\s*", self.text) if word]


@dataclass(frozen=True)
class ToolCall:
    """The model uses a tool. length: how many characters of its arguments come before it is cut off; None: all."""

    name: str
    input: Mapping[str, object]
    length: int | None = None


@dataclass(frozen=True)
class Refusal:
    """An HTTP error."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """No answer, until the server closes."""


Answer = Text | ToolCall
Step = Answer | Refusal | Hang


@dataclass(frozen=True)
class Request:
    """What was asked. at_ms: when, in epoch milliseconds."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at_ms: int = 0


class Mind(Protocol):
    """What decides in place of a script."""

    def step(self, request: Request) -> Step:
        """What a request of the loop gets."""
        ...

    def beside(self, request: Request) -> Step:
        """What one beside the loop gets; anything but a refusal stands for its usual answer."""
        ...


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as every server of this protocol has it: else what is sent next waits 40 ms
    server: "_Server"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.server.api.count()
        self._head(200, {"content-length": "0"})

    def do_GET(self) -> None:
        self.server.api.count()
        self.not_found()

    def do_POST(self) -> None:
        at_ms = self.server.api.count()
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(raw) if raw else {}, at_ms)
        self.server.api.serve(self, request)

    def not_found(self) -> None:
        """There is no such thing."""
        self.send_json(404, {"error": {"code": 404, "message": "not found"}})

    def start_stream(self) -> None:
        """Begin an event stream."""
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})

    def send_event(self, data: object, name: str | None = None) -> None:
        """One event of a stream. data: JSON, or a text that is sent as it is."""
        text = data if isinstance(data, str) else json.dumps(data)
        event = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
        self.wfile.write(f"{len(event.encode()):x}\r\n".encode() + event.encode() + b"\r\n")
        self.wfile.flush()

    def end_stream(self) -> None:
        """No more events."""
        self.wfile.write(b"0\r\n\r\n")

    def send_json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer."""
        data = json.dumps(body).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})})
        self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


class ScriptedApi(ABC):
    """The server; a context manager. origin: its address. requests: those of the agent's own loop, in order.

    heard_at_ms: when requests of any kind came. mind: what decides in place of the script.
    """

    mind: Mind | None = None

    def __init__(self, *steps: Step) -> None:
        self._lock = threading.Lock()
        self._steps: list[Step] = list(steps) or [Text()]
        self.requests: list[Request] = []
        self.heard_at_ms: list[int] = []
        self.closing = threading.Event()
        self._server = _Server(self)
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = self._serving()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def unplug(self) -> None:
        """From now on nobody listens."""
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def plug_in(self) -> None:
        """After ``unplug``: listen again, at the same address."""
        self._server = _Server(self, self._server.server_address[1])
        self._thread = self._serving()
        self._thread.start()

    def _serving(self) -> threading.Thread:
        return threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def script(self, *steps: Step) -> None:
        """From now on, these steps."""
        with self._lock:
            self._steps = list(steps)

    def count(self) -> int:
        """One more request was heard: when, in epoch milliseconds."""
        with self._lock:
            self.heard_at_ms.append(time.time_ns() // 1_000_000)
            return self.heard_at_ms[-1]

    @property
    def heard(self) -> int:
        """How many requests of any kind there were."""
        return len(self.heard_at_ms)

    @property
    def next_step(self) -> Step:
        """What the next request of the loop gets."""
        with self._lock:
            return self._steps[0]

    def serve(self, exchange: Exchange, request: Request) -> None:
        """Answer by the script."""
        if not self.in_loop(request):
            beside = None if self.mind is None else self.mind.beside(request)
            if isinstance(beside, Refusal):
                exchange.send_json(beside.status, beside.body, beside.headers)
            else:
                self.answer_beside(exchange, request)
            return
        with self._lock:
            self.requests.append(request)
            step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if self.mind is not None:
            step = self.mind.step(request)
        match step:
            case Hang():
                exchange.close_connection = True
                self.closing.wait()
            case Refusal():
                exchange.send_json(step.status, step.body, step.headers)
            case Text() | ToolCall():
                self.answer(exchange, request, step)

    def pause(self, step: Answer) -> bool:
        """Wait between two words. True: the server closes."""
        return isinstance(step, Text) and step.pause > 0 and self.closing.wait(step.pause)

    @abstractmethod
    def in_loop(self, request: Request) -> bool:
        """Whether the request belongs to the agent's own loop."""

    @abstractmethod
    def answer_beside(self, exchange: Exchange, request: Request) -> None:
        """Answer a request beside the loop."""

    @abstractmethod
    def answer(self, exchange: Exchange, request: Request, step: Answer) -> None:
        """Stream a step."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, api: ScriptedApi, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Exchange)
        self.api = api
        self._connected: set[socket.socket] = set()

    def finish_request(self, request: Any, client_address: Any) -> None:
        self._connected.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            self._connected.discard(request)

    def hang_up(self) -> None:
        """On everybody who is connected: a client keeps its connection for the next request."""
        for connection in list(self._connected):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed hangs up in the middle of an answer: nothing to report."""


def own_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """What serves 127.0.0.1 with a certificate that nobody trusts, and the file by which it can be trusted. Needs
    openssl."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    make += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]  # RSA's primes take a tenth of a second
    make += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(make, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
