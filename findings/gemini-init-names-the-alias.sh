#!/usr/bin/env bash
# Gemini CLI 0.61.0, `-o stream-json`: the first event names the model as it was asked for, and never the one that runs.
#
# With `-m flash` the event `init` says "model":"flash" while the request goes to gemini-3.8-flash, and the error of a
# used-up daily quota is "You have exhausted your daily quota on this model." without a name. The last event does name
# it, but only as a key: `stats.models` has an entry, all zeros, for a model of which no request was answered. So which
# model is out of quota has to be read from the statistics of a run that used nothing.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home/.gemini" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @google/gemini-cli@0.61.0 >/dev/null)
echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' >"$work/home/.gemini/settings.json"

# A service that answers every request as the real one does when the day's quota of its model is used up.
cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        model = self.path.split("/models/")[1].split(":")[0]
        with open(sys.argv[1] + "/asked", "a") as asked:
            asked.write(model + "\n")
        violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaDimensions": {"model": model}}
        details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}]
        message = "You exceeded your current quota, please check your plan and billing details."
        error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
        body = json.dumps({"error": error}).encode()
        self.send_response(429)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
pathlib.Path(sys.argv[1], "port").write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/mock.py" "$work" &
mock=$!
until [ -s "$work/port" ]; do sleep 0.1; done

cd "$work/task"
env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat "$work/port")" \
    GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true \
    timeout 120 node "$work/node_modules/@google/gemini-cli/bundle/gemini.js" -p hello -y -m flash -o stream-json \
    </dev/null >"$work/events" 2>/dev/null || echo "exit code $?"

python3 - "$work" <<'PYTHON'
import json, pathlib, sys

work = pathlib.Path(sys.argv[1])
events = [json.loads(line) for line in (work / "events").read_text().splitlines()]
first, last = events[0], events[-1]
asked = (work / "asked").read_text().split()
print("asked for      flash")
print("init.model    ", first["model"])
print("requested     ", *asked)
print("error.message ", last["error"]["message"].splitlines()[0])
print("stats.models  ", last["stats"]["models"])
assert (first["type"], first["model"]) == ("init", "flash")
assert set(asked) == {"gemini-3.8-flash"}
assert "on this model" in last["error"]["message"] and asked[0] not in last["error"]["message"]
assert list(last["stats"]["models"]) == asked[:1]
assert last["stats"]["total_tokens"] == 0
PYTHON
# Seen with Node 20, 2026-11:
# exit code 173
# init.model     flash
# requested      gemini-3.8-flash
# error.message  [API Error: You have exhausted your daily quota on this model.]
# stats.models   {'gemini-3.8-flash': {'total_tokens': 0, 'input_tokens': 0, 'output_tokens': 0, 'cached': 0, 'input': 0}}
