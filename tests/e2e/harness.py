"""A site: inbox, configuration, state and ledger in one folder, and real daemons on it, to be killed and started again.

Nothing here sleeps for a guess: each wait ends with what it waits for, or fails at its deadline and says for what.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from claudomator_py.client.errors import ClientError
from claudomator_py.client.http import Client
from claudomator_py.domain.views import TaskView
from claudomator_py.hosts.shim import procfs
from tests.databases import put_migrated
from tests.fakes.command import Command
from tests.patience import PATIENCE_S
from tests.warm.starter import WarmStarter

T = TypeVar("T")

REPOSITORY = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "claudomator_py")
_LEAST_PAUSE_S, _MOST_PAUSE_S = 0.005, 0.2
SETTLED = ("COMPLETED", "FAILED", "CANCELLED", "NEEDS_INPUT")

# Tells the ledger that it runs, does what the lines "do: ..." of its task say, and tells how it ends.
AGENT = """
ledger=$1
trap 'code=$?; echo "end $CLAUDOMATOR_RUN $code" >> "$ledger"' EXIT
echo "start $CLAUDOMATOR_RUN $$ $CLAUDOMATOR_ATTEMPT" >> "$ledger"
while IFS= read -r line; do
    case $line in "do: "*) eval "${line#do: }" < /dev/null ;; esac
done
exit 0
"""
CHECK = 'echo "check $CLAUDOMATOR_RUN $1" >> "$2"; exit "$1"'


def wait_until(condition: Callable[[], T | None], what: str, deadline_s: float = PATIENCE_S) -> T:
    """The first value of the condition that is true. Fails at the deadline."""
    first = began = time.monotonic()
    while not (value := condition()):
        looked = time.monotonic()
        if looked > first + deadline_s:
            raise AssertionError(f"waited {deadline_s:.0f} s in vain for {what}")
        # Most of the time is for what is waited for, and little for asking about it: the less, the longer it takes.
        time.sleep(min(max(_LEAST_PAUSE_S, 4 * (looked - began), (looked - first) / 8), _MOST_PAUSE_S))
        began = time.monotonic()
    return value


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger, written by a run itself.

    what: ``start`` with its pid as the number, ``deaf`` with it once TERM is ignored, ``end`` with its exit code, or
    ``check`` with that of its check.
    """

    what: str
    run_id: str
    number: int


class Daemon:
    """One life of a daemon."""

    def __init__(self, site: "Site", pid: int, reap: Callable[[int], int]) -> None:
        self.pid = pid
        self._site = site
        self._reap = reap
        self._fd = os.pidfd_open(pid)
        self._status: int | None = None
        self._client: Client | None = None

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._status is None and not select.select([self._fd], [], [], 0)[0]

    @property
    def client(self) -> Client:
        """The API as typed calls, with the operator's token. Call ``ready`` before."""
        if self._client is None:
            url, token = self._site.endpoint, (self._site.state / "token").read_text().strip()
            assert url is not None, "the daemon was not waited for: call ready()"
            self._client = Client(url, token, timeout_s=PATIENCE_S)
        return self._client

    def ready(self) -> "Daemon":
        """Wait until it answers requests. Fails, with its log, if it ends before."""

        def answers() -> bool:
            assert self.running, f"the daemon ended before it was ready:\n{self._site.log_text()}"
            try:
                return self._site.endpoint is not None and self.client.readiness() is not None
            except ClientError:
                return False

        wait_until(answers, "the daemon to be ready", PATIENCE_S)
        return self

    def kill(self) -> None:
        """End it as a crash does, and wait for its end."""
        self.send(signal.SIGKILL)
        self.wait()

    def send(self, number: int) -> None:
        """Send it a signal. Any thread may."""
        signal.pidfd_send_signal(self._fd, number)

    def stop(self) -> int:
        """Ask it to end, in order; its exit status."""
        self.send(signal.SIGTERM)
        return self.wait()

    def wait(self, deadline_s: float = PATIENCE_S) -> int:
        """Wait for its end; its exit status, negative for a signal. Fails at the deadline."""
        if self._status is None:
            ended = select.select([self._fd], [], [], deadline_s)[0]
            assert ended, f"the daemon did not end within {deadline_s:.0f} s:\n{self._site.log_text()}"
            self._status = self._reap(self.pid)
            os.close(self._fd)
            if self._client is not None:
                self._client.close()
        return self._status


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
    ) -> None:
        self.root = root
        self._command = tuple(command)
        self.inbox = root / "tasks"
        self.state = root / "state"
        self.work = root / "work"
        self.ledger_file = root / "ledger"
        self.log_file = root / "daemon.log"
        self.config_file = root / "claudomator.yaml"
        self.database = "sqlite"
        self._warm = warm
        self._daemons: list[Daemon] = []
        self._known: set[str] = set()
        for folder in (self.inbox, self.work, root / "home"):
            folder.mkdir(parents=True)
        (root / "agent.sh").write_text(AGENT)
        (root / "check.sh").write_text(CHECK)
        self.configure(**config)
        if not new and self.database == "sqlite":
            put_migrated(self.state, begun=True)

    def configure(self, **changes: Any) -> None:
        """Write the configuration: defaults with an agent ``sh``, which does as its task says, and ``simulated``."""
        command = ["sh", str(self.root / "agent.sh"), str(self.ledger_file)]
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
                    "command": command,
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
        pid = self._warm.start(arguments, environ=environ, cwd=self.root, log=self.log_file)
        return Daemon(self, pid, self._warm.reap)

    def _start_cold(self, environ: Mapping[str, str]) -> Daemon:
        command = [*self._command, "serve", "--config", str(self.config_file)]
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(
                command, env=dict(environ), cwd=self.root, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return Daemon(self, process.pid, lambda _: process.wait())

    @property
    def command(self) -> Command:
        """Runs ``claudomator`` in its folder, as a person would; without its start where daemons start fast."""
        return Command(self.root, words=self._command if self._warm is None else self._warm.command)

    @property
    def endpoint(self) -> str | None:
        """The URL that the running daemon has published; None: not yet."""
        try:
            return (self.state / "endpoint").read_text().strip()
        except FileNotFoundError:
            return None

    def log_text(self) -> str:
        """What all daemons so far have logged."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def drop(self, name: str, text: str) -> Path:
        """Put a task file into the inbox, complete at once."""
        partial, path = self.root / f".{name}", self.inbox / name
        partial.write_text(text)
        partial.rename(path)
        return path

    def check(self, code: int = 0) -> str:
        """A check that writes itself into the ledger and exits with the code."""
        return f"sh {self.root / 'check.sh'} {code} {self.ledger_file}"

    def ledger(self) -> list[Entry]:
        """What the runs of ``sh`` and checks have said of themselves, in order."""
        if not self.ledger_file.exists():
            return []
        lines = [line.split() for line in self.ledger_file.read_text().splitlines()]
        return [Entry(words[0], words[1], int(words[2])) for words in lines]

    def drain(self, daemon: Daemon, stuck_s: float = PATIENCE_S) -> dict[str, TaskView]:
        """Wait until no task runs or can run; all tasks by id. Fails when for stuck_s seconds nothing goes forward."""

        settled: bool = False
        last: object = None

        def seen() -> tuple[bool, object]:
            assert daemon.running, f"the daemon ended:\n{self.log_text()}"
            counts = daemon.client.status().counts
            settled = not any(count for state, count in counts.items() if state not in SETTLED)
            return settled, (counts, len(self.ledger()))

        def forward() -> bool:
            nonlocal settled, last
            before = last
            settled, last = seen()
            return settled or last != before

        try:
            while not settled:
                wait_until(forward, "tasks to go forward", stuck_s)
            return {task.id: task for task in daemon.client.all_tasks()}
        except AssertionError as failure:
            stuck = [task for task in daemon.client.all_tasks() if task.state not in SETTLED]
            told = "\n".join(
                f"{task.name}: {daemon.client.why(task.id).model_dump_json(indent=1)}" for task in stuck[:3]
            )
            raise AssertionError(
                f"{failure}; {len(stuck)} tasks are stuck\n{told}\n{self.log_text()[-4000:]}"
            ) from None

    def run_ids(self) -> list[str]:
        """The run directories that there are."""
        runs = self.state / "runs"
        return sorted(path.name for path in runs.iterdir()) if runs.exists() else []

    def processes(self) -> dict[int, str]:
        """All processes of this site by pid, each with its command line: daemons, fork servers, shims and agents."""
        self._known.update(self.run_ids())
        marks = {procfs.RUN_VARIABLE.encode() + b"=" + run_id.encode() for run_id in self._known}
        ours = procfs.read(os.getpid())
        assert ours is not None
        younger = [one.pid for one in procfs.snapshot().values() if one.start >= ours.start and one.pid != ours.pid]
        return {pid: _command_line(pid) for pid in younger if self._belongs(pid, marks)}

    def _belongs(self, pid: int, marks: set[bytes]) -> bool:
        """It works in this folder, has a file of it open, or carries the id of one of its runs."""
        try:
            with os.scandir(f"/proc/{pid}/fd") as files:
                if self._leads_here(f"/proc/{pid}/cwd") or any(self._leads_here(file.path) for file in files):
                    return True
            return not marks.isdisjoint(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
        except OSError:
            return False

    def _leads_here(self, link: str) -> bool:
        try:
            target = os.readlink(link)  # noqa: PTH115 - of thousands, often: with pathlib it is ten times the work
            return f"{target}/".startswith(f"{self.root}/")
        except OSError:  # closed meanwhile; or a folder too deep to have a name, as a test elsewhere may work in
            return False

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
    **config: Any,
) -> Iterator[Site]:
    """A site under that folder. warm: starts its daemons fast; None: by the command, as users do. new: whether its
    first daemon makes the database; else, and by default where daemons start fast, it finds one of this version.
    config: top-level keys of the configuration that differ from the default. No process is left at the end."""
    site = Site(root, config, warm, command, new=warm is None if new is None else new)
    try:
        yield site
    finally:
        site.close()


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
