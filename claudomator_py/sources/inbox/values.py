"""What passes between a watched folder and the intake that makes something of its files: tasks, or specialists."""

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
"""What a file is once it is parsed."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What the files of a folder are. Parsing never raises."""

    parse: Callable[[bytes, str], ParsedFile | ParsedCards]
    """Of its content and its name."""
    without: str
    """What it means that a file is refused, for its author."""
    noun: str
    """What is in them, in the plural, for the log."""


TASK_FILES = FileFormat(lambda data, name: taskfiles.parse_task_file(data, name), "nothing in it was run", "tasks")


@dataclass(frozen=True, slots=True)
class FileStamp:
    """By which a file is known to be unchanged without reading it. mtime_ns: nanoseconds since the epoch."""

    mtime_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result) -> "FileStamp":
        """Return the stamp of what was looked at."""
        return cls(stat.st_mtime_ns, stat.st_size, stat.st_ino)


@dataclass(frozen=True, slots=True)
class InboxReading(Generic[P]):
    """A file as it was read, whole and without problems. path: absolute, as the inbox is configured.

    renamed_from: the path under which this very file (mtime, size and inode) was accepted before.
    """

    path: str
    stamp: FileStamp
    parsed: P
    renamed_from: str | None = None


FileReading = InboxReading[ParsedFile]
"""Of a task file."""


class Intake(Protocol[P]):
    """Makes something of files. Called from one thread at a time; any method may raise StoreUnavailable, and is called
    again later.

    A file that does not parse never gets here, and one that was refused here is offered again while it lies there, so
    refusals need no memory.
    """

    def known_files(self) -> Mapping[str, FileStamp]:
        """Return the stamp of every file that was accepted and is not gone yet, as it was when it was last accepted."""

    def take(self, readings: Sequence[InboxReading[P]]) -> Sequence[Sequence[Problem]]:
        """Accept each file whole, and its stamp with it; durable on return. Or change nothing and say what is wrong.

        In this order, in as few commits as possible; each stands or falls by itself.
        """

    def gone(self, paths: Sequence[str]) -> None:
        """Learn that these files were deleted or renamed. Called only while their inbox itself is readable."""

    def archived(self, paths: Sequence[str]) -> None:
        """Learn that these accepted files were moved to ``.accepted``: forget the stamps, keep what the files asked
        for."""

    def keep_to(self, folders: Collection[str]) -> None:
        """Keep to these folders from now on: what was accepted from any other one is gone."""


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What one scan did, by path."""

    accepted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FolderStatus:
    """One inbox."""

    available: bool
    problem: Problem | None
    """Why it is not available, or not wholly, with the remedy; None: all is well, or it was not looked at yet."""
    files: int
    """Accepted ones lying in it."""
    refused: int
    waiting: Mapping[str, str]
    """Why a file is not settled yet, by path, of a hundred at most."""
    unread: int = 0
    """Those still to be looked at."""
