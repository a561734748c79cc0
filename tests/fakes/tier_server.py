"""A server on loopback that answers classifier questions, in Gemini's and in OpenAI's format, as it is told to."""

import json
import re
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Behaviour = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One question and its answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as every server of this protocol has it: else what is sent next waits 40 ms
    server: "_Server"
    body: dict[str, Any]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        behaviour = self.server.owner.heard(self)
        behaviour(self)

    def send_json(self, status: int, document: object, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer."""
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def send_text(self, text: str) -> None:
        """The model's text, wrapped as the service does that was asked."""
        if self.path.endswith(":generateContent"):
            self.send_json(200, {"candidates": [{"content": {"parts": [{"text": text}]}}]})
        else:
            self.send_json(200, {"choices": [{"message": {"role": "assistant", "content": text}}]})

    @property
    def prompt(self) -> str:
        """The question's text."""
        if self.path.endswith(":generateContent"):
            return str(self.body["contents"][0]["parts"][0]["text"])
        return str(self.body["messages"][0]["content"])


class TierServer:
    """The server; a context manager. asked: every question so far. behaviour: how the next ones are answered."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.asked: list[Exchange] = []
        self.closing = threading.Event()
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def heard(self, exchange: Exchange) -> Behaviour:
        """Keep the question."""
        self.asked.append(exchange)
        return self.behaviour


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: TierServer) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.owner = owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up hangs up: nothing to report."""


def says(text: str) -> Behaviour:
    """The model says this."""
    return lambda exchange: exchange.send_text(text)


def tier(name: str, reason: str = "because") -> Behaviour:
    """A proper answer, of the agent that it is asked about."""

    def answer(exchange: Exchange) -> None:
        asked = re.search(r"coding agent '([^']+)'", exchange.prompt)
        fields = {"agent_type": asked[1] if asked else "claude", "tier": name, "reason": reason}
        exchange.send_text(json.dumps(fields))

    return answer


def status(code: int, headers: Mapping[str, str] | None = None) -> Behaviour:
    """An HTTP error."""
    return lambda exchange: exchange.send_json(code, {"error": {"code": code, "message": "no"}}, headers)


def hangs(server_closing: threading.Event) -> Behaviour:
    """No answer, until the server closes."""

    def hang(exchange: Exchange) -> None:
        exchange.close_connection = True
        server_closing.wait()

    return hang


def hangs_up(exchange: Exchange) -> None:
    """The connection ends without an answer."""
    exchange.close_connection = True
    exchange.connection.close()
