#!/usr/bin/env bash
# A server of MCP that lists its tools on two pages, and the tools that six clients have of it: the SDKs mcp 2.3.0
# (PyPI) and @modelcontextprotocol/sdk 1.32.2, and Gemini CLI 0.61.0, Claude Code 2.1.330, @ai-sdk/mcp 1.0.102 and
# @openai/agents 0.20.0 (npm).
#
# By the protocol, an answer to tools/list may have a nextCursor, and "clients SHOULD handle ... paginated and
# non-paginated flows". list_tools() and listTools() of the two SDKs send one request, and return one page, with the
# cursor in it. Who takes that for "the tools", as the name says and the examples of both do, works with every small
# server. Gemini CLI does: its model is not told of the second page. There is no warning, and the exit code is 0. The
# other three ask on. A server that puts a page behind 50 or 100 tools, as gateways do that join several, so has fewer
# tools in one agent than in another, and which these are depends on the order.
# Source: https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
set -euo pipefail
work=$(mktemp -d)
trap 'kill "${mock:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/home/.gemini" "$work/task"
(cd "$work" && npm install --silent --no-fund --no-audit --ignore-scripts @modelcontextprotocol/sdk@1.32.2 \
    @ai-sdk/mcp@1.0.102 @openai/agents@0.20.0 zod@4.6.1 @google/gemini-cli@0.61.0 @anthropic-ai/claude-code@2.1.330 \
    >/dev/null)
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 2>/dev/null

cat >"$work/server.mjs" <<'JS'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
const server = new Server({ name: 'desk', version: '1' }, { capabilities: { tools: {} } })
const tool = name => ({ name, description: name, inputSchema: { type: 'object', properties: {} } })
server.setRequestHandler(ListToolsRequestSchema, request => request.params?.cursor === 'more'
  ? { tools: [tool('desk_second')] }
  : { tools: [tool('desk_first')], nextCursor: 'more' })
await server.connect(new StdioServerTransport())
JS
cat >"$work/clients.mjs" <<'JS'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { createMCPClient } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio'
import { MCPServerStdio } from '@openai/agents'
const start = { command: 'node', args: [process.argv[2]] }
const client = new Client({ name: 'client', version: '1' })
await client.connect(new StdioClientTransport(start))
const names = tools => tools.map(tool => tool.name).join(' ')
console.log('@modelcontextprotocol/sdk:', names((await client.listTools()).tools))
const vercel = await createMCPClient({ transport: new Experimental_StdioMCPTransport(start) })
console.log('@ai-sdk/mcp:', Object.keys(await vercel.tools()).join(' '))
const openai = new MCPServerStdio(start)
await openai.connect()
console.log('@openai/agents:', names(await openai.listTools()))
process.exit()
JS
cat >"$work/client.py" <<'PYTHON'
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def names():
    server = StdioServerParameters(command="node", args=sys.argv[1:])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        return [tool.name for tool in (await session.list_tools()).tools]

print("mcp:", *asyncio.run(names()))
PYTHON
cat >"$work/mock.py" <<'PYTHON'
import http.server, json, pathlib, sys

work = pathlib.Path(sys.argv[1])
candidate = {"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP", "index": 0}

class Service(http.server.BaseHTTPRequestHandler):
    """Keeps what is asked; an answer to the Gemini API, and a refusal to Claude Code, which has asked by then."""

    def do_POST(self):
        with (work / "asked").open("ab") as file:
            file.write(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.send_response(400 if "messages" in self.path else 200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps({'candidates': [candidate]})}\r\n\r\n".encode())

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
servers='"mcpServers": {"desk": {"command": "node", "args": ["'$work'/server.mjs"]}}'
echo "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}, $servers}" >"$work/home/.gemini/settings.json"
echo "{$servers}" >"$work/servers.json"

agent() { # NAME PROGRAM...: prints which tools its requests have
    local name=$1 && shift && rm -f "$work/asked"
    (cd "$work/task" && env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" GEMINI_API_KEY=none \
        GOOGLE_GEMINI_BASE_URL="$url" GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true \
        ANTHROPIC_API_KEY=none ANTHROPIC_BASE_URL="$url" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 timeout 120 \
        node "$@" <<<hello) >/dev/null 2>&1 || true
    echo "$name: $(grep --only-matching --extended-regexp 'desk_(first|second)' "$work/asked" | sort --unique | xargs)"
}
{
    "$work/venv/bin/python" "$work/client.py" "$work/server.mjs"
    node "$work/clients.mjs" "$work/server.mjs"
    agent "Gemini CLI" "$work/node_modules/@google/gemini-cli/bundle/gemini.js" -p hello -y -m gemini-3.8-flash
    agent "Claude Code" "$work/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs" -p \
        --mcp-config="$work/servers.json"
} | tee "$work/seen"
diff "$work/seen" - <<'TXT' || { echo "it has changed" && exit 1; }
mcp: desk_first
@modelcontextprotocol/sdk: desk_first
@ai-sdk/mcp: desk_first desk_second
@openai/agents: desk_first desk_second
Gemini CLI: desk_first
Claude Code: desk_first desk_second
TXT
