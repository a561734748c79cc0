"""A start with a great many runs that live, which the daemon before it left behind when it was killed."""

import os
import shlex
import sys
import time
from contextlib import suppress

from bench.subjects import EXPLICIT, Claudomator, open_claudomator
from tests.e2e.processes import cpu_s

RUNS = int(os.environ.get("BENCH_RUNS", "999"))
"""With the first task, as many as there may be at all."""


def measure() -> None:
    """Print when the daemon answers, and when it starts the first task that was queued meanwhile."""
    with open_claudomator(EXPLICIT, slots=RUNS + 1) as subject:
        # Each waits until somebody opens this for writing, so that all of them end together.
        gate = subject.site.root / "gate"
        os.mkfifo(gate)
        subject.add_agent("lasting", ["sh", "-c", f"read word < {shlex.quote(str(gate))}"])
        subject.start()
        try:
            _measure(subject)
        finally:
            _open(subject, gate)


def _measure(subject: Claudomator) -> None:
    began = time.perf_counter()
    for _ in range(RUNS):
        subject.drop("lasting")
    subject.wait_for(lambda: subject.count("state = 'running' AND live", "run") >= RUNS, f"{RUNS} runs")
    started_s = time.perf_counter() - began
    subject.running.kill()
    subject.drop("fifo")
    ready_ms = 0.0

    def start() -> None:
        nonlocal ready_ms
        ready_ms = subject.start()

    dispatched_ms = subject.hear(start)
    figures = (started_s, ready_ms / 1000, dispatched_ms / 1000, cpu_s(subject.running.pid))
    sys.stdout.write(
        "| live runs | made in, s | answers after, s | starts the first task after, s | CPU by then, s |\n"
    )
    sys.stdout.write("|---:|---:|---:|---:|---:|\n")
    sys.stdout.write(f"| {RUNS:,} | {' | '.join(f'{figure:.2f}' for figure in figures)} |\n")


def _open(subject: Claudomator, gate: os.PathLike[str]) -> None:
    """Let the runs end, and see them to their end: to find and kill so many would take longer."""

    def ended() -> bool:
        with suppress(OSError):  # nobody reads
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        return subject.count("live", "run") == 0

    if not subject.running.running:
        subject.start()
    subject.wait_for(ended, "the end of all runs")
