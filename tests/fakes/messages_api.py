"""A fake Messages API on loopback: it streams as the real one does, follows a script, and keeps what it was asked.

The script is a list of steps; each request of the agent's own loop takes the next, and the last goes on for ever.
Requests beside the loop (they carry no tools: titles, quota checks) get a short answer and take no step, unless the
next step is an error, which they get as well.
"""

import itertools
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

INPUT_TOKENS = 1200
OUTPUT_TOKENS = 25
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Text:
    """An answer. pause: seconds between its words."""

    text: str = "All done."
    pause: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolCall:
    """The model uses a tool."""

    name: str
    input: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """An HTTP error with the API's error body."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """No answer, until the server closes."""


Step = Text | ToolCall | Refusal | Hang


@dataclass(frozen=True)
class Request:
    """What was asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def in_loop(self) -> bool:
        """Whether it belongs to the agent's own loop."""
        return bool(self.body.get("tools"))


def overloaded() -> Refusal:
    """The service is at capacity."""
    return Refusal(529, "overloaded_error", "Overloaded")


def unauthorized() -> Refusal:
    """The key is not accepted."""
    return Refusal(401, "authentication_error", "invalid x-api-key")


def throttled(retry_after_s: int | None = None) -> Refusal:
    """An API key's rate limit."""
    headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    message = "This request would exceed your account's rate limit. Please try again later."
    return Refusal(429, "rate_limit_error", message, headers)


def used_up(resets_at_s: int, claim: str = "five_hour", retry_after_s: int = 10_800) -> Refusal:
    """A subscription's limit. resets_at_s: epoch seconds. claim: which window, such as seven_day or seven_day_opus."""
    headers = {
        "x-should-retry": "false",
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(resets_at_s),
        "anthropic-ratelimit-unified-representative-claim": claim,
        "anthropic-ratelimit-unified-5h-status": "rejected" if claim == "five_hour" else "allowed",
        "anthropic-ratelimit-unified-5h-reset": str(resets_at_s),
        "anthropic-ratelimit-unified-5h-utilization": "1.0",
        "anthropic-ratelimit-unified-overage-status": "rejected",
        "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
    }
    refusal = throttled(retry_after_s)
    return Refusal(refusal.status, refusal.type, refusal.message, {**refusal.headers, **headers})


class MessagesApi:
    """The server; a context manager. url: the base URL for clients. requests: what it was asked, in order."""

    def __init__(self, *steps: Step) -> None:
        self._lock = threading.Lock()
        self._steps: list[Step] = list(steps) or [Text()]
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

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

    def script(self, *steps: Step) -> None:
        """From now on, these steps."""
        with self._lock:
            self._steps = list(steps)

    @property
    def loop_requests(self) -> list[Request]:
        """The requests of the agent's own loop."""
        with self._lock:
            return [request for request in self.requests if request.in_loop]

    def answer(self, request: Request) -> Step:
        """The step that this request gets."""
        with self._lock:
            self.requests.append(request)
            step = self._steps[0]
            if not request.in_loop:
                return step if isinstance(step, Refusal) else Text("ok")
            if len(self._steps) > 1:
                self._steps.pop(0)
            return step


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, api: MessagesApi) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed hangs up in the middle of an answer: nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class names it)
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._head(200, {"content-length": "0"})

    def do_GET(self) -> None:
        self._send_json(404, {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw) if raw else {}
        if not self.path.startswith("/v1/messages"):
            self.do_GET()
        elif self.path.startswith("/v1/messages/count_tokens"):
            self._send_json(200, {"input_tokens": INPUT_TOKENS})
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request("POST", self.path, headers, body)
            self._send_step(self.server.api.answer(request), request)

    def _send_step(self, step: Step, request: Request) -> None:
        match step:
            case Hang():
                self.close_connection = True
                self.server.api.closing.wait()
            case Refusal():
                error = {"type": step.type, "message": step.message}
                self._send_json(step.status, {"type": "error", "error": error, "request_id": "req_fake"}, step.headers)
            case Text() | ToolCall() if request.body.get("stream"):
                self._stream(step, request)
            case Text() | ToolCall():
                self._send_json(200, {**_message(step, request), "content": [_block(step)]}, step.headers)

    def _stream(self, step: Text | ToolCall, request: Request) -> None:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked", **step.headers})
        message = {**_message(step, request), "content": [], "stop_reason": None, "usage": _usage(1)}
        self._event("message_start", message=message)
        empty = {"type": "text", "text": ""} if isinstance(step, Text) else {**_block(step), "input": {}}
        self._event("content_block_start", index=0, content_block=empty)
        for delta in _deltas(step):
            self._event("content_block_delta", index=0, delta=delta)
            if isinstance(step, Text) and step.pause and self.server.api.closing.wait(step.pause):
                break
        self._event("content_block_stop", index=0)
        ending = {"stop_reason": _stop_reason(step), "stop_sequence": None}
        self._event("message_delta", delta=ending, usage={"output_tokens": OUTPUT_TOKENS})
        self._event("message_stop")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, kind: str, **fields: object) -> None:
        data = f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _send_json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})})
        self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"request-id": "req_fake", **headers}.items():
            self.send_header(name, value)
        self.end_headers()


def _message(step: Text | ToolCall, request: Request) -> dict[str, Any]:
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "fake"),
        "stop_reason": _stop_reason(step),
        "stop_sequence": None,
        "usage": _usage(OUTPUT_TOKENS),
    }


def _usage(output_tokens: int) -> dict[str, int]:
    return {
        "input_tokens": INPUT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }


def _block(step: Text | ToolCall) -> dict[str, Any]:
    if isinstance(step, Text):
        return {"type": "text", "text": step.text}
    return {"type": "tool_use", "id": f"toolu_fake{next(_numbers)}", "name": step.name, "input": dict(step.input)}


def _deltas(step: Text | ToolCall) -> list[dict[str, str]]:
    if isinstance(step, ToolCall):
        return [{"type": "input_json_delta", "partial_json": json.dumps(dict(step.input))}]
    return [{"type": "text_delta", "text": word} for word in re.findall(r"\S*\s*", step.text) if word]


def _stop_reason(step: Text | ToolCall) -> str:
    return "end_turn" if isinstance(step, Text) else "tool_use"
