#!/usr/bin/env bash
# Gemini CLI 0.61.0, without a terminal: a command file of the project is passed over if the CLI has a command of that
# name, also one of no use there, and the prompt in the file never reaches the model.
#
# `.gemini/commands/NAME.toml` makes /NAME a command, and `gemini -p "/review 12"` sends the prompt of review.toml. A
# file plan.toml, init.toml or tools.toml changes nothing. What the model gets instead differs by name: of "/plan 12"
# the number alone; of "/init 12" the CLI's order to analyse the folder and write GEMINI.md; of "/tools 12" these nine
# characters. Each exits with 0, and neither output nor stderr names the file. The documentation orders the commands of
# a project before those of the user, and does not speak of the CLI's own, of which it has some forty.
# Source: https://geminicli.com/docs/cli/custom-commands (file locations and precedence)
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home/.gemini" "$work/task/.gemini/commands"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @google/gemini-cli@0.61.0 >/dev/null)
echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' >"$work/home/.gemini/settings.json"

# A service that answers every request, and keeps the last words that were sent to it.
cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        (work / "asked").write_text(asked["contents"][-1]["parts"][-1]["text"])
        content = {"role": "model", "parts": [{"text": "Done."}]}
        usage = {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15}
        chunk = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\r\n\r\n".encode())

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
for name in review plan init tools; do
    printf 'prompt = "This is the file %s, for {{args}}."\n' "$name" >".gemini/commands/$name.toml"
    env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" GEMINI_API_KEY=none \
        GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat "$work/port")" \
        GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true \
        timeout 120 node "$work/node_modules/@google/gemini-cli/bundle/gemini.js" -p "/$name 12" -m gemini-3.8-flash \
        -o stream-json </dev/null >"$work/$name.events" 2>"$work/$name.stderr" && code=0 || code=$?
    echo "$code" >"$work/$name.code"
    mv "$work/asked" "$work/$name.asked"
done

python3 - "$work" <<'PYTHON'
import pathlib, sys

work = pathlib.Path(sys.argv[1])
begins = {"review": "This is the file review, for 12.", "plan": "12", "tools": "/tools 12", "init": "You are an AI agent"}
for name in ("review", "plan", "init", "tools"):
    asked, code = (work / f"{name}.asked").read_text().strip(), (work / f"{name}.code").read_text().strip()
    print(f"/{name} 12: exit {code}, the model gets {asked[:60]!r}{'...' if asked[60:] else ''}")
    assert code == "0"
    assert asked == begins[name] or (name == "init" and asked.startswith(begins[name])), "it has changed"
    if name != "review":
        said = (work / f"{name}.events").read_text() + (work / f"{name}.stderr").read_text()
        assert "This is the file" not in asked + said and f"{name}.toml" not in said, "it has changed"
PYTHON
# Seen with Node 20, twice, 2026-11:
# /review 12: exit 0, the model gets 'This is the file review, for 12.'
# /plan 12: exit 0, the model gets '12'
# /init 12: exit 0, the model gets 'You are an AI agent that brings the power of Gemini directly'...
# /tools 12: exit 0, the model gets '/tools 12'
