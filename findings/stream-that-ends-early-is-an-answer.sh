#!/usr/bin/env bash
# A model's answer that ends in the middle of a sentence: a gateway has lost the model behind it, and ends its own
# answer as HTTP requires, with the last chunk. No finish_reason and no [DONE], or with Anthropic's API no message_stop,
# has come. What each client makes of "The tests pass, but":
#
#   openai 3.57.0 (PyPI), stream()                    the answer, finish_reason None
#   anthropic 2.14.0 (PyPI), get_final_message()      the answer, stop_reason None
#   openai-agents 0.24.0 (PyPI)                       the answer, is_complete
#   pydantic-ai-slim 2.68.0 (PyPI)                    the answer, finish_reason "stop"
#   ai 6.0.326 with @ai-sdk/openai 3.0.141 (npm)      the answer, finishReason "other"
#   ai with @ai-sdk/openai-compatible 2.0.92 (npm)    the answer, finishReason "error"
#   openai 6.49.0 (npm), stream()                     raises
#   @anthropic-ai/sdk 1.14.0 (npm), finalMessage()    raises
#
# So the two SDKs of each vendor differ, and so do two providers of one SDK; pydantic-ai says that the model stopped by
# itself, which nobody told it. Where it matters, take an answer without a reason for its end as a failure.
# Source: https://docs.claude.com/en/docs/build-with-claude/streaming, https://platform.openai.com/docs/api-reference
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openai==3.57.0 anthropic==2.14.0 \
    openai-agents==0.24.0 'pydantic-ai-slim[openai]==2.68.0' 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" openai@6.49.0 @anthropic-ai/sdk@1.14.0 ai@6.0.326 \
    @ai-sdk/openai@3.0.141 @ai-sdk/openai-compatible@2.0.92 >/dev/null
cat >"$folder/ask.mjs" <<'JS'
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import OpenAI from "openai";
const baseURL = process.argv[2], body = { model: "m", messages: [{ role: "user", content: "Do they?" }] };
const options = { name: "gateway", baseURL, apiKey: "none" };
const text = async (model) => {
  const answer = streamText({ model, prompt: "Do they?", onError() {} });
  return [await answer.text, await answer.finishReason];
};
const clients = {
  "@ai-sdk/openai": () => text(createOpenAI(options).chat("m")),
  "@ai-sdk/openai-compatible": () => text(createOpenAICompatible(options)("m")),
  "openai of npm": () => new OpenAI({ baseURL }).chat.completions.stream(body).finalChatCompletion(),
  "@anthropic-ai/sdk": () => new Anthropic(options).messages.stream({ ...body, max_tokens: 9 }).finalMessage(),
};
for (const [name, ask] of Object.entries(clients))
  console.log(JSON.stringify([name, await ask().catch(() => "raises")]));
JS
cat >"$folder/ask.py" <<'PYTHON'
import asyncio, http.server, json, subprocess, sys, threading

import agents, anthropic, openai, pydantic_ai
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

TEXT, BODY = "The tests pass, but", {"model": "m", "messages": [{"role": "user", "content": "Do they?"}]}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
CHOICE = {"index": 0, "delta": {"role": "assistant", "content": TEXT}, "finish_reason": None}
OPENAI = [{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [CHOICE]}]
ANTHROPIC = [
    {"type": "message_start", "message": MESSAGE | {"usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
]


class Gateway(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in ANTHROPIC if self.path.endswith("/messages") else OPENAI:
            data = f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


gateway = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
threading.Thread(target=gateway.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{gateway.server_port}"


def of_openai():
    with openai.OpenAI(base_url=URL).chat.completions.stream(**BODY) as stream:
        choice = stream.get_final_completion().choices[0]
    return [choice.message.content, choice.finish_reason]


def of_anthropic():
    with anthropic.Anthropic(base_url=URL, api_key="none").messages.stream(**BODY, max_tokens=9) as stream:
        message = stream.get_final_message()
    return [message.content[0].text, message.stop_reason]


async def of_agents():
    model = agents.OpenAIChatCompletionsModel("m", openai.AsyncOpenAI(base_url=URL))
    run = agents.Runner.run_streamed(agents.Agent("a", model=model), "Do they?")
    return [[event async for event in run.stream_events()] and run.final_output, run.is_complete]


async def of_pydantic():
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=URL, api_key="none"))
    async with pydantic_ai.Agent(model).run_stream("Do they?") as run:
        return [await run.get_output(), run.all_messages()[-1].finish_reason]


seen = {"openai": of_openai(), "anthropic": of_anthropic(), "openai-agents": asyncio.run(of_agents())}
of_npm = subprocess.run(["node", sys.argv[1], URL], stdout=-1, text=True, check=True).stdout
seen |= {"pydantic-ai": asyncio.run(of_pydantic())} | dict(map(json.loads, of_npm.splitlines()))
print(*(f"{name}: {answer}" for name, answer in seen.items()), sep="\n")
ends = [None, None, True, "stop", "other", "error", "raises", "raises"]
assert list(seen.values()) == [end if end == "raises" else [TEXT, end] for end in ends], "it has changed"
PYTHON
env -i PATH="$PATH" HOME="$folder" OPENAI_API_KEY=none OPENAI_AGENTS_DISABLE_TRACING=1 "$folder/venv/bin/python" \
    -W ignore "$folder/ask.py" "$folder/ask.mjs" 2>"$folder/stderr" || { tail -3 "$folder/stderr"; exit 1; }
