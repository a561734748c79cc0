"""What a user's daemon costs beside the build of an earlier commit, and beside task-spooler: all take turns in one run.

Files are dropped for an agent of the kind ``command`` that runs ``true``, with two slots; nothing about routing is
configured, so that the shipped specialists are loaded and routing is on. Only the ratios say something of the builds.

The earlier build is taken out of the history: the commit ``BENCH_COMMIT``, or 1c4eaac9 of 26 November. It runs with
the libraries that are installed here; 1c4eaac9 also needs structlog (``pip install structlog``).

Memory is what is resident once all those tasks have been done, by a daemon that is asked for its status; starts are
those of other daemons, which nobody asks. Idle counts from the fifth second after the tasks. A daemon learns from what
tasks that named no agent came to, half a minute after its start: both are started again for that. CPU is that of the
daemon's own process.
"""

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.start import Home, cpu_of_child, idle
from bench.subjects import Claudomator, Subject, open_claudomator, open_spooler
from tests.e2e.processes import cpu_s
from tests.e2e.site import REPOSITORY

COMMIT = os.environ.get("BENCH_COMMIT", "1c4eaac9")
TASKS = int(os.environ.get("BENCH_TASKS", "100"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
LATENCIES = 8
"""In each round."""
IDLE_AFTER_S = 5.0
LEARNING_S = 20.0
"""Until a started daemon learns, and again until it has learned, with ten seconds to spare."""
NOW, TSP = "now", "task-spooler"
LINES = {
    "cpu": ("CPU of the daemon by task, ms", 2, "at most .5"),
    "routed": ("the same if the task names no agent, ms", 2, "at most .5"),
    "learning": ("half a minute later, to learn from such a task, ms", 2, ""),
    "rate": ("tasks a second, two slots", 1, "at least 2"),
    "routed rate": ("the same if the tasks name no agent", 1, "at least 2"),
    "latency": ("file renamed until its program runs, ms", 1, "at most .5"),
    "start": ("CPU until it is ready, s", 2, ""),
    "unasked": ("resident when ready, asked nothing, MiB", 1, ""),
    "memory": ("resident after the work, MiB", 1, "at most .65"),
    "idle": ("idle after the work, % of CPU", 2, ""),
    "status": ("`claudomator status`, s of CPU", 3, ""),
}
"""Each figure, its digits, and what the ratio of this build to the earlier one is to be."""

Samples = Mapping[tuple[str, str], Sequence[float]]
"""By figure and subject."""


class NoHistoryError(Exception):
    """The earlier commit is not in this checkout."""


def measure() -> None:
    """Print the table."""
    for line in table(_samples()):
        sys.stdout.write(f"{line}\n")


def _samples() -> Samples:
    samples: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        builds = {COMMIT: Path(folder, "before"), NOW: Path(folder, "now")}
        daemons: dict[str, Claudomator] = {}
        for (name, build), commit in zip(builds.items(), (COMMIT, None), strict=True):
            command = taken_out(build, commit)
            daemons[name] = daemon = stack.enter_context(open_claudomator({}, command=command))
            daemon.start()
            _check_build(daemon, build)
        subjects: dict[str, Subject] = dict(daemons)
        if (spooler := stack.enter_context(open_spooler())) is not None:
            subjects[TSP] = spooler
        for each in subjects.values():
            each.run_all(TASKS // 5 + 1)  # what is done once
            each.latency_ms()
        for daemon in daemons.values():
            daemon.run_all(TASKS // 5 + 1, agent=None)
        for daemon in daemons.values():
            _status_s(daemon)  # which may compile what it imports
        for number in range(ROUNDS):
            # Who goes first changes, so that none always follows the same one.
            for name, each in sorted(subjects.items(), reverse=number % 2 == 1):
                cpu_ms, rate = each.run_all(TASKS)
                samples["cpu", name].append(cpu_ms)
                samples["rate", name].append(rate)
                samples["latency", name].append(statistics.median(each.latency_ms() for _ in range(LATENCIES)))
            for name, daemon in sorted(daemons.items(), reverse=number % 2 == 1):
                cpu_ms, rate = daemon.run_all(TASKS, agent=None)
                samples["routed", name].append(cpu_ms)
                samples["routed rate", name].append(rate)
            for name, daemon in daemons.items():
                samples["status", name].append(_status_s(daemon))
                cpu_s, mebibytes = Home(Path(folder, f"{name}-{number}"), {}, daemon.command).started()
                samples["start", name].append(cpu_s)
                samples["unasked", name].append(mebibytes)
        time.sleep(IDLE_AFTER_S)
        results = idle({name: daemon.running.pid for name, daemon in daemons.items()}, settled_s=0)
        for name, (share, mebibytes) in results.items():
            samples["idle", name].append(share * 100)
            samples["memory", name].append(mebibytes)
        for name, cpu_ms in _learning_ms(daemons).items():
            samples["learning", name].append(cpu_ms)
    return samples


def _learning_ms(daemons: Mapping[str, Claudomator]) -> Mapping[str, float]:
    """By name, milliseconds of CPU of the daemon for each task that it learns from."""
    for daemon in daemons.values():
        daemon.stop()
    for daemon in daemons.values():
        daemon.start()
    before = {name: daemon.count("TRUE", "label") for name, daemon in daemons.items()}
    seconds: list[Mapping[str, float]] = []
    for _ in range(3):  # before it learns, while it learns, and as long again without anything to do
        time.sleep(LEARNING_S)
        seconds.append({name: cpu_s(daemon.running.pid) for name, daemon in daemons.items()})
    settled, learned, idle_again = seconds
    number = {name: daemon.count("TRUE", "label") - before[name] for name, daemon in daemons.items()}
    return {
        name: (2 * learned[name] - settled[name] - idle_again[name]) * 1000 / number[name]
        for name in daemons
        if number[name] >= TASKS  # else it has learned from most while it was measured
    }


def taken_out(folder: Path, commit: str | None) -> list[str]:
    """Put the package as of that commit, None: as it is here, into the folder; the command that runs it from there.

    Both builds are run in the same way, from an environment of their own that finds this one's libraries: what a
    daemon starts with an isolated interpreter has to be of its build too. Raises NoHistoryError.
    """
    source = REPOSITORY
    if commit is not None:
        source = folder / "source"
        source.mkdir(parents=True)
        completed = subprocess.run(
            ["git", "archive", "--format=tar", commit, "claudomator_py"],
            cwd=REPOSITORY,
            capture_output=True,
            check=False,
        )
        if completed.returncode:
            raise NoHistoryError(
                f"git knows no commit {commit} here ({completed.stderr.decode(errors='replace').strip()}). Fetch the "
                "history with `git fetch --unshallow`, or name another commit in BENCH_COMMIT."
            )
        # Python 3.11 has no safe way of its own before its fourth release.
        subprocess.run(["tar", "-x", "-C", str(source)], input=completed.stdout, check=True)
        # As an installed one; else each of its processes would compile, or none could keep what it compiled.
        subprocess.run([sys.executable, "-m", "compileall", "-qq", str(source)], check=True)
    place = folder / "environment"
    venv.create(place, symlinks=True)
    libraries = sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)})
    Path(libraries, "build.pth").write_text(f"{source}\n{sysconfig.get_path('purelib')}\n")
    return [str(place / "bin" / "python"), "-m", "claudomator_py"]


def _check_build(daemon: Claudomator, build: Path) -> None:
    """Fail where it does not run what was taken out: its figures would be those of the other build."""
    code = "import claudomator_py; print(claudomator_py.__file__)"
    stdout = subprocess.run([daemon.command[0], "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    expected = build / "source" if (build / "source").exists() else REPOSITORY
    assert Path(stdout.strip()).is_relative_to(expected), f"{stdout.strip()} is not of {expected}"


def _status_s(daemon: Claudomator) -> float:
    return cpu_of_child([*daemon.command, "status"], daemon.site.environ(PYTHONPATH=""), daemon.site.root)


def table(samples: Samples) -> Iterator[str]:
    """The lines of the table, in Markdown: medians, and those of this build as ratios to the others'."""
    yield f"| figure | {COMMIT} | {NOW} | {TSP} | {NOW} / {COMMIT} | wanted | {NOW} / {TSP} |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for key, (figure, digits, wanted) in LINES.items():
        before, now, peer = (
            statistics.median(samples[key, name]) if samples.get((key, name)) else None for name in (COMMIT, NOW, TSP)
        )
        cells = ["-" if each is None else f"{each:,.{digits}f}" for each in (before, now, peer)]
        yield f"| {figure} | {' | '.join(cells)} | {_ratio(now, before)} | {wanted} | {_ratio(now, peer)} |"


def _ratio(figure: float | None, other: float | None) -> str:
    return f"{figure / other:.2f}" if figure is not None and other else "-"
