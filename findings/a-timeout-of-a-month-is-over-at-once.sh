#!/usr/bin/env bash
# Node.js 20.20.2 and packages of npm: what becomes of a timeout of 30 days, and of Infinity, as one writes them who
# wants none. The answer, or the command's end, takes a fifth of a second.
#
#                                        30 days        Infinity
#   openai 6.49.0, got 14.6.6,           over at once   over at once
#     @modelcontextprotocol/sdk 1.32.2
#   @anthropic-ai/sdk 1.14.0, spawn,     over at once   refused
#     axios 1.21.1, execa 9.6.1,
#     AbortSignal.timeout
#   p-timeout 7.0.2                      over at once   none
#   undici 7.30.2                        30 days        none
#   ky 1.14.3                            refused        refused
#
# setTimeout of Node.js takes more than 2147483647 ms, 24.8 days, for 1 ms, says so on stderr, and most pass on what
# they are given; the error then says "timed out after 2592000000 milliseconds". The SDKs of models retry a timeout, and
# so send a call up to three times, which is paid for. A tool of MCP does its work, and its client has an error and asks
# again. It does not show in a test with a timeout of a minute. 24 days are safe with all of them.
# Source: https://nodejs.org/api/timers.html#settimeoutcallback-delay-args
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" openai@6.49.0 @anthropic-ai/sdk@1.14.0 axios@1.21.1 \
    @modelcontextprotocol/sdk@1.32.2 execa@9.6.1 got@14.6.6 p-timeout@7.0.2 undici@7.30.2 ky@1.14.3 >/dev/null
cat >"$folder/ask.mjs" <<'JS'
import assert from "node:assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import Anthropic from "@anthropic-ai/sdk";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import axios from "axios";
import { execa } from "execa";
import got from "got";
import ky from "ky";
import OpenAI from "openai";
import pTimeout from "p-timeout";
import { Agent, request } from "undici";

const service = http.createServer(async (_, response) => {
  await sleep(200);
  response.setHeader("Content-Type", "application/json").end(JSON.stringify({ content: [], choices: [] }));
}).listen(0, "127.0.0.1");
await once(service, "listening");
const url = `http://127.0.0.1:${service.address().port}`, options = { baseURL: url, apiKey: "none" };
const question = { model: "m", messages: [], max_tokens: 9 };
const clients = {
  openai: (timeout) => new OpenAI({ ...options, timeout }).chat.completions.create(question),
  anthropic: (timeout) => new Anthropic({ ...options, timeout }).messages.create(question),
  async mcp(timeout) {
    const server = new McpServer({ name: "server", version: "1" });
    const client = new Client({ name: "client", version: "1" });
    server.registerTool("work", {}, () => sleep(200, { content: [] }));
    const [here, there] = InMemoryTransport.createLinkedPair();
    await Promise.all([server.connect(there), client.connect(here)]);
    return client.callTool({ name: "work" }, undefined, { timeout });
  },
  axios: (timeout) => axios.get(url, { timeout }),
  execa: (timeout) => execa("sleep", ["0.2"], { timeout }),
  spawn: async (timeout) => {
    const [, signal] = await once(spawn("sleep", ["0.2"], { timeout }), "exit");
    if (signal) throw new Error("timed out");
  },
  got: (request) => got(url, { timeout: { request }, retry: { limit: 0 } }),
  pTimeout: (milliseconds) => pTimeout(sleep(200), { milliseconds }),
  AbortSignal: (timeout) => fetch(url, { signal: AbortSignal.timeout(timeout) }),
  undici: (timeout) => request(url, { dispatcher: new Agent({ headersTimeout: timeout, bodyTimeout: timeout }) }),
  ky: (timeout) => ky(url, { timeout }),
};
const refusal = /must be|cannot be|Expected|out of range|parse/;
const seen = {};
for (const [name, ask] of Object.entries(clients)) {
  seen[name] = [];
  for (const timeout of [30 * 86400e3, Infinity]) {
    let end = "whole";
    await (async () => ask(timeout))().catch(({ message }) => (end = refusal.test(message) ? "refused" : "timed out"));
    seen[name].push(end);
  }
  console.log(`${name}: ${seen[name].join("; ")}`);
}
const [out, no, whole] = ["timed out", "refused", "whole"];
assert.deepEqual(seen, {
  openai: [out, out], anthropic: [out, no], mcp: [out, out],
  axios: [out, no], execa: [out, no], spawn: [out, no], got: [out, out], pTimeout: [out, whole], AbortSignal: [out, no],
  undici: [whole, whole], ky: [no, no],
}, "it has changed");
process.exit();
JS
env -i PATH="$PATH" HOME="$folder" node --no-warnings "$folder/ask.mjs"
