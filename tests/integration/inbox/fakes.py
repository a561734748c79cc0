"""An intake in memory, with the rules of the real one, and helpers that drop files as people and programs do."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox import InboxWatcher
from claudomator_py.sources.inbox.folder import FolderScan
from claudomator_py.sources.inbox.ledger import TASK_FILES, AfterAccept, FileReading, FileStamp, FolderStatus
from claudomator_py.sources.inbox.refusals import Refusals, readable
from claudomator_py.sources.inbox.scanner import Scanner, merged
from claudomator_py.store import StoreUnavailable


class MemoryIntake:
    """Remembers as a store would: what it holds survives the inbox that filled it.

    runs: (path, name) each time new or changed content was accepted. each_arrival: as with ``after_accept: move``.
    """

    def __init__(self, *, each_arrival: bool = False, agents: set[str] | None = None) -> None:
        self.each_arrival = each_arrival
        self.agents = agents or {"claude", "codex"}
        self.available = True
        self.poisonous = ""
        self.known: dict[str, FileStamp] = {}
        self.documents: dict[tuple[str, str], TaskSpec] = {}
        self.scheduled: set[tuple[str, str]] = set()
        self.runs: list[tuple[str, str]] = []
        self.gone_calls: list[str] = []
        self.renames: list[tuple[str, str]] = []
        self.archived_calls: list[str] = []
        self.commits = 0
        self._lock = threading.Lock()

    was_planned = False

    def known_files(self) -> Mapping[str, FileStamp]:
        self._open()
        return dict(self.known)

    def take(self, readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        self._open()
        if any(self.poisonous and self.poisonous in reading.path for reading in readings):
            raise RuntimeError("poison")
        with self._lock:
            verdicts = [self._take(reading) for reading in readings]
            self.commits += 1
        return verdicts

    def gone(self, paths: Sequence[str]) -> None:
        self._open()
        self.gone_calls += paths
        for path in paths:
            del self.known[path]
        self.scheduled = {key for key in self.scheduled if key[0] not in paths}

    def archived(self, paths: Sequence[str]) -> None:
        self._open()
        self.archived_calls += paths
        for path in paths:
            del self.known[path]

    def _open(self) -> None:
        if not self.available:
            raise StoreUnavailable("the disk is full", "make room")

    def _take(self, reading: FileReading) -> Sequence[Problem]:
        assert not reading.parsed.problems
        if reading.renamed_from is not None:
            self._rename(reading.renamed_from, reading)
        problems = []
        for spec in reading.parsed.items:
            if spec.agent.type is not None and spec.agent.type not in self.agents:
                problems.append(Problem(field="agent.type", message=f"no agent {spec.agent.type}", remedy="add it"))
            if any(name == spec.name and path != reading.path for path, name in self.scheduled):
                problems.append(Problem(field="name", message=f"{spec.name} is taken", remedy="choose another name"))
        if problems:
            return problems
        for spec in reading.parsed.items:
            key = (reading.path, spec.name)
            if self.each_arrival or self.documents.get(key) != spec:
                self.runs.append(key)
            self.documents[key] = spec
            self.scheduled.add(key)
        self.known[reading.path] = reading.stamp
        return ()

    def _rename(self, old: str, reading: FileReading) -> None:
        self.renames.append((old, reading.path))
        del self.known[old]
        self.scheduled = {(reading.path if path == old else path, name) for path, name in self.scheduled}
        for path, name in [key for key in self.documents if key[0] == old]:
            self.documents[reading.path, name] = self.documents.pop((path, name))


@dataclass(frozen=True)
class Scanned:
    """What one look at everything did, and what it found, by path."""

    accepted: tuple[str, ...]
    refused: tuple[str, ...]
    gone: tuple[str, ...]
    waiting: tuple[str, ...]
    unavailable: tuple[str, ...]


class InboxInSteps:
    """An ``InboxWatcher`` without its thread and watch: it looks when asked to, so a test knows when it has."""

    def __init__(
        self, paths: Iterable[Path], intake: MemoryIntake, guard: InboxGuard, after_accept: AfterAccept = "keep"
    ) -> None:
        self.refusals = Refusals()
        self._paths = [str(path) for path in paths]
        rest = self.refusals, lambda _: None, guard, TASK_FILES
        folders = [FolderScan(path, intake, after_accept, lambda: False, *rest) for path in self._paths]
        self._scanner = Scanner(folders, intake, lambda: False)

    def scan_once(self) -> Scanned:
        """Look at everything. Raises what the intake raises."""
        reports = [self._scanner.survey(self._paths), self._scanner.step({})]
        while self._scanner.unread:
            reports.append(self._scanner.step({}))
        report, status = merged(reports), self.status()
        return Scanned(
            report.accepted,
            report.refused,
            report.gone,
            waiting=tuple(chain.from_iterable(folder.waiting for folder in status.values())),
            unavailable=tuple(path for path, folder in status.items() if not folder.available),
        )

    def status(self) -> Mapping[str, FolderStatus]:
        """Each folder, by path."""
        return self._scanner.status()


def problems_of(inbox: InboxWatcher | InboxInSteps) -> Mapping[str, tuple[Problem, ...]]:
    """The refused files, by path, with every reason."""
    return {readable(refused.path): refused.problems for refused in inbox.refusals.page()}


def task(name: str, instructions: str = "Do it.") -> str:
    return f"name: {name}\ninstructions: {instructions}\n"


def drop(folder: Path, file: str, text: str) -> Path:
    """Put a whole file into the inbox at once."""
    hidden = folder / f".{file}.tmp"
    hidden.write_text(text)
    return hidden.rename(folder / file)
