#!/usr/bin/env bash
# OTEL_EXPORTER_OTLP_TIMEOUT is in seconds for opentelemetry-exporter-otlp-proto-http 1.45.2 (PyPI), and in milliseconds
# for @opentelemetry/exporter-trace-otlp-http 0.223.1 (npm), as the specification has it. A collector answers after a
# second:
#
#            Python                                       JavaScript
#   10       exported                                     failed: "Request timed out"
#   10000    exported; it would have waited for           exported
#            10000 seconds
#
# The variable stands beside OTEL_EXPORTER_OTLP_ENDPOINT in what a runner hands down to its agents, of which some are
# written in Python and some in JavaScript. With 10, which the documentation of Python gives as the default, those of
# JavaScript lose what they measure, their cost included; with 10000, which is the default of the specification, an
# exporter in Python has no bound that matters. Leave the variable out.
# Source: https://opentelemetry.io/docs/specs/otel/protocol/exporter/ ("10s"; durations are milliseconds:
# https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#duration),
# https://opentelemetry-python.readthedocs.io/en/latest/sdk/environment_variables.html ("Default: 10"), and issue 5531
# of open-telemetry/opentelemetry-python.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check opentelemetry-exporter-otlp-proto-http==1.45.2 \
    2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" @opentelemetry/exporter-trace-otlp-http@0.223.1 \
    @opentelemetry/sdk-trace-base@2.12.1 >/dev/null
cat >"$folder/export.mjs" <<'JS'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
const spans = new InMemorySpanExporter()
new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).getTracer('t').startSpan('run').end()
new OTLPTraceExporter().export(spans.getFinishedSpans(), ({ code, error }) => {
  console.log(code === 0 ? 'exported' : `failed: ${error.message}`)
  process.exit()
})
JS
cat >"$folder/ask.py" <<'PYTHON'
import contextlib, http.server, importlib.metadata, os, subprocess, threading, time

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        while "Content-Length" not in self.headers and (size := int(self.rfile.readline(), 16)):
            self.rfile.read(size + 2)  # a chunk, and the end of its line
        time.sleep(1)
        with contextlib.suppress(OSError):  # of a client that has not waited
            self.answer()

    def answer(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    log_message = lambda *_: None


collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=collector.serve_forever, daemon=True).start()
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{collector.server_port}"

# What the exporter asks of requests is written down: the seconds that it would wait for an answer.
timeouts = []
send = requests.adapters.HTTPAdapter.send


def recorded(self, *arguments, **options):
    timeouts.append(options["timeout"])
    return send(self, *arguments, **options)


requests.adapters.HTTPAdapter.send = recorded
spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
provider.get_tracer("t").start_span("run").end()
print("opentelemetry-exporter-otlp-proto-http", importlib.metadata.version("opentelemetry-exporter-otlp-proto-http"))
seen = []
for value in ("10", "10000"):
    os.environ["OTEL_EXPORTER_OTLP_TIMEOUT"] = value
    result = OTLPSpanExporter().export(spans.get_finished_spans()).name
    other = subprocess.run(["node", "export.mjs"], stdout=-1, check=True, text=True).stdout.strip()
    seen.append((value, result, round(timeouts[-1]), other))
    print(f"{value}: Python {result}, waits up to {timeouts[-1]:.0f} s; JavaScript {other}", flush=True)
expected = [("10", "SUCCESS", 10, "failed: Request timed out"), ("10000", "SUCCESS", 10000, "exported")]
assert seen == expected, "it has changed"
PYTHON
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 100 "$folder/venv/bin/python" -W ignore ask.py
# Seen with Python 3.11 and Node.js 20.20.2, twice, 2026-12:
# opentelemetry-exporter-otlp-proto-http 1.45.2
# 10: Python SUCCESS, waits up to 10 s; JavaScript failed: Request timed out
# 10000: Python SUCCESS, waits up to 10000 s; JavaScript exported
