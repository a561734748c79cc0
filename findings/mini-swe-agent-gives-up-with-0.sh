#!/usr/bin/env bash
# mini-swe-agent 2.4.6 (PyPI), `mini --yolo --exit-immediately`: a run that was given up exits with 0, like one that
# submitted its work.
#
#   RepeatedFormatError:  the model answers in words, three times, here with a question; nothing was done
#   LimitsExceeded:       the limit on cost was reached after the first command
#   Submitted:            the model said that it has finished
#
# All three exit with 0 and save a trajectory. The word for giving up is alone on a line of stdout, after "Exit:", and
# info.exit_status in the file of --output has all three. An error of the service exits with 1. So a script that takes
# exit code 0 for done also takes the answer "Which greeting?", which nobody reads.
# Source: https://mini-swe-agent.com/latest/usage/mini/, minisweagent/agents/default.py.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
"$work/venv/bin/uv" pip install --quiet --python "$work/venv/bin/python" mini-swe-agent==2.4.6

# A service whose model runs the command in the file, or asks a question if there is none.
cat >"$work/server.py" <<'PYTHON'
import json, pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

work = pathlib.Path(sys.argv[1])


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        command = (work / "command").read_text()
        message = {"role": "assistant", "content": "Which greeting?"}
        if command:
            function = {"name": "bash", "arguments": json.dumps({"command": command})}
            message = {"role": "assistant", "content": None}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        finish = "tool_calls" if command else "stop"
        answer = {"id": "c", "object": "chat.completion", "created": 0, "model": "gpt-4o"}
        answer["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
        answer["usage"] = {"prompt_tokens": 100_000, "completion_tokens": 5, "total_tokens": 100_005}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
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

run() {
    local name=$1 command=$2 code=0 status made=no
    shift 2
    rm -rf "$work/home" "$work/task"
    mkdir -p "$work/home" "$work/task"
    printf %s "$command" >"$work/command"
    (cd "$work/task" && env -i PATH="$work/venv/bin:$PATH" HOME="$work/home" TMPDIR="$work" TERM=dumb LANG=C.UTF-8 \
        OPENAI_API_KEY=none OPENAI_API_BASE="http://127.0.0.1:$(cat "$work/port")/v1" MSWEA_CONFIGURED=true \
        LITELLM_LOCAL_MODEL_COST_MAP=True HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 timeout 240 mini \
        --yolo --exit-immediately --model openai/gpt-4o --output "$work/trajectory.json" --task "Write a greeting." \
        "$@" </dev/null >"$work/out" 2>"$work/errors") || code=$?
    status=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["info"]["exit_status"])' \
        "$work/trajectory.json") || { tail -n 5 "$work/errors"; exit 1; }
    [ "$status" = Submitted ] || grep -qx "$status" "$work/out"
    [ ! -e "$work/task/made" ] || made=yes
    echo "$name: exit $code, $status, made: $made"
}
{
    run "done" "touch made; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    run "a question" ""
    run "a limit on cost" "touch made" --cost-limit 0.1
} | tee "$work/seen"
# Seen with Python 3.11, twice, 2026-11:
diff - "$work/seen" <<'SEEN'
done: exit 0, Submitted, made: yes
a question: exit 0, RepeatedFormatError, made: no
a limit on cost: exit 0, LimitsExceeded, made: yes
SEEN
