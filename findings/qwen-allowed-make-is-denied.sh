#!/usr/bin/env bash
# Qwen Code 0.24.4, headless, `--allowed-tools "run_shell_command(make *)"`: `make` is denied all the same.
#
# Since its usual mode is `auto`, in which a model approves, rules that allow a command which can start others (`make`,
# `npm`, `cargo`, `python3`, `go` and some forty more, or the whole shell tool) are put aside when it starts, those of the
# command line too. Headless nobody can be asked, so the call is denied: the run ends with exit code 0, and neither
# stdout nor stderr says that a rule was dropped. A rule for `git` in the same place is kept. With
# `--approval-mode=default` the same rules count.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/task"
printf 'test:\n\t@echo made > made\n' >"$work/task/Makefile"
(cd "$work" && npm install --silent --no-fund --no-audit @qwen-code/qwen-code@0.24.4 >/dev/null)

# A service that has each conversation run the command in its prompt, once.
cat >"$work/server.py" <<'PYTHON'
import json, re, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = asked["messages"]
        found = re.search(r"RUN<(.*?)>", json.dumps(messages))
        delta, finish = {"role": "assistant", "content": "Done."}, "stop"
        if asked.get("tools") and found and messages[-1]["role"] != "tool":
            given = {"command": found[1], "description": "as asked", "is_background": False}
            function = {"name": "run_shell_command", "arguments": json.dumps(given)}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            delta, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m1"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        events = [
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
        ]
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data.encode())


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], file=open(sys.argv[1], "w"), flush=True)
server.serve_forever()
PYTHON
python3 "$work/server.py" "$work/port" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done

expect() {
    local expected=$1 command=$2 status=0 found
    shift 2
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" TERM=dumb OPENAI_API_KEY=none \
        OPENAI_BASE_URL="http://127.0.0.1:$(cat "$work/port")/v1" OPENAI_MODEL=m1 QWEN_CODE_NO_RELAUNCH=true \
        timeout 120 "$work/node_modules/.bin/qwen" --output-format stream-json "$@" <<<"RUN<$command>") \
        >"$work/out" 2>"$work/errors" || status=$?
    found=$(python3 - "$work/out" <<'PYTHON'
import json, sys
result = [json.loads(line) for line in open(sys.argv[1]) if '"type":"result"' in line][-1]
print("denied" if result["permission_denials"] else "run")
PYTHON
)
    printf '%-10s %-70s -> %s, exit %s\n' "$command" "$*" "$found" "$status"
    [ "$found $status" = "$expected 0" ] || { echo "expected: $expected, exit 0"; cat "$work/errors"; exit 1; }
    ! grep -qiE "dropped|ignored|put aside|stripped" "$work/errors" || { echo "it warned:"; cat "$work/errors"; exit 1; }
}

expect denied "make test" --allowed-tools "run_shell_command(make *)"
expect denied "make test" --allowed-tools "run_shell_command"
expect run "git init -q x" --allowed-tools "run_shell_command(git *)"
expect run "make test" --approval-mode=default --allowed-tools "run_shell_command(make *)"
[ -e "$work/task/made" ]

# Seen with Node 20, 2026-11:
# make test  --allowed-tools run_shell_command(make *)                              -> denied, exit 0
# make test  --allowed-tools run_shell_command                                      -> denied, exit 0
# git init -q x --allowed-tools run_shell_command(git *)                               -> run, exit 0
# make test  --approval-mode=default --allowed-tools run_shell_command(make *)      -> run, exit 0
