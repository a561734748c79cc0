#!/usr/bin/env bash
# MCP Python SDK 2.3.0 (PyPI `mcp`): a tool whose text may be left out (`text: str | None = None`) refuses texts that
# are JSON, although the schema that it publishes says {"type": "string"}.
#
# Some clients send lists and objects as JSON in a string, so the server decodes a string for every parameter whose
# annotation is not exactly `str`. For `str | None` the text {"a": 1} thereby becomes an object, and ["a"] a list, and
# the call fails: "Input should be a valid string". The text null becomes None, without an error. Numbers and quoted
# strings stay. With `text: str` all of them arrive as they were sent. So a tool that saves a note or a file works until
# a model hands it JSON. `text: str = ""` has no such trap.
# Source: https://py.sdk.modelcontextprotocol.io/ (tools), mcp/server/mcpserver/utilities/func_metadata.py
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 2>/dev/null
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 120 "$folder/venv/bin/python" - <<'PYTHON'
import asyncio

from mcp.server import MCPServer

server = MCPServer("finding")


@server.tool()
def text(text: str) -> str:
    return repr(text)


@server.tool()
def text_with_default(text: str = "") -> str:
    return repr(text)


@server.tool()
def optional_text(text: str | None = None) -> str:
    return repr(text)


async def called(tool, sent):
    try:
        return (await server.call_tool(tool, {"text": sent})).content[0].text
    except Exception as error:
        return next(line.strip() for line in str(error).splitlines() if "Input should be" in line).partition(" [")[0]


async def main():
    schemas = {tool.name: tool.input_schema["properties"]["text"] for tool in await server.list_tools()}
    kinds = [kind["type"] for kind in schemas["optional_text"]["anyOf"]]
    print("optional_text takes, by its schema:", " or ".join(kinds))
    assert kinds == ["string", "null"]
    answers = {}
    for sent in ("a note", "12", '{"a": 1}', '["a"]', "null"):
        row = [await called(tool, sent) for tool in schemas]
        answers[sent] = row
        print(f"{sent:9}", *(f"{tool}: {answer}" for tool, answer in zip(schemas, row)), sep=" | ")
    refused = "Input should be a valid string"
    for sent, (exact, default, optional) in answers.items():
        assert exact == default == repr(sent), "it has changed"
        expected = {'{"a": 1}': refused, '["a"]': refused, "null": "None"}.get(sent, repr(sent))
        assert optional == expected, "it has changed"


asyncio.run(main())
PYTHON
# Seen with Python 3.11, twice, 2026-11:
# optional_text takes, by its schema: string or null
# a note    | text: 'a note' | text_with_default: 'a note' | optional_text: 'a note'
# 12        | text: '12' | text_with_default: '12' | optional_text: '12'
# {"a": 1}  | text: '{"a": 1}' | text_with_default: '{"a": 1}' | optional_text: Input should be a valid string
# ["a"]     | text: '["a"]' | text_with_default: '["a"]' | optional_text: Input should be a valid string
# null      | text: 'null' | text_with_default: 'null' | optional_text: None
