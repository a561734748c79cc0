#!/usr/bin/env bash
# opentelemetry-exporter-otlp-proto-http 1.45.2 (PyPI): export() returns SUCCESS for spans that no collector has taken.
#
#   1. A redirect, such as a proxy's 301 to https or its 302 to a page for logging in: it is neither followed nor
#      reported, on any of 301, 302, 303, 307 and 308.
#   2. An answer of 200 in which the collector says that it rejected spans (`partial_success`): it is not read. By the
#      protocol a client should record that; here the log has no line either, at level DEBUG.
#   3. An answer of 200 that is no OTLP at all, such as a captive portal's page.
# So a pipeline that loses everything looks healthy. 404 and 500 are failures, and 503 is retried. Whoever has to know
# looks at the answer: by a hook of the session that is given to the exporter.
# Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp-response ("Partial Success", "All Other Responses").
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check opentelemetry-exporter-otlp-proto-http==1.45.2
env -i PATH="$PATH" "$folder/venv/bin/python" - <<'PYTHON'
import http.server, io, logging, threading

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

logged = io.StringIO()
logging.basicConfig(level=logging.DEBUG, stream=logged)
logging.getLogger("urllib3").setLevel(logging.CRITICAL)
answers, asked, results = [], [], []


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        asked.append(self.path)
        status, body = answers[-1]
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("location", "/elsewhere")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass


class Recording(SimpleSpanProcessor):
    def on_end(self, span):
        results.append(self.span_exporter.export([span]).name)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
provider = TracerProvider()
url = f"http://127.0.0.1:{server.server_port}/v1/traces"
provider.add_span_processor(Recording(OTLPSpanExporter(endpoint=url, timeout=2)))
rejected = ExportTraceServiceResponse()
rejected.partial_success.rejected_spans = 1
rejected.partial_success.error_message = "too old"
cases = [(status, b"") for status in (301, 302, 303, 307, 308)]
cases += [(200, rejected.SerializeToString()), (200, b"<html>Log in</html>"), (404, b"")]
for case in cases:
    answers.append(case)
    asked.clear(), logged.seek(0), logged.truncate()
    with provider.get_tracer("finding").start_as_current_span("work"):
        pass
    print(case[0], case[1][:19], "->", results[-1], "requests:", *asked, "log:", logged.getvalue().strip() or None)
    assert asked == ["/v1/traces"], "it has changed"
    assert bool(logged.getvalue()) is (case[0] == 404), "it has changed"
assert results == ["SUCCESS"] * 7 + ["FAILURE"], "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-11:
# 301 b'' -> SUCCESS requests: /v1/traces log: None
# 302, 303, 307 and 308: the same
# 200 b'\n\x0b\x08\x01\x12\x07too old' -> SUCCESS requests: /v1/traces log: None
# 200 b'<html>Log in</html>' -> SUCCESS requests: /v1/traces log: None
# 404 b'' -> FAILURE requests: /v1/traces log: ERROR:...:Failed to export spans batch code: 404, reason: Not Found
