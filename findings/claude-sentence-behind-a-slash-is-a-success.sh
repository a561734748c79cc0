#!/usr/bin/env bash
# Claude Code 2.1.330, `-p`, the prompt on standard input: whether a sentence that begins with a slash reaches the model
# depends on its first word, and where it does not, the run is a success.
#
# "/login redirects twice, fix it" is taken for the command /login, which a headless run does not have. Nothing is asked
# of any model, as the service here does not even listen; and yet the exit code is 0, and the last event says
# "subtype":"success", "is_error":false, with "/login isn't available in this environment." as the answer. With
# "/model names are wrong" the rest of the sentence is looked up as a model, and the answer, a network error, is a
# success as well; "/clear the cache" succeeds without a word. "/etc/hosts is wrong" and "/notes are wrong" name no
# command: they are prompts, and fail as the service cannot be reached. What tells the two apart is "num_turns":0. One
# line before the slash makes each of them a prompt. Qwen Code 0.24.4 does the same for /clear.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @anthropic-ai/claude-code@2.1.330 >/dev/null)

expect() { # the exit code, is_error and num_turns; the prompt
    local expected=$1 code=0 seen
    printf '%s' "$2" >"$work/prompt"
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" ANTHROPIC_API_KEY=none \
        ANTHROPIC_BASE_URL=http://127.0.0.1:9 CLAUDE_CODE_MAX_RETRIES=0 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        timeout 120 node "$work/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs" -p --output-format stream-json \
        --verbose <"$work/prompt" >"$work/events" 2>/dev/null) || code=$?
    seen="$code $(python3 - "$work/events" <<'PYTHON'
import json, sys

result = [event for event in map(json.loads, open(sys.argv[1])) if event["type"] == "result"][-1]
print(result["is_error"], result["num_turns"], "|", result["result"].splitlines()[:1])
PYTHON
)"
    printf '%-38q -> exit, is_error, num_turns: %s\n' "$2" "$seen"
    [ "${seen%% |*}" = "$expected" ] || { echo "expected: $expected"; exit 1; }
}

expect "0 False 0" "/login redirects twice, fix it"
expect "0 False 0" "/status of orders is wrong"
expect "0 False 0" "/model names are wrong"
expect "0 False 0" "/clear the cache"
expect "1 True 1" "/etc/hosts is wrong"
expect "1 True 1" "/notes are wrong"
expect "1 True 1" $'This is the task:\n\n/login redirects twice, fix it'

# Seen with Node 20, twice, 2026-11:
# /login redirects twice, fix it -> exit, is_error, num_turns: 0 False 0 |
#     ["/login isn't available in this environment."]
# /status of orders is wrong -> exit, is_error, num_turns: 0 False 0 |
#     ["/status isn't available in this environment."]
# /model names are wrong -> exit, is_error, num_turns: 0 False 0 |
#     ['Network error. Please check your internet connection.']
# /clear the cache -> exit, is_error, num_turns: 0 False 0 | []
# /etc/hosts is wrong -> exit, is_error, num_turns: 1 True 1 | ['API Error: Connection refused ...']
# /notes are wrong -> exit, is_error, num_turns: 1 True 1 | ['API Error: Connection refused ...']
# This is the task: [...] -> exit, is_error, num_turns: 1 True 1 | ['API Error: Connection refused ...']
