#!/usr/bin/env bash
# Claude Code 2.1.330, `--tools`: it takes bare names in their exact case, and drops anything else without a word.
#
# `--allowedTools` and `--disallowedTools` take rules, such as "Bash(git diff:*)", and so does `tools` in the front matter
# of an agent file, where it gives the agent the whole tool. With `--tools` the same text gives a session without any
# tool: no warning, no error, and the run goes on. So does a name in lower case, and one unknown name beside good ones is
# left out. The option is about built-in tools only: "" leaves none of these, and all tools of MCP servers are still there.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit @anthropic-ai/claude-code@2.1.330 >/dev/null)

# An MCP server with one tool.
cat >"$work/server.py" <<'PYTHON'
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "desk", "version": "1"}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "ask", "description": "Asks.", "inputSchema": {"type": "object", "properties": {}}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
PYTHON
config='{"mcpServers": {"desk": {"type": "stdio", "command": "python3", "args": ["'$work'/server.py"], "alwaysLoad": true}}}'

# Its first event lists the tools, before any request; nobody listens where the service would be.
tools_with() {
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" ANTHROPIC_API_KEY=none \
        ANTHROPIC_BASE_URL=http://127.0.0.1:9 CLAUDE_CODE_MAX_RETRIES=0 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        timeout 120 "$work/node_modules/.bin/claude" -p --output-format stream-json --verbose "$@" \
        2>"$work/errors" <<<"hello" || true) |
        python3 -c 'import json, sys; print(*next(sorted(e["tools"]) for e in map(json.loads, sys.stdin) if e.get("subtype") == "init"))'
}

expect() {
    local expected=$1 found
    shift
    found=$(tools_with "$@")
    printf '%-45s -> %s\n' "${*:1:2}" "${found:-(none)}"
    [ "$found" = "$expected" ] || { echo "expected: ${expected:-(none)}"; exit 1; }
    [ ! -s "$work/errors" ] || { echo "it warned:"; cat "$work/errors"; exit 1; }
}

expect "Grep Read" --tools "Read,Grep"
expect "" --tools "Bash(git diff:*)"
expect "Read" --tools "Bash(git diff:*),Read"
expect "" --tools "read"
expect "Read" --tools "Read,Nonsense"
expect "mcp__desk__ask" --tools "" --mcp-config "$config"

# Seen with Node 20, 2026-11:
# --tools Read,Grep                             -> Grep Read
# --tools Bash(git diff:*)                      -> (none)
# --tools Bash(git diff:*),Read                 -> Read
# --tools read                                  -> (none)
# --tools Read,Nonsense                         -> Read
# --tools                                       -> mcp__desk__ask
