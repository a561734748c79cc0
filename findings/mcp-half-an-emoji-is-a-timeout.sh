#!/usr/bin/env bash
# MCP Python SDK 2.3.0 (PyPI `mcp`) as the client of a server of the TypeScript SDK 1.32.2 (npm
# @modelcontextprotocol/sdk): an answer that ends in half an emoji arrives, is thrown away, and the call times out.
#
# Servers shorten what they return, as by `log.slice(0, 10)`. JavaScript counts in UTF-16, so that may cut a character
# outside the basic plane in two, and JSON.stringify writes the rest as the escape "\ud83c". That is valid by the grammar
# of JSON, the client of npm reads it, and so does Python's json.loads. The client of PyPI parses by pydantic, which
# refuses it: the id of the call is lost with the rest of the message, one traceback goes to the log, and the caller
# waits as long as its timeout says, by default for ever. The next call, or the same one with one character more, works;
# so the failure depends on the text of a log, and who retries after the timeout has the tool do its work again.
# orjson 3.13.0 and msgspec 0.23.0 refuse such texts, too. Where json.loads takes them, the error comes later: writing
# the text to a file, to sqlite3 or into a request of httpx 0.28.1 raises UnicodeEncodeError.
# Source: https://www.rfc-editor.org/rfc/rfc8259#section-8.2 ("the ABNF in this specification allows ..."),
# https://tc39.es/ecma262/#sec-quotejsonstring.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0 httpx==0.28.1 orjson==3.13.0 msgspec==0.23.0 2>/dev/null
npm install --silent --no-fund --no-audit --ignore-scripts @modelcontextprotocol/sdk@1.32.2 >/dev/null

cat >server.mjs <<'NODE'
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { appendFileSync } from "node:fs";

const log = "build ok \u{1F389} all tests pass";
const server = new McpServer({ name: "builder", version: "1" });
for (const length of [10, 11]) {
  server.registerTool(`first_${length}`, { description: "Build, and return the beginning of the log." }, async () => {
    appendFileSync("builds", `${length}\n`);
    return { content: [{ type: "text", text: log.slice(0, length) }] };
  });
}
await server.connect(new StdioServerTransport());
NODE
cat >client.mjs <<'NODE'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "agent", version: "1" });
await client.connect(new StdioClientTransport({ command: "node", args: ["server.mjs"] }));
for (const name of ["first_11", "first_10"])
  console.log(JSON.stringify((await client.callTool({ name, arguments: {} })).content[0].text));
await client.close();
NODE
cat >client.py <<'PYTHON'
import asyncio, json, logging, pathlib, sqlite3, subprocess

import httpx, msgspec, orjson
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

logging.disable()


async def calls():
    """What the client of PyPI returns for each call."""
    answers = []
    async with stdio_client(StdioServerParameters(command="node", args=["server.mjs"])) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            for name in "first_11", "first_10", "first_11":
                try:
                    async with asyncio.timeout(10):
                        answers.append(json.dumps((await session.call_tool(name, {})).content[0].text))
                except TimeoutError:
                    answers.append("no answer within 10 seconds")
    return answers


def outcome(function):
    try:
        return ascii(function())
    except ValueError as error:  # of which the errors of all these libraries are kinds
        return type(error).__name__


python = asyncio.run(calls())
builds = pathlib.Path("builds").read_text().split()
node = subprocess.run(["node", "client.mjs"], stdout=-1, text=True, check=True).stdout.split("\n")[:2]
text = '"build ok \\ud83c"'
read = json.loads(text)
others = {
    "json.loads": outcome(lambda: json.loads(text)),
    "orjson.loads": outcome(lambda: orjson.loads(text)),
    "msgspec.json.decode": outcome(lambda: msgspec.json.decode(text)),
    "to a file": outcome(lambda: pathlib.Path("log").write_text(read, "utf-8")),
    "to sqlite3": outcome(lambda: sqlite3.connect(":memory:").execute("SELECT ?", [read])),
    "to httpx": outcome(lambda: httpx.Request("POST", "http://127.0.0.1", json=read)),
}
print("client of PyPI:", *python, sep="\n  ")
print("builds by then:", len(builds))
print("client of npm:", *node, sep="\n  ")
print(*(f"{name}: {result}" for name, result in others.items()), sep="\n")
whole, half = '"build ok \\ud83c\\udf89"', '"build ok \\ud83c"'
assert python == [whole, "no answer within 10 seconds", whole] and len(builds) == 3, "it has changed"
assert node == ['"build ok \U0001f389"', half], "it has changed"
assert list(others.values()) == ["'build ok \\ud83c'", "JSONDecodeError", "DecodeError", *["UnicodeEncodeError"] * 3]
PYTHON
env -i PATH="$PATH" HOME="$folder" LANG=C.UTF-8 timeout 120 venv/bin/python client.py
# Seen with Python 3.11 and Node 20, twice, 2026-11.
