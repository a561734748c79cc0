#!/usr/bin/env bash
# A model calls its tool twice in one answer, to add line 1 and line 2 to a file. The tool reads the file, works, and
# writes it, as an edit does. What is in the file at the end:
#
#   openai-agents 0.24.0, pydantic-ai-slim 2.68.0, langchain 1.5.2 (create_agent),   one of the two lines
#   smolagents 1.26.0 (PyPI) and ai 6.0.326 (npm)
#   the first with ToolExecutionConfig(max_function_tool_concurrency=1), the         both lines
#   second with Tool(add, sequential=True)
#
# All carry out the calls of one answer at the same time, those of plain functions in threads. The model lists edits in
# an order, is told "added" for both, and answers that both are done; which one is lost depends on the machine. A tool
# that is tried with one call, or with a file that is written faster, passes. `parallel_tool_calls=False` is a wish to
# the service: one that does not know it answers with two calls, and they run at once. So a tool needs its own lock.
# Source: https://openai.github.io/openai-agents-python/running_agents/, https://ai.pydantic.dev/tools-advanced/
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain==1.5.2 langchain-openai==1.7.4 \
    smolagents==1.26.0 'pydantic-ai-slim[openai]==2.68.0' openai-agents==0.24.0 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" ai@6.0.326 @ai-sdk/openai@3.0.141 zod@4 >/dev/null
cat >"$folder/ask.mjs" <<'JS'
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'
const execute = async ({ line }) => {
  const text = await readFile('notes.txt', 'utf8')
  await setTimeout(1000)
  await writeFile('notes.txt', `${text}${line}\n`)
  return 'added'
}
const add = tool({ inputSchema: z.object({ line: z.string() }), execute })
const model = createOpenAI({ baseURL: process.argv[2], apiKey: 'none' }).chat('m')
console.log((await generateText({ model, prompt: 'go', tools: { add }, stopWhen: stepCountIs(3) })).text)
JS
cat >"$folder/ask.py" <<'PYTHON'
import asyncio, http.server, json, pathlib, subprocess, threading, time

import agents, openai, pydantic_ai, smolagents
from agents.run_config import ToolExecutionConfig
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

notes = pathlib.Path("notes.txt")
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
ANSWER = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE}

def call(id, name, **arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}

class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        calls = [call("c1", "add", line="line 1"), call("c2", "add", line="line 2")]
        if "added" in json.dumps(json.loads(asked)["messages"]):
            calls = [call("c3", "final_answer", answer="Both are added.")] if "final_answer" in asked else None
        message = {"role": "assistant"} | ({"tool_calls": calls} if calls else {"content": "Both are added."})
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(ANSWER | {"choices": [choice]}).encode())

    log_message = lambda *_: None

service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{service.server_port}"

def add(line: str) -> str:
    """Write a line at the end of the notes.

    Args:
        line: which"""
    text = notes.read_text()
    time.sleep(1)
    notes.write_text(f"{text}{line}\n")
    return "added"

def by_agents(settings=None, **options):
    model = agents.OpenAIChatCompletionsModel("m", openai.AsyncOpenAI(base_url=URL))
    tools = [agents.function_tool(add)]
    agent = agents.Agent("a", model=model, tools=tools, model_settings=settings or agents.ModelSettings())
    return asyncio.run(agents.Runner.run(agent, "go", run_config=agents.RunConfig(**options))).final_output

def by_pydantic(tool):
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=URL, api_key="none"))
    return pydantic_ai.Agent(model, tools=[tool]).run_sync("go").output

small = smolagents.OpenAIServerModel("m", api_base=URL, api_key="none")
chat = ChatOpenAI(model="m", base_url=URL)
one_by_one = ToolExecutionConfig(max_function_tool_concurrency=1)
seen = []
for name, run in {
    "openai-agents": by_agents,
    "openai-agents, parallel_tool_calls=False": lambda: by_agents(agents.ModelSettings(parallel_tool_calls=False)),
    "pydantic-ai": lambda: by_pydantic(add),
    "langchain": lambda: create_agent(chat, [add]).invoke({"messages": "go"})["messages"][-1].content,
    "smolagents": lambda: smolagents.ToolCallingAgent([smolagents.tool(add)], small, verbosity_level=0).run("go"),
    "ai": lambda: subprocess.run(["node", "ask.mjs", URL], stdout=-1, check=True, text=True).stdout.strip(),
    "openai-agents, max_function_tool_concurrency=1": lambda: by_agents(tool_execution=one_by_one),
    "pydantic-ai, sequential=True": lambda: by_pydantic(pydantic_ai.Tool(add, sequential=True)),
}.items():
    notes.write_text("")
    answer = run()
    seen.append(len(notes.read_text().splitlines()))
    print(f"{name}: {answer!r}, lines in the file: {seen[-1]}", flush=True)
    assert answer == "Both are added.", "it has changed"
assert seen == [1, 1, 1, 1, 1, 1, 2, 2], "it has changed"
PYTHON
cd "$folder"
env -i PATH="$PATH" HOME="$folder" OPENAI_API_KEY=none OPENAI_AGENTS_DISABLE_TRACING=1 timeout 200 \
    "$folder/venv/bin/python" -W ignore ask.py 2>stderr || { tail -3 stderr; exit 1; }
