#!/usr/bin/env bash
# Codex 0.169.0, `codex exec --json`: a hook that stands on its own command line does not run, and nothing says so.
#
# `--config 'hooks.PreToolUse=[...]'` is accepted, with `--strict-config` as well. Hooks have to be reviewed in the
# terminal interface first; a headless run cannot be asked, so it leaves the hook out and runs the tool. Neither the
# events, nor stderr, nor the exit code tells of that. With `--dangerously-bypass-hook-trust` the same hook runs, and the
# denied call then stands in no event at all: only a log line on stderr has it.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @openai/codex@0.169.0 >/dev/null)

# A service whose model runs one command, and then has nothing more to do.
cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])
CALL = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "exec_command"}
CALL["arguments"] = json.dumps({"cmd": "echo ran"})
WORDS = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        called = any(one.get("type") == "function_call_output" for one in asked.get("input", []))
        item = WORDS if called else CALL
        usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in (
            {"type": "response.created", "response": {"id": "r1", "object": "response", "status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r1", "status": "completed", "output": [item], "usage": usage}},
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

hook='hooks.PreToolUse=[{hooks=[{type="command",command="echo no >&2; exit 2"}]}]'
run() { # name, further options: the same run, but for these
    name=$1 && shift
    provider="{name=\"mock\",base_url=\"http://127.0.0.1:$(cat "$work/port")/v1\",wire_api=\"responses\",env_key=\"K\"}"
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" K=none timeout 60 \
        "$work/node_modules/.bin/codex" exec --json --strict-config --skip-git-repo-check --sandbox danger-full-access \
        --config analytics.enabled=false --config 'model_provider="mock"' --config "model_providers.mock=$provider" \
        --model gpt-6-sol --config "$hook" "$@" "go" </dev/null >"$work/$name.out" 2>"$work/$name.err") && code=0 || code=$?
    echo "$code" >"$work/$name.code"
}
run without
run with --dangerously-bypass-hook-trust

python3 - "$work" <<'PYTHON'
import pathlib, sys

work = pathlib.Path(sys.argv[1])
said = {name: {end: (work / f"{name}.{end}").read_text() for end in ("out", "err", "code")} for name in ("without", "with")}
for name, one in said.items():
    print(name, "the option: exit code", one["code"].strip())
    print("  the tool ran:", '"type":"command_execution"' in one["out"])
    print("  an event tells of the hook's verdict:", "PreToolUse" in one["out"], "- stderr:", "PreToolUse" in one["err"])
    print("  anything tells of a hook:", "hook" in one["out"] + one["err"])
assert said["without"]["code"] == said["with"]["code"] == "0\n"
assert '"type":"command_execution"' in said["without"]["out"] and "hook" not in said["without"]["out"] + said["without"]["err"]
assert '"type":"command_execution"' not in said["with"]["out"] and "PreToolUse" not in said["with"]["out"]
assert "blocked by PreToolUse hook: no" in said["with"]["err"]
PYTHON
# Seen with Node 20, 2026-11:
# without the option: exit code 0
#   the tool ran: True
#   an event tells of the hook's verdict: False - stderr: False
#   anything tells of a hook: False
# with the option: exit code 0
#   the tool ran: False
#   an event tells of the hook's verdict: False - stderr: True
#   anything tells of a hook: True
