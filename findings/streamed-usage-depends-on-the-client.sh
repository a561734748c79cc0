#!/usr/bin/env bash
# One answer of 1000 and 200 tokens (180 of reasoning) from a service with OpenAI's API at another address, as of a
# gateway, a proxy or a local model. Seven clients count the same if the answer comes whole, and not if it is streamed:
#
#   openai-agents 0.24.0 (PyPI)              one request of 0 and 0 tokens
#   langchain-openai 1.7.4 (PyPI)            no usage
#   litellm 1.110.2 (PyPI)                   8 and 1 tokens, and their price: it counts the words that it has seen
#   @ai-sdk/openai-compatible 2.0.92 (npm)   undefined
#   pydantic-ai-slim 2.68.0 (PyPI), @openai/agents 0.20.0, @ai-sdk/openai 3.0.141 (npm)   1000 and 200
#
# A stream has usage only if stream_options.include_usage asks for it. The first four do not ask: openai-agents and
# langchain-openai since the address is not OpenAI's, the other two unless they are told to. None of them warns, so a
# budget of tokens or costs never ends a run. Of one vendor's agents, those in JavaScript ask, and those in Python do
# not. Each of the four has a setting for it; with that, all count the same.
# Source: https://platform.openai.com/docs/api-reference/chat/create (stream_options).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9 2>/dev/null
"$work/venv/bin/uv" pip install --quiet --system-certs --python "$work/venv/bin/python" openai==3.57.0 \
    openai-agents==0.24.0 langchain-openai==1.7.4 litellm==1.110.2 'pydantic-ai-slim[openai]==2.68.0'
cd "$work"
npm install --silent --no-fund --no-audit openai@7.59.0 @openai/agents@0.20.0 zod@4.3.6 ai@6.0.326 \
    @ai-sdk/openai@3.0.141 @ai-sdk/openai-compatible@2.0.92 >/dev/null

cat >count.mjs <<'NODE'
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled } from "@openai/agents";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

const at = { name: "at", baseURL: process.argv[2], apiKey: "none" };
const pair = ({ inputTokens, outputTokens }) => (inputTokens === undefined ? null : [inputTokens, outputTokens]);
const print = (name, usages) => console.log(JSON.stringify([name, ...usages.map(pair)]));
const whole = async (model) => (await generateText({ model, prompt: "x" })).usage;
const streamed = (model) => streamText({ model, prompt: "x" }).usage;
const [compatible, chat] = [createOpenAICompatible(at)("gpt-4o"), createOpenAI(at).chat("gpt-4o")];
const asked = createOpenAICompatible({ ...at, includeUsage: true })("gpt-4o");
print("@ai-sdk/openai-compatible", [await whole(compatible), await streamed(compatible), await streamed(asked)]);
print("@ai-sdk/openai", [await whole(chat), await streamed(chat), await streamed(chat)]);
setTracingDisabled(true);
const agent = new Agent({ name: "a", model: new OpenAIChatCompletionsModel(new OpenAI(at), "gpt-4o") });
const result = await run(agent, "x", { stream: true });
await result.completed;
const usage = result.runContext.usage;
print("@openai/agents", [(await run(agent, "x")).runContext.usage, usage, usage]);
NODE
cat >count.py <<'PYTHON'
import asyncio, functools, http.server, json, operator, subprocess, threading

import agents, litellm, openai
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        usage = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
        usage["completion_tokens_details"] = {"reasoning_tokens": 180}
        text = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
        answer = {"id": "c", "created": 1, "model": "gpt-4o", "object": "chat.completion", "choices": [text]}
        body = json.dumps(answer | {"usage": usage})
        if asked.get("stream"):
            answer |= {"object": "chat.completion.chunk", "choices": [text | {"delta": text["message"]}]}
            options = asked.get("stream_options") or {}
            last = [answer | {"choices": [], "usage": usage}] if options.get("include_usage") else []
            body = "".join(f"data: {json.dumps(each)}\n\n" for each in [answer, *last]) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if asked.get("stream") else "application/json")
        self.end_headers()
        self.wfile.write(body.encode())
    log_message = lambda self, *args: None
async def openai_agents(streamed, **asked):
    model = agents.OpenAIChatCompletionsModel("gpt-4o", openai.AsyncOpenAI(base_url=address, api_key="none"))
    agent = agents.Agent(name="a", model=model, model_settings=agents.ModelSettings(**asked))
    result = agents.Runner.run_streamed(agent, "x") if streamed else await agents.Runner.run(agent, "x")
    if streamed:
        [_ async for _ in result.stream_events()]
    return result.context_wrapper.usage.input_tokens, result.context_wrapper.usage.output_tokens
async def langchain_openai(streamed, **asked):
    model = ChatOpenAI(model="gpt-4o", base_url=address, api_key="none", **asked)
    usage = (functools.reduce(operator.add, model.stream("x")) if streamed else model.invoke("x")).usage_metadata
    return usage and (usage["input_tokens"], usage["output_tokens"])
async def lite(streamed, **asked):
    answer = litellm.completion("openai/gpt-4o", [{"role": "user", "content": "x"}], api_base=address, api_key="none",
                                stream=streamed, **asked)
    usage = (litellm.stream_chunk_builder(list(answer)) if streamed else answer).usage
    return usage.prompt_tokens, usage.completion_tokens
async def pydantic_ai(streamed):
    agent = Agent(OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=address, api_key="none")))
    async with agent.run_stream("x") as result:
        await result.get_output()
    usage = (result if streamed else await agent.run("x")).usage
    return usage.input_tokens, usage.output_tokens
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"
agents.set_tracing_disabled(True)
for way, asked in ((openai_agents, {"include_usage": True}), (langchain_openai, {"stream_usage": True}),
                   (lite, {"stream_options": {"include_usage": True}}), (pydantic_ai, {})):
    counts = [asyncio.run(way(False)), asyncio.run(way(True)), asyncio.run(way(True, **asked))]
    print(json.dumps([way.__name__, *counts]), flush=True)
subprocess.run(["node", "count.mjs", address], check=True)
PYTHON
# Which client, and its tokens of input and output: whole, streamed, streamed with the setting for it.
export LITELLM_LOCAL_MODEL_COST_MAP=True
timeout 600 venv/bin/python -W ignore count.py | tee seen
diff - seen <<'SEEN' # as seen with Python 3.11 and Node 20, twice, 2026-11
["openai_agents", [1000, 200], [0, 0], [1000, 200]]
["langchain_openai", [1000, 200], null, [1000, 200]]
["lite", [1000, 200], [8, 1], [1000, 200]]
["pydantic_ai", [1000, 200], [1000, 200], [1000, 200]]
["@ai-sdk/openai-compatible",[1000,200],null,[1000,200]]
["@ai-sdk/openai",[1000,200],[1000,200],[1000,200]]
["@openai/agents",[1000,200],[1000,200],[1000,200]]
SEEN
