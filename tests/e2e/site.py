"""A site: inbox, configuration, state and ledger in one folder, and real daemons on it, to be killed and started again.

Nothing here sleeps for a guess: each wait ends with what it waits for, or fails at its deadline and says for what.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from claudomator_py.resources.tasks import TaskView
from tests.databases import put_migrated
from tests.e2e.daemon import Daemon, published_url, read_log
from tests.e2e.ledger import Ledger
from tests.e2e.processes import processes_of, ticks_since_boot
from tests.fakes.command import Command
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

REPOSITORY = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "claudomator_py")
SETTLED = ("COMPLETED", "FAILED", "CANCELLED", "NEEDS_INPUT")


class Site:
    """A folder for one installation. Use ``open_site``, which leaves no process behind."""

    def __init__(
        self,
        root: Path,
        config: Mapping[str, Any],
        warm: WarmStarter | None,
        command: Sequence[str] = COMMAND,
        *,
        new: bool = True,
        max_files: tuple[int, int] | None = None,
    ) -> None:
        self.root = root
        self._command = tuple(command)
        self.inbox = root / "tasks"
        self.state = root / "state"
        self.run_roots = [self.state / "runs"]
        """Where run directories are."""
        self.work = root / "work"
        self.ledger = Ledger(root)
        self.log_file = root / "daemon.log"
        self.config_file = root / "claudomator.yaml"
        self.database = "sqlite"
        self._warm = warm
        self._max_files = max_files
        self._daemons: list[Daemon] = []
        self._known_runs: set[str] = set()
        self._began = ticks_since_boot()
        for folder in (self.inbox, self.work, root / "home"):
            folder.mkdir(parents=True)
        self.ledger.write_scripts()
        self.configure(**config)
        if not new and self.database == "sqlite":
            put_migrated(self.state, begun=True)

    def configure(self, **changes: Any) -> None:
        """Write the configuration: defaults with an agent ``sh``, which does as its task says, and ``simulated``."""
        models = {"fast": "small", "balanced": "middling", "powerful": "large"}
        settings: dict[str, Any] = {
            "inbox": {"paths": ["tasks"]},
            "state_dir": "state",
            "http": {"listen": "127.0.0.1:0"},
            "concurrency": {"total": 4},
            "limits": {"grace": "150ms", "min_free": "1MiB"},
            "agents": {
                "sh": {
                    "kind": "command",
                    "command": self.ledger.agent,
                    "auto_select": True,
                    "max_concurrent": 4,
                    "models": models,
                },
                "simulated": {"kind": "simulated", "auto_select": False, "max_concurrent": 4},
            },
            **changes,
        }
        self.database = settings.get("database", "sqlite")
        # JSON is YAML.
        self.config_file.write_text(json.dumps(settings, indent=2))

    def start(self, *, crash_at: str | None = None, crash_shim: str | None = None, **environ: str) -> Daemon:
        """Start a daemon. crash_at: one of its crash points, ``name`` or ``name:n``; crash_shim: one of the shim's."""
        (self.state / "endpoint").unlink(missing_ok=True)
        variables = self.environ(**environ)
        if crash_at is not None:
            variables["CLAUDOMATOR_CRASH_AT"] = crash_at
        if crash_shim is not None:
            variables["CLAUDOMATOR_CRASH_SHIM"] = crash_shim
        daemon = self._start_warm(variables) if self._warm is not None else self._start_cold(variables)
        self._daemons.append(daemon)
        return daemon

    def environ(self, **more: str) -> dict[str, str]:
        """The variables of its daemons, with these."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(REPOSITORY),
            "OPENAI_API_KEY": "not-a-key",
            **more,
        }

    def _start_warm(self, environ: Mapping[str, str]) -> Daemon:
        assert self._warm is not None
        arguments = {"config": str(self.config_file)}
        pid = self._warm.start(arguments, environ=environ, cwd=self.root, log=self.log_file, max_files=self._max_files)
        return Daemon(self.state, self.log_file, pid, self._warm.reap)

    def _start_cold(self, environ: Mapping[str, str]) -> Daemon:
        command = [*self._command, "serve", "--config", str(self.config_file)]
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(
                command, env=dict(environ), cwd=self.root, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return Daemon(self.state, self.log_file, process.pid, lambda _: process.wait())

    @property
    def command(self) -> Command:
        """Runs ``claudomator`` in its folder, as a person would; without its start where daemons start fast."""
        return Command(self.root, words=self._command if self._warm is None else self._warm.command)

    @property
    def endpoint(self) -> str | None:
        """The URL that the running daemon has published; None: not yet."""
        return published_url(self.state)

    def log_text(self) -> str:
        """What all daemons so far have logged."""
        return read_log(self.log_file)

    def drop(self, name: str, text: str) -> Path:
        """Put a task file into the inbox, complete at once."""
        partial, path = self.root / f".{name}", self.inbox / name
        partial.write_text(text)
        partial.rename(path)
        return path

    def drain(self, daemon: Daemon, stuck_s: float = PATIENCE_S) -> dict[str, TaskView]:
        """Wait until no task runs or can run; all tasks by id. Fails after stuck_s seconds without progress."""

        settled: bool = False
        last: object = None

        def progress() -> tuple[bool, object]:
            assert daemon.running, f"the daemon ended:\n{self.log_text()}"
            counts = daemon.client.status().counts
            is_done = not any(count for state, count in counts.items() if state not in SETTLED)
            return is_done, (counts, len(self.ledger.entries()))

        def has_progressed() -> bool:
            nonlocal settled, last
            before = last
            settled, last = progress()
            return settled or last != before

        try:
            while not settled:
                wait_until(has_progressed, "tasks to go forward", stuck_s)
            return {task.id: task for task in daemon.client.all_tasks()}
        except AssertionError as failure:
            stuck = [task for task in daemon.client.all_tasks() if task.state not in SETTLED]
            reasons = "\n".join(
                f"{task.name}: {daemon.client.why(task.id).model_dump_json(indent=1)}" for task in stuck[:3]
            )
            raise AssertionError(
                f"{failure}; {len(stuck)} tasks are stuck\n{reasons}\n{self.log_text()[-4000:]}"
            ) from None

    def run_ids(self) -> list[str]:
        """The run directories that there are."""
        result = (path for runs in self.run_roots if runs.exists() for path in runs.iterdir())
        return sorted(path.name for path in result if path.is_dir())

    def processes(self) -> dict[int, str]:
        """All processes of this site by pid, each with its command line: daemons, fork servers, shims and agents."""
        self._known_runs.update(self.run_ids())
        return processes_of(self.root, self._known_runs, self._began)

    def no_processes(self, deadline_s: float = PATIENCE_S) -> None:
        """Wait until no process of this site is left. Fails, naming them."""
        try:
            wait_until(lambda: not self.processes(), "the end of all processes", deadline_s)
        except AssertionError as failure:
            raise AssertionError(f"{failure}: {self.processes()}") from None

    def close(self) -> None:
        """End every process of this site. Fails if one is left."""
        for daemon in self._daemons:
            if daemon.running:
                daemon.kill()
            daemon.wait()
        end = time.monotonic() + PATIENCE_S
        while (left := self.processes()) and time.monotonic() < end:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.01)
        assert not left, f"processes that cannot be ended: {left}"


@contextmanager
def open_site(
    root: Path,
    *,
    warm: WarmStarter | None = None,
    command: Sequence[str] = COMMAND,
    new: bool | None = None,
    max_files: tuple[int, int] | None = None,
    **config: Any,
) -> Iterator[Site]:
    """A site under that folder. warm: starts its daemons fast; None: by the command, as users do. new: whether its
    first daemon makes the database; else, and by default where daemons start fast, it finds one of this version.
    max_files: how many files such a daemon may have open, softly and at all; None: as many as this process. config:
    top-level keys of the configuration that differ from the default. No process is left at the end."""
    site = Site(root, config, warm, command, new=warm is None if new is None else new, max_files=max_files)
    try:
        yield site
    finally:
        site.close()
