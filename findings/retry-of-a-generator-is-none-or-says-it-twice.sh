#!/usr/bin/env bash
# tenacity 9.2.1, backoff 2.2.1 and stamina 26.1.0 (PyPI): what their decorators do with a function that yields, as one
# that passes a model's answer on while it streams.
#
#                                tenacity, backoff                stamina
#   a function, a coroutine      three attempts                   three attempts
#   a generator, also async      one: it is not retried           three, but what was yielded is yielded again
#   a function that returns      one: it is not retried           one: it is not retried
#     a coroutine
#
# Calling a generator function only makes the generator, which never fails: the first two retry that, and let go of it
# before its first line runs. So a decorated function stops to be retried on the day it streams, without a warning and
# with a test of the client that still passes. stamina knows generators and starts them anew, so its caller gets the
# beginning of a sentence twice. A lambda, functools.partial or a plain function that returns a coroutine is a coroutine
# function to none of them. Retry up to the first chunk, and not after it.
# Source: https://tenacity.readthedocs.io/en/latest/ ("Async and retry"), https://github.com/litl/backoff,
# https://stamina.hynek.me/en/stable/api.html
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tenacity==9.2.1 backoff==2.2.1 stamina==26.1.0 \
    2>/dev/null
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio

import backoff
import stamina
import tenacity

stamina.instrumentation.set_on_retry_hooks([])
DECORATORS = {
    "tenacity": tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True),
    "backoff": backoff.on_exception(backoff.constant, OSError, max_tries=3, interval=0, jitter=None),
    "stamina": stamina.retry(on=OSError, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0),
}
attempts = 0


def begin():
    global attempts
    attempts += 1


def fail():
    if attempts < 3:
        raise ConnectionError("the stream has broken")


def plain():
    begin()
    fail()
    return ["Hello", " world"]


async def coroutine():
    return plain()


def generator():
    begin()
    yield "Hello"
    fail()
    yield " world"


async def async_generator():
    for chunk in generator():
        yield chunk


def returns_a_coroutine():
    return coroutine()


async def consume(answer):
    if hasattr(answer, "__aiter__"):
        return [chunk async for chunk in answer]
    return list(await answer if hasattr(answer, "__await__") else answer)


seen = {}
for function in (plain, coroutine, generator, async_generator, returns_a_coroutine):
    for name, decorator in DECORATORS.items():
        attempts = 0
        try:
            text = "".join(asyncio.run(consume(decorator(function)())))
        except ConnectionError as error:
            text = f"{type(error).__name__}: {error}"
        print(f"{function.__name__}, {name}: {attempts} attempt(s), {text}")
        seen[function.__name__, name] = attempts, text

whole, broken, twice = (3, "Hello world"), (1, "ConnectionError: the stream has broken"), (3, "HelloHelloHello world")
assert seen == {
    **{(kind, name): whole for kind in ("plain", "coroutine") for name in DECORATORS},
    **{(kind, name): broken for kind in ("generator", "async_generator") for name in ("tenacity", "backoff")},
    **{(kind, "stamina"): twice for kind in ("generator", "async_generator")},
    **{("returns_a_coroutine", name): broken for name in DECORATORS},
}, "it has changed"
PYTHON
