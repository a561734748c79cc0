#!/usr/bin/env bash
# A model calls a tool, and the tool raises FileNotFoundError, as one does for a wrong path. What the run makes of it:
#
#   smolagents 1.26.0 (PyPI), ai 6.0.326 (npm)        the model is told why, and goes on
#   openai-agents 0.24.0 (PyPI)                       the model is told "An error occurred while running the tool.
#                                                     Please try again.", and not why; 0.20.0 gave the error, too
#   pydantic-ai-slim 2.68.0, langchain 1.5.2          the run ends, and raises FileNotFoundError; the model is not told,
#   (create_agent), langgraph 1.2.24                  and what it did before is no answer to anybody
#   (create_react_agent)
#   an argument that is missing                       the model is told by all six, and goes on
#
# So a tool that was moved from one to another turns a slip of the model into a failed run after all that was paid for
# before, or has it try the same path until its turns are used up. A test in which the model forgets an argument shows
# neither. With pydantic-ai a tool raises ModelRetry for that, and openai-agents takes a failure_error_function.
# Source: https://ai.pydantic.dev/tools-advanced/, https://docs.langchain.com/oss/python/langchain/tools
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain==1.5.2 langchain-openai==1.7.4 \
    langgraph==1.2.24 smolagents==1.26.0 'pydantic-ai-slim[openai]==2.68.0' openai-agents==0.24.0 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" ai@6.0.326 @ai-sdk/openai@3.0.141 zod@4 >/dev/null
cat >"$folder/ask.mjs" <<'JS'
import { readFileSync } from 'node:fs'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'
const look = tool({ inputSchema: z.object({ path: z.string() }), execute: ({ path }) => readFileSync(path, 'utf8') })
const model = createOpenAI({ baseURL: process.argv[2], apiKey: 'none' }).chat('m')
console.log((await generateText({ model, prompt: 'go', tools: { look }, stopWhen: stepCountIs(3) })).text)
JS
cat >"$folder/ask.py" <<'PYTHON'
import asyncio, http.server, json, subprocess, threading

import agents, openai, pydantic_ai, smolagents
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
ANSWER = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE}
GIVEN, DONE = {}, "There is none."


def calls(name, **arguments):
    return [{"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]


class Service(http.server.BaseHTTPRequestHandler):
    """A model that looks at one file, and answers when it is told what came of it."""

    def do_POST(self):
        global requests, is_reason_told
        requests += 1
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_reason_told = "no such file" in json.dumps(asked["messages"]).lower()
        does = calls("look", **GIVEN)
        if requests > 1:
            does = calls("final_answer", answer=DONE) if "final_answer" in json.dumps(asked["tools"]) else None
        message = {"role": "assistant"} | ({"tool_calls": does} if does else {"content": DONE})
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if does else "stop"}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(ANSWER | {"choices": [choice]}).encode())

    log_message = lambda *_: None


service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{service.server_port}"


def look(path: str) -> str:
    """Look at a file.

    Args:
        path: which
    """
    return open(path).read()


model = agents.OpenAIChatCompletionsModel("m", openai.AsyncOpenAI(base_url=URL))
agent = agents.Agent("a", model=model, tools=[agents.function_tool(look)])
of_pydantic = OpenAIChatModel("m", provider=OpenAIProvider(base_url=URL, api_key="none"))
small = smolagents.OpenAIServerModel("m", api_base=URL, api_key="none")
chat, task = ChatOpenAI(model="m", base_url=URL), {"messages": "go"}
runs = {
    "openai-agents": lambda: asyncio.run(agents.Runner.run(agent, "go")).final_output,
    "smolagents": lambda: smolagents.ToolCallingAgent([smolagents.tool(look)], small, verbosity_level=0).run("go"),
    "ai": lambda: subprocess.run(["node", "ask.mjs", URL], stdout=-1, check=True, text=True).stdout.strip(),
    "pydantic-ai": lambda: pydantic_ai.Agent(of_pydantic, tools=[look]).run_sync("go").output,
    "create_agent": lambda: create_agent(chat, [look]).invoke(task)["messages"][-1].content,
    "create_react_agent": lambda: create_react_agent(chat, [look]).invoke(task)["messages"][-1].content,
}
told, raised = f"{DONE} It was told why.", "raises FileNotFoundError"
for GIVEN, expected in (({"path": "none.txt"}, [DONE, told, told, raised, raised, raised]), ({}, [DONE] * 6)):
    seen = []
    for name, run in runs.items():
        requests, is_reason_told = 0, False
        try:
            seen.append(run() + (" It was told why." if is_reason_told else ""))
        except Exception as error:
            seen.append(f"raises {type(error).__name__}")
        print(f"look({GIVEN}) by {name}: {seen[-1]}", flush=True)
    assert seen == expected, "it has changed"
PYTHON
cd "$folder"
env -i PATH="$PATH" HOME="$folder" OPENAI_API_KEY=none OPENAI_AGENTS_DISABLE_TRACING=1 timeout 200 \
    "$folder/venv/bin/python" -W ignore ask.py 2>stderr || { tail -3 stderr; exit 1; }
