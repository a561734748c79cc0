"""What happens to files that are present: they are read, parsed and offered to the intake, then accepted, refused or
archived."""

import hashlib
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from itertools import takewhile
from typing import Any

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import Problem
from claudomator_py.schema.documents import ParsedFile
from claudomator_py.schema.taskfile import render_problems
from claudomator_py.sources.inbox.archive import archive
from claudomator_py.sources.inbox.files import Busy, Folder, InboxEntry, Vanished
from claudomator_py.sources.inbox.ledger import (
    RACY_S,
    AfterAccept,
    FileFormat,
    FileLedger,
    FileStamp,
    InboxReading,
    Intake,
    RefusedFile,
)
from claudomator_py.sources.inbox.refusals import Refusals, remove_error_file, shortened, write_error_file
from claudomator_py.store import StoreUnavailable
from claudomator_py.values import dataclass

log = logging.getLogger("claudomator.inbox")

# The batch size is adapted so that an offer takes about this long, in seconds: a commit for only a few files is slow,
# and a stop has to wait for very many.
_MIN_OFFER_S, _MAX_OFFER_S = 0.25, 1.0
_MIN_BATCH = 16
_FIRST_BATCH = 64
MAX_BATCH = 256
"""Maximum number of files offered at once."""
_STEP_S = 0.2
"""Seconds of reading after which a step yields to new events."""


class Offering:
    """Offers readings to the intake. batch_size: number of files in the next offer."""

    def __init__(self, intake: Intake[Any], clock: Callable[[], float] = time.monotonic) -> None:
        """clock: in seconds, from any starting point."""
        self._intake = intake
        self._clock = clock
        self.batch_size = _FIRST_BATCH

    def offer(self, readings: Sequence[InboxReading[Any]]) -> Sequence[Sequence[Problem]]:
        """Return the problems of each reading; empty if it was accepted. Raises StoreUnavailable."""
        begin_s = self._clock()
        verdicts = self._take(readings)
        self._adapt(self._clock() - begin_s, len(readings))
        return verdicts

    def _adapt(self, took_s: float, count: int) -> None:
        if took_s > _MAX_OFFER_S:
            self.batch_size = max(_MIN_BATCH, count // 2)
        elif took_s < _MIN_OFFER_S:
            self.batch_size = min(MAX_BATCH, max(self.batch_size, count * 2))

    def _take(self, readings: Sequence[InboxReading[Any]]) -> Sequence[Sequence[Problem]]:
        if len(readings) > 1:
            try:
                return self._intake.take(readings)
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("taking %d files at once failed; taking them one by one", len(readings))
        return [self._take_one(reading) for reading in readings]

    def _take_one(self, reading: InboxReading[Any]) -> Sequence[Problem]:
        try:
            return self._intake.take([reading])[0]
        except StoreUnavailable:
            raise
        except Exception as error:
            log.exception("taking %s failed", reading.path)
            message = f"it is valid, but could not be taken ({type(error).__name__})"
            return [Problem(message=message, remedy="see the daemon's log; it is tried again at every rescan")]


BURST_PAUSE_S = 0.03
"""Pause between arrivals, in seconds, that ends a burst."""
MAX_BURST_S = 0.2
"""Maximum time, in seconds, for which a burst delays the start of what was accepted."""


class Burst:
    """Tracks whether files are arriving. Not thread-safe; times are ``time.monotonic()``.

    A single file counts as arriving only until it is accepted or refused. If another one arrives before that, they are
    a burst, which lasts until a pause.
    """

    def __init__(self) -> None:
        self._began = self._last = -math.inf
        self._first = ""
        self._several = False
        self._untaken = False

    def came(self, path: str, now: float) -> None:
        """Record an event of that file."""
        if not (self._untaken or (self._several and now < self._last + BURST_PAUSE_S)):
            self._began, self._first, self._several = now, path, False
        self._several |= path != self._first
        self._last = now
        self._untaken = True

    def taken(self) -> None:
        """Record that everything that has arrived was accepted or refused."""
        self._untaken = False

    @property
    def is_several(self) -> bool:
        """Whether several files are arriving or were among the last ones."""
        return self._several

    @property
    def over_at(self) -> float:
        """When the burst ends at the latest, if nothing more arrives or is accepted."""
        if self._untaken:
            return self._began + MAX_BURST_S
        return min(self._began + MAX_BURST_S, self._last + BURST_PAUSE_S) if self._several else -math.inf


@dataclass(slots=True)
class Tally:
    """What a scan has done so far, by name. changed: True if anything visible to a person changed."""

    accepted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    changed: bool = False

    def clear(self) -> None:
        """Reset everything."""
        self.accepted, self.refused, self.gone, self.changed = [], [], [], False


class Arrivals:
    """The files present in one folder. Not thread-safe. Exceptions of the intake propagate."""

    def __init__(
        self,
        path: str,
        ledger: FileLedger,
        tally: Tally,
        intake: Intake[Any],
        after_accept: AfterAccept,
        stopped: Callable[[], bool],
        refusals: Refusals,
        file_format: FileFormat,
    ) -> None:
        """path: of the folder. ledger: what is known about its files. tally: where to count what is done."""
        self._path = path
        self._ledger = ledger
        self._tally = tally
        self._intake = intake
        self._offering = Offering(intake)
        self._stopped = stopped
        self._refusals = refusals
        self._format = file_format
        self.moves = after_accept == "move"
        """True if accepted files are moved away."""

    def path_of(self, name: str) -> str:
        """Return the path of the file with that name."""
        return f"{self._path}/{name}"

    def take(self, folder: Folder, entries: Sequence[InboxEntry]) -> list[str]:
        """Read the entries and offer them; return the names of those that did not fit into the time of a step."""
        ledger = self._ledger
        now = time.monotonic()
        readings: list[InboxReading[Any]] = []
        unmoved: list[str] = []
        later: list[str] = []
        for place, entry in enumerate(entries):
            full = len(readings) >= self._offering.batch_size
            if full or self._stopped() or time.monotonic() - now > _STEP_S:
                later = [entry.name for entry in entries[place:]]
                break
            if entry.problem is not None:
                self._refuse(folder, entry.name, RefusedFile(entry.stamp, (entry.problem,)))
            elif not ledger.is_settled(entry.name, entry.stamp, now):
                if reading := self._read(folder, entry):
                    readings.append(reading)
            elif ledger.accepted.get(entry.name) == entry.stamp:
                ledger.waiting.pop(entry.name, None)
                if self.moves:
                    unmoved.append(entry.name)
                else:
                    self.clear_refusal(folder, entry.name)
        self._archive(folder, unmoved)
        self._offer(folder, readings)
        return later

    def _read(self, folder: Folder, entry: InboxEntry) -> InboxReading[Any] | None:
        """The file's reading if it is complete, valid and changed; any other result has been recorded."""
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
            self._refuse(folder, name, RefusedFile(entry.stamp, (content,)))
            return None
        digest = hashlib.sha256(content.data).digest()
        if ledger.is_unchanged(name, content.stamp, digest):
            ledger.waiting.pop(name, None)
            return None
        if time.time_ns() - content.stamp.mtime_ns < RACY_S * 1e9:
            ledger.compare_later(name, content.stamp, digest, now)
        parsed = self._parse(name, content.data)
        if isinstance(parsed, Problem):
            self._refuse(folder, name, RefusedFile(content.stamp, (parsed,), lasting=True))
            return None
        if parsed.problems:
            self._refuse(folder, name, RefusedFile(content.stamp, parsed.problems, lasting=True, names=parsed.names))
            return None
        return InboxReading(self.path_of(name), content.stamp, parsed, self._renamed_from(name, content.stamp))

    def _renamed_from(self, name: str, stamp: FileStamp) -> str | None:
        old = self._ledger.renamed.get(name)
        if old is None:
            return None
        if self._ledger.accepted.get(old) == stamp:
            return self.path_of(old)
        self._ledger.undo_rename(name, time.monotonic())
        return None

    def _parse(self, name: str, data: bytes) -> ParsedFile[Any] | Problem:
        try:
            return self._format.parse(data, name)
        except Exception as error:
            log.exception("parsing %r failed", name)
            return Problem(message=f"it cannot be parsed ({type(error).__name__})", remedy="simplify it")

    def _offer(self, folder: Folder, readings: Sequence[InboxReading[Any]]) -> None:
        """Offer the readings to the intake, except those whose files have changed meanwhile."""
        current = [reading for reading in readings if self._is_current(folder, reading)]
        if not current:
            return
        crashpoint("inbox-before-take")
        verdicts = self._offering.offer(current)
        # Set this whatever else may fail: only the inbox reports that there are new tasks.
        self._tally.changed |= not (all(verdicts) or self._intake.was_planned)
        crashpoint("inbox-after-take")
        accepted = []
        for reading, problems in zip(current, verdicts, strict=True):
            name = reading.path.rpartition("/")[2]
            if problems:
                names = reading.parsed.names
                self._refuse(folder, name, RefusedFile(reading.stamp, tuple(problems), offered=True, names=names))
            else:
                self._ledger.accept(name, reading.stamp)
                self.clear_refusal(folder, name)
                accepted.append(name)
        self._tally.accepted += accepted
        if self.moves:
            self._archive(folder, accepted)

    def _is_current(self, folder: Folder, reading: InboxReading[Any]) -> bool:
        name = reading.path.rpartition("/")[2]
        stamp = folder.stamp(name)
        if stamp == reading.stamp:
            return True
        self._ledger.wait(name, stamp or reading.stamp, "it changed while it was parsed", time.monotonic(), quiet=False)
        return False

    def _refuse(self, folder: Folder, name: str, refused: RefusedFile) -> None:
        """Refuse the file. Only the first of very many problems are kept; the error file says how many there are."""
        problems = self._refusals.clean(refused.problems)
        kept = replace(refused, problems=shortened(problems))
        if self._ledger.refuse(name, kept):
            self._tally.refused.append(name)
            self._tally.changed = True
            self._refusals.put(self.path_of(name), kept.problems, kept.names)
            write_error_file(folder, name, render_problems(name, problems, self._format.without))

    def clear_refusal(self, folder: Folder, name: str) -> None:
        """Clear the refusal of the file with that name: it is valid now, or gone."""
        if self._ledger.clear_refusal(name):
            self._tally.changed = True
            self._refusals.drop(self.path_of(name))
            remove_error_file(folder, name)

    def _archive(self, folder: Folder, names: Iterable[str]) -> None:
        """Move accepted files away, except those that changed since, which count as new arrivals."""
        moved = []
        for name in takewhile(lambda _: not self._stopped(), names):
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
                self._refuse(folder, name, RefusedFile(stamp, (Problem(message=message, remedy=remedy),)))
        if moved:
            self.archived(folder, moved)

    def archived(self, folder: Folder, names: Collection[str]) -> None:
        """Record that these accepted files were moved away: a file arriving under the same name is new."""
        self._intake.archived([self.path_of(name) for name in sorted(names)])
        self._ledger.forget(names)
        for name in names:
            self.clear_refusal(folder, name)
        self._tally.changed = True
