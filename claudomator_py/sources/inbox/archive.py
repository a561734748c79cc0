"""``after_accept: move``: accepted files go to ``.accepted/<timestamp>-<name>`` in their inbox.

A file is moved after its tasks are durable. If the process ends between the two, the file's path and stamp are still
known, so the next start moves it and runs nothing; if it ends after the move, the file is found here by its inode.
"""

import contextlib
import os
import stat
from datetime import UTC, datetime

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.sources.inbox.files import Folder, InboxEntry
from claudomator_py.sources.inbox.ledger import FileStamp

FOLDER = ".accepted"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME_BYTES = 255
_TAIL = 50  # an archived name keeps at least these last characters of the original, however long that was


def archive(folder: Folder, entry: InboxEntry, now_ns: int) -> bool:
    """Move an accepted file; returns False if it has changed since and therefore stays. Raises OSError if it cannot be
    moved. now_ns: nanoseconds since the epoch, for the timestamp in the name."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(FOLDER, 0o700, dir_fd=folder.fd)
    fd = os.open(FOLDER, _OPEN, dir_fd=folder.fd)
    try:
        name = _free_name(fd, entry.name, now_ns)
        crashpoint("inbox-before-move")
        os.rename(entry.name, name, src_dir_fd=folder.fd, dst_dir_fd=fd)
        if _is(fd, name, entry):
            crashpoint("inbox-after-move")
            return True
        # It was saved again just before the move: put it back, unless yet another file has taken its place.
        os.link(name, entry.name, src_dir_fd=fd, dst_dir_fd=folder.fd, follow_symlinks=False)
        os.unlink(name, dir_fd=fd)
        return False
    except (FileNotFoundError, FileExistsError):
        return False
    finally:
        os.close(fd)


def archived_names(folder: Folder, stamps: dict[str, FileStamp]) -> set[str]:
    """Return which of these names, which are no longer in the inbox, were archived."""
    try:
        fd = os.open(FOLDER, _OPEN, dir_fd=folder.fd)
    except OSError:
        return set()
    try:
        with os.scandir(fd) as entries:
            # Archiving a link moves the link itself, whose inode differs from that of its target.
            stored = [(entry.name, None if entry.is_symlink() else entry.inode()) for entry in entries]
    finally:
        os.close(fd)
    links = [archived for archived, inode in stored if inode is None]
    files = {inode: archived for archived, inode in stored if inode is not None}
    return {
        name
        for name, stamp in stamps.items()
        if any(archived.endswith(name[-_TAIL:]) for archived in (*links, files.get(stamp.inode, "")))
    }


def _free_name(fd: int, name: str, now_ns: int) -> str:
    instant = datetime.fromtimestamp(now_ns / 1e9, tz=UTC)
    time = f"{instant:%Y%m%dT%H%M%S}.{instant.microsecond // 1000:03d}Z"
    for count in range(1, 1_000_000):
        prefix = f"{time}-" if count == 1 else f"{time}-{count}-"
        excess = len(os.fsencode(prefix + name)) - _NAME_BYTES
        candidate = prefix + os.fsdecode(os.fsencode(name)[max(0, excess) :])
        try:
            os.stat(candidate, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return candidate
    raise FileExistsError(f"no free name for {name} in {FOLDER}")


def _is(fd: int, name: str, entry: InboxEntry) -> bool:
    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    return stat.S_ISLNK(status.st_mode) if entry.target is not None else FileStamp.of(status) == entry.stamp
