#!/usr/bin/env bash
# Dramatiq 2.2.1 (PyPI): what becomes of an agent that needs longer than the time limit of its message (by default ten
# minutes), where the actor starts it as a process, and one retry is left.
#
#   subprocess.run(...)                              the agent ends by itself, with 0; then TimeLimitExceeded is raised,
#                                                    and it runs a second time, to its end
#   await asyncio.create_subprocess_exec(...)        the agent goes on, and beside it a second one begins
#   await asyncio.to_thread(subprocess.run, ...)     the same
#
# Each of these messages is dead at the end, though both agents have succeeded. The limit is an exception that is raised
# in the worker's thread, which comes to it when it runs Python again: not while it waits for a process. In a coroutine,
# the exception ends the wait and not the process. By default a message is retried 20 times. The documentation says that
# a limit cannot cancel system calls; that the work is then complete, and is done again, one sees on the bill. Give the
# process a timeout of its own below the limit (subprocess.run(..., timeout=...) kills it), and raise the limit.
# Source: https://dramatiq.io/guide.html ("Message Time Limits")
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dramatiq==2.2.1 2>/dev/null
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 120 "$folder/venv/bin/python" - <<'PYTHON'
import asyncio, logging, pathlib, subprocess, time

import dramatiq
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware import AsyncIO

logging.disable(logging.CRITICAL)
broker = StubBroker()
broker.add_middleware(AsyncIO())
dramatiq.set_broker(broker)
LOG = pathlib.Path("log")
LIMITS = {"time_limit": 2000, "max_retries": 1, "min_backoff": 100, "max_backoff": 100}


def agent(seconds):
    return ["sh", "-c", f"echo begins >>{LOG}; sleep {seconds}; echo ends >>{LOG}"]


@dramatiq.actor(**LIMITS)
def in_time():
    subprocess.run(agent(0.1), check=True)


@dramatiq.actor(**LIMITS)
def by_subprocess():
    subprocess.run(agent(7), check=True)


@dramatiq.actor(**LIMITS)
async def by_asyncio():
    process = await asyncio.create_subprocess_exec(*agent(7))
    await process.wait()


@dramatiq.actor(**LIMITS)
async def in_a_thread():
    await asyncio.to_thread(subprocess.run, agent(7), check=True)


@dramatiq.actor(**LIMITS)
def with_a_timeout():
    subprocess.run(agent(7), check=True, timeout=0.5)


broker.emit_after("process_boot")
worker = dramatiq.Worker(broker, worker_timeout=100)
worker.start()
seen = {}
for actor in (in_time, by_subprocess, by_asyncio, in_a_thread, with_a_timeout):
    LOG.write_text("")
    dead = len(broker.dead_letters)
    actor.send()
    broker.join(actor.queue_name, fail_fast=False, timeout=60_000)
    worker.join()
    until = time.monotonic() + 30
    while actor is not with_a_timeout and LOG.read_text().count("ends") < LOG.read_text().count("begins"):
        assert time.monotonic() < until, "it has changed: an agent was ended"
        time.sleep(0.1)
    end = "dead" if len(broker.dead_letters) > dead else "done"
    seen[actor.actor_name] = (" ".join(LOG.read_text().split()), end)
    print(f"{actor.actor_name}: {seen[actor.actor_name][0]}; the message is {end}", flush=True)
worker.stop()
assert seen == {
    "in_time": ("begins ends", "done"),
    "by_subprocess": ("begins ends begins ends", "dead"),
    "by_asyncio": ("begins begins ends ends", "dead"),
    "in_a_thread": ("begins begins ends ends", "dead"),
    "with_a_timeout": ("begins begins", "dead"),
}, "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-12:
# in_time: begins ends; the message is done
# by_subprocess: begins ends begins ends; the message is dead
# by_asyncio: begins begins ends ends; the message is dead
# in_a_thread: begins begins ends ends; the message is dead
# with_a_timeout: begins begins; the message is dead
