#!/usr/bin/env bash
# LangChain 1.5.2 with langchain-openai 1.7.4 (PyPI): a service that is down, and refuses every request with 503, and
# what a run of create_agent() comes to.
#
#                                                    requests   the run
#   no middleware                                    3          raises
#   ModelRetryMiddleware()                           9          ends with an answer
#   ModelRetryMiddleware(on_failure="error")         9          raises
#   a refused key (401), in all three                1          raises
#
# The middleware is added for runs that should survive an outage. When its retries are used up, it returns a message of
# the assistant with the text "Model call failed after 3 attempts with ...", and the run ends as one that is done; the
# default of tools, whose error the model is to see, is that of models, too, whose error nobody is left to see. The
# message has neither a reason for its end nor a usage. The retries are those of the SDK, two, times its own, two. So a
# run that raised without the middleware succeeds with it, and a supervisor that retries failures does not.
# Source: https://docs.langchain.com/oss/python/langchain/middleware/built-in ("Model retry"),
# https://reference.langchain.com/python/langchain/agents/middleware/model_retry
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain==1.5.2 langchain-openai==1.7.4 2>/dev/null
cat >"$folder/ask.py" <<'PYTHON'
import http.server, importlib.metadata, threading

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_openai import ChatOpenAI

requests = 0


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global requests
        requests += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path.split("/")[1]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    log_message = lambda *_: None


service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()


def run(status, middleware):
    """Return the number of requests, and how the run ended."""
    global requests
    requests = 0
    url = f"http://127.0.0.1:{service.server_port}/{status}"
    agent = create_agent(ChatOpenAI(model="m", base_url=url, api_key="none"), [], middleware=middleware)
    try:
        last = agent.invoke({"messages": "Fix the build."})["messages"][-1]
    except Exception as error:
        print(f"   {status}: {requests} requests, raises {type(error).__name__}", flush=True)
        return requests, "raises"
    print(f"   {status}: {requests} requests, {last.type}: {last.content!r}", flush=True)
    assert last.type == "ai" and not last.response_metadata and not last.usage_metadata, "it has changed"
    return requests, "an answer"


print("langchain", importlib.metadata.version("langchain"))
seen = []
for name, middleware in {
    "no middleware": [],
    "ModelRetryMiddleware()": [ModelRetryMiddleware(initial_delay=0.01)],
    'ModelRetryMiddleware(on_failure="error")': [ModelRetryMiddleware(initial_delay=0.01, on_failure="error")],
}.items():
    print(name)
    seen += [run(503, middleware), run(401, middleware)]
refused = (1, "raises")
expected = [(3, "raises"), refused, (9, "an answer"), refused, (9, "raises"), refused]
assert seen == expected, "it has changed"
PYTHON
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 200 "$folder/venv/bin/python" -W ignore ask.py
# Seen with Python 3.11, twice, 2026-12:
# langchain 1.5.2
# no middleware
#    503: 3 requests, raises OpenAIAPIError
#    401: 1 requests, raises OpenAIAuthenticationError
# ModelRetryMiddleware()
#    503: 9 requests, ai: 'Model call failed after 3 attempts with OpenAIAPIError: Error code: 503'
#    401: 1 requests, raises OpenAIAuthenticationError
# ModelRetryMiddleware(on_failure="error")
#    503: 9 requests, raises OpenAIAPIError
#    401: 1 requests, raises OpenAIAuthenticationError
