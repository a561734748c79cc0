#!/usr/bin/env bash
# Claude Code 2.1.330, `-p --output-format stream-json`: a `result` is not the end, with background tasks disabled either.
#
# A result ends a turn. `CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1` takes `run_in_background` from Bash and Agent, and
# `CLAUDE_CODE_DISABLE_CRON=1` the cron tools; but Monitor, Workflow and ScheduleWakeup are still offered, and Monitor
# still runs in the background: the first result says success, "queued_turn_count": 0 and "terminal_reason":
# "completed", and then each line of the watched command brings another turn with another result, in the same process.
# Nothing in the first result says so. Only `--disallowedTools` keeps a headless run from that.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @anthropic-ai/claude-code@2.1.330 >/dev/null)

# A service whose model watches a command that prints two lines, and then has nothing more to do.
cat >"$work/mock.py" <<'PYTHON'
import http.server, itertools, json, pathlib, sys

work = pathlib.Path(sys.argv[1])
numbers = itertools.count(1)
WATCH = {"command": "sleep 2; echo one; sleep 3; echo two", "description": "watch", "timeout_ms": 60000}

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        number = next(numbers) if asked.get("tools") else 0
        if number == 1:
            (work / "asked").write_text(json.dumps(asked))
            block, delta = {"type": "tool_use", "id": "t1", "name": "Monitor", "input": {}}, {"type": "input_json_delta"}
            delta["partial_json"], stop = json.dumps(WATCH), "tool_use"
        else:
            block, stop = {"type": "text", "text": ""}, "end_turn"
            delta = {"type": "text_delta", "text": f"answer {number}"}
        message = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}},
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

cd "$work/task"
echo hello | env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" ANTHROPIC_API_KEY=none \
    ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$work/port")" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1 CLAUDE_CODE_DISABLE_CRON=1 \
    timeout 120 node "$work/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs" -p --output-format stream-json \
    --verbose --allowedTools Monitor >"$work/events" && code=0 || code=$?

python3 - "$work" "$code" <<'PYTHON'
import json, pathlib, sys

work, code = pathlib.Path(sys.argv[1]), sys.argv[2]
asked = json.loads((work / "asked").read_text())
tools = {tool["name"]: tool for tool in asked["tools"]}
later = str(asked["messages"])
results = [event for line in (work / "events").read_text().splitlines() if (event := json.loads(line))["type"] == "result"]
print("Bash can be left in the background:", "run_in_background" in tools["Bash"]["input_schema"]["properties"])
print("still offered:", *[name for name in ("Monitor", "ScheduleWakeup", "Workflow") if name in tools or name in later])
print("no more:", *[name for name in ("CronCreate",) if name not in tools and name not in later])
for result in results:
    print("result:", *(f"{key}={result.get(key)!r}" for key in ("result", "terminal_reason", "queued_turn_count")))
print("exit code", code)
assert "run_in_background" not in tools["Bash"]["input_schema"]["properties"] and "CronCreate" not in later
assert {"ScheduleWakeup", "Workflow"} <= set(tools) and "Monitor" in later
assert len(results) >= 3 and code == "0"
assert {(one["subtype"], one["terminal_reason"], one["queued_turn_count"]) for one in results} == {("success", "completed", 0)}
PYTHON
# Seen with Node 20, 2026-11:
# Bash can be left in the background: False
# still offered: Monitor ScheduleWakeup Workflow
# no more: CronCreate
# result: result='answer 2' terminal_reason='completed' queued_turn_count=0
# result: result='answer 3' terminal_reason='completed' queued_turn_count=0
# result: result='answer 4' terminal_reason='completed' queued_turn_count=0
# exit code 0
