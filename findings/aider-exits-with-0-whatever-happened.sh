#!/usr/bin/env bash
# Aider 0.86.2 (PyPI), `--yes-always --message`: the exit code is 0 however the run went, and yes does not mean always.
#
#   A refused API key:   exit 0, and nothing was done.
#   A command to run:    the model proposes `touch made` in a block of shell, and Aider asks "Run shell command?". This
#                        question alone is answered no: the command is printed as if it had run, but did not.
#   --auto-test:         the test command fails after each of four edits, and the run ends with "Only 3 reflections
#                        allowed, stopping."; exit 0, and each failing state has been committed to the branch.
#
# So neither the exit code nor a new commit says that work is done; run the tests again afterwards, as a check.
# Source: https://aider.chat/docs/config/options.html ("--yes-always: Always say yes to every confirmation"),
# https://aider.chat/docs/usage/lint-test.html.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet uv==0.13.9
"$work/venv/bin/uv" pip install --quiet --python "$work/venv/bin/python" aider-chat==0.86.2

# A service that answers with the text in a file, or refuses the key if there is none.
cat >"$work/server.py" <<'PYTHON'
import json, pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

work = pathlib.Path(sys.argv[1])


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        text = (work / "answer").read_text()
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        answer = {"id": "c", "object": "chat.completion", "created": 0, "model": "m1"}
        answer |= {"choices": choices, "usage": usage}
        refusal = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
        self.send_response(200 if text else 401)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer if text else refusal).encode())


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
(work / "port").write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/server.py" "$work" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done

run() {
    local expected=$1 code=0 made=no commits
    shift
    rm -rf "$work/task" "$work/home"
    mkdir -p "$work/task" "$work/home"
    git -C "$work/task" init --quiet
    git -C "$work/task" config user.name test
    git -C "$work/task" config user.email test@example.org
    git -C "$work/task" commit --quiet --allow-empty --message first
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" TERM=dumb OPENAI_API_KEY=none \
        OPENAI_API_BASE="http://127.0.0.1:$(cat "$work/port")/v1" LITELLM_LOCAL_MODEL_COST_MAP=True \
        HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 timeout 300 "$work/venv/bin/aider" --model openai/m1 \
        --no-show-model-warnings --no-check-update --analytics-disable --no-gitignore --no-pretty --no-stream \
        --edit-format diff --yes-always "$@" --message "Do it." </dev/null >"$work/out" 2>&1) || code=$?
    [ ! -e "$work/task/made" ] || made=yes
    commits=$(($(git -C "$work/task" rev-list --count HEAD) - 1))
    echo "exit $code, made: $made, commits: $commits"
    [ "exit $code, made: $made, commits: $commits" = "$expected" ] || { tail -n 40 "$work/out"; exit 1; }
}

: >"$work/answer"
run "exit 0, made: no, commits: 0"
grep -q AuthenticationError "$work/out"

printf '%s\n' 'Run this:' '' '```bash' 'touch made' '```' >"$work/answer"
run "exit 0, made: no, commits: 0"
[ "$(grep -cx 'touch made' "$work/out")" = 2 ] # in the answer, and where its output would follow

printf '%s\n' 'a.txt' '```' '<<<<<<< SEARCH' '=======' 'hello' '>>>>>>> REPLACE' '```' >"$work/answer"
run "exit 0, made: no, commits: 4" --auto-test --test-cmd false
grep -x "Only 3 reflections allowed, stopping." "$work/out"

# Seen with Python 3.11, 2026-11:
# exit 0, made: no, commits: 0
# exit 0, made: no, commits: 0
# exit 0, made: no, commits: 4
# Only 3 reflections allowed, stopping.
