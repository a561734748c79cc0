#!/usr/bin/env bash
# a2a-sdk 1.3.0 (PyPI) as a client: an agent that is silent for five seconds has failed, while it goes on and completes
# its work. The client of @a2a-js/sdk 1.3.0 (npm) waits for it.
#
# create_client(URL) makes an httpx client of its own, and leaves it the timeout that httpx has by default: five seconds
# without a byte. An agent works for minutes. With `streaming`, the default, it may say "working" at once: the client
# passes that on, and raises five seconds later; without, it gives up before the answer. The error is
# A2AClientTimeoutError ("Client Request timed out"), as for a service that is down, so a caller who retries has the
# work done again: the agent below has worked four times for four calls, of which two have returned. Nothing is
# cancelled. Give it a client: ClientConfig(httpx_client=httpx.AsyncClient(timeout=httpx.Timeout(5, read=None))).
# Source: https://a2a-protocol.org/latest/sdk/python/api/, a2a/client/client_factory.py (create_client),
# https://www.python-httpx.org/advanced/timeouts/.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check a2a-sdk==1.3.0 httpx==0.28.1 2>/dev/null
(cd "$work" && npm install --silent --no-fund --no-audit @a2a-js/sdk@1.3.0 express@5.1.0 >/dev/null)

# An agent that says "working", works for eight seconds, notes that, and answers.
cat >"$work/agent.mjs" <<'NODE'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler } from "@a2a-js/sdk/server/express";
import express from "express";
import fs from "node:fs";
import { setTimeout } from "node:timers/promises";

const app = express();
const server = app.listen(0, "127.0.0.1", () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const modes = { defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"], skills: [], signatures: [] };
  const security = { securitySchemes: {}, securityRequirements: [] };
  const card = {
    ...{ name: "builder", description: "Builds.", version: "1", ...modes, ...security },
    supportedInterfaces: [{ url: `${base}/rpc`, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  };
  const execute = async ({ contextId, taskId }, bus) => {
    bus.publish(AgentEvent.task({ id: taskId, contextId, status: { state: 2 }, artifacts: [], history: [] }));
    await setTimeout(8_000);
    fs.appendFileSync("built", "built\n");
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: 3 } }));
    bus.finished();
  };
  const executor = { execute, cancelTask: async () => fs.appendFileSync("built", "cancelled\n") };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  fs.writeFileSync("base", base);
});
NODE
cat >"$work/client.mjs" <<'NODE'
import { ClientFactory } from "@a2a-js/sdk/client";

const client = await new ClientFactory().createFromUrl(process.argv[2]);
const message = { messageId: "m1", role: 1, parts: [{ content: { $case: "text", value: "Build." } }] };
const result = await client.sendMessage({ message });
console.log("npm, streaming False:", result.status?.state === 3 ? "TASK_STATE_COMPLETED" : JSON.stringify(result));
NODE
cat >"$work/client.py" <<'PYTHON'
import asyncio, sys, time

import httpx
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest, TaskState


async def call(name, **settings):
    client = await create_client(sys.argv[1], client_config=ClientConfig(**settings))
    request = SendMessageRequest(message=new_text_message("Build.", role=Role.ROLE_USER))
    seen = []
    try:
        async for event in client.send_message(request):
            seen.append(TaskState.Name(getattr(event, event.WhichOneof("payload")).status.state))
    except Exception as error:
        seen.append(f"{type(error).__name__}: {error}")
    print(f"{name}:", *seen, flush=True)


async def main():
    await call("PyPI, streaming True", streaming=True)
    await call("PyPI, streaming False", streaming=False)
    async with httpx.AsyncClient(timeout=httpx.Timeout(5, read=None)) as patient:
        await call("PyPI, its own httpx client", httpx_client=patient)


asyncio.run(main())
PYTHON
(cd "$work" && exec env -i PATH="$PATH" HOME="$work" timeout 300 node agent.mjs) &
server=$!
until [ -s "$work/base" ]; do sleep 0.1; done
bare=(env -i PATH="$PATH" HOME="$work" NO_PROXY=127.0.0.1 timeout 120)
{
    "${bare[@]}" "$work/venv/bin/python" "$work/client.py" "$(cat "$work/base")"
    "${bare[@]}" node "$work/client.mjs" "$(cat "$work/base")"
    echo "the agent: $(xargs <"$work/built")"
} | tee "$work/seen"
diff - "$work/seen" <<'SEEN'
PyPI, streaming True: TASK_STATE_WORKING A2AClientTimeoutError: Client Request timed out
PyPI, streaming False: A2AClientTimeoutError: Client Request timed out
PyPI, its own httpx client: TASK_STATE_WORKING TASK_STATE_COMPLETED
npm, streaming False: TASK_STATE_COMPLETED
the agent: built built built built
SEEN
# Seen with Python 3.11 and Node 20, twice, 2026-11.
