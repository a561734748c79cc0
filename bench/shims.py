"""How many runs of ``true`` a second can be started and seen to their end: shims that take one run after the other, two
at a time, a fork for each run, and an interpreter for each.

All ways start the same shim with the same files and the same flushes to disk, in turns, several times.
"""

import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from claudomator_py.domain.run import RunFate, RunLimits, RunSpec
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.launcher import Launcher, Shim

RUNS = 100
ROUNDS = 5
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}
LIMITS = RunLimits(timeout_ms=60_000, stall_ms=None, grace_ms=100, output_bytes=1 << 20)
INTERPRETER = (
    "import sys; sys.path.append(sys.argv.pop(1)); from claudomator_py.hosts.shim.main import main; main()",
    str(Path(__file__).parents[1]),
)

SLOTS = 2

Start = Callable[[list[Path]], None]
"""Begins these runs."""


def measure() -> None:
    """Print the median and the range of runs a second, for each way."""
    launcher = Launcher()

    def by_few(paths: list[Path]) -> None:
        running: list[Shim] = []
        for path in paths:
            if len(running) == SLOTS:
                wait_for(running[0])
                launcher.take_back(running.pop(0))
            running.append(launcher.start(path, ENVIRONMENT))
        for shim in running:
            launcher.take_back(shim)

    def by_fork_server(paths: list[Path]) -> None:
        for path in paths:
            launcher.start(path, ENVIRONMENT).close()

    ways: dict[str, Start] = {
        "one by one": by_few,
        "fork server": by_fork_server,
        "interpreter": by_interpreter,
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for _ in range(ROUNDS):
            for name, start in ways.items():
                rates[name].append(rate(start))
    finally:
        launcher.close()
    for name, figures in rates.items():
        low, middle, high = min(figures), statistics.median(figures), max(figures)
        sys.stdout.write(f"  {name:<12} {middle:6.0f} runs/s  ({low:.0f} to {high:.0f}, {ROUNDS} rounds of {RUNS})\n")


def rate(start: Start) -> float:
    """Runs a second, from the first start to the last exit record; making the directories is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(number) for number in range(RUNS)]
        for path in paths:
            RunDirectory(path).create(RunSpec(path.name, (("true",),), None, (), tuple(ENVIRONMENT), "", LIMITS))
        begin = time.perf_counter()
        start(paths)
        for path in paths:
            while not (path / "exit.json").exists():
                time.sleep(0.001)
        end = time.perf_counter()
        for path in paths:
            while decide_fate(path).fate is not RunFate.ENDED:
                time.sleep(0.001)
    return RUNS / (end - begin)


def by_interpreter(paths: list[Path]) -> None:
    """One interpreter for each shim, as a daemon without a fork server starts it."""
    for path in paths:
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", *INTERPRETER, str(path)], env=ENVIRONMENT, stdin=subprocess.DEVNULL
        )


def wait_for(shim: Shim) -> None:
    """Wait for the end of its run."""
    if (word := shim.listen()) is not None:
        with word:
            select.select([word], [], [])
