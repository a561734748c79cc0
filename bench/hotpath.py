"""What a task costs that does next to nothing (``true``), and what the daemon costs beside its tasks.

Everything takes its turn with everything else, so that each sees the machine in the same state: once with an explicit
agent and no routing, once with the specialists that come with it and the encoder ``hashed``, and task-spooler.

CPU is that of the daemon alone, from ``/proc/PID/stat``: it leaves out the shims and what they run. Tasks a second
count from the first file until the last task has ended.
"""

import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.floor import open_floor
from bench.start import Home, idle, spooler_commands
from bench.subjects import EXPLICIT, ROUTED, SLOTS, Claudomator, Subject, open_claudomator, open_spooler
from tests.e2e.processes import cpu_s

TASKS = int(os.environ.get("BENCH_TASKS", "100"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
FILES = int(os.environ.get("BENCH_FILES", "10000"))
LATENCIES = 40
STARTS = 5
CONFIGURATIONS = {"explicit agent": EXPLICIT, "specialists, `hashed`": ROUTED}
TSP = "task-spooler"
FLOOR = "floor"
"""See ``bench.floor``."""

Samples = defaultdict[tuple[str, str], list[float]]
"""By line and subject."""


@dataclass(frozen=True, slots=True)
class Line:
    """Of the table. bar: what it must reach, aim: what it is to reach; as a share of task-spooler's where compared."""

    figure: str
    digits: int
    bar: float
    aim: float
    compared: bool = False


LINES = {
    "cpu": Line("CPU of the daemon by task, ms", 1, 8, 4),
    "rate": Line(f"tasks a second, {SLOTS} slots", 1, 0.2, 0.6, compared=True),
    "latency": Line("file renamed until its program runs, ms", 1, 3, 1.5, compared=True),
    "files": Line(f"accept {FILES:,} files at start, s of CPU", 2, 20, 8),
    "ready": Line(f"answers, with {FILES:,} files there, after s", 2, 2, 1),
    "start": Line("start until ready, s of CPU", 2, 1, 0.6),
    "version": Line("`claudomator --version`, s of CPU", 3, 0.15, 0.1),
    "status": Line("`claudomator status`, s of CPU", 3, 0.3, 0.2),
    "idle": Line("idle, % of CPU", 2, 0.3, 0.1),
    "memory": Line("idle, MiB", 0, 100, 80),
}


def measure() -> None:
    """Print the table."""
    samples: Samples = defaultdict(list)
    _tasks(samples)
    for name, config in CONFIGURATIONS.items():
        with open_claudomator(config) as subject:
            _accept(samples, name, subject)
    _commands(samples)
    for line in table(samples):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"\n{least(samples)}\n")


def _tasks(samples: Samples) -> None:
    with ExitStack() as stack:
        subjects: dict[str, Subject] = {}
        for name, config in CONFIGURATIONS.items():
            subjects[name] = subject = stack.enter_context(open_claudomator(config))
            subject.start()
        if (spooler := stack.enter_context(open_spooler())) is not None:
            subjects[TSP] = spooler
        for each in subjects.values():
            each.run_all(2 * SLOTS)  # what is done once
            each.latency_ms()
        floor = stack.enter_context(open_floor())
        floor.latency_ms()
        for _ in range(ROUNDS):
            for name, each in subjects.items():
                cpu_ms, rate = each.run_all(TASKS)
                samples["cpu", name].append(cpu_ms)
                samples["rate", name].append(rate)
        for _ in range(LATENCIES):
            for name, each in subjects.items():
                samples["latency", name].append(each.latency_ms())
            samples["latency", FLOOR].append(floor.latency_ms())


def _accept(samples: Samples, name: str, subject: Claudomator) -> None:
    """It starts no task meanwhile."""
    subject.start()
    subject.running.client.drain()
    subject.stop()
    for _ in range(FILES):
        subject.drop()
    samples["ready", name].append(subject.start() / 1000)
    subject.wait_for(lambda: subject.count("1 = 1") >= FILES, f"{FILES} files")
    samples["files", name].append(cpu_s(subject.running.pid))
    subject.stop()


def _commands(samples: Samples) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        homes = {
            name: Home(Path(folder) / str(number), CONFIGURATIONS[name]) for number, name in enumerate(CONFIGURATIONS)
        }
        for turn in range(STARTS + 1):
            for name, home in homes.items():
                taken_s, _ = home.started()
                if turn > 0:  # the first makes the database
                    samples["start", name].append(taken_s)
        daemons = {name: stack.enter_context(home.daemon()) for name, home in homes.items()}
        for _ in range(STARTS):
            for name, home in homes.items():
                samples["version", name].append(home.command("--version"))
                samples["status", name].append(home.command("status"))
            for key, taken_s in spooler_commands(Path(folder)).items():
                samples[key, TSP].append(taken_s)
        for name, (share, mebibytes) in idle(daemons).items():
            samples["idle", name].append(share * 100)
            samples["memory", name].append(mebibytes)


def table(samples: Mapping[tuple[str, str], list[float]]) -> Iterator[str]:
    """The lines of the table, in Markdown: medians, and how they compare with task-spooler."""
    columns = (*CONFIGURATIONS, TSP)
    yield f"| figure | {' | '.join(columns)} | bar | aim |"
    yield f"|---|{'---:|' * (len(columns) + 2)}"
    for key, line in LINES.items():
        peer = _median(samples, key, TSP)
        cells = [_cell(line, _median(samples, key, name), peer if name != TSP else None) for name in columns]
        by = " x" if line.compared else ""
        yield f"| {line.figure} | {' | '.join(cells)} | {line.bar:g}{by} | {line.aim:g}{by} |"


def least(samples: Mapping[tuple[str, str], list[float]]) -> str:
    """What the time until a program runs is to be compared with, besides task-spooler's."""
    cell = _cell(LINES["latency"], statistics.median(samples["latency", FLOOR]), _median(samples, "latency", TSP))
    return f"Until a program runs that is started as durably, with nothing to decide (`bench/floor.py`), ms: {cell}."


def _median(samples: Mapping[tuple[str, str], list[float]], key: str, name: str) -> float | None:
    results = samples.get((key, name))
    return statistics.median(results) if results else None


def _cell(line: Line, figure: float | None, peer: float | None) -> str:
    if figure is None:
        return "-"
    ratio = f" ({figure / peer:.2g} x)" if line.compared and peer else ""
    return f"{figure:,.{line.digits}f}{ratio}"
