"""One scan of one inbox folder: look, read what changed, offer it to the intake, say what is wrong."""

import errno
import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.core.problem import Problem
from claudomator_py.service.inbox.archive import archive, archived_names
from claudomator_py.service.inbox.errors import SUFFIX, is_error_file, remove_error_file, sweep, write_error_file
from claudomator_py.service.inbox.files import Busy, Entry, Folder, Vanished
from claudomator_py.service.inbox.ledger import GONE_S, RACY_S, Ledger, Refused
from claudomator_py.service.inbox.values import (
    AfterAccept,
    FileReading,
    FileStamp,
    FolderStatus,
    Intake,
    Parsed,
    ScanReport,
    TaskFormat,
)
from claudomator_py.store.errors import StoreUnavailable

T = TypeVar("T")

_CHUNK = 256
# So many refused files are offered again whenever anything changed; more of them only by the rescan.
_OFFERED_AGAIN = 100
_IGNORED = (".", "#", "~")

log = logging.getLogger("claudomator.inbox")

_NOT_YET = Problem(message="it was not looked at yet", remedy="wait a moment")
_REPLACED = Problem(message="it was replaced while it was looked at", remedy="wait a moment")


@dataclass(slots=True)
class _Tally:
    """What a scan did so far, by name. changed: anything that a person could see."""

    accepted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    changed: bool = False


class WatchedFolder:
    """One inbox. Not thread-safe. Whatever the intake raises ends the scan and comes through; then ``remember``."""

    def __init__(
        self,
        path: str,
        intake: Intake,
        taskfiles: TaskFormat,
        after_accept: AfterAccept,
        stopped: Callable[[], bool],
    ) -> None:
        self.path = path
        self._intake = intake
        self._format = taskfiles
        self._move = after_accept == "move"
        self._stopped = stopped
        self._ledger = Ledger()
        self._tally = _Tally()
        self._device: int | None = None
        self._first = True
        self._problem: Problem | None = _NOT_YET

    def remember(self, known: Mapping[str, FileStamp]) -> None:
        """What the intake knows of this folder, by name."""
        self._ledger.remember(known)

    @property
    def available(self) -> bool:
        """Whether the folder could be read at the last scan."""
        return self._problem is None

    def problems(self) -> dict[str, tuple[Problem, ...]]:
        """The problems of each refused file, by path."""
        return {self._path(name): refused.problems for name, refused in self._ledger.refused.items()}

    def status(self) -> FolderStatus:
        """How it stands after the last scan."""
        ledger = self._ledger
        missing = {self._path(name): "it is not there; gone, if it does not come back" for name in ledger.missing}
        waiting = missing | {self._path(name): waiting.why for name, waiting in ledger.waiting.items()}
        return FolderStatus(self.available, self._problem, len(ledger.accepted), len(ledger.refused), waiting)

    def due(self) -> dict[str, float]:
        """When (``time.monotonic()``) to look at which name again."""
        return self._ledger.due() if self.available else {}

    def offerable(self) -> set[str]:
        """Files refused by the intake, few enough to be offered again because something else changed."""
        names = {name for name, refused in self._ledger.refused.items() if refused.reading is not None}
        return names if len(names) <= _OFFERED_AGAIN else set()

    def create(self) -> None:
        """Make the folder if only it is missing. For the start alone: a later loss may be an unmounting."""
        try:
            Path(self.path).mkdir(0o700)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOENT):
                log.warning("cannot create the inbox %s: %s", self.path, error.strerror)
        else:
            log.info("created the inbox %s", self.path)

    def scan(self, names: Collection[str] | None) -> ScanReport:
        """Look at these names, or at all. Afterwards ``changed`` says whether anything changed that a person could
        see, even if it raised."""
        self._tally = tally = _Tally()
        before = self._problem
        try:
            folder = Folder(self.path)
        except OSError as error:
            self._problem = _lost(error)
        else:
            with folder:
                self._scan(folder, names)
        if before != self._problem:
            tally.changed = True
            if self._problem is not None:
                log.warning("inbox unavailable: %s: %s", self.path, self._problem)
            else:
                log.info("watching the inbox %s", self.path)
        return ScanReport(
            accepted=tuple(map(self._path, tally.accepted)),
            refused=tuple(map(self._path, tally.refused)),
            gone=tuple(map(self._path, tally.gone)),
            waiting=tuple(self.status().waiting),
            unavailable=() if self.available else (self.path,),
        )

    @property
    def changed(self) -> bool:
        """Whether the last scan changed anything that a person could see."""
        return self._tally.changed

    def _scan(self, folder: Folder, names: Collection[str] | None) -> None:
        try:
            if names is None:
                found = list(folder.entries(self._wanted))
            else:
                found = [entry for name in names if self._wanted(name) and (entry := folder.entry(name))]
        except OSError as error:
            self._problem = _lost(error)
            return
        if not folder.is_current():
            self._problem = _REPLACED
            return
        self._problem = None
        if self._device not in (None, folder.device):
            self._ledger.put_away()
        self._device = folder.device
        present = {entry.name: entry for entry in found}
        self._absences(folder, present, names)
        # The order of arrival, so that a start with a full inbox keeps it.
        self._arrivals(folder, sorted(found, key=lambda entry: (entry.stamp.mtime_ns, entry.name)))
        if names is None and self._first and not self._stopped():
            sweep(folder, filter(self._is_ours, folder.names()), self._ledger.refused)
            self._first = False

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _wanted(self, name: str) -> bool:
        return is_wanted(self._format, name)

    def _is_ours(self, name: str) -> bool:
        return is_error_file(name) and (name.startswith(".") or self._wanted(name.removesuffix(SUFFIX)))

    # --- what is not there ---

    def _absences(self, folder: Folder, present: Mapping[str, Entry], names: Collection[str] | None) -> None:
        ledger = self._ledger
        for name in present:
            ledger.missing.pop(name, None)
        absent = (ledger.names() if names is None else ledger.names().intersection(names)) - present.keys()
        for name in absent:
            ledger.miss(name)
            self._mend(folder, name)
        lost = {name: stamp for name in absent if (stamp := ledger.accepted.get(name))}
        if not lost:
            return
        archived = archived_names(folder, lost)
        if archived:
            self._archived(folder, archived)
        now = time.monotonic()
        arrived = {entry.stamp.inode for entry in present.values() if entry.name not in ledger.accepted}
        gone = []
        for name in sorted(lost.keys() - archived):
            at_once = self._first or lost[name].inode in arrived
            due = now if at_once else ledger.missing.get(name, now + GONE_S)
            ledger.missing[name] = due
            if due <= now:
                gone.append(name)
        if gone:
            self._intake.gone([self._path(name) for name in gone])
            ledger.forget(gone)
            self._tally.gone += gone
            self._tally.changed = True

    # --- what is there ---

    def _arrivals(self, folder: Folder, entries: Iterable[Entry]) -> None:
        ledger = self._ledger
        now = time.monotonic()
        unread, refused, unmoved = [], [], []
        for entry in entries:
            if entry.problem is not None:
                self._refuse(folder, entry.name, Refused(entry.stamp, (entry.problem,)))
            elif not ledger.is_settled(entry.name, entry.stamp, now):
                unread.append(entry)
            elif ledger.accepted.get(entry.name) == entry.stamp:
                ledger.waiting.pop(entry.name, None)
                if self._move:
                    unmoved.append(entry.name)
                else:
                    self._mend(folder, entry.name)
            elif reading := ledger.refused[entry.name].reading:
                refused.append(reading)
        self._archive(folder, unmoved)
        # Refused ones last: what is new may be what they waited for.
        for chunk in _chunks(unread):
            if self._stopped():
                return
            self._offer(folder, [reading for entry in chunk if (reading := self._read(folder, entry))])
        for again in _chunks(refused):
            self._offer(folder, again)

    def _read(self, folder: Folder, entry: Entry) -> FileReading | None:
        """The file's reading if it is whole, good and changed; whatever else it is has been noted."""
        ledger, name = self._ledger, entry.name
        now = time.monotonic()
        content = folder.read(entry, quiet=ledger.is_quiet(name, entry.stamp, now))
        if isinstance(content, Vanished):
            ledger.wait(name, entry.stamp, "it was there a moment ago", now, quiet=False)
            return None
        if isinstance(content, Busy):
            ledger.wait(name, entry.stamp, content.why, now, quiet=content.quiet)
            return None
        if isinstance(content, Problem):
            self._refuse(folder, name, Refused(entry.stamp, (content,)))
            return None
        digest = hashlib.sha256(content.data).digest()
        if ledger.is_unchanged(name, content.stamp, digest):
            ledger.waiting.pop(name, None)
            return None
        if time.time_ns() - content.stamp.mtime_ns < RACY_S * 1e9:
            ledger.compare_later(name, content.stamp, digest, now)
        parsed = self._parse(name, content.data)
        if isinstance(parsed, Problem):
            self._refuse(folder, name, Refused(content.stamp, (parsed,), lasting=True))
            return None
        if parsed.problems:
            self._refuse(folder, name, Refused(content.stamp, tuple(parsed.problems), lasting=True))
            return None
        return FileReading(self._path(name), content.stamp, parsed)

    def _parse(self, name: str, data: bytes) -> Parsed | Problem:
        try:
            return self._format.parse_task_file(data, name)
        except Exception as error:
            log.exception("parsing %r failed", name)
            return Problem(message=f"it cannot be parsed ({type(error).__name__})", remedy="simplify it")

    def _offer(self, folder: Folder, readings: Sequence[FileReading]) -> None:
        """Hand the readings to the intake, but those whose file changed meanwhile."""
        current = [reading for reading in readings if self._is_current(folder, reading)]
        if not current:
            return
        crashpoint("inbox-before-take")
        verdicts = self._take(current)
        crashpoint("inbox-after-take")
        accepted = []
        for reading, problems in zip(current, verdicts, strict=True):
            name = Path(reading.path).name
            if problems:
                self._refuse(folder, name, Refused(reading.stamp, tuple(problems), reading))
            else:
                self._ledger.accept(name, reading.stamp)
                self._mend(folder, name)
                accepted.append(name)
        self._tally.accepted += accepted
        self._tally.changed |= bool(accepted)
        if self._move:
            self._archive(folder, accepted)

    def _is_current(self, folder: Folder, reading: FileReading) -> bool:
        name = Path(reading.path).name
        entry = folder.entry(name)
        if entry is not None and entry.stamp == reading.stamp:
            return True
        stamp = reading.stamp if entry is None else entry.stamp
        self._ledger.wait(name, stamp, "it changed while it was parsed", time.monotonic(), quiet=False)
        return False

    def _take(self, readings: Sequence[FileReading]) -> Sequence[Sequence[Problem]]:
        if len(readings) > 1:
            try:
                return self._intake.take_many(readings)
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("taking %d files at once failed; taking them one by one", len(readings))
        return [self._take_one(reading) for reading in readings]

    def _take_one(self, reading: FileReading) -> Sequence[Problem]:
        try:
            return self._intake.take(reading)
        except StoreUnavailable:
            raise
        except Exception as error:
            log.exception("taking %s failed", reading.path)
            message = f"it is valid, but could not be taken ({type(error).__name__})"
            return [Problem(message=message, remedy="see the daemon's log; it is tried again at every rescan")]

    # --- what follows ---

    def _refuse(self, folder: Folder, name: str, refused: Refused) -> None:
        if self._ledger.refuse(name, refused):
            self._tally.refused.append(name)
            self._tally.changed = True
            write_error_file(folder, name, self._format.render_problems(name, refused.problems))

    def _mend(self, folder: Folder, name: str) -> None:
        if self._ledger.refused.pop(name, None) is not None:
            self._tally.changed = True
            remove_error_file(folder, name)

    def _archive(self, folder: Folder, names: Iterable[str]) -> None:
        """Move accepted files away, but those that changed since: they have arrived anew."""
        moved = []
        for name in names:
            stamp = self._ledger.accepted[name]
            entry = folder.entry(name)
            if entry is None or entry.stamp != stamp:
                continue
            try:
                if archive(folder, entry, time.time_ns()):
                    moved.append(name)
            except OSError as error:
                message = f"it was accepted, but cannot be moved to .accepted: {error.strerror}"
                remedy = "give the daemon's user write access to the inbox, or configure `after_accept: keep`"
                self._refuse(folder, name, Refused(stamp, (Problem(message=message, remedy=remedy),)))
        if moved:
            self._archived(folder, moved)

    def _archived(self, folder: Folder, names: Collection[str]) -> None:
        self._intake.archived([self._path(name) for name in sorted(names)])
        self._ledger.forget(names)
        for name in names:
            self._mend(folder, name)
        self._tally.changed = True


def is_wanted(taskfiles: TaskFormat, name: str) -> bool:
    """Whether a file of that name is looked at: meant as a task, and not hidden or left by an editor."""
    return not name.startswith(_IGNORED) and taskfiles.is_task_file(name)


def _chunks(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK))


def _lost(error: OSError) -> Problem:
    """Why the inbox cannot be read, and what to do. Nothing in it counts as deleted meanwhile."""
    match error.errno:
        case errno.ENOENT:
            message, remedy = "the folder does not exist", "create it, or mount what it lies on"
        case errno.ENOTDIR:
            message, remedy = "it is not a folder", "put a folder there, or correct inbox.paths"
        case errno.EACCES | errno.EPERM:
            message = "the daemon's user may not read it"
            remedy = f"give the user with id {os.geteuid()} the rights r and x on it and x on the folders above"
        case _:
            message, remedy = f"it cannot be read: {error.strerror}", "check its disk or mount"
    return Problem(message=message, remedy=f"{remedy}; it is picked up by itself")
