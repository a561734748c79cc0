#!/usr/bin/env bash
# MCP Python SDK 2.3.0 (PyPI `mcp`) as the server of a client of the TypeScript SDK 1.32.2 (npm
# @modelcontextprotocol/sdk): a tool that returns a time without an offset does its work, and then its call fails.
#
# The server derives outputSchema from the annotations, and pydantic publishes a datetime as {"format": "date-time"}. By
# JSON Schema that is a time of RFC 3339, with an offset, which a naive datetime does not have. The client of npm checks
# formats, and throws; the client of PyPI does not, so tests that use it pass. A datetime.time and a negative timedelta
# fail in the same way. A NaN is sent as null where the schema says "number", and both clients throw. The server checks
# none of these before it sends them, and logs nothing, so that a model that sees the error does the work again.
# Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools ("Output Schema": servers MUST provide
# structured results that conform), https://www.rfc-editor.org/rfc/rfc3339#section-5.6.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet mcp==2.3.0 pydantic==2.14.4
(cd "$work" && npm install --silent --no-fund --no-audit @modelcontextprotocol/sdk@1.32.2 >/dev/null)

# Each call writes its tool's name to a file before it returns.
cat >"$work/server.py" <<'PYTHON'
import datetime, math

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("clock")
started = datetime.datetime(2026, 11, 30, 2, 30)


class Started(BaseModel):
    at: datetime.datetime


class Due(BaseModel):
    at: datetime.time


class Left(BaseModel):
    span: datetime.timedelta


def tool(name, result):
    def call() -> type(result):
        with open("done", "a") as done:
            print(name, file=done)
        return result

    server.add_tool(call, name=name)


tool("with_offset", Started(at=started.replace(tzinfo=datetime.timezone.utc)))
tool("naive", Started(at=started))
tool("time", Due(at=started.time()))
tool("negative", Left(span=datetime.timedelta(minutes=-5)))
tool("nan", math.nan)
server.run("stdio")
PYTHON
cat >"$work/client.py" <<'PYTHON'
import asyncio, sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    server = stdio_client(StdioServerParameters(command=sys.executable, args=["server.py"]), errlog=open("log", "a"))
    async with Client(server) as client:
        for tool in (await client.list_tools()).tools:
            try:
                result = await client.call_tool(tool.name, {})
                print("PyPI", tool.name, "error" if result.is_error else "taken", sep=", ")
            except Exception as error:
                print("PyPI", tool.name, str(error).splitlines()[0].partition(": ")[2], sep=", ")


asyncio.run(main())
PYTHON
cat >"$work/client.mjs" <<'NODE'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command: "venv/bin/python", args: ["server.py"], stderr: "ignore" }));
for (const { name } of (await client.listTools()).tools) {
  const call = client.callTool({ name, arguments: {} }).then((result) => (result.isError ? "error" : "taken"));
  console.log(`npm, ${name}, ${await call.catch((error) => error.message.split(": ").at(-1))}`);
}
await client.close();
NODE
cd "$work"
{ timeout 120 venv/bin/python client.py; timeout 120 node client.mjs; } | tee seen
diff - seen <<'SEEN'
PyPI, with_offset, taken
PyPI, naive, taken
PyPI, time, taken
PyPI, negative, taken
PyPI, nan, None is not of type 'number'
npm, with_offset, taken
npm, naive, data/at must match format "date-time"
npm, time, data/at must match format "time"
npm, negative, data/span must match format "duration"
npm, nan, data/result must be number
SEEN
[ "$(sort -u done | wc -l) $(wc -l <done)" = "5 10" ] # each tool has done its work, for both clients
