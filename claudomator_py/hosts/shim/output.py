"""A run's output stream: a file the agent appends to itself, kept within its cap by punching out the middle."""

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
"""Bytes that are looked at for an event; more are taken to have one."""


class CappedOutput:
    """One stream. The first quarter of the cap and the newest half of it are kept; offsets stay valid."""

    def __init__(self, directory: int, name: str, cap: int) -> None:
        """Open it for appending. cap: bytes, 64 KiB at least. Raises OSError."""
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
        """Bytes written by the last look."""
        return self._size

    def grew(self) -> int:
        """Return bytes written since the last call. (A process may also truncate its own output: that is no growth.)"""
        size = os.fstat(self.fd).st_size
        growth = max(size - self._size, 0)
        self._size = size
        return growth

    def may_tell_since(self, offset: int) -> bool:
        """Return whether an event may stand behind that offset: those of all agents are objects of JSON."""
        behind = self._size - offset
        return not 0 <= behind <= _MAX_CHATTER or b"{" in os.pread(self.fd, behind, offset)

    def within_cap(self) -> bool:
        """Cut it down to its cap: punch out the middle if the stream takes more than its cap. False: the stream has to
        be ended.

        That is so where the file system cannot punch holes, and past 64 GiB written, which no agent means to write.
        """
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
        """Write the file again if somebody removed it: what is in it is there as long as it is open. Raises OSError."""
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
    """Copy a file with its holes, which may be large. Raises OSError."""
    size = os.fstat(source).st_size
    start = end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as problem:
            if problem.errno != errno.ENXIO:
                raise
            break  # Nothing but a hole is left.
        end = os.lseek(source, start, os.SEEK_HOLE)
        while start < end:
            start += os.pwrite(target, os.pread(source, min(end - start, _PIECE), start), start)
    os.ftruncate(target, size)


def disk_is_full(directory: int) -> bool:
    """Return whether there is no space left for output where the run directory is."""
    stat = os.fstatvfs(directory)
    free = stat.f_bfree if os.geteuid() == 0 else stat.f_bavail
    return free * stat.f_frsize < _FULL_BYTES
