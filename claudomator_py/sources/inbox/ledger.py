"""What passes between a watched folder and its intake, and what is known about the folder's files, by name: accepted,
refused, waiting, missing. No I/O.

Times are ``time.monotonic()`` in seconds.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from claudomator_py.domain.errors import Problem, problems_text
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema import taskfile
from claudomator_py.schema.documents import ParsedFile
from claudomator_py.values import dataclass

AfterAccept = Literal["keep", "move"]
P = TypeVar("P")
"""The parsed form of a file."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The format of a folder's files. Parsing never raises."""

    parse: Callable[[bytes, str], ParsedFile[Any]]
    """Parses a file's content and name."""
    without: str
    """The consequence of a refusal, for the file's author."""
    noun: str
    """What the files contain, in the plural, for the log."""


TASK_FILES = FileFormat(lambda data, name: taskfile.parse_task_file(data, name), "nothing in it was run", "tasks")


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Identifies the state of a file without reading it. mtime_ns: nanoseconds since the epoch."""

    mtime_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result) -> "FileStamp":
        """Return the stamp from a file's status."""
        return cls(stat.st_mtime_ns, stat.st_size, stat.st_ino)


@dataclass(frozen=True, slots=True)
class InboxReading(Generic[P]):
    """A file as read, complete and without problems. path: absolute, as the inbox is configured. renamed_from: the path
    under which this same file (mtime, size and inode) was accepted before."""

    path: str
    stamp: FileStamp
    parsed: P
    renamed_from: str | None = None


FileReading = InboxReading[ParsedFile[TaskSpec]]
"""The reading of a task file."""


class Intake(Protocol[P]):
    """Turns files into something. Called from one thread at a time; any method may raise StoreUnavailable, and is then
    called again later.

    A file that does not parse never gets here, and one that was refused here is offered again as long as it is present,
    so refusals need not be remembered.
    """

    was_planned: bool
    """Whether the tick that accepted what was taken last has planned it, too."""

    def known_files(self) -> Mapping[str, FileStamp]:
        """Return the stamp of every accepted file that is not gone, as of its last acceptance."""

    def take(self, readings: Sequence[InboxReading[P]]) -> Sequence[Sequence[Problem]]:
        """Accept each file whole, together with its stamp, durably on return; or change nothing and return what is
        wrong. In this order, in as few commits as possible; each file is accepted or refused independently."""

    def gone(self, paths: Sequence[str]) -> None:
        """Handle the deletion or renaming of these files. Called only while their inbox itself is readable."""

    def archived(self, paths: Sequence[str]) -> None:
        """Handle the move of these accepted files to ``.accepted``: forget their stamps, keep what they asked for."""


def drop_other_folders(intake: Intake[Any], folders: Collection[str]) -> None:
    """Keep only these folders from now on: what was accepted from any other is gone. Raises StoreUnavailable."""
    elsewhere = [path for path in intake.known_files() if str(Path(path).parent) not in folders]
    if elsewhere:
        intake.gone(elsewhere)


class FileRefused(Exception):
    """Rolls back the transaction in which it is raised."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems_text(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What one scan did, by path."""

    accepted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FolderStatus:
    """The status of one inbox."""

    available: bool
    problem: Problem | None
    """Why it is unavailable, or not fully available, with the remedy; None if all is well or it was not examined
    yet."""
    files: int
    """Number of accepted files in it."""
    refused: int
    waiting: Mapping[str, str]
    """Why files are not settled yet, by path, for at most a hundred."""
    unread: int = 0
    """Number of files still to be examined."""
    subfolders: tuple[str, ...] = ()
    """The folders in it, which are not searched."""


QUIET_S = 1.0
# An editor that saves by renaming leaves the name unused for a moment; a file is gone only after this time.
GONE_S = 0.5
# On the coarsest file systems, two changes closer together than this may leave the same time on a file.
RACY_S = 2.0
# Names due for another check within this time are checked together.
TOGETHER_S = 0.1
_BUSY_S = (0.02, 0.5)


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file with problems."""

    stamp: FileStamp
    problems: tuple[Problem, ...]
    lasting: bool = False
    """True if its content is wrong, so that it is not read again until its stamp changes."""
    offered: bool = False
    """True if it is valid in itself and was refused by the intake; it may be accepted later, for example once a name is
    free."""
    names: tuple[str, ...] = ()
    """Those that it gives its tasks or cards, as far as it can be read."""


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file that is not settled yet."""

    stamp: FileStamp
    since: float
    """When it was first seen waiting."""
    quiet_since: float
    """When it was first seen with this stamp."""
    due: float
    """When to check again."""
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
        # Old name by new name of accepted files, until what was accepted is known under the new name.
        self.renamed: dict[str, str] = {}
        self._new_names: dict[str, str] = {}
        # Refused by the intake, in order of their last offer, oldest first.
        self.offerable: dict[str, None] = {}
        self._away: dict[str, FileStamp] = {}
        self._recheck: dict[str, _Recheck] = {}

    def remember(self, known: Mapping[str, FileStamp]) -> None:
        """Take over what the intake knows, which takes precedence."""
        self.accepted = {name: stamp for name, stamp in known.items() if name not in self._away}

    def names(self) -> set[str]:
        """Return all names with a record that ends when the file disappears."""
        return {*self.accepted, *self.refused, *self.waiting, *self.renamed}

    def knows(self, name: str) -> bool:
        """Return whether the name is one of ``names()``."""
        return name in self.accepted or name in self.refused or name in self.waiting or name in self.renamed

    def due(self) -> dict[str, float]:
        """Return when to examine which name again, even without an event."""
        return {
            **{name: recheck.due for name, recheck in self._recheck.items()},
            # A waiting file is read when its wait is over, whatever the reason for reading it.
            **{name: waiting.due for name, waiting in self.waiting.items()},
            **self.missing,
        }

    def record_absence(self, name: str, due: float) -> None:
        """Record that the file is not there. If it was accepted it is missing, and gone at the due time unless it was
        renamed."""
        self.waiting.pop(name, None)
        self._recheck.pop(name, None)
        self.undo_rename(name, due)
        if name in self.accepted and name not in self._new_names:
            self.missing.setdefault(name, due)

    def find_renamed(self, arrivals: Iterable[tuple[str, FileStamp]]) -> None:
        """Find renamed files among arrivals whose names were not accepted. An arrival with the stamp of a missing file
        is that file: it was renamed, and nothing is gone."""
        lost = {self.accepted[old]: old for old in (*self.missing, *self._new_names) if old in self.accepted}
        if not lost:
            return
        for new, stamp in arrivals:
            if (old := lost.get(stamp)) is not None:
                self.missing.pop(old, None)
                self.renamed.pop(self._new_names.get(old, new), None)
                self.renamed[new] = old
                self._new_names[old] = new

    def undo_rename(self, new: str, due: float) -> None:
        """Record that the file is not, or no longer, the one accepted under another name, which is therefore
        missing."""
        if (old := self.renamed.pop(new, None)) is not None:
            del self._new_names[old]
            self.missing[old] = due

    def set_aside(self) -> None:
        """Set the accepted files aside, as a different file system is now in place: they are neither present nor gone,
        and may come back."""
        self._away.update(self.accepted)
        self.accepted.clear()
        self.missing.clear()
        self.renamed.clear()
        self._new_names.clear()

    def is_at_rest(self, name: str, status: os.stat_result) -> bool:
        """Return whether the file is as it was when it was accepted, and nothing else is known about it. Says of most
        files in one step what ``is_settled`` says of their stamps: a rescan asks it for all of them."""
        stamp = self.accepted.get(name)
        return (
            stamp is not None
            and stamp.mtime_ns == status.st_mtime_ns
            and stamp.inode == status.st_ino
            and stamp.size == status.st_size
            and not (name in self._recheck or name in self.refused or name in self.waiting or name in self._away)
        )

    def is_settled(self, name: str, stamp: FileStamp, now: float) -> bool:
        """Return whether the file does not need to be read."""
        if self._away.get(name) == stamp:
            self.accepted[name] = self._away.pop(name)
        if not self._same_stamp(name, stamp):
            return False
        recheck = self._recheck.get(name)
        return recheck is None or now < recheck.due

    def is_unchanged(self, name: str, stamp: FileStamp, digest: bytes) -> bool:
        """Return whether a file that was read again has the content it was settled with."""
        recheck = self._recheck.pop(name, None)
        seen = recheck is not None and (recheck.stamp, recheck.digest) == (stamp, digest)
        return seen and self._same_stamp(name, stamp)

    def _same_stamp(self, name: str, stamp: FileStamp) -> bool:
        if self.accepted.get(name) == stamp:
            return True
        refused = self.refused.get(name)
        return refused is not None and refused.stamp == stamp and refused.lasting

    def compare_later(self, name: str, stamp: FileStamp, digest: bytes, now: float) -> None:
        """Schedule a comparison of these bytes for when the file's time is old enough to reveal changes, together with
        files that arrived a moment earlier or later."""
        due = (now + RACY_S) // TOGETHER_S * TOGETHER_S + TOGETHER_S
        self._recheck[name] = _Recheck(stamp, digest, due)

    def wait(self, name: str, stamp: FileStamp, why: str, now: float, *, quiet: bool) -> None:
        """Wait for a file that cannot be read yet. quiet: True if a second without changes suffices; otherwise check
        again at growing intervals."""
        old = self.waiting.get(name)
        since = old.since if old else now
        quiet_since = old.quiet_since if old and old.stamp == stamp else now
        shortest, longest = _BUSY_S
        due = quiet_since + QUIET_S if quiet else now + min(longest, max(shortest, (now - since) / 4))
        self.waiting[name] = WaitingFile(stamp, since, quiet_since, max(due, now + shortest), why)

    def is_quiet(self, name: str, stamp: FileStamp, now: float) -> bool:
        """Return whether the file has been seen with this stamp for a second."""
        waiting = self.waiting.get(name)
        return waiting is not None and waiting.stamp == stamp and now - waiting.quiet_since >= QUIET_S

    def accept(self, name: str, stamp: FileStamp) -> None:
        """Record that the file became tasks."""
        self.accepted[name] = stamp
        if (old := self.renamed.pop(name, None)) is not None:
            del self._new_names[old]
            self.accepted.pop(old, None)
        self._away.pop(name, None)
        self.waiting.pop(name, None)

    def refuse(self, name: str, refused: RefusedFile) -> bool:
        """Record that the file has problems; return whether that is news."""
        old = self.refused.get(name)
        self.refused[name] = refused
        self.waiting.pop(name, None)
        self.offerable.pop(name, None)
        if refused.offered:
            self.offerable[name] = None
        elif not refused.lasting:
            self._recheck.pop(name, None)
        return old is None or old.problems != refused.problems

    def clear_refusal(self, name: str) -> bool:
        """Record that the file no longer has problems; return whether it had any."""
        self.offerable.pop(name, None)
        return self.refused.pop(name, None) is not None

    def forget(self, names: Iterable[str]) -> None:
        """Forget these files, which are no longer in the inbox."""
        for name in names:
            self.accepted.pop(name, None)
            self.missing.pop(name, None)
            self._recheck.pop(name, None)
