#!/usr/bin/env bash
# a2a-sdk 1.3.0 (PyPI) as the client of an agent made with @a2a-js/sdk 1.3.0 (npm): an answer with U+2028 in its text
# arrives when it is sent whole, and is an error when it is streamed: "Unterminated string".
#
# The client reads a stream with aiter_lines() of httpx, which ends a line wherever str.splitlines does: at U+2028,
# U+2029 and U+0085, too. In an event stream only CR and LF end a line, and JSON allows the three in a string, so what
# the agent sent is valid: its SDK uses JSON.stringify, which escapes none of them. The client of npm reads the same
# stream. Models repeat such characters from web pages, notes and PDF files, and the agent has done its work by then.
# JSON lines have the same problem: of four lines, three of which have one of these characters, httpx 0.28.1 yields one
# that is JSON, and so does requests 2.34.2 with decode_unicode=True; requests without it, aiohttp 3.14.5 and httpx-sse
# 0.4.3 yield four.
# Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream,
# https://www.rfc-editor.org/rfc/rfc8259#section-7.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet a2a-sdk==1.3.0 httpx==0.28.1 requests==2.34.2 aiohttp==3.14.5 httpx-sse==0.4.3
(cd "$work" && npm install --silent --no-fund --no-audit @a2a-js/sdk@1.3.0 express@5.1.0 >/dev/null)

# An agent that repeats what it is sent. At /lines and /events, four texts are sent as JSON lines and as events.
cat >"$work/agent.mjs" <<'NODE'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler } from "@a2a-js/sdk/server/express";
import express from "express";
import fs from "node:fs";

const app = express();
const texts = ["plain", "a\u2028b", "a\u2029b", "a\u0085b"].map((text) => JSON.stringify({ text }));
app.get("/lines", (_, answer) => answer.type("application/x-ndjson; charset=utf-8").send(texts.join("\n")));
const events = texts.map((text) => `data: ${text}\n\n`);
app.get("/events", (_, answer) => answer.type("text/event-stream").send(events.join("")));
const server = app.listen(0, "127.0.0.1", () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const modes = { defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"], skills: [], signatures: [] };
  const security = { securitySchemes: {}, securityRequirements: [] };
  const card = {
    ...{ name: "echo", description: "Repeats.", version: "1", ...modes, ...security },
    supportedInterfaces: [{ url: `${base}/rpc`, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  };
  const execute = async ({ contextId, userMessage }, bus) => {
    bus.publish(AgentEvent.message({ ...userMessage, messageId: "answer", contextId, role: 2 }));
    bus.finished();
  };
  const executor = { execute, cancelTask: async () => {} };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  fs.writeFileSync("base", base);
});
NODE
(cd "$work" && exec env -i PATH="$PATH" HOME="$work" timeout 300 node agent.mjs) &
server=$!
until [ -s "$work/base" ]; do sleep 0.1; done

cat >"$work/client.py" <<'PYTHON'
import asyncio, json, sys

import aiohttp, httpx, httpx_sse, requests
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import Role, SendMessageRequest

BASE = sys.argv[1]


async def answer(text, streaming):
    client = await create_client(BASE, client_config=ClientConfig(streaming=streaming))
    request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
    try:
        return [get_stream_response_text(event) async for event in client.send_message(request)] == [text]
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(': ')[2].partition(' starting')[0]}"


def readable(lines):
    count = 0
    for line in lines:
        try:
            count += "text" in json.loads(line)
        except ValueError:
            pass
    return count


async def lines_of_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(f"{BASE}/lines") as response:
        return [line async for line in response.content]


for text in ("a b", "a\u2028b", "a\u2029b", "a\u0085b"):
    print(ascii(text), *(asyncio.run(answer(text, streaming)) for streaming in (False, True)), sep=", ")
with httpx.stream("GET", f"{BASE}/lines") as response:
    print("httpx", readable(response.iter_lines()))
for decode in (True, False):
    lines = requests.get(f"{BASE}/lines", stream=True).iter_lines(decode_unicode=decode)
    print("requests", decode, readable(lines))
print("aiohttp", readable(asyncio.run(lines_of_aiohttp())))
with httpx.Client() as client, httpx_sse.connect_sse(client, "GET", f"{BASE}/events") as source:
    print("httpx-sse", readable(event.data for event in source.iter_sse()))
PYTHON
env -i PATH="$PATH" NO_PROXY=127.0.0.1 timeout 120 \
    "$work/venv/bin/python" "$work/client.py" "$(cat "$work/base")" | tee "$work/seen"
diff - "$work/seen" <<'SEEN'
'a b', True, True
'a\u2028b', True, A2AClientError: Unterminated string
'a\u2029b', True, A2AClientError: Unterminated string
'a\x85b', True, A2AClientError: Unterminated string
httpx 1
requests True 1
requests False 4
aiohttp 4
httpx-sse 4
SEEN
