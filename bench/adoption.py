"""A start with a great many runs that live, which the daemon before it left behind when it was killed."""

import os
import sys
import time

from bench.subjects import EXPLICIT, cpu_s, open_claudomator

RUNS = int(os.environ.get("BENCH_RUNS", "1000"))
LASTING = ["sleep", "900"]


def measure() -> None:
    """Print when the daemon answers, and when it starts the first task that was queued meanwhile."""
    with open_claudomator(EXPLICIT, slots=RUNS + 1, lasting=LASTING) as subject:
        subject.start()
        began = time.perf_counter()
        for _ in range(RUNS):
            subject.drop("lasting")
        subject.wait_for(lambda: subject.count("state = 'RUNNING'") >= RUNS, f"{RUNS} runs")
        started_s = time.perf_counter() - began
        subject.running.kill()
        subject.drop("fifo")
        ready_ms = 0.0

        def start() -> None:
            nonlocal ready_ms
            ready_ms = subject.start()

        dispatched_ms = subject.hear(start)
        cpu = cpu_s(subject.running.pid)
        subject.running.kill()
    sys.stdout.write(
        "| live runs | made in, s | answers after, s | starts the first task after, s | CPU by then, s |\n"
    )
    sys.stdout.write("|---:|---:|---:|---:|---:|\n")
    figures = (started_s, ready_ms / 1000, dispatched_ms / 1000, cpu)
    sys.stdout.write(f"| {RUNS:,} | {' | '.join(f'{figure:.2f}' for figure in figures)} |\n")
