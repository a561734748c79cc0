"""Export of spans by OTLP over HTTP, with OpenTelemetry's own exporter."""

import io
import logging
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import httpx
import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.re import parse_env_headers
from requests.adapters import BaseAdapter

from claudomator_py import __version__
from claudomator_py.certificates import certificate_problem
from claudomator_py.domain.trace import Span, SpanName
from claudomator_py.outgoing import client
from claudomator_py.ports import ExportFault
from claudomator_py.schema.settings import TelemetrySettings

log = logging.getLogger("claudomator.telemetry")

TIMEOUT_S = 10.0
"""Total for a request, including the exporter's own retries."""
_MAX_ANSWER_BYTES = 64 * 1024
_PLAIN = {b"accept-encoding": b"identity"}
"""No compression: a small response could expand to a large one."""
_SCOPE = InstrumentationScope("claudomator", __version__)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NS_PER_MS = 1_000_000
_OK = range(200, 300)
# The spans themselves are at fault, so a retry is useless.
_LASTING = frozenset(
    {requests.codes.bad_request, requests.codes.request_entity_too_large, requests.codes.unprocessable}
)


class OtlpExporter:
    """Posts spans to one collector. environ: has the headers."""

    def __init__(self, settings: TelemetrySettings, environ: Mapping[str, str]) -> None:
        # The exporter would log each attempt without context; the caller logs the outcome.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._problem, headers = _headers(settings.headers_env, environ)
        self._answer: requests.Response | None = None
        session = requests.Session()
        session.hooks["response"].append(self._answered)
        self._adapter = _DeadlineAdapter()
        for scheme in ("http://", "https://"):
            session.mount(scheme, self._adapter)
        self._exporter = OTLPSpanExporter(
            endpoint=settings.traces_url, headers=headers, timeout=TIMEOUT_S, session=session
        )
        self._resource = Resource.create({SERVICE_NAME: settings.service_name, SERVICE_VERSION: __version__})

    def send(self, spans: Sequence[Span]) -> None:
        """Post the spans. Raises ExportFault unless the collector accepts the request."""
        if self._problem is not None:
            raise ExportFault(self._problem)
        self._answer = None
        result = self._exporter.export([_readable(span, self._resource) for span in spans])
        if self._answer is None:
            if self._adapter.problem is not None:
                raise ExportFault(f"the collector's certificate {self._adapter.problem}")
            raise ExportFault("the collector could not be reached, or did not answer in time")
        # The exporter treats a redirect as success.
        if result is not SpanExportResult.SUCCESS or self._answer.status_code not in _OK:
            status = self._answer.status_code
            raise ExportFault(f"the collector answered HTTP {status}", lasting=status in _LASTING)
        if (rejected := _rejected(self._answer.content)) > 0:
            log.error("the collector rejected %d of %d spans", rejected, len(spans))

    def close(self) -> None:
        """Close the connections and give up retries."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # untyped in the library

    def _answered(self, answer: requests.Response, *_: object, **__: object) -> None:
        self._answer = answer


class _DeadlineAdapter(BaseAdapter):
    """Sends the session's requests by our HTTP client, which ends each within its deadline."""

    problem: str | None = None
    """See ``certificate_problem``, of the latest request."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send a request. Raises requests.RequestException."""
        self.problem = None
        try:
            with _client(verify, cert).stream(
                str(request.method),
                str(request.url),
                content=request.body if isinstance(request.body, bytes) else b"",
                headers={**{_bytes(name).lower(): _bytes(value) for name, value in request.headers.items()}, **_PLAIN},
                timeout=max(timeout) if isinstance(timeout, tuple) else timeout,
            ) as asked:
                content = _beginning(asked)
        except httpx.TimeoutException as error:
            raise requests.Timeout(error, request=request) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            self.problem = certificate_problem(error)
            raise requests.ConnectionError(error, request=request) from None
        answer = requests.Response()
        answer.status_code, answer.url, answer.request = asked.status_code, str(request.url), request
        answer.headers.update(asked.headers)
        answer.raw = io.BytesIO(content)
        return answer

    def close(self) -> None:
        """Do nothing: the process shares the connections."""


def _beginning(answer: httpx.Response) -> bytes:
    """Return the first 64 KiB of the raw response, more than collectors send. Raises httpx.HTTPError."""
    content = b""
    for piece in answer.iter_raw():
        content += piece[: _MAX_ANSWER_BYTES - len(content)]
        if len(content) == _MAX_ANSWER_BYTES:
            break
    return content


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


@cache
def _client(verify: bool | str, cert: str | tuple[str, str] | None) -> httpx.Client:
    """Return the client for the exporter's settings of certificates. Raises OSError."""

    def trusted() -> ssl.SSLContext | bool:
        if verify is True and cert is None:
            return True
        context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
        if verify is False:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if cert is not None:
            context.load_cert_chain(*([cert] if isinstance(cert, str) else cert))
        return context

    return client(trust_env=True, trusted=trusted)


def _headers(variable: str | None, environ: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    """Return a problem with the configured headers, if any, and the headers."""
    if variable is None:
        return None, {}
    if not (text := environ.get(variable)):
        return f"the daemon's variable {variable} is not set", {}
    if not (headers := parse_env_headers(text, liberal=True)):
        return f"the daemon's variable {variable} holds no headers; write name=value,name=value", {}
    return None, dict(headers)


def _rejected(body: bytes) -> int:
    """Return how many spans the collector rejected in a request that it accepted."""
    try:
        return int(ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans)
    except Exception:  # not every collector answers with this message, and protobuf raises various errors
        return 0


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    """Return the span as an ended one of the SDK. The SDK's own recording would assign new ids and the current time."""
    return ReadableSpan(
        name=span.title,
        context=_context(span.name),
        parent=None if span.parent is None else _context(span.parent),
        resource=resource,
        attributes=span.attributes,
        links=[Link(_context(link.to), {"claudomator.link": link.why}) for link in span.links],
        kind=SpanKind.CLIENT if span.calls_agent else SpanKind.INTERNAL,
        instrumentation_scope=_SCOPE,
        status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
        start_time=span.start_ms * _NS_PER_MS,
        end_time=span.end_ms * _NS_PER_MS,
    )


def _context(name: SpanName) -> SpanContext:
    return SpanContext(name.trace_id, name.span_id, is_remote=False, trace_flags=_SAMPLED)
