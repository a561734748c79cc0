#!/usr/bin/env bash
# An agent that has used up its steps, three of them, each a call of a tool, with nothing done. What its caller gets:
#
#   openai-agents 0.24.0 (PyPI), max_turns           raises
#   pydantic-ai-slim 2.68.0 (PyPI), request_limit    raises
#   langchain 1.5.2 (PyPI), create_agent, by         an answer: "Model call limits exceeded: run limit (3/3)"
#     ModelCallLimitMiddleware
#   langgraph 1.2.24 (PyPI), create_react_agent,     an answer: "Sorry, need more steps to process this request."
#     by recursion_limit
#   smolagents 1.26.0 (PyPI), max_steps              an answer: the model is asked once more, without tools, for a final
#                                                    one, and writes what it likes
#   ai 6.0.326 (npm), stopWhen: stepCountIs(3)       an answer: "", finishReason "tool-calls"
#
# The four answers are messages of the assistant like any other. What tells them apart is return_full_result of
# smolagents (state "max_steps_error"), finishReason of ai, and the text alone with LangChain and LangGraph. The same
# recursion_limit raises in create_agent and answers in create_react_agent, which create_agent replaces. So who goes by
# "no error, and an answer" takes a run that gave up for one that is done.
# Source: https://docs.langchain.com/oss/python/langchain/middleware/built-in,
# https://ai-sdk.dev/docs/agents/loop-control, https://huggingface.co/docs/smolagents/reference/agents
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain==1.5.2 langchain-openai==1.7.4 \
    langgraph==1.2.24 smolagents==1.26.0 'pydantic-ai-slim[openai]==2.68.0' openai-agents==0.24.0 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" ai@6.0.326 @ai-sdk/openai@3.0.141 zod@4 >/dev/null
cat >"$folder/ask.mjs" <<'JS'
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";
const look = tool({ inputSchema: z.object({ path: z.string() }), execute: () => "nothing" });
const model = createOpenAI({ baseURL: process.argv[2], apiKey: "none" }).chat("m");
const run = { model, prompt: "fix it", tools: { look }, stopWhen: stepCountIs(3) };
const { text, finishReason } = await generateText(run);
console.log(JSON.stringify({ text, finishReason }));
JS
cat >"$folder/ask.py" <<'PYTHON'
import asyncio, http.server, json, subprocess, sys, threading

import agents, openai, pydantic_ai, smolagents
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path": "notes.txt"}'}}


class Service(http.server.BaseHTTPRequestHandler):
    """A model that calls its tool for as long as it has one."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        does = {"content": None, "tool_calls": [CALL]} if body.get("tools") else {"content": "All fixed."}
        end = "tool_calls" if body.get("tools") else "stop"
        choice = {"index": 0, "message": {"role": "assistant"} | does, "finish_reason": end}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer | {"choices": [choice]}).encode())

    def log_message(self, *_):
        pass


service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{service.server_port}"
TASK, LIMIT = {"messages": "fix it"}, {"recursion_limit": 6}


def look(path: str) -> str:
    """Look at a file.

    Args:
        path: which
    """
    return "nothing"


chat = ChatOpenAI(model="m", base_url=URL)
bounded = create_agent(chat, [look], middleware=[ModelCallLimitMiddleware(run_limit=3)])
model = agents.OpenAIChatCompletionsModel("m", openai.AsyncOpenAI(base_url=URL))
agent = agents.Agent("a", model=model, tools=[agents.function_tool(look)])
of_pydantic = OpenAIChatModel("m", provider=OpenAIProvider(base_url=URL, api_key="none"))
three = pydantic_ai.UsageLimits(request_limit=3)
small = smolagents.OpenAIServerModel("m", api_base=URL, api_key="none")
steps = smolagents.ToolCallingAgent([smolagents.tool(look)], small, max_steps=3, verbosity_level=0)
seen = {}
for name, run in {
    "openai-agents": lambda: asyncio.run(agents.Runner.run(agent, "fix it", max_turns=3)).final_output,
    "pydantic-ai": lambda: pydantic_ai.Agent(of_pydantic, tools=[look]).run_sync("fix it", usage_limits=three).output,
    "create_agent, recursion_limit": lambda: create_agent(chat, [look]).invoke(TASK, LIMIT),
    "create_agent, middleware": lambda: bounded.invoke(TASK)["messages"][-1].content,
    "create_react_agent": lambda: create_react_agent(chat, [look]).invoke(TASK, LIMIT)["messages"][-1].content,
    "smolagents": lambda: str(steps.run("fix it")),
    "ai": lambda: json.loads(subprocess.run(["node", sys.argv[1], URL], stdout=-1, check=True).stdout),
}.items():
    try:
        seen[name] = run()
    except Exception as error:
        seen[name] = f"raises {type(error).__name__}"
    print(f"{name}: {seen[name]}", flush=True)
limit, sorry = "Model call limits exceeded: run limit (3/3)", "Sorry, need more steps to process this request."
raised = [f"raises {name}" for name in ("MaxTurnsExceeded", "UsageLimitExceeded", "GraphRecursionError")]
answers = [limit, sorry, "All fixed.", {"text": "", "finishReason": "tool-calls"}]
assert list(seen.values()) == raised + answers, "it has changed"
PYTHON
env -i PATH="$PATH" HOME="$folder" OPENAI_API_KEY=none OPENAI_AGENTS_DISABLE_TRACING=1 "$folder/venv/bin/python" \
    -W ignore "$folder/ask.py" "$folder/ask.mjs" 2>"$folder/stderr" || { tail -3 "$folder/stderr"; exit 1; }
