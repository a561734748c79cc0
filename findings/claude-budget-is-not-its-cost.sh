#!/usr/bin/env bash
# Claude Code 2.1.330, `-p --max-budget-usd`: the budget does not count what the program reports as its cost.
#
# "total_cost_usd" in the last event of a resumed run is the sum over the whole session, and so are the tokens in
# "modelUsage". The budget counts this run alone: a resumed run whose total is nearly twice its --max-budget-usd is a
# success, so a session that is given the same budget each time it is resumed has none. And where a run crosses its
# budget with its last word, it is no success: "error_max_budget_usd", exit code 1, no "result", though the model had
# ended its turn and the whole answer stands in the events before; and "usage" says that no token was used.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @anthropic-ai/claude-code@2.1.330 >/dev/null)

cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        message = {"id": "m", "type": "message", "role": "assistant", "model": asked.get("model"), "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 5000, "output_tokens": 1}}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 500}},
            {"type": "message_stop"},
        ):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
(work / "port").write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/mock.py" "$work" &
mock=$!
until [ -s "$work/port" ]; do sleep 0.1; done

run() { # options: prints the outcome, and sets cost to what it reports
    local code=0
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" ANTHROPIC_API_KEY=none \
        ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$work/port")" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        timeout 120 node "$work/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs" -p --output-format stream-json \
        --verbose --model sonnet "$@" >"$work/events" 2>/dev/null <<<"hello") || code=$?
    cost=$(python3 - "$work" "$code" <<'PYTHON'
import json, pathlib, sys

work, code = pathlib.Path(sys.argv[1]), sys.argv[2]
events = [json.loads(line) for line in (work / "events").read_text().splitlines()]
last, answer = events[-1], any(event["type"] == "assistant" and "Done." in str(event) for event in events)
models = sum(one["inputTokens"] for one in last["modelUsage"].values())
seen = f"exit {code} {last['subtype']}, result {last.get('result')}, answered {answer}, "
seen += f"usage.input_tokens {last['usage']['input_tokens']}, modelUsage.inputTokens {models}"
(work / "seen").write_text(seen)
print(last["total_cost_usd"])
PYTHON
)
}
times() { python3 -c "print(f'{$1 * $2:.6f}')"; }
expect() { # outcome, total in costs of the first run; the budget in the same, options
    local expected=$1 total=$2 budget=$3
    shift 3
    run --max-budget-usd "$(times "$first" "$budget")" "$@"
    echo "budget $budget, $1: total $(python3 -c "print(round($cost / $first, 3))"), $(cat "$work/seen")"
    [ "$(cat "$work/seen")" = "$expected" ] && python3 -c "assert abs($cost / $first - $total) < 0.01"
}

id=11111111-2222-4333-8444-555555555555
run --session-id $id
first=$cost
echo "no budget: total 1, $(cat "$work/seen")"
expect "exit 0 success, result Done., answered True, usage.input_tokens 5000, modelUsage.inputTokens 10000" \
    2 1.1 --resume $id
expect "exit 0 success, result Done., answered True, usage.input_tokens 5000, modelUsage.inputTokens 15000" \
    3 1.1 --resume $id
expect "exit 1 error_max_budget_usd, result None, answered True, usage.input_tokens 0, modelUsage.inputTokens 5000" \
    1 0.9 --session-id ${id/1/2}
# Seen with Node 20, twice, 2026-11:
# no budget: total 1, exit 0 success, result Done., answered True, usage.input_tokens 5000, modelUsage.inputTokens 5000
# budget 1.1, --resume: total 2.0, exit 0 success, result Done., answered True, usage.input_tokens 5000,
#     modelUsage.inputTokens 10000
# budget 1.1, --resume: total 3.0, exit 0 success, ...
# budget 0.9, --session-id: total 1.0, exit 1 error_max_budget_usd, result None, answered True, usage.input_tokens 0,
#     modelUsage.inputTokens 5000
