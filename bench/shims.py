"""How many runs of ``true`` a second can be started and seen to their end: a fork server against interpreters.

Both ways start the same shim with the same files and the same flushes to disk, in turns, several times.
"""

import os
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
from claudomator_py.hosts.local.launcher import Launcher

RUNS = 100
ROUNDS = 5
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}
LIMITS = RunLimits(timeout_ms=60_000, stall_ms=None, grace_ms=100, output_bytes=1 << 20)
INTERPRETER = (
    "import sys; sys.path.append(sys.argv.pop(1)); from claudomator_py.hosts.shim.main import main; main()",
    str(Path(__file__).parents[1]),
)

Start = Callable[[Path], None]


def measure() -> None:
    """Print the median and the range of runs a second, for each way."""
    launcher = Launcher()

    def by_fork_server(path: Path) -> None:
        launcher.start(path, ENVIRONMENT)

    ways: dict[str, Start] = {
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
        for path in paths:
            start(path)
        for path in paths:
            while not (path / "exit.json").exists():
                time.sleep(0.001)
        end = time.perf_counter()
        for path in paths:
            while decide_fate(path).fate is not RunFate.ENDED:
                time.sleep(0.001)
    return RUNS / (end - begin)


def by_interpreter(path: Path) -> None:
    """One interpreter for each shim, as a daemon without a fork server starts it."""
    subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", *INTERPRETER, str(path)], env=ENVIRONMENT, stdin=subprocess.DEVNULL
    )
