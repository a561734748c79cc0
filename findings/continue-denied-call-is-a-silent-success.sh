#!/usr/bin/env bash
# Continue CLI 1.5.47 (npm), `cn -p`: a call of a tool that is denied ends the run as a success without a word.
#
# In a headless run, `--exclude TOOL` and `--ask TOOL` both keep a tool from the model, as nobody is there to be asked. A
# model that calls it all the same is given no error to go on with: the run ends there, with exit code 0 and nothing on
# stdout and stderr. So a denied call looks like work that is done, and neither the exit code nor the output tells them
# apart. A run in which the tool is permitted goes on to the model's next answer.
# Source: https://docs.continue.dev/cli/tool-permissions ("Defaults").
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @continuedev/cli@1.5.47 >/dev/null)

# A service whose model runs one command in each conversation, and then has nothing more to do. It keeps the names of
# the tools that it was offered.
cat >"$work/server.py" <<'PYTHON'
import json, pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

work = pathlib.Path(sys.argv[1])


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        (work / "offered").write_text(" ".join(tool["function"]["name"] for tool in request["tools"]))
        delta, finish = {"role": "assistant", "content": "Done."}, "stop"
        if request["messages"][-1]["role"] != "tool":
            function = {"name": "Bash", "arguments": json.dumps({"command": "touch made"})}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            delta, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m1"}
        choices = [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": finish}]
        lines = [f"data: {json.dumps({**chunk, 'choices': [{'index': 0, **choice}]})}\n\n" for choice in choices]
        data = ("".join(lines) + "data: [DONE]\n\n").encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
(work / "port").write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/server.py" "$work" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done
cat >"$work/config.yaml" <<YAML
name: test
version: 0.0.1
schema: v1
models:
  - {name: m1, provider: openai, model: m1, apiKey: none, apiBase: "http://127.0.0.1:$(cat "$work/port")/v1"}
YAML

expect() {
    local expected=$1 code=0 ran=denied answer
    shift
    rm -rf "$work/home" "$work/task"
    mkdir -p "$work/home" "$work/task"
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" CONTINUE_TELEMETRY_ENABLED=0 \
        HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 timeout 120 node \
        "$work/node_modules/@continuedev/cli/dist/cn.js" --config "$work/config.yaml" "$@" -p "Say hello." \
        </dev/null >"$work/out" 2>"$work/errors") || code=$?
    [ ! -e "$work/task/made" ] || ran=run
    ! grep -qw Bash "$work/offered" || ran="$ran, offered"
    answer=$(tr -d '\n' <"$work/out")
    printf '%-15s -> %s; exit %s, answer "%s"\n' "${*:-(no option)}" "$ran" "$code" "$answer"
    [ "$ran, $code, $answer" = "$expected" ] && [ ! -s "$work/errors" ] || { cat "$work/errors"; exit 1; }
}

expect "run, offered, 0, Done." --allow Bash
expect "denied, 0, " --exclude Bash
expect "denied, 0, " --ask Bash

# Seen with Node 20, 2026-11:
# --allow Bash    -> run, offered; exit 0, answer "Done."
# --exclude Bash  -> denied; exit 0, answer ""
# --ask Bash      -> denied; exit 0, answer ""
