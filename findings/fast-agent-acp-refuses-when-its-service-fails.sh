#!/usr/bin/env bash
# fast-agent 0.10.48 (PyPI `fast-agent-mcp`), over the Agent Client Protocol: a refused key, a limit and an outage end
# the turn with the stop reason "refusal", which stands for a model that declines; the error is the agent's message.
#
# By the protocol, "refusal" means that the agent refused to continue, and that the prompt will not be part of the next
# one. A client that shows or counts it as that, and does not retry, stops at the first 429. A filtered answer
# (finish_reason content_filter), which is a refusal, ends with the same reason. Only the text tells them apart: it
# begins with "I hit an internal error while calling the model" and has the status in parentheses. Before that, each
# request is made three times by fast-agent, and each of these three times by the OpenAI SDK if it is a 429 or a 500.
# Source: https://agentclientprotocol.com/protocol/prompt-turn#stop-reasons. Needs Python 3.12.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/uv"
"$work/uv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
PYENV_VERSION=3.12 python3.12 -m venv --without-pip "$work/venv"
"$work/uv/bin/uv" pip install --quiet --python "$work/venv/bin/python" fast-agent-mcp==0.10.48

# A service that answers as the file says: a status, and how the answer ended. It counts requests.
cat >"$work/server.py" <<'PYTHON'
import json, pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

work = pathlib.Path(sys.argv[1])


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        with (work / "asked").open("a") as asked:
            asked.write("x")
        status, finish = (work / "answer").read_text().split()
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m1"}
        choices = [{"index": 0, "delta": {"role": "assistant", "content": "Hello."}, "finish_reason": finish}]
        data = f"data: {json.dumps({**chunk, 'choices': choices})}\n\ndata: [DONE]\n\n".encode()
        if status != "200":
            data = json.dumps({"error": {"message": "It did not work.", "type": "x", "code": "y"}}).encode()
        self.send_response(int(status))
        self.send_header("content-type", "text/event-stream" if status == "200" else "application/json")
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

# One prompt: prints how its turn ended, and what the agent said.
cat >"$work/turn.py" <<'PYTHON'
import json, os, subprocess

command = ["fast-agent-acp", "--model", "generic.m1"]
errors = open(os.environ["TMPDIR"] + "/errors", "w")
agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
said = ""


def ask(number, method, **params):
    global said
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    agent.stdin.write(json.dumps(request).encode() + b"\n")
    agent.stdin.flush()
    for line in agent.stdout:
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            return message
        update = message.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            said += update["content"]["text"]


ask(1, "initialize", protocolVersion=1, clientCapabilities={})
session = ask(2, "session/new", cwd=os.getcwd(), mcpServers=[])["result"]["sessionId"]
end = ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Say hello."}])
agent.kill()
print(f"{end['result']['stopReason']}: {said.strip()[:46]}")
PYTHON

mkdir -p "$work/home" "$work/task"
cd "$work/task"
for answer in "200 stop" "200 content_filter" "401 x" "429 x" "500 x"; do
    printf %s "$answer" >"$work/answer"
    : >"$work/asked"
    seen=$(env -i PATH="$work/venv/bin:$PATH" HOME="$work/home" TMPDIR="$work" TERM=dumb LANG=C.UTF-8 \
        GENERIC_API_KEY=none GENERIC_BASE_URL="http://127.0.0.1:$(cat "$work/port")/v1" \
        HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 timeout 280 "$work/venv/bin/python" "$work/turn.py") || {
        tail "$work/errors"
        exit 1
    }
    echo "$answer, $(wc -c <"$work/asked") requests -> $seen"
done | tee "$work/seen"
# Seen with Python 3.12, twice, 2026-11:
diff - "$work/seen" <<'SEEN'
200 stop, 1 requests -> end_turn: Hello.
200 content_filter, 1 requests -> refusal: Hello.
401 x, 3 requests -> refusal: I hit an internal error while calling the mode
429 x, 9 requests -> refusal: I hit an internal error while calling the mode
500 x, 9 requests -> refusal: I hit an internal error while calling the mode
SEEN
