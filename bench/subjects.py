"""What is measured: a daemon with its inbox, and task-spooler (``tsp``) beside it.

Task-spooler is written in C, keeps its queue in memory and flushes nothing to disk: it shows what the machine can do.
"""

import os
import select
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.e2e.daemon import Daemon
from tests.e2e.processes import cpu_s
from tests.e2e.site import COMMAND, Site, open_site
from tests.patience import wait_until

SLOTS = 2
PROGRAM = "true"
PAUSE_S = 0.05
"""Between two tasks that find their program idle."""
DEADLINE_S = 300.0

EXPLICIT: Mapping[str, Any] = {"routing": {"preset": "none"}}
"""Without specialists: a task says which agent does it."""
ROUTED: Mapping[str, Any] = {"routing": {"encoder": {"kind": "hashed"}}}
"""With the specialists that come with it: which of them does a task follows from its text."""
INSTRUCTIONS = "Fix the failing unit test of the parser in src/parser.py"


class Subject(Protocol):
    """A program that runs tasks."""

    def run_all(self, number: int) -> tuple[float, float]:
        """Run as many tasks of ``true``: milliseconds of CPU of the program for each, and tasks a second."""

    def latency_ms(self) -> float:
        """Milliseconds from handing over a task until its program runs, with nothing else to do."""


class Spooler:
    """A server of task-spooler. Use ``open_spooler``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "TS_SOCKET": str(folder / "socket"),
            "TS_MAXFINISHED": "100000",
        }
        self._fifo = Fifo(folder / "fifo")
        self.tell("-S", str(SLOTS))
        self._pid = self._server()

    def tell(self, *arguments: str) -> None:
        """Run ``tsp`` with these arguments."""
        subprocess.run(["tsp", *arguments], env=self._environ, check=True, stdout=subprocess.DEVNULL)

    def run_all(self, number: int) -> tuple[float, float]:
        """See ``Subject``."""
        before_s, began = cpu_s(self._pid), time.perf_counter()
        for _ in range(number):
            self.tell("-n", PROGRAM)
        self.tell("-w")
        taken_s = time.perf_counter() - began
        return (cpu_s(self._pid) - before_s) * 1000 / number, number / taken_s

    def latency_ms(self) -> float:
        """See ``Subject``."""
        return self._fifo.told_after_ms(lambda: self.tell("-n", *self._fifo.teller))

    def _server(self) -> int:
        wanted = f"TMPDIR={self._folder}\0".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if (path / "comm").read_text().strip() in ("tsp", "ts") and wanted in (path / "environ").read_bytes():
                    return int(path.name)
            except OSError:
                continue
        raise AssertionError("the server of task-spooler was not found")


@contextmanager
def open_spooler() -> Iterator[Spooler | None]:
    """A server of task-spooler that is ended again; None where that is not installed."""
    if shutil.which("tsp") is None:
        yield None
        return
    # Its server ends by itself, and may still write a file while the folder is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spooler = Spooler(Path(folder))
        try:
            yield spooler
        finally:
            spooler.tell("-K")


class Claudomator:
    """A daemon and its inbox. Use ``open_claudomator``."""

    def __init__(self, site: Site, config: Mapping[str, Any], slots: int, command: Sequence[str] | None = None) -> None:
        self.site = site
        self.command = tuple(command or COMMAND)
        # The build that a command names is found without being told where; else it is that of this checkout.
        self._environ = {} if command is None else {"PYTHONPATH": ""}
        self._config = config
        self._slots = slots
        self._agents: dict[str, Any] = {}
        self.daemon: Daemon | None = None
        self._fifo = Fifo(site.root / "fifo")
        self._dropped = 0
        self.add_agent("cmd", [PROGRAM], auto_select=True)
        self.add_agent("fifo", self._fifo.teller)

    def add_agent(self, name: str, command: Sequence[str], *, auto_select: bool = False) -> None:
        """Have the next daemon know one more agent, with that command."""
        settings = {
            "kind": "command",
            "command": list(command),
            "auto_select": auto_select,
            "max_concurrent": self._slots,
        }
        self._agents[name] = settings
        self.site.configure(concurrency={"total": self._slots}, agents=self._agents, **self._config)

    @property
    def running(self) -> Daemon:
        """Its daemon."""
        assert self.daemon is not None, "it was not started"
        return self.daemon

    def start(self) -> float:
        """Start the daemon; milliseconds until it answered."""
        began = time.perf_counter()
        self.daemon = self.site.start(**self._environ).ready()
        return (time.perf_counter() - began) * 1000

    def stop(self) -> None:
        """End the daemon as it is to be ended."""
        self.running.stop()

    def drop(self, agent: str | None = "cmd") -> str:
        """Put a task for that agent into the inbox; its name. agent: None: for any that a specialist takes."""
        name = f"task-{self._dropped}"
        self._dropped += 1
        preference = "" if agent is None else f"agent: {{type: {agent}}}\n"
        self.site.drop(f"{name}.yaml", f"name: {name}\ninstructions: {INSTRUCTIONS}\n{preference}")
        return name

    def run_all(self, number: int, agent: str | None = "cmd") -> tuple[float, float]:
        """See ``Subject``; agent: see ``drop``."""
        began_ms = time.time_ns() / 10**6
        of_now = f"state = 'COMPLETED' AND created_ms >= {int(began_ms)}"  # however many there are of old
        before_s = cpu_s(self.running.pid)
        for _ in range(number):
            self.drop(agent)
        self.wait_for(lambda: self.count(of_now) >= number, f"{number} tasks")
        used_ms = (cpu_s(self.running.pid) - before_s) * 1000
        # By the rows, because asking whether all have ended is rare, and rarer the longer it takes.
        taken_ms = self.ask(f"SELECT max(updated_ms) FROM task WHERE {of_now}") - began_ms  # noqa: S608 - as above
        return used_ms / number, number / taken_ms * 1000

    def latency_ms(self) -> float:
        """See ``Subject``."""
        return self._fifo.told_after_ms(lambda: self.drop("fifo"))

    def hear(self, begin: Callable[[], object]) -> float:
        """Milliseconds until the program of the agent ``fifo`` runs, see ``drop``."""
        return self._fifo.told_after_ms(begin)

    def count(self, condition: str, table: str = "task") -> int:
        """How many such rows there are, without asking the daemon."""
        return self.ask(f"SELECT count(*) FROM {table} WHERE {condition}")  # noqa: S608 - of the benchmarks

    def ask(self, query: str) -> int:
        """The only number that the query yields, without asking the daemon."""
        with closing(sqlite3.connect(f"file:{self.site.state / 'claudomator.db'}?mode=ro", uri=True)) as connection:
            (result,) = connection.execute(query).fetchone()
        return int(result)

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until it holds, as long as the daemon runs."""

        def met() -> bool:
            assert self.running.running, f"the daemon ended:\n{self.site.log_text()[-4000:]}"
            return condition()

        wait_until(met, what, DEADLINE_S)


@contextmanager
def open_claudomator(
    config: Mapping[str, Any], *, slots: int = SLOTS, command: Sequence[str] | None = None
) -> Iterator[Claudomator]:
    """A place for a daemon with that configuration, which is not started yet, and the agents ``cmd`` (``true``) and
    ``fifo``. command: runs another build than this one."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_site(Path(folder) / "site", command=command or COMMAND) as site,
    ):
        yield Claudomator(site, config, slots, command)


class Fifo:
    """A named pipe into which a program writes as soon as it runs."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path
        self.teller = ["sh", "-c", f"echo > {shlex.quote(str(path))}"]
        """The program's command."""

    def told_after_ms(self, begin: Callable[[], object]) -> float:
        """Milliseconds from the call until the program writes. Fails at the deadline."""
        time.sleep(PAUSE_S)
        fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            began = time.perf_counter()
            begin()
            assert select.select([fd], [], [], DEADLINE_S)[0], f"nothing wrote into {self._path}"
            return (time.perf_counter() - began) * 1000
        finally:
            os.close(fd)
