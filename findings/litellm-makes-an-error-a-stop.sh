#!/usr/bin/env bash
# LiteLLM 1.110.2 (PyPI) beside the other clients of OpenAI's API: an answer with status 200 whose finish_reason says
# that the model has failed in the middle of it. "error" is what OpenRouter and Mistral send then, "abort" is what vLLM
# sends for a request that was given up, and "model_length" is Mistral's word for a full context window. As the reason:
#
#                                                          length   error   abort   model_length
#   litellm: openai/, openrouter/, mistral/, hosted_vllm/  length   stop    stop    stop
#   langchain-openai 1.7.4 (PyPI)                          length   error   abort   model_length
#   pydantic-ai-slim 2.68.0 (PyPI)                         length   None    None    None
#   ai 6.0.326 with @ai-sdk/openai 3.0.141 (npm)           length   other   other   other
#
# "stop" stands for a model that has come to its own end, so who looks at the reason, as one should, takes half an answer
# for a whole one, and only those who use LiteLLM, which aider, OpenHands and many frameworks stand on. For "abort" and
# "model_length" a warning goes to the log; for "error", which says it most clearly, there is none. The word of the
# service is in provider_specific_fields["native_finish_reason"] of the choice.
# Source: https://openrouter.ai/docs/api-reference/overview (finish_reason), https://docs.mistral.ai/api,
# https://docs.litellm.ai/docs/completion/output, litellm_core_utils/core_helpers.py (map_finish_reason).
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check litellm==1.110.2 langchain-openai==1.7.4 \
    'pydantic-ai-slim[openai]==2.68.0' 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" ai@6.0.326 @ai-sdk/openai@3.0.141 >/dev/null
cat >"$folder/ask.mjs" <<'JS'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText } from 'ai'
const model = createOpenAI({ baseURL: process.argv[2], apiKey: 'none' }).chat('m')
console.log((await generateText({ model, prompt: 'go' })).finishReason)
JS
cat >"$folder/ask.py" <<'PYTHON'
import http.server, importlib.metadata, json, subprocess, threading

import litellm, pydantic_ai
from langchain_openai import ChatOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "The tests pass, but"}
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        answer["choices"] = [{"index": 0, "message": message, "finish_reason": self.path.split("/")[1]}]
        answer["usage"] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    log_message = lambda *_: None


service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()


def by_litellm(model):
    asked = [{"role": "user", "content": "go"}]
    return lambda url: litellm.completion(model, asked, api_base=url, api_key="none").choices[0].finish_reason


def by_langchain(url):
    return ChatOpenAI(model="m", base_url=url, api_key="none").invoke("go").response_metadata["finish_reason"]


def by_pydantic(url):
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="none"))
    return pydantic_ai.Agent(model).run_sync("go").all_messages()[-1].finish_reason


def by_ai(url):
    return subprocess.run(["node", "ask.mjs", url], stdout=-1, check=True, text=True).stdout.strip()


REASONS = ["stop", "length", "error", "abort", "model_length"]
AS_STOP = ["stop", "length", "stop", "stop", "stop"]
clients = {f"litellm, {each}/m": by_litellm(f"{each}/m") for each in ("openai", "openrouter", "mistral", "hosted_vllm")}
expected = dict.fromkeys(clients, AS_STOP)
clients |= {"langchain-openai": by_langchain, "pydantic-ai": by_pydantic, "ai": by_ai}
expected |= {"langchain-openai": REASONS, "pydantic-ai": ["stop", "length", None, None, None]}
expected |= {"ai": ["stop", "length", "other", "other", "other"]}
print("litellm", importlib.metadata.version("litellm"), "for", *REASONS)
seen = {}
for name, client in clients.items():
    seen[name] = [client(f"http://127.0.0.1:{service.server_port}/{reason}") for reason in REASONS]
    print(f"{name}:", *seen[name], flush=True)
assert seen == expected, "it has changed"
PYTHON
cd "$folder"
env -i PATH="$PATH" HOME="$folder" LITELLM_LOCAL_MODEL_COST_MAP=True timeout 200 \
    "$folder/venv/bin/python" -W ignore ask.py 2>stderr || { tail -3 stderr; exit 1; }
sed -n "s/.*\(Unmapped.*\)/on stderr: \1/p" stderr | sort -u | tee warnings
! grep "'error'" warnings || { echo "it has changed: a warning for error"; exit 1; }
# Seen with Python 3.11 and Node.js 20.20.2, twice, 2026-12:
# litellm 1.110.2 for stop length error abort model_length
# litellm, openai/m: stop length stop stop stop (openrouter, mistral and hosted_vllm alike)
# langchain-openai: stop length error abort model_length
# pydantic-ai: stop length None None None
# ai: stop length other other other
# on stderr: Unmapped finish_reason 'abort', defaulting to 'stop'
# on stderr: Unmapped finish_reason 'model_length', defaulting to 'stop'
