"""What a database that has grown costs: starting, a task, and what people ask, with as many ended tasks in it.

A task is run, and it is copied with its run, its content, its decisions and its events, a second of the past apart, as
if each had been accepted and had ended then. ``BENCH_SIZES`` names other sizes, in tasks, with commas between them.
"""

import os
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing

from bench.trivial import EXPLICIT, PROGRAM, SLOTS, agent, cpu_s, run_all, site_of
from claudomator_py.domain.views import TaskFilter
from tests.e2e.harness import Daemon, Site

SIZES = tuple(int(size) for size in os.environ.get("BENCH_SIZES", "1000,100000,1000000").split(","))
TASKS = 200
ASKED = 7
APART_MS = 1_000
_COPIED = ("task", "task_revision", "run", "decision", "event")

_QUESTIONS: dict[str, Callable[[Daemon], object]] = {
    "status": lambda daemon: daemon.client.status(),
    "200 tasks": lambda daemon: daemon.client.tasks(TaskFilter(), limit=200),
    "by state": lambda daemon: daemon.client.tasks(TaskFilter(state="COMPLETED"), limit=50),
    "why": lambda daemon: daemon.client.why("first-0"),
}


def measure() -> None:
    """Print the figures of each size."""
    columns = ("start, s CPU", "a task, ms CPU", *(f"{name}, ms" for name in _QUESTIONS))
    sys.stdout.write(f"| ended tasks | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}\n")
    settings = {"concurrency": {"total": SLOTS}, "agents": {"cmd": agent([PROGRAM])}, **EXPLICIT}
    with site_of(settings) as site:
        daemon = site.start().ready()
        run_all(site, daemon, "first", 1)
        daemon.stop()
        for size in SIZES:
            _fill(site, size)
            daemon = site.start().ready()
            figures = [cpu_s(daemon.pid), run_all(site, daemon, f"more-{size}", TASKS)[0]]
            figures += [_asked(daemon, question) for question in _QUESTIONS.values()]
            daemon.stop()
            sys.stdout.write(f"| {size:,} | {' | '.join(f'{figure:.2f}' for figure in figures)} |\n")
            sys.stdout.flush()


def _asked(daemon: Daemon, question: Callable[[Daemon], object]) -> float:
    """Milliseconds until the answer, the median of several."""
    taken = []
    for _ in range(ASKED):
        began = time.perf_counter()
        question(daemon)
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def _fill(site: Site, size: int) -> None:
    """Copy the first task until there are so many."""
    with closing(sqlite3.connect(site.state / "claudomator.db")) as connection:
        (first,) = connection.execute("SELECT id FROM task WHERE name = 'first-0'").fetchone()
        (number,) = connection.execute("SELECT count(*) FROM task").fetchone()
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TEMP TABLE n (i INTEGER PRIMARY KEY)")
        connection.execute(
            "WITH RECURSIVE counted(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM counted WHERE i + 1 < ?) "
            "INSERT INTO n SELECT i FROM counted WHERE i < ?",
            (number, size, size),
        )
        for table in _COPIED:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            columns = [name for name in names if (table, name) != ("event", "id")]
            values = ", ".join(_copied(table, name) for name in columns)
            of_first = "id" if table == "task" else "task_id"
            connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table}, n WHERE {of_first} = ?",  # noqa: S608
                (first,),
            )
        connection.commit()


def _copied(table: str, column: str) -> str:
    """The column of a copy, in SQL."""
    if column in ("id", "task_id", "run_id", "last_run_id", "supersedes"):
        return f"{column} || '-' || n.i"
    if column == "name" and table == "task":
        return "'copy-' || n.i"
    return f"{column} - {APART_MS} * n.i" if column.endswith("_ms") else column
