"""One inbox folder: what is in it, what is gone, and which files must be examined, in small steps."""

import errno
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any, TypeVar

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.documents import is_document
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox.archive import archived_names
from claudomator_py.sources.inbox.arrivals import Arrivals, Tally
from claudomator_py.sources.inbox.files import Folder, InboxEntry
from claudomator_py.sources.inbox.ledger import (
    GONE_S,
    AfterAccept,
    FileFormat,
    FileLedger,
    FileStamp,
    FolderStatus,
    Intake,
    ScanReport,
)
from claudomator_py.sources.inbox.refusals import SUFFIX, Refusals, is_error_file, readable, sweep

T = TypeVar("T")

CHUNK_SIZE = 256
_MAX_OFFERED_AGAIN, _MAX_OFFERED_BY_RESCAN = 100, 1_000
"""Maximum number of refused files offered again after any change, and by each rescan."""
_MAX_WAITING_SHOWN = 100
_IGNORED = (".", "#", "~")

log = logging.getLogger("claudomator.inbox")

_REPLACED = Problem(message="it was replaced while it was looked at", remedy="wait a moment")


class FolderScan:
    """One inbox. Not thread-safe. An exception of the intake ends the scan and propagates; call ``remember``
    afterwards.

    A survey only determines which files must be examined; they are then read in steps, so that new arrivals need not
    wait for all of them.
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
        """claim: returns why the folder at that path is not this daemon's to watch, or None."""
        self.path = path
        self._claim = claim
        self._guard = guard
        self._format = file_format
        self._intake = intake
        self._stopped = stopped
        self._ledger = FileLedger()
        self._tally = Tally()
        self._arrivals = Arrivals(path, self._ledger, self._tally, intake, after_accept, stopped, refusals, file_format)
        self._device: int | None = None
        self._first = True
        self._unswept = True
        self._unread: dict[str, None] = {}
        self._looked = False
        self._problem: Problem | None = None
        self._subfolders: tuple[str, ...] = ()

    def remember(self, known: Mapping[str, FileStamp]) -> None:
        """Take over what the intake knows about this folder, by name."""
        self._ledger.remember(known)

    @property
    def available(self) -> bool:
        """True if the folder could be read at the last scan."""
        return self._looked and self._problem is None

    def status(self) -> FolderStatus:
        """Return the folder's status after the last scan."""
        ledger = self._ledger
        missing = ((name, "it is not there; gone, if it does not come back") for name in ledger.missing)
        waiting = chain(missing, ((name, waiting.why) for name, waiting in ledger.waiting.items()))
        shown = {self._arrivals.path_of(name): why for name, why in islice(waiting, _MAX_WAITING_SHOWN)}
        counts = len(ledger.accepted), len(ledger.refused)
        return FolderStatus(self.available, self._problem, *counts, shown, len(self._unread), self._subfolders)

    def due(self) -> dict[str, float]:
        """Return when (``time.monotonic()``) to examine which name again."""
        return self._ledger.due() if self.available else {}

    def offerable(self) -> set[str]:
        """Return the files refused by the intake, if they are few enough to be offered again after any other change."""
        return set(self._ledger.offerable) if len(self._ledger.offerable) <= _MAX_OFFERED_AGAIN else set()

    @property
    def unread(self) -> int:
        """Number of files that ``step`` must still examine."""
        return len(self._unread) if self.available else 0

    def create(self) -> None:
        """Create the folder if only its last part is missing. For the start only: a folder lost later may have been
        unmounted."""
        try:
            if not Path(self.path).exists() and self._guard.place_for(self.path) is None:
                Path(self.path).mkdir(0o700)
                log.info("created the inbox %s", self.path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOENT):
                log.warning("cannot create the inbox %s: %s", self.path, error.strerror)

    def survey(self, *, offer_all: bool = False) -> ScanReport:
        """Determine what is present, what is gone, and which files ``step`` must examine. offer_all: also include every
        file that the intake refused, not just some of them."""
        return self._open(lambda folder: self._survey(folder, offer_all=offer_all))

    def scan(self, names: Collection[str]) -> ScanReport:
        """Examine these names; those for which there is not enough time are left to the next steps."""
        return self._open(lambda folder: self._scan(folder, names))

    def step(self, *, newest: bool = False) -> ScanReport:
        """Examine the next files in the queue. newest: start with those that came last."""
        waiting = reversed(self._unread) if newest else iter(self._unread)
        names = list(islice(waiting, CHUNK_SIZE))
        return self._open(lambda folder: self._scan(folder, names, newest=newest))

    @property
    def flooded(self) -> bool:
        """True if many files must still be examined and most of those read are refused."""
        return self.unread > CHUNK_SIZE and len(self._tally.refused) > len(self._tally.accepted)

    def read_later(self, names: Iterable[str]) -> None:
        """Add these names to the end of the queue for ``step``."""
        self._unread.update(dict.fromkeys(names))

    def _open(self, work: Callable[[Folder], None]) -> ScanReport:
        """Do the work in the folder. Afterwards ``changed`` says whether anything visible to a person changed, even if
        it raised."""
        tally = self._tally
        tally.clear()
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
        first, self._looked = not self._looked, True
        if first or before != self._problem:
            tally.changed = True
            if self._problem is not None:
                log.warning("folder of %s unavailable: %s: %s", self._format.noun, self.path, self._problem)
            else:
                log.info("watching the folder of %s %s", self._format.noun, self.path)
        return ScanReport(
            accepted=tuple(map(self._arrivals.path_of, tally.accepted)),
            refused=tuple(map(self._arrivals.path_of, tally.refused)),
            gone=tuple(map(self._arrivals.path_of, tally.gone)),
        )

    @property
    def changed(self) -> bool:
        """True if the last scan changed anything visible to a person."""
        return self._tally.changed

    def _survey(self, folder: Folder, *, offer_all: bool) -> None:
        # A file system that is new here has everything looked at.
        skips = self._device in (None, folder.device) and not self._arrivals.moves
        is_at_rest = self._ledger.is_at_rest if skips else _never
        present: set[str] = set()
        entries: list[InboxEntry] = []
        try:
            for name, entry in self._until_stopped(folder.entries(is_examined, is_at_rest)):
                present.add(name)
                if entry is not None:
                    entries.append(entry)
        except OSError as error:
            self._problem = _lost(error)
            return
        if self._stopped() or not self._in_place(folder):
            return
        self._record_absences(folder, present, entries, self._ledger.names())
        self._first = False
        now = time.monotonic()
        # In order of arrival, so that a start with a full inbox preserves it. Refused ones last: new files may be what
        # they were waiting for.
        entries.sort(key=lambda entry: (entry.stamp.mtime_ns, entry.name))
        self.read_later(entry.name for entry in entries if self._needs_a_look(entry, now))
        offered = (name for name in self._ledger.offerable if name in present)
        self.read_later(islice(offered, None if offer_all else _MAX_OFFERED_BY_RESCAN))
        self._sweep(folder)
        self._note_subfolders(folder)

    def _note_subfolders(self, folder: Folder) -> None:
        """One that is named like a file is refused as such; of any other, only this tells."""
        found = [readable(self._arrivals.path_of(name)) for name in folder.subfolders() if not is_examined(name)]
        if fresh := [path for path in found if path not in self._subfolders]:
            log.warning("subfolders are not searched; move up what is in %s", ", ".join(fresh))
        self._subfolders = tuple(found)

    def _scan(self, folder: Folder, names: Collection[str], *, newest: bool = False) -> None:
        try:
            entries = [entry for name in names if is_examined(name) and (entry := folder.entry(name))]
        except OSError as error:
            self._problem = _lost(error)
            return
        if not self._in_place(folder):
            return
        self._record_absences(folder, {entry.name for entry in entries}, entries, set(names))
        for name in names:
            self._unread.pop(name, None)
        entries.sort(key=lambda entry: (entry.stamp.mtime_ns, entry.name), reverse=newest)
        offered = self._ledger.offerable
        later = self._arrivals.take(folder, sorted(entries, key=lambda entry: entry.name in offered))
        self._unread = self._unread | dict.fromkeys(reversed(later)) if newest else dict.fromkeys(later) | self._unread
        self._sweep(folder)

    def _in_place(self, folder: Folder) -> bool:
        if (problem := self._claim(self.path)) is not None:
            self._problem = problem
            return False
        # Only now: the folder at the path is claimed, and this check confirms that it is the opened one.
        if not folder.is_current():
            self._problem = _REPLACED
            return False
        self._problem = None
        if self._device not in (None, folder.device):
            self._ledger.set_aside()
        self._device = folder.device
        return True

    def _until_stopped(self, items: Iterable[T]) -> Iterable[T]:
        return takewhile(lambda _: not self._stopped(), items)

    def _sweep(self, folder: Folder) -> None:
        """Runs once, after everything has been examined: only then is it known which error files are still valid."""
        if self._unswept and not self._first and not self._unread and not self._stopped():
            sweep(folder, self._until_stopped(filter(self._is_ours, folder.names())), self._ledger.refused)
            self._unswept = False

    def _is_ours(self, name: str) -> bool:
        return is_error_file(name) and (name.startswith(".") or is_examined(name.removesuffix(SUFFIX)))

    # --- what is not there ---

    def _record_absences(
        self, folder: Folder, present: set[str], entries: Iterable[InboxEntry], names: Collection[str]
    ) -> None:
        """present: the names of all files. entries: of those that are not at rest. names: those that were looked
        for."""
        ledger = self._ledger
        for name in present:
            ledger.missing.pop(name, None)
        now = time.monotonic()
        absent = {name for name in names if name not in present and ledger.knows(name)}
        for name in absent:
            self._arrivals.clear_refusal(folder, name)
            ledger.record_absence(name, now if self._first else now + GONE_S)
        arrived = [entry for entry in entries if entry.name not in ledger.accepted and entry.problem is None]
        ledger.find_renamed((entry.name, entry.stamp) for entry in arrived)
        lost = {name: ledger.accepted[name] for name in absent if name in ledger.missing}
        if not lost:
            return
        if archived := archived_names(folder, lost):
            self._arrivals.archived(folder, archived)
        # A file that was renamed and also changed is not the same file, but its old name is free immediately.
        inodes = {entry.stamp.inode for entry in arrived}
        gone = [name for name in lost.keys() - archived if ledger.missing[name] <= now or lost[name].inode in inodes]
        for chunk in _chunks(sorted(gone)):
            if self._stopped():
                return
            self._intake.gone([self._arrivals.path_of(name) for name in chunk])
            ledger.forget(chunk)
            self._tally.gone += chunk
            self._tally.changed = True

    def _needs_a_look(self, entry: InboxEntry, now: float) -> bool:
        """True if the entry requires more than knowing that it is present."""
        ledger, name = self._ledger, entry.name
        if name in ledger.offerable and ledger.refused[name].stamp == entry.stamp:
            return False  # examined in its turn
        if entry.problem is not None:
            known = ledger.refused.get(name)
            return known is None or (known.stamp, known.problems) != (entry.stamp, (entry.problem,))
        if not ledger.is_settled(name, entry.stamp, now):
            return True
        accepted = ledger.accepted.get(name) == entry.stamp
        return accepted and (self._arrivals.moves or name in ledger.refused or name in ledger.waiting)


def _never(_name: str, _status: os.stat_result) -> bool:
    return False


def is_examined(name: str) -> bool:
    """Return whether a file with that name is examined: meant for us, not hidden and not left by an editor."""
    return not name.startswith(_IGNORED) and is_document(name)


def _chunks(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + CHUNK_SIZE] for start in range(0, len(items), CHUNK_SIZE))


def _lost(error: OSError) -> Problem:
    """Why the inbox cannot be read, and what to do. Nothing in it counts as deleted meanwhile."""
    match error.errno:
        case errno.ENOENT:
            message, remedy = "the folder does not exist", "create it, or mount what it lies on"
        case errno.ENOTDIR:
            message, remedy = "it is not a folder", "put a folder there, or correct inbox.paths"
        case errno.ELOOP:
            message, remedy = "its symbolic links lead in a circle", "correct or delete the links"
        case errno.EACCES | errno.EPERM:
            message = "the daemon's user may not read it"
            remedy = f"give the user with id {os.geteuid()} the rights r and x on it and x on the folders above"
        case _:
            message, remedy = f"it cannot be read: {error.strerror}", "check its disk or mount"
    return Problem(message=message, remedy=f"{remedy}; it is picked up by itself")
