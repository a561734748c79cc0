"""What a database that has grown costs: a start, a task, and what people ask, with as many ended tasks in it; at last
with tasks that cannot start besides, each in a lane of its own.

A task is run, and it is copied with its run, its content, its decisions and its events, a second of the past apart, as
if each had been accepted and had ended then. ``BENCH_SIZES`` names other sizes, in tasks, with commas between them.
"""

import os
import sqlite3
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from bench.subjects import EXPLICIT, PROGRAM, SLOTS, Claudomator, Spooler, open_claudomator, open_spooler
from claudomator_py.domain.requests import TaskFilter
from tests.e2e.daemon import Daemon
from tests.e2e.processes import cpu_s

SIZES = tuple(int(size) for size in os.environ.get("BENCH_SIZES", "1000,100000,1000000").split(","))
BLOCKED = int(os.environ.get("BENCH_BLOCKED", "20000"))
TASKS = 100
ROUNDS = 3
LATENCIES = 20
ASKED = 7
IDLE_S = 10.0
APART_MS = 1_000
_COPIED = ("task", "task_revision", "run", "decision", "event")

_QUESTIONS: dict[str, Callable[[Daemon], object]] = {
    "status": lambda daemon: daemon.client.status(),
    "200 tasks": lambda daemon: daemon.client.tasks(TaskFilter(), limit=200),
    "by state": lambda daemon: daemon.client.tasks(TaskFilter(state="COMPLETED"), limit=50),
    "why": lambda daemon: daemon.client.why(daemon.client.tasks(TaskFilter(), limit=1).items[0].id),
}


def measure() -> None:
    """Print the figures of each size, and of task-spooler in the same minute."""
    columns = (
        "start, s of CPU",
        "answers after, s",
        "by task, ms of CPU",
        "tasks/s",
        "its, of tsp",
        "until it runs, ms",
        "its, of tsp",
        *(f"{name}, ms" for name in _QUESTIONS),
        "idle, % of CPU",
    )
    sys.stdout.write(f"| tasks | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}\n")
    with open_claudomator(EXPLICIT) as subject, open_spooler() as spooler:
        subject.add_agent("blocked", [PROGRAM])
        subject.start()
        subject.run_all(1)
        subject.stop()
        for size in SIZES:
            copy(subject, "COMPLETED", range(subject.count("1 = 1"), size))
            _tell(f"{size:,}", _figures(subject, spooler))
        subject.start()
        subject.running.client.hold("blocked")
        subject.drop("blocked")
        subject.wait_for(lambda: subject.count("state = 'QUEUED'") == 1, "a task that is blocked")
        subject.stop()
        copy(subject, "QUEUED", range(2 * SIZES[-1], 2 * SIZES[-1] + BLOCKED))
        _tell(f"and {BLOCKED:,} blocked", _figures(subject, spooler))
        _part_lanes(subject)
        _tell(f"and {BLOCKED:,} blocked lanes", _figures(subject, spooler))


def _tell(name: str, figures: Sequence[float | None]) -> None:
    cells = ["-" if figure is None else f"{figure:,.2f}" for figure in figures]
    sys.stdout.write(f"| {' | '.join([name, *cells])} |\n")
    sys.stdout.flush()


def _figures(subject: Claudomator, spooler: Spooler | None) -> list[float | None]:
    answers_s = subject.start() / 1000
    daemon = subject.running
    started_s = cpu_s(daemon.pid)
    subject.run_all(SLOTS)  # what is done once
    samples = defaultdict[str, list[float]](list)
    for _ in range(ROUNDS):
        cpu_ms, rate = subject.run_all(TASKS)
        samples["cpu"].append(cpu_ms)
        samples["rate"].append(rate)
        if spooler is not None:
            samples["rate of tsp"].append(spooler.run_all(TASKS)[1])
    for _ in range(LATENCIES):
        samples["late"].append(subject.latency_ms())
        if spooler is not None:
            samples["late of tsp"].append(spooler.latency_ms())
    medians = {name: statistics.median(figures) for name, figures in samples.items()}
    asked = [_asked(daemon, question) for question in _QUESTIONS.values()]
    before_s, began = cpu_s(daemon.pid), time.monotonic()
    time.sleep(IDLE_S)
    idle = (cpu_s(daemon.pid) - before_s) / (time.monotonic() - began)
    subject.stop()
    rates, lates = (medians.get("rate of tsp"), medians.get("late of tsp"))
    return [
        started_s,
        answers_s,
        medians["cpu"],
        medians["rate"],
        medians["rate"] / rates if rates else None,
        medians["late"],
        medians["late"] / lates if lates else None,
        *asked,
        idle * 100,
    ]


def _asked(daemon: Daemon, question: Callable[[Daemon], object]) -> float:
    """Milliseconds until the answer, the median of several."""
    taken = []
    for _ in range(ASKED):
        began = time.perf_counter()
        question(daemon)
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def copy(subject: Claudomator, state: str, numbers: range, apart_ms: int = APART_MS) -> None:
    """Copy a task of that state, with what belongs to it, once for each number."""
    with opened(subject) as connection:
        (first,) = connection.execute("SELECT id FROM task WHERE state = ? LIMIT 1", (state,)).fetchone()
        connection.execute("CREATE TEMP TABLE n (i INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO n VALUES (?)", ((number,) for number in numbers))
        for table in _COPIED:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            values = ", ".join(_copied(table, name, apart_ms) for name in columns)
            of_first = "id" if table == "task" else "task_id"
            connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table}, n WHERE {of_first} = ?",  # noqa: S608 - its own tables
                (first,),
            )


def _part_lanes(subject: Claudomator) -> None:
    """Have each of the blocked tasks be in a lane of its own."""
    with opened(subject) as connection:
        connection.execute("UPDATE task SET eligibility = eligibility || id WHERE state = 'QUEUED'")


@contextmanager
def opened(subject: Claudomator) -> Iterator[sqlite3.Connection]:
    """Its database, as long as the daemon does not run."""
    with closing(sqlite3.connect(subject.site.state / "claudomator.db")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection
        connection.commit()


def _copied(table: str, column: str, apart_ms: int) -> str:
    """The column of a copy, in SQL."""
    if (table, column) == ("event", "id"):
        # Before all that have happened: else those who follow events would have as many new ones to read.
        return f"{column} - {apart_ms} * n.i"
    if column in ("id", "task_id", "run_id", "last_run_id", "supersedes"):
        return f"{column} || '-' || n.i"
    if column == "name" and table == "task":
        return "'copy-' || n.i"
    return f"{column} - {apart_ms} * n.i" if column.endswith("_ms") else column
