"""The least that a start takes which outlives a crash: what no task can do without, and nothing to decide.

A file is noticed and read, a row committed, the run directory made durable, another row committed, and the run given to
a shim, in the daemon's order and by its own code, with SQLite as durable as the daemon has it. What the daemon takes
beyond this it spends on the inbox, on planning and on what is recorded.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.subjects import Fifo
from claudomator_py.domain.run import RunLimits, RunSpec
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.launcher import Launcher, Shim
from claudomator_py.private_files import flush_path
from claudomator_py.sources.inbox.watch import Watcher

ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}
LIMITS = RunLimits(timeout_ms=60_000, stall_ms=None, grace_ms=100, output_bytes=1 << 20)
SHORT, LONG = "a" * 1_000, "a" * 10_000
"""About what the acceptance of a task and its start write."""


class Floor:
    """Starts what is dropped. Use ``open_floor``."""

    def __init__(self, folder: Path, launcher: Launcher, database: sqlite3.Connection) -> None:
        self._folder = folder
        self._launcher = launcher
        self._database = database
        self._fifo = Fifo(folder / "fifo")
        self._shim: Shim | None = None
        self._dropped = 0
        self.inbox = folder / "tasks"
        self.inbox.mkdir()

    def latency_ms(self) -> float:
        """Milliseconds from the rename of a file until its program runs."""
        return self._fifo.told_after_ms(self._drop)

    def _drop(self) -> None:
        self._dropped += 1
        file = self._folder / "task"
        file.write_text(SHORT)
        file.rename(self.inbox / f"{self._dropped}.yaml")

    def start(self, folder: str, names: Iterable[str]) -> None:
        """Start a run for each of these files."""
        for name in names:
            prompt = (Path(folder) / name).read_text()
            self._commit(SHORT)
            run = self._folder / Path(name).stem
            order = RunSpec(run.name, (tuple(self._fifo.teller),), None, (), tuple(ENVIRONMENT), prompt, LIMITS)
            RunDirectory(run).create(order)
            flush_path(self._folder)
            self._commit(LONG)
            if self._shim is not None:
                self._launcher.take_back(self._shim)
            self._shim = self._launcher.start(run, ENVIRONMENT)

    def _commit(self, text: str) -> None:
        self._database.execute("INSERT INTO written VALUES (?)", (text,))


@contextmanager
def open_floor() -> Iterator[Floor]:
    """What does no more than it must; it leaves no process behind."""
    with tempfile.TemporaryDirectory() as folder:
        launcher, file = Launcher(), Path(folder) / "floor.db"
        with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            database.execute("CREATE TABLE written (text)")
            floor = Floor(Path(folder), launcher, database)
            watcher = Watcher([str(floor.inbox)], floor.start, lambda *_: None)
            try:
                yield floor
            finally:
                watcher.close()
                launcher.close()
