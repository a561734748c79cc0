#!/usr/bin/env bash
# LangChain 1.5.2 with langchain-openai 1.7.4 and langchain-anthropic 1.7.10, smolagents 1.26.0, pydantic-ai 2.68.0 and
# openai-agents 0.24.0 (PyPI): a tool call that was cut off at the model's limit on output, with half of its JSON.
#
#   LangChain, invoke(), or stream() of updates or values   not carried out; the run ends with an empty answer
#   LangChain, stream() of messages, astream_events(), or   carried out: the text that was cut off is closed, and the
#     a model with streaming=True                           tool writes a file that ends in the middle of a word
#   smolagents                                              carried out, with the half JSON itself as the first argument
#   pydantic-ai, openai-agents                              not carried out: the model is told, and goes on
#
# Models meet their limit in their longest calls, which are those that write files. LangChain puts the arguments of a
# streamed call together with a parser that completes what is missing, so that they can be shown as they come, and the
# agent takes that for the call; the reason "length" or "max_tokens" stands in the message, and is not looked at. Nobody
# has to ask for a stream: where the messages of a run are shown, LangGraph has its models stream. So the same agent
# refuses the call in a test and at night, and carries it out when somebody watches it.
# Source: https://github.com/langchain-ai/langchain/issues/39275, about the parser without the agent
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain==1.5.2 langchain-openai==1.7.4 \
    langchain-anthropic==1.7.10 smolagents==1.26.0 'pydantic-ai-slim[openai]==2.68.0' openai-agents==0.24.0 2>/dev/null
cat >"$folder/ask.py" <<'PYTHON'
import asyncio, http.server, json, threading

HALF = '{"path": "notes.txt", "content": "keep this and th'
CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "write", "arguments": HALF}}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
BLOCK = {"type": "tool_use", "id": "t1", "name": "write", "input": {}}


def openai(body):
    again = any(message["role"] == "tool" for message in body["messages"])
    message = {"role": "assistant", "content": "done"} if again else {"role": "assistant", "tool_calls": [CALL]}
    choice = {"index": 0, "finish_reason": "stop" if again else "length"}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    choice["delta" if body.get("stream") else "message"] = message
    chunk = json.dumps(whole | {"object": "chat.completion.chunk"})
    return f"data: {chunk}\n\ndata: [DONE]\n\n" if body.get("stream") else whole


def anthropic(body):
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    again = len(body["messages"]) > 1
    block = {"type": "text", "text": "done"} if again else BLOCK
    delta = {"type": "text_delta", "text": ""} if again else {"type": "input_json_delta", "partial_json": HALF}
    events = [
        {"type": "message_start", "message": message | {"usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = (anthropic if self.path.endswith("/messages") else openai)(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if isinstance(answer, str) else "application/json")
        self.end_headers()
        self.wfile.write((answer if isinstance(answer, str) else json.dumps(answer)).encode())

    log_message = lambda *_: None


service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{service.server_port}"
written = []


def write(path: str, content: str = "") -> str:
    """Write a file.

    Args:
        path: where
        content: its text"""
    written.append([path, content])
    return "written"


import agents, openai as sdk, pydantic_ai, smolagents
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

TASK = {"messages": "write the notes"}
chat = ChatOpenAI(model="m", base_url=URL)
claude = ChatAnthropic(model="m", base_url=URL, api_key="none", streaming=True)
of_pydantic = OpenAIChatModel("m", provider=OpenAIProvider(base_url=URL, api_key="none"))
small = smolagents.OpenAIServerModel("m", api_base=URL, api_key="none")
steps = smolagents.ToolCallingAgent([smolagents.tool(write)], small, max_steps=1, verbosity_level=0)
of_openai = agents.OpenAIChatCompletionsModel("m", sdk.AsyncOpenAI(base_url=URL))
agent = agents.Agent("a", model=of_openai, tools=[agents.function_tool(write)])
runs = {
    "LangChain, invoke": lambda: create_agent(chat, [write]).invoke(TASK),
    "LangChain, stream of updates": lambda: list(create_agent(chat, [write]).stream(TASK, stream_mode="updates")),
    "LangChain, stream of messages": lambda: list(create_agent(chat, [write]).stream(TASK, stream_mode="messages")),
    "LangChain, Anthropic, streaming=True": lambda: create_agent(claude, [write]).invoke(TASK),
    "smolagents": lambda: steps.run("write the notes"),
    "pydantic-ai": lambda: pydantic_ai.Agent(of_pydantic, tools=[write]).run_sync("write the notes"),
    "openai-agents": lambda: asyncio.run(agents.Runner.run(agent, "write the notes")),
}
seen = {}
for name, run in runs.items():
    written.clear()
    run()
    seen[name] = list(written)
    print(f"{name}: {seen[name]}", flush=True)
closed = [["notes.txt", "keep this and th"]]
assert list(seen.values()) == [[], [], closed, closed, [[HALF, ""]], [], []], "it has changed"
PYTHON
env -i PATH="$PATH" HOME="$folder" OPENAI_API_KEY=none OPENAI_AGENTS_DISABLE_TRACING=1 \
    "$folder/venv/bin/python" -W ignore "$folder/ask.py" 2>"$folder/stderr" || { tail -5 "$folder/stderr"; exit 1; }
