#!/usr/bin/env bash
# Hermes Agent 0.19.0 (PyPI): a refused key, an outage and an empty answer are all successes, headless and over ACP.
#
# `hermes -z` "runs a single prompt and prints only the final response". If the key is refused, that response is "HTTP
# 401: Incorrect API key provided", on stdout, with exit code 0 and nothing on stderr; after three tries at a service
# that is down, "API call failed after 3 retries: ..."; after four empty answers, "No reply: ...". Over the Agent Client
# Protocol, the same text comes as the agent's message, and the turn ends with end_turn. There one thing tells them
# apart: a turn that failed reports no usage, but the empty answers do.
#
# So a script that takes the exit code for success files the error as the answer.
# Source: https://hermes-agent.nousresearch.com/docs/user-guide/cli, https://agentclientprotocol.com/protocol/prompt-turn.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
"$work/venv/bin/uv" pip install --quiet --python "$work/venv/bin/python" 'hermes-agent[acp]==0.19.0'

# A service that answers as the file says: a status, and the text of an answer.
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
        status, _, text = (work / "answer").read_text().partition(" ")
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m1"}
        choices = [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        data = f"data: {json.dumps({**chunk, 'choices': choices, 'usage': usage})}\n\ndata: [DONE]\n\n".encode()
        if status != "200":
            data = json.dumps({"error": {"message": text, "type": "x", "code": "y"}}).encode()
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

# One prompt over ACP: prints how its turn ended, whether with usage, and what the agent said.
cat >"$work/turn.py" <<'PYTHON'
import json, os, subprocess, sys

agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
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
usage = "with" if end["result"].get("usage") else "without"
print(f"{end['result']['stopReason']}, {usage} usage: {said.strip()[:60]}")
PYTHON

bare() {
    env -i PATH="$work/venv/bin:$PATH" HOME="$work/home" TMPDIR="$work" TERM=dumb LANG=C.UTF-8 \
        HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 timeout 280 "$@"
}
mkdir -p "$work/home/.hermes" "$work/task"
printf 'model: {default: m1, provider: custom, base_url: "http://127.0.0.1:%s/v1", api_key: none}\n' \
    "$(cat "$work/port")" >"$work/home/.hermes/config.yaml"
cd "$work/task"
for answer in "200 Hello." "401 Incorrect API key provided" "500 It did not work." "200 "; do
    printf %s "$answer" >"$work/answer"
    code=0
    bare hermes -z "Say hello." </dev/null >"$work/out" 2>"$work/errors" || code=$?
    [ ! -s "$work/errors" ] || { cat "$work/errors"; exit 1; }
    echo "$answer -> exit $code: $(tr '\n' ' ' <"$work/out" | cut -c1-80)"
    echo "    acp: $(bare "$work/venv/bin/python" "$work/turn.py" hermes acp)"
done | sed 's/ *$//' | tee "$work/seen"
# Seen with Python 3.11, twice, 2026-11:
diff - "$work/seen" <<'SEEN'
200 Hello. -> exit 0: Hello.
    acp: end_turn, with usage: Hello.
401 Incorrect API key provided -> exit 0: HTTP 401: Incorrect API key provided
    acp: end_turn, without usage: HTTP 401: Incorrect API key provided
500 It did not work. -> exit 0: API call failed after 3 retries: HTTP 500: It did not work.
    acp: end_turn, without usage: API call failed after 3 retries: HTTP 500: It did not work.
200  -> exit 0: ⚠️ No reply: the model returned empty content after retries and any fallback
    acp: end_turn, with usage: ⚠️ No reply: the model returned empty content after retries
SEEN
