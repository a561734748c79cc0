#!/usr/bin/env bash
# LangGraph 1.2.24 (PyPI), RetryPolicy(max_attempts=3) with its default for what is retried: how often a node runs that
# raises one of these, as clients of services and programs do.
#
#   TimeoutError, which asyncio.wait_for and sockets raise        once
#   OSError, socket.gaierror (no such name for now)               once
#   requests.Timeout, requests.ConnectionError                    once; both are subclasses of OSError
#   httpx, answer 429                                             once; requests, answer 429: three times
#   ConnectionResetError, httpx.ReadTimeout, answers 503          three times
#   openai.AuthenticationError, a refused key                     three times
#   subprocess.CalledProcessError, a test that fails              three times
#
# What is not retried is a list of exceptions of Python that stand for mistakes in the program, with OSError in it; all
# else is. So the same outage is retried behind one HTTP client and not behind another, a limit on requests is retried
# with requests only, and a timeout that the node sets for itself never is, though one by `timeout=` of the node is. Of
# an answer that requests refuses, the status is not looked at: `if exc.response` is False for each. Give retry_on.
# Source: https://docs.langchain.com/oss/python/langgraph/use-graph-api ("Add retry policies") names the list;
# https://github.com/langchain-ai/langgraph/issues/8802 tells of requests.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24 openai==3.57.0 httpx==0.28.1 \
    requests==2.34.2 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import socket
import subprocess

import httpx
import openai
import requests
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

POLICY = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
REQUEST = httpx.Request("GET", "http://127.0.0.1")


def answer(client, status):
    """What raise_for_status() raises."""
    response = client.Response() if client is requests else client.Response(status, request=REQUEST)
    response.status_code = status
    response.raise_for_status()


def refused_key():
    raise openai.AuthenticationError("refused", response=httpx.Response(401, request=REQUEST), body=None)


def throw(error):
    raise error


nodes = {
    "asyncio.wait_for": lambda: asyncio.run(asyncio.wait_for(asyncio.sleep(9), 0.01)),
    "OSError": lambda: throw(OSError("outage")),
    "socket.gaierror": lambda: throw(socket.gaierror("outage")),
    "requests.Timeout": lambda: throw(requests.Timeout("outage")),
    "requests.ConnectionError": lambda: throw(requests.ConnectionError("outage")),
    "httpx, 429": lambda: answer(httpx, 429),
    "requests, 429": lambda: answer(requests, 429),
    "ConnectionResetError": lambda: throw(ConnectionResetError("outage")),
    "httpx.ReadTimeout": lambda: throw(httpx.ReadTimeout("outage")),
    "httpx, 503": lambda: answer(httpx, 503),
    "requests, 503": lambda: answer(requests, 503),
    "openai.AuthenticationError": refused_key,
    "subprocess.CalledProcessError": lambda: subprocess.run(["false"], check=True),
}
seen = {}
for name, work in nodes.items():
    runs = []

    def node(state, work=work, runs=runs):
        runs.append(name)
        work()

    graph = StateGraph(dict).add_node("node", node, retry_policy=POLICY).add_edge(START, "node").compile()
    try:
        graph.invoke({"task": 1})
    except Exception as error:
        print(f"{name}: {type(error).__name__}, {len(runs)} run(s)")
    seen[name] = len(runs)
assert list(seen.values()) == [1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3], "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-12:
# asyncio.wait_for: TimeoutError, 1 run(s)
# requests.ConnectionError: ConnectionError, 1 run(s)
# httpx, 429: HTTPStatusError, 1 run(s)
# requests, 429: HTTPError, 3 run(s)
# openai.AuthenticationError: AuthenticationError, 3 run(s)
