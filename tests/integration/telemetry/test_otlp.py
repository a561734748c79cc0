"""The way to a collector, against a real one: what arrives, and what its answers mean."""

import logging
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from claudomator_py import __version__
from claudomator_py.domain.trace import Span, SpanLink, SpanName
from claudomator_py.ports import ExportFault
from claudomator_py.schema.settings import TelemetrySettings
from claudomator_py.telemetry import otlp, span_exporter
from claudomator_py.telemetry.otlp import OtlpExporter
from tests.fakes.collector import Collector, Received
from tests.patience import PATIENCE_S

TRACE = 0x0432407F5BD14F0E9A3C1C1F6D0E7A11
ROOT, RUN = SpanName(TRACE, 0x0432407F5BD14F0E), SpanName(TRACE, 0x51C5B45A9F0D5E3B)
SPAN = Span(
    name=RUN,
    title="invoke_agent claude",
    parent=ROOT,
    start_ms=1_790_000_000_123,
    end_ms=1_790_000_001_456,
    attributes={"text": "é", "yes": True, "number": 7, "share": 0.5, "names": ("a", "b")},
    links=(SpanLink(ROOT, "handoff"),),
    failed=True,
    calls_agent=True,
)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as opened:
        yield opened


def exporter(collector: Collector, environ: dict[str, str] | None = None, **keys: Any) -> OtlpExporter:
    return OtlpExporter(TelemetrySettings(**{"endpoint": collector.endpoint, **keys}), environ or {})


def test_a_span_arrives_as_it_is(collector: Collector) -> None:
    exporter(collector).send([SPAN])
    assert collector.spans == [
        Received(
            trace_id="0432407f5bd14f0e9a3c1c1f6d0e7a11",
            span_id="51c5b45a9f0d5e3b",
            parent="0432407f5bd14f0e",
            name="invoke_agent claude",
            start=1_790_000_000_123_000_000,
            end=1_790_000_001_456_000_000,
            kind=3,
            status=2,
            attributes={"text": "é", "yes": True, "number": 7, "share": 0.5, "names": ["a", "b"]},
            links=(("0432407f5bd14f0e9a3c1c1f6d0e7a11", "0432407f5bd14f0e", "handoff"),),
        )
    ]
    assert collector.resources[0]["service.name"] == "claudomator"
    assert collector.resources[0]["service.version"] == __version__


@pytest.mark.parametrize(
    ("status", "lasting"),
    [(302, False), (400, True), (401, False), (404, False), (413, True), (422, True), (500, False)],
)
def test_anything_but_success_is_a_fault(collector: Collector, status: int, lasting: bool) -> None:
    collector.status = status
    with pytest.raises(ExportFault, match=f"HTTP {status}$") as fault:
        exporter(collector).send([SPAN])
    assert fault.value.lasting is lasting
    assert len(collector.bodies) == 1, "it was led elsewhere, or asked again"


def test_one_that_is_busy_is_asked_again_for_a_while(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 2.0)
    collector.status = 503
    with pytest.raises(ExportFault, match=r"HTTP 503$"):
        exporter(collector).send([SPAN])
    assert len(collector.bodies) > 1


def test_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 0.5)
    with Collector() as gone:
        pass
    with pytest.raises(ExportFault, match="could not be reached") as fault:
        exporter(gone).send([SPAN])
    assert not fault.value.lasting


def test_closing_ends_the_wait_for_another_attempt(collector: Collector) -> None:
    collector.status = 503
    sending = exporter(collector)
    faults: list[ExportFault] = []

    def send() -> None:
        try:
            sending.send([SPAN])
        except ExportFault as fault:
            faults.append(fault)

    thread = threading.Thread(target=send)
    thread.start()
    assert collector.asked.acquire(timeout=PATIENCE_S)
    sending.close()
    thread.join(otlp.TIMEOUT_S / 2)
    assert not thread.is_alive()
    assert len(faults) == 1


@pytest.mark.parametrize(
    "says", [b"", b"OK\n", b"{}", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x00" * 100, b"<html>"]
)
def test_what_a_collector_says_that_took_the_spans_may_be_anything(collector: Collector, says: bytes) -> None:
    collector.says = says
    exporter(collector).send([SPAN])
    assert len(collector.bodies) == 1


@pytest.mark.parametrize(("encoding", "endless"), [("gzip", False), ("deflate", False), (None, True), ("gzip", True)])
def test_an_answer_of_any_length_is_taken_into_little_memory(
    collector: Collector, encoding: str | None, endless: bool
) -> None:
    collector.encoding, collector.endless = encoding, endless
    collector.says = zlib.compress(bytes(50 << 20), wbits=31 if encoding == "gzip" else 15)
    sending = exporter(collector)
    tracemalloc.start()
    try:
        sending.send([SPAN])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    assert collector.headers[0]["accept-encoding"] == "identity"


def test_spans_that_were_rejected_are_told(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    collector.rejected = 1
    exporter(collector).send([SPAN])
    assert [record.getMessage() for record in caplog.records] == ["the collector rejected 1 of 1 spans"]


def test_the_library_says_nothing_of_its_own(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "claudomator")
    collector.status = 500
    with pytest.raises(ExportFault):
        exporter(collector).send([SPAN])
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


def test_headers_come_from_the_variable(collector: Collector) -> None:
    exporter(collector, {"IT": "authorization=Bearer%20a-key, x-tenant=shop"}, headers_env="IT").send([SPAN])
    assert collector.headers[0]["authorization"] == "Bearer a-key"
    assert collector.headers[0]["x-tenant"] == "shop"


@pytest.mark.parametrize(("text", "what"), [(None, "is not set"), ("", "is not set"), ("a-key", "holds no headers")])
def test_without_its_headers_nothing_is_sent(collector: Collector, text: str | None, what: str) -> None:
    environ = {} if text is None else {"IT": text}
    with pytest.raises(ExportFault, match=f"variable IT {what}") as fault:
        exporter(collector, environ, headers_env="IT").send([SPAN])
    assert not fault.value.lasting
    assert collector.bodies == []


def test_without_an_endpoint_there_is_no_exporter_and_nothing_is_imported() -> None:
    assert span_exporter(TelemetrySettings(), {}) is None
    code = """
import sys
import claudomator_py.app.serving
from claudomator_py.schema.settings import TelemetrySettings
from claudomator_py.telemetry import span_exporter
assert span_exporter(TelemetrySettings(), {}) is None
heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "google.protobuf", "requests")
print([name for name in heavy if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout == "[]\n"


def test_with_one_there_is(collector: Collector) -> None:
    made = span_exporter(TelemetrySettings(endpoint=collector.endpoint), {})
    assert made is not None
    made.send([SPAN])
    assert len(collector.spans) == 1
