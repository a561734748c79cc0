"""One inbox folder on disk: examining its entries, and reading files whole or not at all.

Everything is done relative to a descriptor of the folder, so that a scan sees a single folder even while that is
renamed, replaced or unmounted. Only entries known to be regular files are opened, and no open can block.
"""

import atexit
import contextlib
import errno
import fcntl
import os
import select
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import TextIO

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox.ledger import FileStamp
from claudomator_py.values import dataclass

MAX_FILE_BYTES = 2**20
_PIECE_BYTES = 2**14
"""Read at once: a buffer of a whole file's limit would be a mapping of its own."""

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A name in the inbox. target: the file that a symbolic link leads to. problem: why it cannot be a task file at
    all."""

    name: str
    stamp: FileStamp
    target: str | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The complete file, and its stamp at a time when nobody could change it."""

    data: bytes
    stamp: FileStamp


@dataclass(frozen=True, slots=True)
class Busy:
    """The file cannot be read yet. quiet: True if a second without changes is sufficient."""

    why: str
    quiet: bool


class Vanished:
    """The file is no longer there."""


class Folder:
    """An open inbox folder. Raises OSError if the folder itself cannot be read."""

    def __init__(self, path: str, guard: InboxGuard) -> None:
        self.path = path
        self._guard = guard
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._stat = os.fstat(self.fd)
            self._within = os.path.join(_path_of(self.fd) or os.path.realpath(path, strict=True), "")
        except BaseException:
            os.close(self.fd)
            raise
        self.device = self._stat.st_dev
        self._leases = not written_elsewhere(self.device)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def is_current(self) -> bool:
        """Return whether the configured path still leads to this folder, and the folder has not been deleted."""
        try:
            now = os.stat(self.path)
        except OSError:
            return False
        return os.path.samestat(now, self._stat) and os.fstat(self.fd).st_nlink > 0

    def names(self) -> list[str]:
        """Return the names of all entries."""
        with os.scandir(self.fd) as entries:
            return [entry.name for entry in entries]

    def subfolders(self) -> list[str]:
        """Return the names of the folders in it, without hidden ones."""
        with os.scandir(self.fd) as entries:
            below = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            return sorted(name for name in below if not name.startswith("."))

    def entries(
        self, wanted: Callable[[str], bool], is_at_rest: Callable[[str, os.stat_result], bool]
    ) -> Iterator[tuple[str, InboxEntry | None]]:
        """Yield every wanted name with its entry, or with None if it is at rest and may still be read."""
        with os.scandir(self.fd) as listing:
            for item in listing:
                if wanted(name := item.name):
                    with contextlib.suppress(FileNotFoundError):
                        status = item.stat(follow_symlinks=False)
                        rests = is_at_rest(name, status) and self._problem(name, self._within + name, status) is None
                        yield name, None if rests else self._entry(name, status)

    def entry(self, name: str) -> InboxEntry | None:
        """Return the entry with that name; None if there is none."""
        try:
            return self._entry(name, os.stat(name, dir_fd=self.fd, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> FileStamp | None:
        """Return the entry's stamp; None if there is none."""
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return self._entry(name, status).stamp if stat.S_ISLNK(status.st_mode) else FileStamp.of(status)

    def _entry(self, name: str, status: os.stat_result) -> InboxEntry:
        target = problem = None
        stamp = FileStamp.of(status)
        path = self._within + name
        if stat.S_ISLNK(status.st_mode):
            target = os.path.realpath(path)
            if not self._inside(target):
                return InboxEntry(name, stamp, target, _LEAVES)
            try:
                problem = self._guard.file(path, status) or self._guard.place_for(target)
                status = os.stat(target, follow_symlinks=False)
            except OSError as error:
                return InboxEntry(name, stamp, target, _dangling(error))
            if stat.S_ISLNK(status.st_mode):
                return InboxEntry(name, stamp, target, _dangling(OSError(errno.ELOOP, "")))
            stamp = FileStamp.of(status)
            path = target
        return InboxEntry(name, stamp, target, problem or self._problem(name, path, status))

    def _problem(self, name: str, path: str, status: os.stat_result, fd: int | None = None) -> Problem | None:
        return _unfit(name, status) or self._guard.file(path, status, fd)

    def _inside(self, path: str) -> bool:
        return path.startswith(self._within)

    def read(self, entry: InboxEntry, *, quiet: bool) -> Content | Busy | Vanished | Problem:
        """Return the file's content, if nobody is writing to it. quiet: True if the caller saw no change for a
        second."""
        try:
            if entry.target is None:
                fd = os.open(entry.name, _OPEN, dir_fd=self.fd)
            else:
                fd = os.open(entry.target, _OPEN)
        except FileNotFoundError:
            return Vanished()
        except OSError as error:
            if error.errno == errno.ELOOP:
                return Busy("it became a symbolic link while it was looked at", quiet=True)
            return _unreadable(error)
        try:
            if entry.target is not None and not self._opened_inside(fd):
                return _LEAVES
            return self._read_open(entry, fd, quiet=quiet)
        except OSError as error:
            return _unreadable(error)
        finally:
            os.close(fd)

    def _opened_inside(self, fd: int) -> bool:
        """True if the opened file is inside: a folder on the path may have become a link since the lookup."""
        path = _path_of(fd)
        return path is None or self._inside(path)  # without /proc the earlier lookup must suffice

    def _read_open(self, entry: InboxEntry, fd: int, *, quiet: bool) -> Content | Busy | Vanished | Problem:
        status = os.fstat(fd)
        path = entry.target or self._within + entry.name
        problem = self._problem(entry.name, path, status, fd)
        if problem is not None:
            return problem
        with read_lease(fd) as writers:
            if writers is Writers.SOME:
                return Busy("a program still has it open for writing", quiet=False)
            if not quiet and (writers is Writers.UNKNOWN or not self._leases):
                return Busy("it is read once it has not changed for a second", quiet=True)
            before = os.fstat(fd)
            if quiet and FileStamp.of(before) != entry.stamp:
                return Busy("it changed a moment ago", quiet=True)
            if before.st_size == 0 and not quiet:
                return Busy("it is empty so far", quiet=True)
            data = _read_all(fd, MAX_FILE_BYTES + 1)
            after = os.fstat(fd)
            stamp = FileStamp.of(after)
            if stamp != FileStamp.of(before) or len(data) != after.st_size:
                return Busy("it changed while it was read", quiet=True)
        now = self.stamp(entry.name)
        if now is None:
            return Vanished()
        if now != stamp:
            return Busy("it changed while it was read", quiet=True)
        return Content(data, stamp)


def _path_of(fd: int) -> str | None:
    """Return the path of the open file or folder, without links; None without /proc."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


def _read_all(fd: int, limit: int) -> bytes:
    parts = []
    while limit > 0 and (part := os.read(fd, min(limit, _PIECE_BYTES))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


_LEAVES = Problem(
    message="it is a symbolic link that leads out of the inbox",
    remedy="copy the file here, or move it here and put the link at its old place",
)


def _unfit(name: str, status: os.stat_result) -> Problem | None:
    """Why a file of this type, size or name cannot be a task file."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        return Problem(
            message=f"it is {kind}, not a regular file",
            remedy="subfolders are not searched: move the files up, or give the folder another name"
            if stat.S_ISDIR(status.st_mode)
            else "put a regular file here, or give this another name",
        )
    if status.st_size > MAX_FILE_BYTES:
        return Problem(
            message=f"it has {status.st_size} bytes; a task file has at most {MAX_FILE_BYTES}",
            remedy="split it, or have the instructions name a file that the agent can read",
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        return Problem(message="its name is not valid UTF-8", remedy="rename it")
    return None


def _dangling(error: OSError) -> Problem:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Problem(
            message="it is a symbolic link to a file that does not exist", remedy="correct or delete the link"
        )
    if error.errno == errno.ELOOP:
        return Problem(message="it is a symbolic link that leads back to itself", remedy="correct or delete the link")
    return Problem(
        message=f"it is a symbolic link that cannot be followed: {error.strerror}", remedy="copy the file here"
    )


def _unreadable(error: OSError) -> Problem:
    if error.errno in (errno.EACCES, errno.EPERM):
        return Problem(
            message="the daemon's user may not read it",
            remedy=f"give the user with id {os.geteuid()} the right to read it, such as with `chmod a+r`",
        )
    return Problem(
        message=f"it cannot be read: {error.strerror}", remedy="see the system log; it is tried again at every rescan"
    )


_SHARED_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "lustre", "nfs", "nfs4", "ocfs2"}
    | {"smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)


class Writers(Enum):
    """Whether the file is open for writing."""

    NONE = "none"
    SOME = "some"
    UNKNOWN = "unknown"


@contextlib.contextmanager
def read_lease(fd: int) -> Iterator[Writers]:
    """Hold a read lease on the file, if it is granted, until the block ends. fd: opened for reading only."""
    writers = _take(fd)
    try:
        yield writers
    finally:
        if writers is Writers.NONE:
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _take(fd: int) -> Writers:
    if not hasattr(fcntl, "F_SETLEASE"):
        return Writers.UNKNOWN
    try:
        # A writer is announced by a signal. The default, SIGIO, would end the process; SIGURG is ignored.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return Writers.SOME if error.errno == errno.EAGAIN else Writers.UNKNOWN
    return Writers.NONE


class Mounts:
    """The table of mounts, which is read again once a mount has changed. Thread-safe."""

    def __init__(self, table: Path = Path("/proc/self/mountinfo")) -> None:
        self._table = table
        self._file: TextIO | None = None
        self._changes = select.poll()
        self._shared: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def written_elsewhere(self, device: int) -> bool:
        """Return whether other machines, or a program behind the file system, may write to this device without leases
        noticing."""
        with self._lock, contextlib.suppress(OSError):
            if self._file is None:
                self._file = self._table.open(encoding="utf-8", errors="replace")
                self._changes.register(self._file, select.POLLPRI)
                self._read(self._file)
            elif self._changes.poll(0):
                self._read(self._file)
        return f"{os.major(device)}:{os.minor(device)}" in self._shared

    def close(self) -> None:
        """Close the table."""
        if self._file is not None:
            self._file.close()

    def _read(self, file: TextIO) -> None:
        file.seek(0)
        mounts = (line.partition(" - ") for line in file.read().splitlines())
        self._shared = frozenset(
            "".join(mount.split()[2:3])
            for mount, _, source in mounts
            if source.split(" ", 1)[0].split(".", 1)[0] in _SHARED_FILE_SYSTEMS
        )


_MOUNTS = Mounts()
atexit.register(_MOUNTS.close)
written_elsewhere = _MOUNTS.written_elsewhere
