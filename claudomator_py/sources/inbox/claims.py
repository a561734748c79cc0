"""Ownership of inboxes: two daemons with separate state folders on the same inbox would both run everything in it.

The claim is a lock on the folder itself, held through a descriptor: it leaves no file behind, works on read-only
folders, follows the folder rather than its path, and ends with the process however that ends. If the file system has no
such locks, like most network file systems, nothing is claimed.
"""

import contextlib
import errno
import fcntl
import logging
import os
import threading
from collections.abc import Collection, Iterable
from pathlib import Path

from claudomator_py.domain.errors import CannotServe, Problem

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES)
_LOCKS = Path("/proc/locks")

log = logging.getLogger("claudomator.inbox")


class InboxInUse(CannotServe):
    """An inbox belongs to another daemon; the message names it and says what to do."""


class Claims:
    """The inboxes that this daemon has claimed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}  # descriptor by path

    def take(self, path: str) -> Problem | None:
        """Claim the folder at that path; returns why it cannot be claimed, or None.

        Also None if there is no folder, which is then claimed once it exists. Idempotent; if a different folder is now
        at the path, that one is claimed instead.
        """
        with self._lock:
            try:
                fd = os.open(path, _OPEN)
            except OSError:
                return None
            held = self._held.get(path)
            if held is not None and os.path.sameopenfile(held, fd):
                os.close(fd)
                return None
            problem = self._twice(path, fd) or _lock(fd, path)
            if problem is not None:
                os.close(fd)
                return problem
            self._held[path] = fd
            if held is not None:
                os.close(held)
            return None

    def take_all(self, paths: Iterable[str]) -> None:
        """Claim the folders at these paths. Raises InboxInUse if one cannot be claimed; no further ones are then
        held."""
        before = set(self._held)
        for path in paths:
            problem = self.take(path)
            if problem is not None:
                self.keep_only(before)
                raise InboxInUse(f"inbox {path}: {problem.message}; {problem.remedy}")

    def keep_only(self, paths: Collection[str]) -> None:
        """Release the claims on all other paths."""
        with self._lock:
            for path in [path for path in self._held if path not in paths]:
                os.close(self._held.pop(path))

    def _twice(self, path: str, fd: int) -> Problem | None:
        for other, held in self._held.items():
            if other != path and os.path.sameopenfile(held, fd) and _leads_to(other, held):
                message = f"it is the same folder as {other}"
                return Problem(message=message, remedy="name it once in inbox.paths")
        return None


def _lock(fd: int, path: str) -> Problem | None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(os.fstat(fd))
        message = f"another daemon{f' (pid {holder})' if holder is not None else ''} watches it"
        return Problem(message=message, remedy="stop that one, or give each daemon an inbox of its own")
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            log.warning("the inbox %s could not be claimed: %s", path, error.strerror)
        else:
            log.info("the inbox %s cannot be claimed on its file system: let no other daemon watch it", path)
    return None


def _holder(folder: os.stat_result) -> int | None:
    """The process that holds the lock, if the system tells."""
    name = f"{os.major(folder.st_dev):02x}:{os.minor(folder.st_dev):02x}:{folder.st_ino}"
    with contextlib.suppress(OSError, ValueError):
        for line in _LOCKS.read_text(encoding="ascii", errors="replace").splitlines():
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5:6] == [name] and int(words[4]) > 0:
                return int(words[4])
    return None


def _leads_to(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(fd))
    except OSError:
        return False
