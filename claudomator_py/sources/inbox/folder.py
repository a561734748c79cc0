"""One inbox folder: look, read what changed in small steps, offer it to the intake, say what is wrong."""

import errno
import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any, TypeVar

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import Problem
from claudomator_py.schema.cardfile import ParsedCards
from claudomator_py.schema.documents import is_document
from claudomator_py.schema.taskfiles import ParsedFile, render_problems
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox.archive import archive, archived_names
from claudomator_py.sources.inbox.files import Busy, Entry, Folder, Vanished
from claudomator_py.sources.inbox.ledger import GONE_S, RACY_S, FileLedger, Refused
from claudomator_py.sources.inbox.offering import Offering
from claudomator_py.sources.inbox.refusals import (
    SUFFIX,
    Refusals,
    is_error_file,
    remove_error_file,
    shortened,
    sweep,
    write_error_file,
)
from claudomator_py.sources.inbox.values import (
    AfterAccept,
    FileFormat,
    FileStamp,
    FolderStatus,
    Intake,
    Reading,
    ScanReport,
)

T = TypeVar("T")

CHUNK = 256
# A step gives way to what came meanwhile after so many seconds of reading.
_STEP_S = 0.2
# So many refused files are offered again whenever anything changed, and so many by each rescan.
_OFFERED_AGAIN = 100
_OFFERED_BY_RESCAN = 1_000
_MOST_WAITING_SHOWN = 100
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


class FolderScan:
    """One inbox. Not thread-safe. Whatever the intake raises ends the scan and comes through; then ``remember``.

    A look at everything only finds which files need one; they are then read in steps, so that what comes meanwhile need
    not wait for all of them.
    """

    def __init__(
        self,
        path: str,
        intake: Intake[Any],
        after_accept: AfterAccept,
        stopped: Callable[[], bool],
        refusals: Refusals,
        claim: Callable[[str], Problem | None],
        guard: InboxGuard,
        file_format: FileFormat,
    ) -> None:
        """claim: why the folder at that path is not this daemon's to watch, or None."""
        self.path = path
        self._claim = claim
        self._guard = guard
        self._format = file_format
        self._intake = intake
        self._offering = Offering(intake)
        self._move = after_accept == "move"
        self._stopped = stopped
        self._ledger = FileLedger()
        self._tally = _Tally()
        self._device: int | None = None
        self._first = True
        self._unswept = True
        self._refusals = refusals
        self._unread: dict[str, None] = {}
        self._problem: Problem | None = _NOT_YET

    def remember(self, known: Mapping[str, FileStamp]) -> None:
        """What the intake knows of this folder, by name."""
        self._ledger.remember(known)

    @property
    def available(self) -> bool:
        """Whether the folder could be read at the last scan."""
        return self._problem is None

    def status(self) -> FolderStatus:
        """How it stands after the last scan."""
        ledger = self._ledger
        missing = ((name, "it is not there; gone, if it does not come back") for name in ledger.missing)
        waiting = chain(missing, ((name, waiting.why) for name, waiting in ledger.waiting.items()))
        shown = {self._path(name): why for name, why in islice(waiting, _MOST_WAITING_SHOWN)}
        counts = len(ledger.accepted), len(ledger.refused)
        return FolderStatus(self.available, self._problem, *counts, shown, len(self._unread))

    def due(self) -> dict[str, float]:
        """When (``time.monotonic()``) to look at which name again."""
        return self._ledger.due() if self.available else {}

    def offerable(self) -> set[str]:
        """Files refused by the intake, few enough to be offered again because something else changed."""
        return set(self._ledger.offerable) if len(self._ledger.offerable) <= _OFFERED_AGAIN else set()

    @property
    def unread(self) -> int:
        """How many files are still to be looked at by ``step``."""
        return len(self._unread) if self.available else 0

    def create(self) -> None:
        """Make the folder if only it is missing. For the start alone: a later loss may be an unmounting."""
        try:
            if not Path(self.path).exists() and self._guard.place_for(self.path) is None:
                Path(self.path).mkdir(0o700)
                log.info("created the inbox %s", self.path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOENT):
                log.warning("cannot create the inbox %s: %s", self.path, error.strerror)

    def survey(self, *, offer_all: bool = False) -> ScanReport:
        """Find out what is there, what is gone, and which files ``step`` has to look at.

        offer_all: also every file that the intake refused, not just some of them.
        """
        return self._open(lambda folder: self._survey(folder, offer_all=offer_all))

    def scan(self, names: Collection[str]) -> ScanReport:
        """Look at these names; at those that it takes too long to get to, in the next steps."""
        return self._open(lambda folder: self._scan(folder, names))

    def step(self, *, newest: bool = False) -> ScanReport:
        """Look at the next of the files that are still to be looked at. newest: at those that came last."""
        waiting = reversed(self._unread) if newest else iter(self._unread)
        names = list(islice(waiting, CHUNK))
        return self._open(lambda folder: self._scan(folder, names, newest=newest))

    @property
    def flooded(self) -> bool:
        """Whether there are many files to be looked at still, and what is read of them is refused for the most part."""
        return self.unread > CHUNK and len(self._tally.refused) > len(self._tally.accepted)

    def read_later(self, names: Iterable[str]) -> None:
        """Have ``step`` look at these names, after those that it has to look at already."""
        self._unread.update(dict.fromkeys(names))

    def _open(self, work: Callable[[Folder], None]) -> ScanReport:
        """Do this in the folder. Afterwards ``changed`` says whether anything changed that a person could see, even if
        it raised."""
        self._tally = tally = _Tally()
        before = self._problem
        try:
            exposed = self._guard.folder(self.path)
            folder = None if exposed is not None else Folder(self.path, self._guard)
        except OSError as error:
            self._problem = _lost(error)
        else:
            if folder is None:
                self._problem = exposed
            else:
                with folder:
                    work(folder)
        if before != self._problem:
            tally.changed = True
            if self._problem is not None:
                log.warning("folder of %s unavailable: %s: %s", self._format.noun, self.path, self._problem)
            else:
                log.info("watching the folder of %s %s", self._format.noun, self.path)
        return ScanReport(
            accepted=tuple(map(self._path, tally.accepted)),
            refused=tuple(map(self._path, tally.refused)),
            gone=tuple(map(self._path, tally.gone)),
        )

    @property
    def changed(self) -> bool:
        """Whether the last scan changed anything that a person could see."""
        return self._tally.changed

    def _survey(self, folder: Folder, *, offer_all: bool) -> None:
        try:
            found = list(self._until_stopped(folder.entries(self._wanted)))
        except OSError as error:
            self._problem = _lost(error)
            return
        if self._stopped() or not self._in_place(folder):
            return
        present = {entry.name: entry for entry in found}
        self._absences(folder, present, self._ledger.names())
        self._first = False
        now = time.monotonic()
        # The order of arrival, so that a start with a full inbox keeps it. Refused ones last: what is new may be what
        # they waited for.
        found.sort(key=lambda entry: (entry.stamp.mtime_ns, entry.name))
        self.read_later(entry.name for entry in found if self._needs_a_look(entry, now))
        offered = (name for name in self._ledger.offerable if name in present)
        self.read_later(islice(offered, None if offer_all else _OFFERED_BY_RESCAN))
        self._sweep(folder)

    def _scan(self, folder: Folder, names: Collection[str], *, newest: bool = False) -> None:
        try:
            found = [entry for name in names if self._wanted(name) and (entry := folder.entry(name))]
        except OSError as error:
            self._problem = _lost(error)
            return
        if not self._in_place(folder):
            return
        self._absences(folder, {entry.name: entry for entry in found}, set(names))
        for name in names:
            self._unread.pop(name, None)
        found.sort(key=lambda entry: (entry.stamp.mtime_ns, entry.name), reverse=newest)
        offered = self._ledger.offerable
        later = self._arrivals(folder, sorted(found, key=lambda entry: entry.name in offered))
        self._unread = self._unread | dict.fromkeys(reversed(later)) if newest else dict.fromkeys(later) | self._unread
        self._sweep(folder)

    def _in_place(self, folder: Folder) -> bool:
        if (problem := self._claim(self.path)) is not None:
            self._problem = problem
            return False
        # Only now: what is at the path is claimed, and this is it.
        if not folder.is_current():
            self._problem = _REPLACED
            return False
        self._problem = None
        if self._device not in (None, folder.device):
            self._ledger.put_away()
        self._device = folder.device
        return True

    def _until_stopped(self, items: Iterable[T]) -> Iterable[T]:
        return takewhile(lambda _: not self._stopped(), items)

    def _sweep(self, folder: Folder) -> None:
        """Once, when everything was looked at: only then is it known which error files are still right."""
        if self._unswept and not self._first and not self._unread and not self._stopped():
            sweep(folder, self._until_stopped(filter(self._is_ours, folder.names())), self._ledger.refused)
            self._unswept = False

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _wanted(self, name: str) -> bool:
        return is_wanted(name)

    def _is_ours(self, name: str) -> bool:
        return is_error_file(name) and (name.startswith(".") or self._wanted(name.removesuffix(SUFFIX)))

    # --- what is not there ---

    def _absences(self, folder: Folder, present: Mapping[str, Entry], names: Collection[str]) -> None:
        """names: those that were looked for."""
        ledger = self._ledger
        for name in present:
            ledger.missing.pop(name, None)
        now = time.monotonic()
        absent = {name for name in names if name not in present and ledger.knows(name)}
        for name in absent:
            self._mend(folder, name)
            ledger.absent(name, now if self._first else now + GONE_S)
        arrived = [entry for entry in present.values() if entry.name not in ledger.accepted and entry.problem is None]
        ledger.find_renamed((entry.name, entry.stamp) for entry in arrived)
        lost = {name: ledger.accepted[name] for name in absent if name in ledger.missing}
        if not lost:
            return
        if archived := archived_names(folder, lost):
            self._archived(folder, archived)
        # A file that was renamed and changed as well is not the same file, but the old name is free at once.
        inodes = {entry.stamp.inode for entry in arrived}
        gone = [name for name in lost.keys() - archived if ledger.missing[name] <= now or lost[name].inode in inodes]
        for chunk in _chunks(sorted(gone)):
            if self._stopped():
                return
            self._intake.gone([self._path(name) for name in chunk])
            ledger.forget(chunk)
            self._tally.gone += chunk
            self._tally.changed = True

    # --- what is there ---

    def _needs_a_look(self, entry: Entry, now: float) -> bool:
        """Whether anything is to be done about an entry beyond knowing that it is there."""
        ledger, name = self._ledger, entry.name
        if name in ledger.offerable and ledger.refused[name].stamp == entry.stamp:
            return False  # in its turn
        if entry.problem is not None:
            known = ledger.refused.get(name)
            return known is None or (known.stamp, known.problems) != (entry.stamp, (entry.problem,))
        if not ledger.is_settled(name, entry.stamp, now):
            return True
        accepted = ledger.accepted.get(name) == entry.stamp
        return accepted and (self._move or name in ledger.refused or name in ledger.waiting)

    def _arrivals(self, folder: Folder, entries: Sequence[Entry]) -> list[str]:
        """Read, and offer; the names of those that it did not get to in the time of a step."""
        ledger = self._ledger
        now = time.monotonic()
        readings: list[Reading[Any]] = []
        unmoved: list[str] = []
        later: list[str] = []
        for place, entry in enumerate(entries):
            full = len(readings) >= self._offering.at_once
            if full or self._stopped() or time.monotonic() - now > _STEP_S:
                later = [entry.name for entry in entries[place:]]
                break
            if entry.problem is not None:
                self._refuse(folder, entry.name, Refused(entry.stamp, (entry.problem,)))
            elif not ledger.is_settled(entry.name, entry.stamp, now):
                if reading := self._read(folder, entry):
                    readings.append(reading)
            elif ledger.accepted.get(entry.name) == entry.stamp:
                ledger.waiting.pop(entry.name, None)
                if self._move:
                    unmoved.append(entry.name)
                else:
                    self._mend(folder, entry.name)
        self._archive(folder, unmoved)
        self._offer(folder, readings)
        return later

    def _read(self, folder: Folder, entry: Entry) -> Reading[Any] | None:
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
        return Reading(self._path(name), content.stamp, parsed, self._renamed_from(name, content.stamp))

    def _renamed_from(self, name: str, stamp: FileStamp) -> str | None:
        old = self._ledger.renamed.get(name)
        if old is None:
            return None
        if self._ledger.accepted.get(old) == stamp:
            return self._path(old)
        self._ledger.no_rename(name, time.monotonic())
        return None

    def _parse(self, name: str, data: bytes) -> ParsedFile | ParsedCards | Problem:
        try:
            return self._format.parse(data, name)
        except Exception as error:
            log.exception("parsing %r failed", name)
            return Problem(message=f"it cannot be parsed ({type(error).__name__})", remedy="simplify it")

    def _offer(self, folder: Folder, readings: Sequence[Reading[Any]]) -> None:
        """Hand the readings to the intake, but those whose file changed meanwhile."""
        current = [reading for reading in readings if self._is_current(folder, reading)]
        if not current:
            return
        crashpoint("inbox-before-take")
        verdicts = self._offering.offer(current)
        crashpoint("inbox-after-take")
        accepted = []
        for reading, problems in zip(current, verdicts, strict=True):
            name = Path(reading.path).name
            if problems:
                self._refuse(folder, name, Refused(reading.stamp, tuple(problems), offered=True))
            else:
                self._ledger.accept(name, reading.stamp)
                self._mend(folder, name)
                accepted.append(name)
        self._tally.accepted += accepted
        self._tally.changed |= bool(accepted)
        if self._move:
            self._archive(folder, accepted)

    def _is_current(self, folder: Folder, reading: Reading[Any]) -> bool:
        name = Path(reading.path).name
        entry = folder.entry(name)
        if entry is not None and entry.stamp == reading.stamp:
            return True
        stamp = reading.stamp if entry is None else entry.stamp
        self._ledger.wait(name, stamp, "it changed while it was parsed", time.monotonic(), quiet=False)
        return False

    # --- what follows ---

    def _refuse(self, folder: Folder, name: str, refused: Refused) -> None:
        """Refuse the file. Of very many problems the first are kept; the error file says how many there are."""
        problems = self._refusals.clean(refused.problems)
        kept = replace(refused, problems=shortened(problems))
        if self._ledger.refuse(name, kept):
            self._tally.refused.append(name)
            self._tally.changed = True
            self._refusals.put(self._path(name), kept.problems)
            write_error_file(folder, name, render_problems(name, problems, self._format.without))

    def _mend(self, folder: Folder, name: str) -> None:
        if self._ledger.mend(name):
            self._tally.changed = True
            self._refusals.drop(self._path(name))
            remove_error_file(folder, name)

    def _archive(self, folder: Folder, names: Iterable[str]) -> None:
        """Move accepted files away, but those that changed since: they have arrived again."""
        moved = []
        for name in self._until_stopped(names):
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


def is_wanted(name: str) -> bool:
    """Whether a file of that name is looked at: meant for us, and not hidden or left by an editor."""
    return not name.startswith(_IGNORED) and is_document(name)


def _chunks(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


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
