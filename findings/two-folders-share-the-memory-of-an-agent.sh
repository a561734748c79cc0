#!/usr/bin/env bash
# Claude Code 2.1.330 and Qwen Code 0.24.4 (npm): what an agent was to remember of one project stands in its prompt in
# another, if the paths of the two differ only in characters other than ASCII letters and digits.
#
# Both keep a MEMORY.md for each project, and put it at the head of each conversation, headless too. Its folder is named
# after the project's path, in which each other character has become "-". So the repositories shop.web, shop-web and
# shop_web have one memory, and so have 東京 and 大阪, or all folders whose names have two letters of any other script.
# What is learnt in one (how to test, what never to touch, which branch to push) is an instruction in the others, and
# what an agent corrects there changes it here. Sessions stand in the same folder, but --continue looks at the path that
# each has written down, and is not mixed up. Nothing is printed. CLAUDE_CODE_DISABLE_AUTO_MEMORY=1 turns it off in
# Claude Code; or keep a HOME for each project.
# Source: https://code.claude.com/docs/en/memory ("Each project gets its own memory directory"),
# https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings
set -euo pipefail
work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @anthropic-ai/claude-code@2.1.330 \
    @qwen-code/qwen-code@0.24.4 >/dev/null)

# A service that speaks both protocols, answers "Done." and keeps the last request that has a conversation in it.
cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])
usage = {"input_tokens": 10, "output_tokens": 3}
message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
text = {"type": "text_delta", "text": "Done."}
ANTHROPIC = [
    {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": text},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
    {"type": "message_stop"},
]
choice = {"index": 0, "delta": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}
OPENAI = [{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}]

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        events = ANTHROPIC if "messages" in self.path else OPENAI
        if b"Say hello." in body:
            with (work / "asked").open("ab") as file:
                file.write(body + b"\n")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n".encode())
        if events is OPENAI:
            self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
(work / "port").write_text(str(server.server_port))
server.serve_forever()
PYTHON
python3 "$work/mock.py" "$work" &
mock=$!
until [ -s "$work/port" ]; do sleep 0.1; done
url="http://127.0.0.1:$(cat "$work/port")"

run() { # PROGRAM FOLDER: what it sends is in asked
    rm -f "$work/asked"
    local program=(node "$work/node_modules/@qwen-code/qwen-code/cli.js" --auth-type openai -p "Say hello.")
    [ "$1" = qwen ] ||
        program=(node "$work/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs" -p "Say hello.")
    mkdir -p "$work/$1/$2" && cd "$work/$1/$2" && git init --quiet .
    env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" ANTHROPIC_BASE_URL="$url" ANTHROPIC_API_KEY=none \
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 OPENAI_BASE_URL="$url/v1" OPENAI_API_KEY=none OPENAI_MODEL=m \
        timeout 120 "${program[@]}" </dev/null >/dev/null 2>&1
}

for program in claude qwen; do
    for pair in "shop.web shop_web" "東京 大阪" "shop-web shop-app"; do
        run "$program" "${pair% *}"
        # What the agent would write down in the first folder stands where its prompt tells it to.
        memory=$(grep --only-matching --perl-regexp '/[^"\\` ]*/projects/[^"\\` ]*/memory(?=/)' "$work/asked" |
            head -n 1)
        mkdir -p "$memory" && echo "- Push to the branch of ${pair% *}." >"$memory/MEMORY.md"
        run "$program" "${pair#* }"
        said=$(grep --only-matching 'Push to the branch of [^.]*\(.web\)\?' "$work/asked" | sort --unique | xargs) || true
        echo "$program in ${pair#* }: ${said:-nothing}"
        rm -r "$memory"
    done
done | tee "$work/seen"
diff "$work/seen" - <<'TXT' || { echo "it has changed" && exit 1; }
claude in shop_web: Push to the branch of shop.web
claude in 大阪: Push to the branch of 東京
claude in shop-app: nothing
qwen in shop_web: Push to the branch of shop.web
qwen in 大阪: Push to the branch of 東京
qwen in shop-app: nothing
TXT
