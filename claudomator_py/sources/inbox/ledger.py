"""What is known of the files of one inbox, by name: accepted, refused, waiting, missing. No I/O.

Times are ``time.monotonic()`` in seconds.
"""

from collections.abc import Iterable, Mapping

from claudomator_py.domain.errors import Problem
from claudomator_py.sources.inbox.values import FileStamp
from claudomator_py.values import dataclass

QUIET_S = 1.0
# An editor that saves by renaming leaves the name empty for a moment; only after this is a file gone.
GONE_S = 0.5
# Two changes closer than this may leave one and the same time on a file, on the coarsest file systems.
RACY_S = 2.0
# What has to be looked at again within so long is looked at at once.
TOGETHER_S = 0.1
_BUSY_S = (0.02, 0.5)


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file with problems.

    lasting: it is its content that is wrong, so it is not read again until its stamp changes. offered: it is good in
    itself, and was refused by the intake; it may be good later, when a name is free, say.
    """

    stamp: FileStamp
    problems: tuple[Problem, ...]
    lasting: bool = False
    offered: bool = False


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file not settled yet."""

    stamp: FileStamp
    since: float
    """When it was first seen as it is now."""
    quiet_since: float
    """First seen with this stamp."""
    due: float
    """When to look again."""
    why: str


@dataclass(frozen=True, slots=True)
class _Recheck:
    """A file read so soon after a change that a further one may not show in its stamp: compare the bytes again."""

    stamp: FileStamp
    digest: bytes
    due: float


class FileLedger:
    """The memory of one inbox."""

    def __init__(self) -> None:
        self.accepted: dict[str, FileStamp] = {}
        self.refused: dict[str, RefusedFile] = {}
        self.waiting: dict[str, WaitingFile] = {}
        self.missing: dict[str, float] = {}
        # New names of accepted files, to the old ones, until what was accepted is known under the new.
        self.renamed: dict[str, str] = {}
        self._new_names: dict[str, str] = {}
        # Refused by the intake, the one that was offered longest ago first.
        self.offerable: dict[str, None] = {}
        self._away: dict[str, FileStamp] = {}
        self._recheck: dict[str, _Recheck] = {}

    def remember(self, known: Mapping[str, FileStamp]) -> None:
        """Take over what the intake knows; it is right where the two differ."""
        self.accepted = {name: stamp for name, stamp in known.items() if name not in self._away}

    def names(self) -> set[str]:
        """Return every name something is known of that ends when the file is no longer there."""
        return {*self.accepted, *self.refused, *self.waiting, *self.renamed}

    def knows(self, name: str) -> bool:
        """Return whether it is one of ``names()``."""
        return name in self.accepted or name in self.refused or name in self.waiting or name in self.renamed

    def due(self) -> dict[str, float]:
        """Return when to look at which name again, event or not."""
        return {
            **{name: recheck.due for name, recheck in self._recheck.items()},
            # A file that waits is read when its waiting is over, whatever it is read for.
            **{name: waiting.due for name, waiting in self.waiting.items()},
            **self.missing,
        }

    def absent(self, name: str, due: float) -> None:
        """Note that it is not there. What was accepted of it is missing, and gone when that is due, unless it was
        renamed."""
        self.miss(name)
        self.no_rename(name, due)
        if name in self.accepted and name not in self._new_names:
            self.missing.setdefault(name, due)

    def find_renamed(self, arrivals: Iterable[tuple[str, FileStamp]]) -> None:
        """Find renamed files among those under names that nothing was accepted of. One with the stamp of a missing file
        is that file: it was renamed, and nothing of it is gone."""
        lost = {self.accepted[old]: old for old in (*self.missing, *self._new_names) if old in self.accepted}
        if not lost:
            return
        for new, stamp in arrivals:
            if (old := lost.get(stamp)) is not None:
                self.missing.pop(old, None)
                self.renamed.pop(self._new_names.get(old, new), None)
                self.renamed[new] = old
                self._new_names[old] = new

    def no_rename(self, new: str, due: float) -> None:
        """Note that it is not the file that was accepted under another name, or not any more: that one is missing."""
        if (old := self.renamed.pop(new, None)) is not None:
            del self._new_names[old]
            self.missing[old] = due

    def put_away(self) -> None:
        """Put it away: another file system lies here now: what was accepted is neither here nor gone, and may come
        back."""
        self._away.update(self.accepted)
        self.accepted.clear()
        self.missing.clear()
        self.renamed.clear()
        self._new_names.clear()

    def is_settled(self, name: str, stamp: FileStamp, now: float) -> bool:
        """Return whether the file needs no reading."""
        if self._away.get(name) == stamp:
            self.accepted[name] = self._away.pop(name)
        if not self._same_stamp(name, stamp):
            return False
        recheck = self._recheck.get(name)
        return recheck is None or now < recheck.due

    def is_unchanged(self, name: str, stamp: FileStamp, digest: bytes) -> bool:
        """Return whether a file that was read again holds what it was settled with."""
        recheck = self._recheck.pop(name, None)
        seen = recheck is not None and (recheck.stamp, recheck.digest) == (stamp, digest)
        return seen and self._same_stamp(name, stamp)

    def _same_stamp(self, name: str, stamp: FileStamp) -> bool:
        if self.accepted.get(name) == stamp:
            return True
        refused = self.refused.get(name)
        return refused is not None and refused.stamp == stamp and refused.lasting

    def compare_later(self, name: str, stamp: FileStamp, digest: bytes, now: float) -> None:
        """Have these bytes compared once the time of the file is old enough to tell changes apart: together with those
        of files that came a moment before or after."""
        due = (now + RACY_S) // TOGETHER_S * TOGETHER_S + TOGETHER_S
        self._recheck[name] = _Recheck(stamp, digest, due)

    def wait(self, name: str, stamp: FileStamp, why: str, now: float, *, quiet: bool) -> None:
        """Wait for a file that cannot be read yet. quiet: a second without change will do, else look again ever less
        often."""
        old = self.waiting.get(name)
        since = old.since if old else now
        quiet_since = old.quiet_since if old and old.stamp == stamp else now
        shortest, longest = _BUSY_S
        due = quiet_since + QUIET_S if quiet else now + min(longest, max(shortest, (now - since) / 4))
        self.waiting[name] = WaitingFile(stamp, since, quiet_since, max(due, now + shortest), why)

    def is_quiet(self, name: str, stamp: FileStamp, now: float) -> bool:
        """Return whether it was seen with this stamp for a second."""
        waiting = self.waiting.get(name)
        return waiting is not None and waiting.stamp == stamp and now - waiting.quiet_since >= QUIET_S

    def accept(self, name: str, stamp: FileStamp) -> None:
        """Note that it became tasks."""
        self.accepted[name] = stamp
        if (old := self.renamed.pop(name, None)) is not None:
            del self._new_names[old]
            self.accepted.pop(old, None)
        self._away.pop(name, None)
        self.waiting.pop(name, None)

    def refuse(self, name: str, refused: RefusedFile) -> bool:
        """Note that it has problems; return whether that is news."""
        old = self.refused.get(name)
        self.refused[name] = refused
        self.waiting.pop(name, None)
        self.offerable.pop(name, None)
        if refused.offered:
            self.offerable[name] = None
        elif not refused.lasting:
            self._recheck.pop(name, None)
        return old is None or old.problems != refused.problems

    def mend(self, name: str) -> bool:
        """Note that it has no problems any more; return whether it had any."""
        self.offerable.pop(name, None)
        return self.refused.pop(name, None) is not None

    def miss(self, name: str) -> None:
        """Note that it is not there; what was accepted of it stays until it is forgotten."""
        self.waiting.pop(name, None)
        self._recheck.pop(name, None)

    def forget(self, names: Iterable[str]) -> None:
        """Forget these, which are no longer in the inbox."""
        for name in names:
            self.accepted.pop(name, None)
            self.missing.pop(name, None)
            self._recheck.pop(name, None)
