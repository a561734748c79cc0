"""A run's output stream: a file to which the agent appends, kept within its limit by punching out the middle."""

from __future__ import annotations

import errno
import os

from claudomator_py.hosts.shim import linux

STDOUT = "stdout.jsonl"
STDERR = "stderr.log"

_BLOCK = 4096
_SMALLEST_CAP = 16 * _BLOCK
_RUNAWAY_BYTES = 64 << 30
_FULL_BYTES = 64 << 10
_PIECE = 1 << 20
_MAX_CHATTER = 64 * 1024
"""Maximum number of bytes searched for an event; more output is assumed to contain one."""


class CappedOutput:
    """One stream. A first part of a quarter of the cap and a last part of half of it are kept; offsets stay valid."""

    def __init__(self, directory: int, name: str, cap: int) -> None:
        """Open the file for appending. cap: in bytes, at least 64 KiB. Raises OSError."""
        self._directory = directory
        self._name = name
        self.fd = os.open(
            name, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory
        )
        self._cap = max(cap, _SMALLEST_CAP)
        self._head = self._cap // 4 // _BLOCK * _BLOCK
        self._hole_end = self._head
        self._size = 0

    @property
    def size(self) -> int:
        """Number of bytes written, as of the last call of ``grew``."""
        return self._size

    def grew(self) -> int:
        """Return the number of bytes written since the last call; truncation by the process does not count."""
        size = os.fstat(self.fd).st_size
        growth = max(size - self._size, 0)
        self._size = size
        return growth

    def may_have_event_since(self, offset: int) -> bool:
        """Return whether an event may follow that offset: all agents write events as JSON objects."""
        behind = self._size - offset
        return not 0 <= behind <= _MAX_CHATTER or b"{" in os.pread(self.fd, behind, offset)

    def within_cap(self) -> bool:
        """Cut out the middle if the stream uses more space than its cap. Return False if the run has to be ended. That
        is the case if the file system cannot punch holes, and after 64 GiB, which no agent writes on purpose."""
        if self._size > _RUNAWAY_BYTES:
            return False
        if self._size - (self._hole_end - self._head) <= self._cap:
            return True
        end = (self._size - self._cap // 2) // _BLOCK * _BLOCK
        try:
            linux.punch_hole(self.fd, self._hole_end, end)
        except OSError:
            return False
        self._hole_end = end
        return True

    def put_back(self) -> None:
        """Restore the file if it was removed: the content exists as long as the file is open. Raises OSError."""
        if os.fstat(self.fd).st_nlink:
            return
        new = f"{self._name}.new"
        target = os.open(
            new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._directory
        )
        try:
            _copy(self.fd, target)
        finally:
            os.close(target)
        os.rename(new, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)


def _copy(source: int, target: int) -> None:
    """Copy a file and preserve its holes, which may be large. Raises OSError."""
    size = os.fstat(source).st_size
    start = end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as problem:
            if problem.errno != errno.ENXIO:
                raise
            break  # Only a hole is left.
        end = os.lseek(source, start, os.SEEK_HOLE)
        while start < end:
            start += os.pwrite(target, os.pread(source, min(end - start, _PIECE), start), start)
    os.ftruncate(target, size)


def disk_is_full(directory: int) -> bool:
    """Return whether the disk of the run directory has no space left for output."""
    stat = os.fstatvfs(directory)
    free = stat.f_bfree if os.geteuid() == 0 else stat.f_bavail
    return free * stat.f_frsize < _FULL_BYTES
