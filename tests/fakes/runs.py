"""A host of runs in memory: the rules of run directories and shims, with a test in the place of every process."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.host import LOCAL, HostView
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.report import OutputPiece
from claudomator_py.domain.run import ExitRecord, RunConflict, RunFate, RunSpec, RunStatus, Stream, Swept, WindDown
from claudomator_py.hosts.reporting import RedactorOf, ReportingHost
from claudomator_py.ports import AgentKind, Clock
from tests.fakes.prompt_monitor import PromptMonitor

Key = tuple[str, int]
EndedBy = Literal["cancel", "timeout", "stall", "output_limit", "disk_full", "interrupt", "wind_down"]


class RunStarted(RunConflict):
    """The directory belongs to a run that was started already; a run starts at most once."""


@dataclass
class Directory:
    """A run directory. shim: a process that holds its lock, or is on its way to."""

    order: RunSpec
    shim: bool = False
    started: bool = False
    orphan: bool = False
    revoked: bool = False
    cancelled: bool = False
    scratch: bool = True
    exit: ExitRecord | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    mailbox: bytes = b""
    output: dict[Stream, bytes] = field(default_factory=lambda: {"stdout": b"", "stderr": b""})


class MemoryRunHost(ReportingHost):
    """Implements ``ports.RunHost``. What runs say has been read whenever it is asked for.

    calls: everything that was asked of it, in order. A shim that is spawned starts its program at once unless
    ``slow``: then it waits for ``begin``. A program that is cancelled ends at once unless ``stubborn``.
    no_room, no_processes: what ``prepare`` and ``spawn`` fail with. unsupervisable: no orphan can be taken over.
    survivors: how often ``end_survivors`` still finds a process of that run. stuck: directories that cannot be
    removed, and why. piece: the bytes that one look at an output gives at most.
    """

    def __init__(self) -> None:
        super().__init__({}, lambda *_: Redactor(), self._clock)
        self.directories: dict[Key, Directory] = {}
        self.changed: dict[str, RunChanges] = {}
        self.patches: dict[str, str] = {}
        self.calls: list[tuple[str, str, int]] = []
        self.obstacles: dict[str, str] = {}
        self.clusters: list[HostView] = []
        self.hosts_of_runs: dict[str, str] = {}
        self.slow = False
        self.stubborn = False
        self.no_room: OSError | None = None
        self.no_flush: OSError | None = None
        self.no_processes: OSError | None = None
        self.unreadable: OSError | None = None
        self.unsupervisable = False
        self.survivors: dict[str, int] = {}
        self.winding: dict[str, WindDown] = {}
        self.stuck: dict[str, OSError] = {}
        self.now_ms = 0
        self.piece = 2**31
        self.watched: set[Key] = set()

    def serve(self, kinds: Mapping[str, AgentKind], redactor: RedactorOf, clock: Clock) -> None:
        """Another daemon begins: nothing is known of what runs have said."""
        self._kinds, self._redactor = kinds, redactor
        self._monitor = PromptMonitor(self.read, clock)

    def _clock(self) -> int:
        return self.now_ms

    # --- what the service asks for ----------------------------------------------------------------------------------

    def prepare(self, order: RunSpec, step: int = 0) -> None:
        self.calls.append(("prepare", order.run_id, step))
        if self.no_room is not None:
            raise self.no_room
        if (order.run_id, step) in self.directories and self._status(order.run_id, step).fate is not RunFate.REVOKED:
            raise RunStarted(order.run_id)
        self.directories[order.run_id, step] = Directory(order)

    def flush_prepared(self) -> None:
        if self.no_flush is not None:
            raise self.no_flush

    def prompt(self, run_id: str) -> str:
        return self.directories[run_id, 0].order.stdin

    def changes(self, run_id: str) -> RunChanges | None:
        return self.changed.get(run_id)

    def patch(self, run_id: str) -> str:
        return self.patches.get(run_id, "")

    def handoff(self, run_id: str) -> str:
        directory = self.directories.get((run_id, 0))
        if directory is None or directory.order.handoff is None:
            raise FileNotFoundError(run_id)
        return directory.order.handoff

    def append_message(self, run_id: str, message: bytes, *, durable: bool) -> None:
        if (run_id, 0) not in self.directories:
            raise FileNotFoundError(run_id)
        self.directories[run_id, 0].mailbox += message + b"\n"

    def messages(self, run_id: str) -> Iterator[bytes]:
        directory = self.directories.get((run_id, 0))
        yield from () if directory is None else directory.mailbox.splitlines()

    def place(self, run_id: str) -> str:
        return f"/runs/{run_id}"

    def hosts(self, *, ask: bool = True) -> list[HostView]:
        del ask
        return [HostView(name=LOCAL, kind=LOCAL, live=0), *self.clusters]

    def conversation_obstacle(self, run_id: str, hosts: Sequence[str]) -> str | None:
        del run_id, hosts
        return None

    def closed(self) -> Mapping[str, str]:
        return {}

    def host_of(self, run_id: str) -> str:
        return self.hosts_of_runs.get(run_id, LOCAL)

    def obstacle(self, run_id: str) -> str | None:
        return self.obstacles.get(run_id)

    def run_ids(self) -> list[str]:
        return sorted({run_id for run_id, _ in self.directories})

    def users(self, run_id: str) -> list[int]:
        return []

    def size(self, run_id: str) -> int:
        return sum(
            len(data)
            for key, directory in self.directories.items()
            if key[0] == run_id
            for data in directory.output.values()
        )

    def give_up_scratch(self, run_id: str) -> None:
        if (directory := self.directories.get((run_id, 0))) is not None:
            directory.scratch = False

    def has_directory(self, run_id: str) -> bool:
        return (run_id, 0) in self.directories

    def scratch(self, run_id: str) -> str | None:
        directory = self.directories.get((run_id, 0))
        if directory is None or not directory.scratch:
            return None
        own = directory.order.cwd is None and directory.order.scratch_of is None
        return f"{self.place(run_id)}/work" if own else None

    def remove(self, run_id: str) -> None:
        self.calls.append(("remove", run_id, 0))
        if any(directory.shim for key, directory in self.directories.items() if key[0] == run_id):
            raise RunConflict(f"the run {run_id} is alive")
        self.lose(run_id)

    def spawn(self, run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        self.calls.append(("spawn", run_id, step))
        if self.no_processes is not None:
            raise self.no_processes
        directory = self.directories[run_id, step]
        if directory.started or directory.shim:
            return  # A second shim leaves.
        directory.environment = dict(environment)
        directory.shim = True
        if not self.slow:
            self.begin(run_id, step)

    def reconcile(self, run_id: str, step: int = 0) -> RunStatus:
        self.calls.append(("reconcile", run_id, step))
        if self.unreadable is not None:
            raise self.unreadable
        status = self._status(run_id, step)
        if status.fate is not RunFate.ORPHANED or step > 0:
            return status
        if self.no_processes is not None:
            raise self.no_processes
        directory = self.directories[run_id, 0]
        directory.shim = not self.unsupervisable
        return status if directory.shim else RunStatus(RunFate.UNFINISHED)

    def watch(self, live: Iterable[Key]) -> None:
        self.watched = set(live)
        super().watch(self.watched)

    def cancel(self, run_id: str, step: int = 0) -> None:
        self.calls.append(("cancel", run_id, step))
        directory = self.directories.get((run_id, step))
        if directory is None:
            raise FileNotFoundError(run_id)
        directory.cancelled = True
        if directory.started and directory.shim and not self.stubborn:
            self.end(run_id, None, ended_by="cancel", step=step)
        elif not directory.started:
            directory.shim = False

    def wind_down(self, run_id: str, order: WindDown) -> None:
        self.calls.append(("wind_down", run_id, 0))
        directory = self.directories.get((run_id, 0))
        if directory is None:
            raise FileNotFoundError(run_id)
        self.winding[run_id] = order
        is_said = self.read(run_id, "stdout", 0, 0).size == order.stdout
        if directory.started and directory.shim and is_said and order.after_ms == 0:
            self.end(run_id, None, ended_by="wind_down")

    def end_survivors(self, run_id: str) -> bool:
        self.calls.append(("end_survivors", run_id, 0))
        left = self.survivors.get(run_id, 0)
        if (run_id, 0) in self.directories:
            self.directories[run_id, 0].orphan &= left > 0
        self.survivors[run_id] = max(0, left - 1)
        return left == 0

    def read(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> OutputPiece:
        directory = self.directories.get((run_id, step))
        data = b"" if directory is None else directory.output[stream]
        return OutputPiece(offset, data[offset : offset + min(limit, self.piece)], len(data))

    def sweep(self, known: frozenset[str]) -> list[Swept]:
        unknown = sorted({run_id for run_id, _ in self.directories} - known)
        alive = {run_id for (run_id, _), directory in self.directories.items() if directory.shim} & set(unknown)
        for run_id, step in list(self.directories):
            if run_id in alive and self.directories[run_id, step].shim:
                self.cancel(run_id, step)
        stuck = {run_id: error for run_id, error in self.stuck.items() if run_id in unknown}
        gone = set(unknown) - set(stuck) - alive
        self.directories = {key: value for key, value in self.directories.items() if key[0] not in gone}
        removed = [Swept(run_id, "removed") for run_id in unknown if run_id in gone]
        cancelled = [Swept(run_id, "cancelled") for run_id in sorted(alive)]
        return [*removed, *cancelled, *(Swept(run_id, "stuck", error) for run_id, error in stuck.items())]

    # --- what processes and people do -------------------------------------------------------------------------------

    def begin(self, run_id: str, step: int = 0) -> bool:
        """The shim starts its program, or leaves because it was revoked or cancelled; whether it started."""
        directory = self.directories[run_id, step]
        if not directory.shim or directory.revoked or directory.cancelled or directory.started:
            directory.shim = directory.shim and directory.started
            return False
        directory.started = True
        return True

    def write(self, run_id: str, data: bytes, stream: Stream = "stdout", step: int = 0) -> None:
        """The program writes."""
        self.directories[run_id, step].output[stream] += data

    def end(
        self,
        run_id: str,
        exit_code: int | None,
        *,
        ended_by: EndedBy | None = None,
        error: str | None = None,
        step: int = 0,
        command: int = 0,
    ) -> None:
        """The program ends, and the shim after it. error: why it could not be started. command: which of the run's
        commands it is."""
        directory = self.directories[run_id, step]
        assert directory.shim
        assert directory.started
        directory.exit = ExitRecord(exit_code, ended_by, self.now_ms, self.now_ms, error, command)
        self._leave(run_id, step)

    def kill_shim(self, run_id: str, step: int = 0, *, agent_lives: bool = False) -> None:
        """kill -9 to the shim: no record of the end. agent_lives: the agent itself goes on."""
        self.directories[run_id, step].orphan = agent_lives
        self._leave(run_id, step)

    def end_orphan(self, run_id: str) -> None:
        """The agent ends that a shim has taken over: only its parent would have learnt how."""
        self.directories[run_id, 0].orphan = self.directories[run_id, 0].shim = False

    def lose(self, run_id: str) -> None:
        """Somebody deletes the run directory."""
        self.directories = {key: value for key, value in self.directories.items() if key[0] != run_id}

    def starts(self) -> list[Key]:
        """The programs that were ever started and whose directories are there."""
        return [key for key, directory in self.directories.items() if directory.started]

    def _leave(self, run_id: str, step: int) -> None:
        self.directories[run_id, step].shim = False
        if (run_id, step) in self.watched:
            self.news()

    def _status(self, run_id: str, step: int) -> RunStatus:
        directory = self.directories.get((run_id, step))
        if directory is None:
            return RunStatus(RunFate.MISSING)
        if directory.shim:
            return RunStatus(RunFate.ALIVE if directory.started else RunFate.STARTING)
        if directory.exit is not None:
            return RunStatus(RunFate.ENDED, directory.exit)
        if directory.started:
            return RunStatus(RunFate.ORPHANED if directory.orphan else RunFate.UNFINISHED)
        directory.revoked = True
        return RunStatus(RunFate.REVOKED)
