"""What a task costs that does next to nothing (``true``), with task-spooler beside it; written to ``RESULTS.md``.

Of the daemon: CPU by task, from ``/proc/PID/stat``, which leaves out the shims and what they run; tasks a second with
two slots, from the first file renamed into the inbox until the last task has ended; from the rename of a file, while
nothing else is to do, until its program runs; and the CPU of taking in a great many files when it starts.

Once with an explicit agent and no routing, and once with the specialists that come with it and the encoder ``hashed``.
Task-spooler (``tsp``) keeps its queue in memory and flushes nothing to disk: it shows what the machine can do.
"""

import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.e2e.harness import Daemon, Site, open_site, wait_until

TASKS = int(os.environ.get("BENCH_TASKS", "300"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
FILES = int(os.environ.get("BENCH_FILES", "10000"))
LATENCIES = 50
SLOTS = 2
PAUSE_S = 0.05
"""Between two files that find the daemon idle."""
DEADLINE_S = 900.0
RESULTS = Path(__file__).with_name("RESULTS.md")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PROGRAM = "true"
EXPLICIT: Mapping[str, Any] = {"routing": {"preset": "none"}}
ROUTED: Mapping[str, Any] = {"routing": {"encoder": {"kind": "hashed"}}}


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one program; None: it has no such thing."""

    cpu_ms: float
    """Of the daemon by task, the median of the rounds."""
    per_second: float
    """Tasks, the median of the rounds."""
    latency_ms: float
    """From the rename (or the call of ``tsp``) until the program runs, the median."""
    files_cpu_s: float | None = None
    """Of a start with FILES files in the inbox, until all are accepted."""


def measure() -> None:
    """Print the figures and write RESULTS.md."""
    found = {
        "claudomator, explicit agent": _ours(EXPLICIT),
        "claudomator, shipped specialists, `hashed`": _ours(ROUTED),
    }
    if shutil.which("tsp") is not None:
        found["task-spooler"] = _spooler()
    table = _table(found)
    sys.stdout.write(table)
    RESULTS.write_text(_conditions() + table)


def _ours(config: Mapping[str, Any]) -> Figures:
    settings = {
        "concurrency": {"total": SLOTS},
        "agents": {"cmd": agent([PROGRAM])},
        **config,
    }
    costs, rates = [], []
    with site_of(settings) as site:
        daemon = site.start().ready()
        run_all(site, daemon, "warm", 20)
        for number in range(ROUNDS):
            cost, rate = run_all(site, daemon, f"round{number}", TASKS)
            costs.append(cost)
            rates.append(rate)
        daemon.stop()
        fifo = site.root / "fifo"
        os.mkfifo(fifo)
        site.configure(**{**settings, "agents": {"fifo": agent(["sh", "-c", f"echo > {fifo}"])}})
        site.start().ready()
        late = [_latency(fifo, partial(drop, site, f"late-{number}", "fifo")) for number in range(LATENCIES)]
    with site_of(settings) as site:
        files = _accept(site, FILES)
    return Figures(statistics.median(costs), statistics.median(rates), statistics.median(late), files)


def agent(command: Sequence[str]) -> dict[str, Any]:
    """The settings of an agent that runs that program."""
    return {"kind": "command", "command": list(command), "auto_select": False, "max_concurrent": SLOTS}


@contextmanager
def site_of(config: Mapping[str, Any]) -> Iterator[Site]:
    """A place for a daemon with that configuration."""
    with tempfile.TemporaryDirectory() as folder, open_site(Path(folder) / "site", **config) as site:
        yield site


def drop(site: Site, name: str, agent: str) -> None:
    """Put a task for that agent into the inbox."""
    site.drop(f"{name}.yaml", f"name: {name}\ninstructions: none\nagent: {{type: {agent}}}\n")


def run_all(site: Site, daemon: Daemon, name: str, number: int) -> tuple[float, float]:
    """Milliseconds of CPU by task, and tasks a second."""
    done = _count(site, "state = 'COMPLETED'")
    before_s, began = cpu_s(daemon.pid), time.perf_counter()
    for index in range(number):
        drop(site, f"{name}-{index}", "cmd")
    _wait(daemon, lambda: _count(site, "state = 'COMPLETED'") >= done + number)
    taken_s = time.perf_counter() - began
    return (cpu_s(daemon.pid) - before_s) * 1000 / number, number / taken_s


def _accept(site: Site, number: int) -> float:
    """Seconds of CPU from the start of the daemon. It starts no task meanwhile."""
    daemon = site.start().ready()
    daemon.client.drain()
    daemon.stop()
    for index in range(number):
        drop(site, f"file-{index}", "cmd")
    daemon = site.start()
    _wait(daemon, lambda: _count(site, "1 = 1") >= number)
    return cpu_s(daemon.pid)


def _latency(fifo: Path, begin: Callable[[], object]) -> float:
    """Milliseconds until a program writes to the fifo."""
    time.sleep(PAUSE_S)
    began = time.perf_counter()
    begin()
    with fifo.open() as told:
        told.read()
    return (time.perf_counter() - began) * 1000


def _count(site: Site, condition: str) -> int:
    """How many tasks there are, without asking the daemon."""
    with closing(sqlite3.connect(f"file:{site.state / 'claudomator.db'}?mode=ro", uri=True)) as connection:
        found = connection.execute(f"SELECT count(*) FROM task WHERE {condition}").fetchone()  # noqa: S608
    return int(found[0])


def _wait(daemon: Daemon, condition: Callable[[], bool]) -> None:
    def met() -> bool:
        assert daemon.running
        return condition()

    wait_until(met, "all tasks", DEADLINE_S)


def cpu_s(pid: int) -> float:
    """Seconds of CPU, user and system, that the process has used; not those of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def _spooler() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "TMPDIR": folder, "TS_SOCKET": f"{folder}/socket", "TS_MAXFINISHED": "10000"}

        def tsp(*arguments: str) -> None:
            subprocess.run(["tsp", *arguments], env=environ, check=True, stdout=subprocess.DEVNULL)

        tsp("-S", str(SLOTS))
        try:
            pid = _server_of(folder)
            costs, rates, fifo = [], [], Path(folder) / "fifo"
            for _ in range(ROUNDS):
                before_s, began = cpu_s(pid), time.perf_counter()
                for _ in range(TASKS):
                    tsp("-n", PROGRAM)
                tsp("-w")
                taken_s = time.perf_counter() - began
                costs.append((cpu_s(pid) - before_s) * 1000 / TASKS)
                rates.append(TASKS / taken_s)
            os.mkfifo(fifo)
            late = [_latency(fifo, lambda: tsp("-n", "sh", "-c", f"echo > {fifo}")) for _ in range(LATENCIES)]
        finally:
            tsp("-K")
    return Figures(statistics.median(costs), statistics.median(rates), statistics.median(late))


def _server_of(folder: str) -> int:
    """The server of task-spooler that has this folder."""
    wanted = f"TMPDIR={folder}\0".encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text().strip() in ("tsp", "ts") and wanted in (path / "environ").read_bytes():
                return int(path.name)
        except OSError:
            continue
    raise AssertionError("the server of task-spooler was not found")


def _table(found: Mapping[str, Figures]) -> str:
    columns = ("CPU by task, ms", f"tasks/s, {SLOTS} slots", "until it runs, ms", f"CPU of {FILES:,} files at start, s")
    rows = [f"| | {' | '.join(columns)} |", "|---|---|---|---|---|"]
    for name, each in found.items():
        files = "-" if each.files_cpu_s is None else f"{each.files_cpu_s:.1f}"
        rows.append(f"| {name} | {each.cpu_ms:.1f} | {each.per_second:.1f} | {each.latency_ms:.1f} | {files} |")
    return "\n".join(rows) + "\n"


def _conditions() -> str:
    versions = {
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "SQLAlchemy": version("sqlalchemy"),
        "Linux": platform.release(),
    }
    said = ", ".join(f"{name} {number}" for name, number in versions.items())
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return (
        "# A task that does nothing\n\n"
        f"`python -m bench trivial`, {datetime.now(UTC).date()}: {said}; {os.cpu_count()} cores, load {load}.\n"
        f"{TASKS} tasks of `{PROGRAM}`, the median of {ROUNDS} rounds; {LATENCIES} files for the latency. "
        "Compare figures of one run only.\n\n"
    )
