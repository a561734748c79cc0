#!/usr/bin/env bash
# Gemini CLI 0.61.0, headless, the prompt on standard input: a word behind `@` that is the name of a file or folder of
# the working directory changes the whole prompt, and the event that repeats the prompt shows it unchanged.
#
# "Rename @docs to @guide, tell ann@example.org." is sent as "Rename @docs/** to @guide, tell ann @example.org.": the
# folder becomes a pattern, the mail address falls apart, and the contents of all files below the folder follow, before
# the model has asked for any and without a tool call. In a folder without `docs` the same sentence is sent as it
# stands. `-o stream-json` prints {"type":"message","role":"user"} with the sentence as it was given in both cases, so
# what was asked of the model is in none of the events; only the count of tokens differs. Qwen Code 0.24.4 takes mail
# addresses apart in the same way. A prompt that came from people may have npm scopes, decorators and addresses in it.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home/.gemini" "$work/with/docs" "$work/without"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @google/gemini-cli@0.61.0 >/dev/null)
echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' >"$work/home/.gemini/settings.json"
echo ALPHA >"$work/with/docs/a.md"
echo BETA >"$work/with/docs/b.md"

cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        (work / "asked").write_bytes(self.rfile.read(int(self.headers.get("content-length", 0))))
        content = {"role": "model", "parts": [{"text": "Done."}]}
        usage = {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15}
        chunk = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
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

prompt="Rename @docs to @guide, tell ann@example.org."
for folder in without with; do
    (cd "$work/$folder" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" GEMINI_API_KEY=none \
        GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat "$work/port")" \
        GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true \
        timeout 120 node "$work/node_modules/@google/gemini-cli/bundle/gemini.js" -m gemini-3.8-flash \
        -o stream-json <<<"$prompt" >"$work/events" 2>/dev/null)
    python3 - "$work" "$folder" "$prompt" <<'PYTHON'
import json, pathlib, sys

work, folder, prompt = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
events = [json.loads(line) for line in (work / "events").read_text().splitlines()]
printed = next(event["content"] for event in events if event.get("role") == "user").strip()
parts = [part["text"] for part in json.loads((work / "asked").read_text())["contents"][-1]["parts"]]
sent = next(part for part in parts if part.startswith("Rename")).strip()
files = [word for word in ("ALPHA", "BETA") if any(word in part for part in parts)]
tools = [event for event in events if event["type"].startswith("tool")]
print(f"{folder} docs: printed {printed!r}")
print(f"  sent {sent!r}, contents of {len(files)} files, tool calls in the events: {len(tools)}")
assert printed == prompt and not tools
changed = "Rename @docs/** to @guide, tell ann @example.org."
assert (sent, files) == ((changed, ["ALPHA", "BETA"]) if folder == "with" else (prompt, [])), "it has changed"
PYTHON
done
# Seen with Node 20, twice, 2026-11:
# without docs: printed 'Rename @docs to @guide, tell ann@example.org.'
#   sent 'Rename @docs to @guide, tell ann@example.org.', contents of 0 files, tool calls in the events: 0
# with docs: printed 'Rename @docs to @guide, tell ann@example.org.'
#   sent 'Rename @docs/** to @guide, tell ann @example.org.', contents of 2 files, tool calls in the events: 0
