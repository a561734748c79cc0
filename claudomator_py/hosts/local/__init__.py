"""The host of runs on this machine: run directories, shims and what they leave."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.host import LOCAL, HostView
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.report import OutputPiece, RunReport
from claudomator_py.domain.run import ExitRecord, LaunchRequest, RunFate, RunSpec, RunStatus, Stream, Swept, WindDown
from claudomator_py.hosts import leftovers
from claudomator_py.hosts.git.changes import SCRATCH, ChangeRecorder, recorded
from claudomator_py.hosts.git.look import PATCH
from claudomator_py.hosts.local.directory import CHECK, HANDOFF, TRASH_SUFFIX, RunDirectory
from claudomator_py.hosts.local.fate import decide_fate
from claudomator_py.hosts.local.launcher import Launcher, Shim
from claudomator_py.hosts.local.output import read_output
from claudomator_py.hosts.local.sweep import kill_survivors, sweep
from claudomator_py.hosts.local.watcher import RunWatcher
from claudomator_py.hosts.reporting import RedactorOf, ReportingHost
from claudomator_py.hosts.shim.main import PROMPT
from claudomator_py.hosts.shim.record import now_ms
from claudomator_py.ports import AgentKind, Clock
from claudomator_py.private_files import flush_path

_path = lru_cache(maxsize=64)(Path)
"""Cached, because several calls need the path of a run that starts or ends."""
_GIVE_UP_MS = 5_000
_MAX_TAKEN_OVER = 5
_MAX_RECORDING = 4


class LocalRunHost(ReportingHost):
    """The ``RunHost`` of this machine, its runs under one root, which is created (0700). Thread-safe but for ``watch``.
    step: 0 for the agent's run, n for the n-th execution of its check."""

    def __init__(
        self,
        root: Path,
        launcher: Launcher,
        *,
        grace_ms: int,
        kinds: Mapping[str, AgentKind] = MappingProxyType({}),
        redactor: RedactorOf = lambda *_: Redactor(),
        clock: Clock = now_ms,
        recorder: ChangeRecorder | None = None,
    ) -> None:
        """grace_ms: time between TERM and KILL for processes of a lost shim; may be set later. kinds, redactor, clock:
        for reading output. recorder: records the runs' changes. Raises OSError."""
        super().__init__(kinds, redactor, clock)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root = root.absolute()
        self._prefix = f"{self._root}/"
        self._launcher = launcher
        self.grace_ms = grace_ms
        self._launched: dict[str, Shim] = {}
        """By run directory: the shim that was started for it by this process."""
        self._taken_over: dict[str, int] = {}
        """By run directory: number of further shims started after one was lost."""
        self._lock = threading.Lock()
        """Guards both."""
        self._recorder = recorder
        self._folders: dict[str, str] = {}
        """Working directories of runs that are prepared but not spawned, by run."""
        self._unflushed: set[str] = set()
        """Folders with new run directories whose names are not durable yet."""
        self._recording: dict[str, Future[RunChanges | None]] = {}
        self._recorders = ThreadPoolExecutor(_MAX_RECORDING, "changes")
        self._watcher: RunWatcher | None = None
        self._watched: dict[str, int] = {}
        """By run and step: number of lost shims when watching began."""
        self._ended: dict[str, int] = {}
        """By run and step whose end was reported: the same number."""

    def close(self) -> None:
        """Stop reading and watching."""
        super().close()
        if self._watcher is not None:
            self._watcher.close()
        if self._recorder is not None:
            self._recorder.close()
        self._recorders.shutdown(cancel_futures=True)
        with self._lock:
            for shim in self._launched.values():
                shim.close()

    def hosts(self, *, ask: bool = True) -> list[HostView]:
        del ask
        return [HostView(name=LOCAL, kind=LOCAL, live=len(self._watched))]

    def host_of(self, run_id: str) -> str:
        del run_id
        return LOCAL

    def conversation_obstacle(self, run_id: str, hosts: Sequence[str]) -> str | None:
        """See ``RunHost``. All conversations are on this machine."""
        del run_id, hosts
        return None

    def obstacle(self, run_id: str) -> str | None:
        """See ``RunHost``. Nothing delays a run after its spawn on this machine."""
        del run_id
        return None

    def closed(self) -> Mapping[str, str]:
        """See ``RunHost``. This machine takes every run."""
        return {}

    def path(self, run_id: str, step: int = 0) -> Path:
        """Return the directory of that run or check."""
        return _path(self.place(run_id, step))

    def prepare(self, order: RunSpec, step: int = 0) -> None:
        place = self.place(order.run_id, step)
        scratch = f"{self.place(order.scratch_of or order.run_id)}/{SCRATCH}"
        RunDirectory(place).create(order, scratch=scratch)
        self._unflushed.add(os.path.dirname(place))
        if step == 0 and (order.cwd is not None or order.scratch_of is not None):
            self._folders[order.run_id] = order.cwd or scratch

    def flush_prepared(self) -> None:
        for folder in tuple(self._unflushed):
            flush_path(folder)
            self._unflushed.discard(folder)
            crashpoint("run-dir-made")

    def place(self, run_id: str, step: int = 0) -> str:
        if step == 0:
            return self._prefix + run_id
        return f"{self._prefix}{run_id}/{CHECK}" + (f"-{step}" if step > 1 else "")

    def run_ids(self) -> list[str]:
        if not self._root.is_dir():
            return []
        return sorted(path.name for path in self._root.iterdir() if not path.name.startswith(".") and path.is_dir())

    def users(self, run_id: str) -> list[int]:
        return leftovers.working_in(self.path(run_id))

    def size(self, run_id: str) -> int:
        return leftovers.size_of(self.path(run_id))

    def give_up_scratch(self, run_id: str) -> None:
        scratch = self.path(run_id) / SCRATCH
        if scratch.is_dir():
            scratch.rename(scratch.with_name(f".{SCRATCH}{TRASH_SUFFIX}"))

    def has_directory(self, run_id: str) -> bool:
        return self.path(run_id).is_dir()

    def scratch(self, run_id: str) -> str | None:
        scratch = self.path(run_id) / SCRATCH
        return str(scratch) if scratch.is_dir() else None

    def remove(self, run_id: str) -> None:
        RunDirectory(self.path(run_id)).remove()

    def spawn(self, run_id: str, environment: Mapping[str, str], step: int = 0) -> None:
        """Start the shim, which starts the run unless it was revoked. Raises OSError."""
        path = self.place(run_id, step)
        shim = self._launcher.start(path, environment, self.to_do_first(run_id, step))
        with self._lock:
            before = self._launched.get(path)
            self._launched[path] = shim
        if before is not None:
            before.close()

    def to_do_first(self, run_id: str, step: int) -> Callable[[], None] | None:
        """Return a function that records the state of the working directory before the run starts; None if nothing is
        recorded."""
        folder = self._folders.pop(run_id, None) if step == 0 else None
        if self._recorder is None or folder is None:
            return None
        return partial(self._recorder.before, self.path(run_id, step), folder)

    def reconcile(self, run_id: str, step: int = 0) -> RunStatus:
        """Return the run's fate. A run that has not started and whose lock is free is revoked by this call, unless the
        shim spawned for it by this process is still starting.

        An ORPHANED agent's run gets another shim, unless one is starting; that needs no environment, because it starts
        nothing. After too many attempts the run is UNFINISHED. Raises OSError.
        """
        path = self.place(run_id, step)
        status = decide_fate(path, awaited=lambda: self._awaited(path))
        if status.fate is RunFate.ENDED:
            with self._lock:
                shim = self._launched.pop(path, None)
            if shim is not None:
                self._launcher.take_back(shim)
        if status.fate is not RunFate.ORPHANED or step > 0 or self._awaited(path):
            return status
        with self._lock:
            tried = self._taken_over[path] = self._taken_over.get(path, 0) + 1
        if tried > _MAX_TAKEN_OVER:
            return RunStatus(RunFate.UNFINISHED)
        self.spawn(run_id, {})
        return status

    def watch(self, live: Iterable[tuple[str, int]]) -> None:
        """Watch these runs and steps, which are all the live ones; call on the loop's thread. Safe to repeat. Each
        shim's end is reported once: handling it may take a while, and further reports would not speed it up."""
        steps = list(live)
        super().watch(steps)
        self.watch_shims(steps)

    def watch_shims(self, live: Iterable[tuple[str, int]]) -> None:
        """Watch those of these runs and steps whose shims are on this machine."""
        steps = {f"{run_id}/{step}": (run_id, step) for run_id, step in live}
        if self._watcher is None and steps:
            self._watcher = RunWatcher(asyncio.get_running_loop(), self._end)
        self._ended = {name: shims for name, shims in self._ended.items() if name in steps}
        for name, (run_id, step) in steps.items():
            if self._watcher is None or self._watcher.watches(name):
                continue
            path = self.place(run_id, step)
            with self._lock:
                taken_over, shim = self._taken_over.get(path, 0), self._launched.get(path)
            if self._ended.get(name) != taken_over:
                self._watched.setdefault(name, taken_over)
                self._watcher.watch(name, path, shim)

    def _end(self, name: str) -> None:
        self._ended[name] = self._watched.pop(name)
        self.news()

    def cancel(self, run_id: str, step: int = 0) -> None:
        """Ask the shim to end the run, durably. Safe to repeat. Raises OSError."""
        RunDirectory(self.path(run_id, step)).request_cancel()

    def wind_down(self, run_id: str, order: WindDown) -> None:
        """See ``RunHost``. The shim notices within a quarter of a second."""
        RunDirectory(self.path(run_id)).wind_down(order)

    def end_survivors(self, run_id: str) -> bool:
        """End the processes that a lost shim left. Blocks for about the grace period if there are any, and 5 seconds
        more for those that survive KILL. Return whether none is left."""
        return not kill_survivors(run_id, grace_ms=self.grace_ms, give_up_ms=_GIVE_UP_MS).left

    def read(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> OutputPiece:
        return read_output(self.place(run_id, step), stream, offset, limit)

    def report(self, request: LaunchRequest, record: ExitRecord | None, step: int = 0) -> RunReport | None:
        """See ``RunHost``. Records the run's changes on a thread."""
        report = super().report(request, record, step)
        if report is None or report.outcome is None or self._recorder is None:
            return report
        future = self._recording.get(request.run_id)
        if future is None and not self._recorder.is_of_interest(self.place(request.run_id)):
            return report
        if future is None:
            future = self._recorders.submit(self.record_changes, self._recorder, request.run_id)
            self._recording[request.run_id] = future
            future.add_done_callback(lambda _: self._notify())
        if not future.done():
            return None
        changes = self._recording.pop(request.run_id).result()
        return report if changes is None else self._with_changes(request, report, changes)

    def record_changes(self, recorder: ChangeRecorder, run_id: str) -> RunChanges | None:
        """Record the run's changes; called on a thread."""
        return recorder.after(self.path(run_id))

    def prompt(self, run_id: str) -> str:
        return (self.path(run_id) / PROMPT).read_bytes().decode(errors="replace")

    def handoff(self, run_id: str) -> str:
        return (self.path(run_id) / HANDOFF).read_text(encoding="utf-8")

    def changes(self, run_id: str) -> RunChanges | None:
        return recorded(self.path(run_id))

    def patch(self, run_id: str) -> str:
        with suppress(OSError):
            return (self.path(run_id) / PATCH).read_bytes().decode(errors="replace")
        return ""

    def append_message(self, run_id: str, message: bytes, *, durable: bool) -> None:
        RunDirectory(self.path(run_id)).append_message(message, durable=durable)

    def messages(self, run_id: str) -> Iterator[bytes]:
        return RunDirectory(self.path(run_id)).messages()

    def sweep(self, known: frozenset[str]) -> list[Swept]:
        return sweep(self._root, known, grace_ms=self.grace_ms)

    def _awaited(self, path: str) -> bool:
        """Return whether a shim was launched for it and is alive."""
        with self._lock:
            shim = self._launched.get(path)
            if shim is None or shim.is_alive:
                return shim is not None
            self._launched.pop(path).close()
            return False
