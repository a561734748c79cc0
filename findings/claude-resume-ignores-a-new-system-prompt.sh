#!/usr/bin/env bash
# Claude Code 2.1.330 (2.1.332 as well), `-p --resume`: --append-system-prompt and --system-prompt have no effect. The
# first run of a session writes its whole system prompt into the session's file (an attachment "prompt_snapshot"), and
# each later run sends that one, with --continue and --fork-session too. There is no warning.
#
# Up to the versions of last summer it was the other way round: a resumed run had no system prompt but that of its own
# command line, and programs that drive Claude Code give it again each time for that reason. Who resumes with another
# role, or with instructions that have changed since, now gets the old ones. What else is kept differs: the model is
# that of the session, unless --model is given; effort and permission mode are those of the new command line, or the
# default. Seen without the vendor's service, so without settings that it may send
# (CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC).
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @anthropic-ai/claude-code@2.1.330 >/dev/null)

cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        if asked.get("tools"):
            (work / "asked").write_text(json.dumps(asked))
        message = {"id": "m", "type": "message", "role": "assistant", "model": asked.get("model"), "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
(work / "port").write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/mock.py" "$work" &
mock=$!
until [ -s "$work/port" ]; do sleep 0.1; done

expect() { # what is asked of the model, and the mode; options
    local expected=$1 seen
    shift
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" ANTHROPIC_API_KEY=none \
        ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$work/port")" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        timeout 120 node "$work/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs" -p --output-format stream-json \
        --verbose "$@" >"$work/events" 2>"$work/errors" <<<"hello")
    seen=$(python3 - "$work" <<'PYTHON'
import json, pathlib, sys

work = pathlib.Path(sys.argv[1])
asked = json.loads((work / "asked").read_text())
words = [word for word in ("ALPHA", "BETA") if word in json.dumps(asked)]
events = map(json.loads, (work / "events").read_text().splitlines())
mode = next(event["permissionMode"] for event in events if event.get("subtype") == "init")
print(*words, asked["model"].split("-")[1], asked.get("output_config", {}).get("effort"), mode)
PYTHON
)
    printf '%s -> %s\n' "${*/$id/ID}" "$seen"
    [ "$seen" = "$expected" ] || { echo "expected: $expected"; exit 1; }
    [ ! -s "$work/errors" ] || { echo "it warned:"; cat "$work/errors"; exit 1; }
}

id=11111111-2222-4333-8444-555555555555
expect "ALPHA sonnet high plan" --session-id $id --append-system-prompt ALPHA --model sonnet --effort high \
    --permission-mode plan
expect "ALPHA sonnet medium default" --resume $id
expect "ALPHA sonnet medium default" --resume $id --append-system-prompt BETA
expect "ALPHA sonnet medium default" --resume $id --system-prompt BETA
expect "ALPHA sonnet medium default" --resume $id --fork-session --append-system-prompt BETA
expect "ALPHA haiku medium default" --resume $id --append-system-prompt BETA --model haiku

# Seen with Node 20, twice, 2026-11:
# --session-id ID --append-system-prompt ALPHA --model sonnet --effort high --permission-mode plan
#     -> ALPHA sonnet high plan
# --resume ID -> ALPHA sonnet medium default
# --resume ID --append-system-prompt BETA -> ALPHA sonnet medium default
# --resume ID --system-prompt BETA -> ALPHA sonnet medium default
# --resume ID --fork-session --append-system-prompt BETA -> ALPHA sonnet medium default
# --resume ID --append-system-prompt BETA --model haiku -> ALPHA haiku medium default
