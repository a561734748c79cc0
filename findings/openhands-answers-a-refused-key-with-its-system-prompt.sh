#!/usr/bin/env bash
# OpenHands CLI 1.16.0 (PyPI), `--headless --json`: a run whose key was refused exits with 0, and its summary shows the
# CLI's own system prompt as the "Last message sent by the agent".
#
# By the documentation, each line of --json is an event, from which to determine success or failure. Instead, events
# stand between lines of text. The only sign of the failure is an event of kind "ConversationErrorEvent", before the
# summary, which then prints some 350 lines of system prompt as the answer, and "Goodbye!". A program that keeps the
# end of the output as the answer gets instructions about credentials and quotas that no model has written. Timestamps
# of events have no offset: they are local time, here nine hours ahead, in Tokyo.
# Source: https://docs.openhands.dev/openhands/usage/cli/headless ("JSON Output Mode"). Needs Python 3.12.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/uv"
"$work/uv/bin/pip" install --quiet uv==0.13.9
PYENV_VERSION=3.12 python3.12 -m venv --without-pip "$work/venv"
"$work/uv/bin/uv" pip install --quiet --python "$work/venv/bin/python" openhands==1.16.0

# A service that answers "Done.", or refuses the key `refused`.
cat >"$work/server.py" <<'PYTHON'
import json, pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        refused = self.headers["authorization"] == "Bearer refused"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choices = [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]
        answer = {"id": "c", "object": "chat.completion", "created": 0, "model": "m1", "choices": choices}
        refusal = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
        self.send_response(401 if refused else 200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(refusal if refused else answer | {"usage": usage}).encode())


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
pathlib.Path(sys.argv[1]).write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/server.py" "$work/port" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done

for key in good refused; do
    rm -rf "$work/home" "$work/task"
    mkdir -p "$work/home" "$work/task"
    code=0
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" TERM=dumb LANG=C.UTF-8 TZ=Asia/Tokyo \
        LLM_API_KEY="$key" LLM_MODEL=openai/m1 LLM_BASE_URL="http://127.0.0.1:$(cat "$work/port")/v1" \
        LITELLM_LOCAL_MODEL_COST_MAP=True HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 timeout 300 \
        "$work/venv/bin/openhands" --headless --json --override-with-envs --task "Say hello." \
        </dev/null >"$work/$key.out" 2>"$work/$key.errors") || code=$?
    echo "$code" >"$work/$key.code"
done

python3 - "$work" <<'PYTHON' || { tail -n 20 "$work/refused.out" "$work/refused.errors"; exit 1; }
import datetime, json, pathlib, sys

work = pathlib.Path(sys.argv[1])
for key, kinds, answer in (
    ("good", ["MessageEvent", "MessageEvent"], "Done."),
    ("refused", ["MessageEvent", "ConversationErrorEvent"], "System Prompt:"),
):
    lines = (work / f"{key}.out").read_text().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    seen = [event["kind"] for event in events if event["kind"].endswith(("MessageEvent", "ErrorEvent"))]
    place = lines.index("Last message sent by the agent:")
    first = lines[place + 2].strip("│ ")
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    hours = round((datetime.datetime.fromisoformat(events[-1]["timestamp"]) - now).total_seconds() / 3600)
    code = (work / f"{key}.code").read_text().strip()
    print(f"{key}: exit {code}, events {' '.join(seen)}, hours ahead: {hours}")
    print(f"{len(lines) - place} lines from the last message on, which begins: {first}")
    assert (code, seen, first, hours, len(lines) - place > 200) == ("0", kinds, answer, 9, key == "refused")
PYTHON

# Seen with Python 3.12, 2026-11:
# good: exit 0, events MessageEvent MessageEvent, hours ahead: 9
# 9 lines from the last message on, which begins: Done.
# refused: exit 0, events MessageEvent ConversationErrorEvent, hours ahead: 9
# 354 lines from the last message on, which begins: System Prompt:
