#!/usr/bin/env bash
# Grok 0.2.111 (grok-cli-bin, PyPI): it waits 15 seconds for a command of its model, and not 120 as its tool says.
#
# The description of `run_terminal_command` says "Default: 120000. If not specified, commands exceeding the default
# timeout will be automatically backgrounded", and its guide "foreground command timeout in seconds (default: 120)".
# Over the Agent Client Protocol, a command is moved to the background after 15 seconds, with the message that it
# "exceeded the default timeout". If the model then ends its turn, that turn is a success (`end_turn`) although the
# command still runs, and it goes on when the client closes the program's input and the program has exited. Only a
# notification outside the protocol says so (`_x.ai/task_backgrounded`). With `-p`, the program waits for the command.
#
# So a client has to keep count of these notifications, and to stay until `_x.ai/task_completed`.
# Source: https://docs.x.ai/build/overview, and docs/user-guide in the program's home.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check grok-cli-bin==0.2.111
grok=$(echo "$work"/venv/lib/python3*/site-packages/grok_cli_bin/bin/grok)
chmod +x "$grok"
mkdir -p "$work/home/.grok" "$work/task"

# A service whose model runs a command of 25 seconds, and has nothing more to do then.
cat >"$work/server.py" <<'PYTHON'
import json, pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

work = pathlib.Path(sys.argv[1])
COMMAND = {"command": "sleep 25; touch finished", "description": "build"}


class Model(BaseHTTPRequestHandler):
    log_message = lambda self, *_: None

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tools = {tool["function"]["name"]: tool["function"] for tool in asked.get("tools", [])}
        delta, reason = {"role": "assistant", "content": "Done."}, "stop"
        if "run_terminal_command" in tools:
            (work / "tool").write_text(json.dumps(tools["run_terminal_command"]))
            if asked["messages"][-1]["role"] == "user" and "tool_calls" not in json.dumps(asked["messages"]):
                call = {"index": 0, "id": "c1", "type": "function"}
                call["function"] = {"name": "run_terminal_command", "arguments": json.dumps(COMMAND)}
                delta, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m1", "choices": choices}
        chunk["usage"] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        data = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
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
cat >"$work/home/.grok/config.toml" <<TOML
models.default = "m1"
model.m1 = {model = "m1", base_url = "http://127.0.0.1:$(cat "$work/port")/v1", api_key = "fake", name = "M1"}
TOML

# One prompt over ACP: prints how its turn ended, and what it says of background work.
cat >"$work/turn.py" <<'PYTHON'
import json, os, subprocess, sys

agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def send(message):
    agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    agent.stdin.flush()


def ask(number, method, **params):
    send({"id": number, "method": method, "params": params})
    for line in agent.stdout:
        heard = json.loads(line)
        if heard.get("method") == "_x.ai/task_backgrounded":
            print("notification", heard["method"])
        if heard.get("method") == "session/request_permission":
            allowed = {"outcome": {"outcome": "selected", "optionId": "allow-once"}}
            send({"id": heard["id"], "result": allowed})
        if heard.get("id") == number and "method" not in heard:
            return heard["result"]


ask(1, "initialize", protocolVersion=1, clientCapabilities={})
session = ask(2, "session/new", cwd=os.getcwd(), mcpServers=[])["sessionId"]
print(ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Build it."}])["stopReason"])
agent.stdin.close()
agent.wait()
PYTHON
run() {
    env -i HOME="$work/home" PATH="$PATH" GROK_DISABLE_AUTOUPDATER=1 NO_PROXY=127.0.0.1 \
        HTTPS_PROXY=http://127.0.0.1:9 "$@" 2>/dev/null
}
finished() { [ -e finished ] && echo finished || echo "not finished"; }
cd "$work/task"
over_acp=$(run python3 "$work/turn.py" "$grok" agent stdio; finished; sleep 30; finished)
rm -f finished
headless=$(run "$grok" -p "Build it." --always-approve; finished)

python3 - "$work/tool" "$over_acp" "$headless" <<'PYTHON'
import json, pathlib, sys
tool, over_acp, headless = json.loads(pathlib.Path(sys.argv[1]).read_text()), *sys.argv[2:]
default = tool["parameters"]["properties"]["timeout"]["default"]
print(f"the tool's default timeout: {default} ms")
print(f"over ACP: {over_acp.splitlines()}\nwith -p: {headless.splitlines()}")
assert default == 120_000
ended = ["notification _x.ai/task_backgrounded", "end_turn", "not finished", "finished"]
assert over_acp.splitlines() == ended
assert headless.splitlines() == ["Done.", "finished"]
PYTHON
