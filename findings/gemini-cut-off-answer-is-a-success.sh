#!/usr/bin/env bash
# Gemini CLI 0.61.0, `-o stream-json`: an answer that was cut off ends like one that is complete.
#
# The API says why a model stopped: finishReason STOP, or MAX_TOKENS when the answer met the limit on output, or SAFETY
# when the rest was withheld. `-o stream-json` passes on neither: after MAX_TOKENS and SAFETY the last event is
# {"type":"result","status":"success"}, the exit code is 0, and stderr has no word of it. Apart from ids and times, the
# three runs below print the same. So whoever runs it headless cannot tell half an answer from a whole one.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home/.gemini" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @google/gemini-cli@0.61.0 >/dev/null)
echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' >"$work/home/.gemini/settings.json"

# A service that answers every request with half a sentence, and says that it stopped for the reason in the file.
cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        content = {"role": "model", "parts": [{"text": "First I will"}]}
        reason = (work / "reason").read_text()
        usage = {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15}
        chunk = {"candidates": [{"content": content, "finishReason": reason, "index": 0}], "usageMetadata": usage}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\r\n\r\n".encode())

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
(work / "port").write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/mock.py" "$work" &
mock=$!
until [ -s "$work/port" ]; do sleep 0.1; done

cd "$work/task"
for reason in STOP MAX_TOKENS SAFETY; do
    printf %s "$reason" >"$work/reason"
    env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" GEMINI_API_KEY=none \
        GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat "$work/port")" \
        GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true \
        timeout 120 node "$work/node_modules/@google/gemini-cli/bundle/gemini.js" -p hello -y -m gemini-3.8-flash \
        -o stream-json </dev/null >"$work/$reason.events" 2>"$work/$reason.stderr" && code=0 || code=$?
    echo "$code" >"$work/$reason.code"
done

python3 - "$work" <<'PYTHON'
import json, pathlib, sys

work = pathlib.Path(sys.argv[1])
said = {}
for reason in ("STOP", "MAX_TOKENS", "SAFETY"):
    events = [json.loads(line) for line in (work / f"{reason}.events").read_text().splitlines()]
    code, stderr = (work / f"{reason}.code").read_text().strip(), (work / f"{reason}.stderr").read_text()
    last = events[-1]
    kinds = [event["type"] for event in events]
    print(f"{reason:10} exit {code}, events {' '.join(kinds)}, status {last['status']}, error {last.get('error')}")
    assert (code, last["type"], last["status"]) == ("0", "result", "success")
    assert "error" not in kinds and "error" not in last
    assert not any(word in (work / f"{reason}.events").read_text() + stderr for word in ("MAX_TOKENS", "SAFETY", "truncat"))
    said[reason] = (kinds, last["stats"]["output_tokens"], stderr)
assert said["STOP"] == said["MAX_TOKENS"] == said["SAFETY"], "nothing tells them apart"
PYTHON
# Seen with Node 20, 2026-11:
# STOP       exit 0, events init message message result, status success, error None
# MAX_TOKENS exit 0, events init message message result, status success, error None
# SAFETY     exit 0, events init message message result, status success, error None
