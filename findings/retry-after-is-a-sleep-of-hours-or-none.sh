#!/usr/bin/env bash
# One answer 429 with `Retry-After: 7200`, and what each client does by default, in a call with a timeout of 5 seconds:
#
#   openai 3.57.0 (PyPI)                                  raises at once: it waits for up to two minutes, not longer
#   openai 6.49.0 (npm), anthropic 2.14.0 (PyPI),
#   @anthropic-ai/sdk 1.10.0 (npm), requests 2.34.2       sleep for two hours, then ask again, twice
#   google-genai 3.6.1 (PyPI), retries on                 does not read the header: asks again within seconds
#
# So two clients of one vendor differ, and the bound of one minute that older versions had is gone. The timeout limits a
# request, not the call, so a run that sleeps looks like one that waits for a slow answer. With 2592000, the month of a
# monthly quota, both npm clients ask again at once: a timer of Node cannot hold it, and fires after one millisecond.
# Source: https://www.rfc-editor.org/rfc/rfc9110#name-retry-after, https://nodejs.org/api/timers.html (setTimeout).
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet openai==3.57.0 anthropic==2.14.0 google-genai==3.6.1 requests==2.34.2
(cd "$work" && npm install --silent --no-fund --no-audit openai@6.49.0 @anthropic-ai/sdk@1.10.0 >/dev/null)

# A service that refuses each request for as long as its path says, in seconds.
cat >"$work/server.py" <<'PYTHON'
import pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Limited(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b'{"error": {"message": "Quota exceeded.", "code": 429, "status": "RESOURCE_EXHAUSTED"}}'
        self.send_response(429)
        self.send_header("retry-after", self.path.split("/")[1])
        self.end_headers()
        self.wfile.write(body)

server = ThreadingHTTPServer(("127.0.0.1", 0), Limited)
pathlib.Path(sys.argv[1]).write_text(f"http://127.0.0.1:{server.server_port}")
server.serve_forever()
PYTHON
python3 "$work/server.py" "$work/base" &
server=$!
until [ -s "$work/base" ]; do sleep 0.1; done

# The clients sleep by time.sleep, and by setTimeout: both are recorded, and return at once.
cat >"$work/clients.py" <<'PYTHON'
import sys, time

import anthropic, openai, requests
from google import genai
from urllib3 import Retry

BASE, ASKED, slept = sys.argv[1], [{"role": "user", "content": "hello"}], []
time.sleep = slept.append
limited = requests.Session()
retries = Retry(2, status_forcelist=[429], allowed_methods=None)
limited.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
options = {"retry_options": {"attempts": 3}, "timeout": 5000}


def google(base):
    client = genai.Client(api_key="none", http_options=options | {"base_url": base})
    client.models.generate_content(model="m", contents="hello")

CALLS = {
    "openai": lambda base: openai.OpenAI(api_key="none", base_url=base, timeout=5).chat.completions.create(
        model="m", messages=ASKED),
    "anthropic": lambda base: anthropic.Anthropic(api_key="none", base_url=base, timeout=5).messages.create(
        model="m", max_tokens=9, messages=ASKED),
    "google-genai": google,
    "requests": lambda base: limited.post(base, json={}, timeout=5),
}  # fmt: skip
for name, call in CALLS.items():
    for seconds in (100, 7200):
        slept.clear()
        try:
            call(f"{BASE}/{seconds}")
        except Exception as error:
            shown = "seconds" if slept and max(slept) < 15 else [round(each) for each in slept]
            print(f"{name} {seconds}: {shown}, {type(error).__name__}")
PYTHON
cat >"$work/clients.mjs" <<'NODE'
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [base, timer, options] = [process.argv[2], setTimeout, { apiKey: "none", timeout: 5000 }];
const asked = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "hello" }] };
const calls = {
  openai: (baseURL) => new OpenAI({ ...options, baseURL }).chat.completions.create(asked),
  anthropic: (baseURL) => new Anthropic({ ...options, baseURL }).messages.create(asked),
};
for (const [name, call] of Object.entries(calls))
  for (const seconds of [100, 7200, 2592000]) {
    const slept = [];
    const record = (then, ms, ...rest) => timer(then, ms > 9000 ? (slept.push(ms / 1000), 0) : ms, ...rest);
    globalThis.setTimeout = seconds < 2592000 ? record : timer;
    const error = await call(`${base}/${seconds}`).catch((error) => error.constructor.name);
    console.log(`npm ${name} ${seconds}: [${slept.join(", ")}], ${error}`);
  }
NODE
run() { env -i PATH="$PATH" HOME="$work" NO_PROXY=127.0.0.1 timeout 120 "$@" "$(cat "$work/base")" 2>/dev/null; }
{ run "$work/venv/bin/python" "$work/clients.py"; run node "$work/clients.mjs"; } | tee "$work/seen"
diff - "$work/seen" <<'SEEN'
openai 100: [100, 100], RateLimitError
openai 7200: [], RateLimitError
anthropic 100: [100, 100], RateLimitError
anthropic 7200: [7200, 7200], RateLimitError
google-genai 100: seconds, ClientError
google-genai 7200: seconds, ClientError
requests 100: [100, 100], RetryError
requests 7200: [7200, 7200], RetryError
npm openai 100: [100, 100], RateLimitError
npm openai 7200: [7200, 7200], RateLimitError
npm openai 2592000: [], RateLimitError
npm anthropic 100: [100, 100], RateLimitError
npm anthropic 7200: [7200, 7200], RateLimitError
npm anthropic 2592000: [], RateLimitError
SEEN
