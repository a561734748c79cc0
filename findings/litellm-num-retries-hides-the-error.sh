#!/usr/bin/env bash
# LiteLLM 1.110.2 (PyPI): `num_retries=2` turns each error of a service into a bare Exception about tenacity, and where
# tenacity is installed, it makes five requests of one, and asks three times with a refused key.
#
# LiteLLM retries by tenacity, which it does not depend on. Without it, a 429, a 500 and a 401 all raise Exception
# ("tenacity import failed"), so code that catches litellm.RateLimitError never sees one. That is noticed only when a
# service first fails. With tenacity, the OpenAI SDK's own retries come first and tenacity's are added: 3 requests by
# default, 5 instead of 3 with num_retries=2, whatever max_retries says. A 401, which is not retried by default, is
# asked 3 times. num_retries=0 and max_retries=0 both mean a single request, and keep the class of the error.
# Source: https://docs.litellm.ai/docs/completion/reliable_completions ("Retry failed requests").
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
install() { "$work/venv/bin/uv" pip install --quiet --python "$work/venv/bin/python" "$@"; }
install litellm==1.110.2

cat >"$work/asks.py" <<'PYTHON'
import json, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

asked = []


class Service(BaseHTTPRequestHandler):
    """Refuses each request with the status in its path."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        asked.append(self.path)
        body = json.dumps({"error": {"message": "It did not work.", "type": "x", "code": "y"}}).encode()
        self.send_response(int(self.path.split("/")[1]))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()

import litellm

litellm.suppress_debug_info = True
for status in (429, 500, 401):
    row = []
    for options in ({}, {"num_retries": 0}, {"num_retries": 2}, {"num_retries": 2, "max_retries": 0}):
        asked.clear()
        base = f"http://127.0.0.1:{server.server_port}/{status}/v1"
        messages = [{"role": "user", "content": "hello"}]
        try:
            litellm.completion(model="openai/m1", messages=messages, api_key="none", api_base=base, **options)
        except Exception as error:
            why = " (tenacity import failed)" if "tenacity import failed" in str(error) else ""
            row.append(f"{len(asked)} {type(error).__name__}{why}")
    print(status, " | ".join(row))
PYTHON
asks() {
    env -i PATH="$PATH" HOME="$work" LITELLM_LOCAL_MODEL_COST_MAP=True HTTPS_PROXY=http://127.0.0.1:9 \
        NO_PROXY=127.0.0.1 timeout 240 "$work/venv/bin/python" "$work/asks.py" 2>/dev/null
}
options="default | num_retries=0 | num_retries=2 | num_retries=2, max_retries=0"
{ echo "without tenacity: $options"; asks; install tenacity==9.1.4; echo "with tenacity: $options"; asks; } | tee "$work/seen"
# Seen with Python 3.11, twice, 2026-11:
diff - "$work/seen" <<'SEEN'
without tenacity: default | num_retries=0 | num_retries=2 | num_retries=2, max_retries=0
429 3 RateLimitError | 1 RateLimitError | 3 Exception (tenacity import failed) | 3 Exception (tenacity import failed)
500 3 InternalServerError | 1 InternalServerError | 3 Exception (tenacity import failed) | 3 Exception (tenacity import failed)
401 1 AuthenticationError | 1 AuthenticationError | 1 Exception (tenacity import failed) | 1 Exception (tenacity import failed)
with tenacity: default | num_retries=0 | num_retries=2 | num_retries=2, max_retries=0
429 3 RateLimitError | 1 RateLimitError | 5 RateLimitError | 5 RateLimitError
500 3 InternalServerError | 1 InternalServerError | 5 InternalServerError | 5 InternalServerError
401 1 AuthenticationError | 1 AuthenticationError | 3 AuthenticationError | 3 AuthenticationError
SEEN
