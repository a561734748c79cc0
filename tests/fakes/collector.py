"""A collector of spans: OTLP over HTTP on loopback, read as protocol buffers by OpenTelemetry's own messages."""

import gzip
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class Received:
    """A span. links: the span and the kind of each. kind, status: by their number. Times in nanoseconds."""

    trace_id: str
    span_id: str
    parent: str
    name: str
    start: int
    end: int
    kind: int
    status: int
    attributes: Mapping[str, Any]
    links: tuple[tuple[str, str, str], ...]


class Collector:
    """Keeps what it is sent. status: what it answers; rejected: spans that it says it did not take.

    silent: it takes requests, and answers none before it is closed.
    """

    def __init__(self, port: int = 0) -> None:
        self.status = 200
        self.rejected = 0
        self.silent = False
        self.says: bytes | None = None
        """Answered in place of protocol buffers, over and over where endless is set."""
        self.endless = False
        self.encoding: str | None = None
        self._closing = threading.Event()
        self.asked = threading.Semaphore(0)
        """Released with each request."""
        self.headers: list[dict[str, str]] = []
        self.resources: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self._spans: list[Received] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def spans(self) -> list[Received]:
        """All, in the order in which they came, those that came twice included."""
        with self._lock:
            return list(self._spans)

    def of_task(self, task_id: str) -> dict[str, Received]:
        """The spans of its trace, by their ids."""
        return {span.span_id: span for span in self.spans if span.trace_id == task_id.replace("-", "")}

    def root(self, task_id: str) -> Received | None:
        return self.of_task(task_id).get(task_id.replace("-", "")[:16])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if path != "/v1/traces" or headers.get("content-type") != "application/x-protobuf":
            return 404, b""
        with self._lock:
            self.headers.append(headers)
            self.bodies.append(body)
            if self.status == 200:
                for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self.resources.append(_attributes(part.resource.attributes))
                    self._spans += [_received(span) for scope in part.scope_spans for span in scope.spans]
        partial = ExportTracePartialSuccess(rejected_spans=self.rejected)
        return self.status, ExportTraceServiceResponse(partial_success=partial).SerializeToString()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                heard = {name.lower(): value for name, value in self.headers.items()}
                if collector.silent:
                    collector.asked.release()
                    collector._closing.wait(60)
                    return
                status, answer = collector._take(self.path, heard, body)
                answer = answer if collector.says is None else collector.says
                self.send_response(status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(1 << 50 if collector.endless else len(answer)))
                if status in range(300, 400):
                    self.send_header("location", "/elsewhere")
                if collector.encoding is not None:
                    self.send_header("content-encoding", collector.encoding)
                self.end_headers()
                with suppress(OSError):  # nobody reads as much
                    self.wfile.write(answer)
                    while collector.endless and not collector._closing.is_set():
                        self.wfile.write(answer)
                collector.asked.release()

            def log_message(self, *args: object) -> None:
                pass

        return Handler


def _received(span: Any) -> Received:
    return Received(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.kind,
        span.status.code,
        _attributes(span.attributes),
        tuple(
            (link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes)["claudomator.link"])
            for link in span.links
        ),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _plain(pair.value) for pair in pairs}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(value) for value in value.array_value.values]
    return None if kind is None else getattr(value, kind)
