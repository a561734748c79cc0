"""What passes between a watched folder and the intake that turns its files into tasks or specialists."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, Literal, Protocol, TypeVar

from claudomator_py.domain.errors import Problem
from claudomator_py.schema import taskfiles
from claudomator_py.schema.cardfile import ParsedCards
from claudomator_py.schema.taskfiles import ParsedFile
from claudomator_py.values import dataclass

AfterAccept = Literal["keep", "move"]
P = TypeVar("P")
"""The parsed form of a file."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The format of a folder's files. Parsing never raises."""

    parse: Callable[[bytes, str], ParsedFile | ParsedCards]
    """Parses a file's content and name."""
    without: str
    """The consequence of a refusal, for the file's author."""
    noun: str
    """What the files contain, in the plural, for the log."""


TASK_FILES = FileFormat(lambda data, name: taskfiles.parse_task_file(data, name), "nothing in it was run", "tasks")


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
    """A file as read, complete and without problems. path: absolute, as the inbox is configured.

    renamed_from: the path under which this same file (mtime, size and inode) was accepted before.
    """

    path: str
    stamp: FileStamp
    parsed: P
    renamed_from: str | None = None


FileReading = InboxReading[ParsedFile]
"""The reading of a task file."""


class Intake(Protocol[P]):
    """Turns files into something. Called from one thread at a time; any method may raise StoreUnavailable, and is then
    called again later.

    A file that does not parse never gets here, and one that was refused here is offered again as long as it is present,
    so refusals need not be remembered.
    """

    def known_files(self) -> Mapping[str, FileStamp]:
        """Return the stamp of every accepted file that is not gone, as of its last acceptance."""

    def take(self, readings: Sequence[InboxReading[P]]) -> Sequence[Sequence[Problem]]:
        """Accept each file whole, together with its stamp, durably on return; or change nothing and return what is
        wrong.

        In this order, in as few commits as possible; each file is accepted or refused independently.
        """

    def gone(self, paths: Sequence[str]) -> None:
        """Handle the deletion or renaming of these files. Called only while their inbox itself is readable."""

    def archived(self, paths: Sequence[str]) -> None:
        """Handle the move of these accepted files to ``.accepted``: forget their stamps, keep what they asked for."""

    def keep_to(self, folders: Collection[str]) -> None:
        """Keep only these folders from now on: what was accepted from any other is gone."""


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
