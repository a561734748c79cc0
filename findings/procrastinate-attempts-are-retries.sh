#!/usr/bin/env bash
# Procrastinate 3.10.0 beside DBOS 3.4.0 and tenacity 9.2.1 (PyPI): how often a task that always fails is run, when it
# is given the same number of attempts.
#
# `max_attempts=3` means three runs to DBOS, as stop_after_attempt(3) does to tenacity. Procrastinate's
# RetryStrategy(max_attempts=3) counts what comes after the first run, and makes four. And 0, the smallest number, is
# no bound at all: RetryStrategy(max_attempts=0) tries for ever, without a pause, while `retry=0` on the task means no
# retry. Where each run costs money, this is a fourth bill, or one without an end.
# Source: https://procrastinate.readthedocs.io/en/stable/howto/advanced/retry.html
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check procrastinate==3.10.0 dbos==3.4.0 tenacity==9.2.1 \
    2>/dev/null
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 120 "$folder/venv/bin/python" - <<'PYTHON'
import asyncio, logging

import procrastinate, tenacity
from dbos import DBOS
from procrastinate.testing import InMemoryConnector

logging.disable(logging.CRITICAL)
ENOUGH = 25
runs = 0


def fail():
    global runs
    runs += 1
    if runs >= ENOUGH:
        raise SystemError("this is not tried again")
    raise ValueError("it always fails")


async def by_procrastinate(retry):
    app = procrastinate.App(connector=InMemoryConnector())

    @app.task(name="task", retry=retry)
    async def task():
        fail()

    async with app.open_async():
        await task.defer_async()
        await app.run_worker_async(wait=False, install_signal_handlers=False)


def strategy(number):
    return procrastinate.RetryStrategy(max_attempts=number, retry_exceptions=[ValueError])


def by_tenacity():
    tenacity.retry(stop=tenacity.stop_after_attempt(3))(fail)()


DBOS(config={"name": "finding", "system_database_url": "sqlite:///dbos.db", "run_admin_server": False})
step = DBOS.step(retries_allowed=True, max_attempts=3, interval_seconds=0.01)(fail)
by_dbos = DBOS.workflow()(lambda: step())
DBOS.launch()
ways = {
    "tenacity, stop_after_attempt(3)": by_tenacity,
    "DBOS, max_attempts=3": by_dbos,
    "Procrastinate, RetryStrategy(max_attempts=3)": lambda: asyncio.run(by_procrastinate(strategy(3))),
    "Procrastinate, RetryStrategy(max_attempts=1)": lambda: asyncio.run(by_procrastinate(strategy(1))),
    "Procrastinate, RetryStrategy(max_attempts=0)": lambda: asyncio.run(by_procrastinate(strategy(0))),
    "Procrastinate, retry=0": lambda: asyncio.run(by_procrastinate(0)),
}
counts = []
for name, way in ways.items():
    runs = 0
    try:
        way()
    except Exception:
        pass
    counts.append(runs)
    print(f"{name}: {runs} runs{', and it would go on' if runs == ENOUGH else ''}", flush=True)
DBOS.destroy()
assert counts == [3, 3, 4, 2, ENOUGH, 1], "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-11:
# tenacity, stop_after_attempt(3): 3 runs
# DBOS, max_attempts=3: 3 runs
# Procrastinate, RetryStrategy(max_attempts=3): 4 runs
# Procrastinate, RetryStrategy(max_attempts=1): 2 runs
# Procrastinate, RetryStrategy(max_attempts=0): 25 runs, and it would go on
# Procrastinate, retry=0: 1 runs
