#!/usr/bin/env bash
# Hermes Agent 0.19.0 (PyPI), over the Agent Client Protocol: a session that is loaded asks the endpoint, and the model,
# with which it was begun, whatever the configuration says by then.
#
# A session is resumed in a new process after the service has moved to another port and model, as when a proxy is
# replaced. A new session goes to the new address; the loaded one goes to the old address for the old model.
# If nothing listens there any more, its turn ends with end_turn and "Connection error." as the message.
#
# So after a change of base_url, each earlier session goes on as before, or fails for ever if the old service is gone.
# Begin new sessions after such a change.
# Source: https://hermes-agent.nousresearch.com/docs/user-guide/configuration, acp_adapter/session.py.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
"$work/venv/bin/uv" pip install --quiet --python "$work/venv/bin/python" 'hermes-agent[acp]==0.19.0'

# Two services at two ports, which answer with who was asked, and for which model.
cat >"$work/server.py" <<'PYTHON'
import json, pathlib, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

work, servers = pathlib.Path(sys.argv[1]), {}


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/chat/completions"):
            return self.send_error(404)
        text = f"the {servers[self.server.server_port]} service, {request['model']}"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m1"}
        choices = [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        data = f"data: {json.dumps({**chunk, 'choices': choices, 'usage': usage})}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


for name in ("old", "new"):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    servers[server.server_port] = name
    threading.Thread(target=server.serve_forever).start()
    (work / f"{name}.port").write_text(str(server.server_port))
PYTHON
python3 "$work/server.py" "$work" &
server=$!
until [ -s "$work/new.port" ]; do sleep 0.1; done

# One prompt, in a new session or in the given one: prints the session, and what the agent said.
cat >"$work/turn.py" <<'PYTHON'
import json, os, subprocess, sys

pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
agent, said, place = subprocess.Popen(["hermes", "acp"], **pipes), "", {"cwd": os.getcwd(), "mcpServers": []}


def ask(number, method, **params):
    global said
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    agent.stdin.write(json.dumps(request).encode() + b"\n")
    agent.stdin.flush()
    for line in agent.stdout:
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            return message["result"]
        update = message.get("params", {}).get("update", {})
        if number == 3 and update.get("sessionUpdate") == "agent_message_chunk":
            said += update["content"]["text"]


ask(1, "initialize", protocolVersion=1, clientCapabilities={})
session = next(iter(sys.argv[1:]), None)
if session:
    ask(2, "session/load", sessionId=session, **place)
else:
    session = ask(2, "session/new", **place)["sessionId"]
ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Say hello."}])
agent.kill()
print(session, said.strip())
PYTHON

turn() {
    env -i PATH="$work/venv/bin:$PATH" HOME="$work/home" TMPDIR="$work" TERM=dumb LANG=C.UTF-8 \
        HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 timeout 280 "$work/venv/bin/python" "$work/turn.py" "$@"
}
configure() {
    printf 'model: {default: %s-model, provider: custom, base_url: "http://127.0.0.1:%s/v1", api_key: a-key}\n' \
        "$1" "$(cat "$work/$1.port")" >"$work/home/.hermes/config.yaml"
}
mkdir -p "$work/home/.hermes" "$work/task"
cd "$work/task"
{
    configure old
    read -r session answer <<<"$(turn)" && echo "begun: $answer"
    configure new
    read -r _ answer <<<"$(turn "$session")" && echo "loaded after the change: $answer"
    read -r _ answer <<<"$(turn)" && echo "a new one: $answer"
} | tee "$work/seen"
# Seen with Python 3.11, twice, 2026-11:
diff - "$work/seen" <<'SEEN'
begun: the old service, old-model
loaded after the change: the old service, old-model
a new one: the new service, new-model
SEEN
