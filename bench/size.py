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

from bench.grown import copy, part_lanes
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
        subject.add_agent("blocked", [PROGRAM], auto_select=True)
        subject.start()
        subject.run_all(1)
        subject.stop()
        for size in SIZES:
            with opened(subject) as connection:
                copy(connection, "COMPLETED", range(subject.count("1 = 1"), size))
            _tell(f"{size:,}", _figures(subject, spooler))
        subject.start()
        subject.running.client.hold("blocked")
        subject.drop("blocked")
        subject.wait_for(lambda: subject.count("state = 'QUEUED'") == 1, "a task that is blocked")
        subject.stop()
        with opened(subject) as connection:
            copy(connection, "QUEUED", range(2 * SIZES[-1], 2 * SIZES[-1] + BLOCKED))
        _tell(f"and {BLOCKED:,} blocked", _figures(subject, spooler))
        with opened(subject) as connection:
            part_lanes(connection)
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


@contextmanager
def opened(subject: Claudomator) -> Iterator[sqlite3.Connection]:
    """Its database, as long as the daemon does not run."""
    with closing(sqlite3.connect(subject.site.state / "claudomator.db")) as connection:
        yield connection
        connection.commit()
