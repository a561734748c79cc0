"""Files and directories that are there after a loss of power."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

_HELPERS = 4
"""Threads that flush beside the one that asks: with it, as many as a run directory has to flush."""


class _Flushers:
    """The helpers, begun when first needed. A fork inherits none of them."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.pool = ThreadPoolExecutor(_HELPERS, thread_name_prefix="flush")


_flushers = _Flushers()


class FlushGroup:
    """Files and directories that become durable together, in whichever order: see ``flush``. Closed by ``with``.

    What is flushed at the same time shares a commit of the file system. Five flushes, one waited for after the other,
    take some five times as long.
    """

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def write_new(self, path: Path, data: bytes = b"") -> None:
        """Write a private file (0600), which replaces what is there. Its directory is the caller's to add.

        A link in its place is not followed, and a pipe not waited for. Raises OSError.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        self._descriptors.append(descriptor)
        while data:
            data = data[os.write(descriptor, data) :]

    def add_directory(self, path: Path) -> None:
        """Have the names in the directory flushed. Raises OSError."""
        self._descriptors.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def flush(self) -> None:
        """Return once all of it is durable. Raises OSError."""
        first, *others = self._descriptors
        beside = [_flushers.pool.submit(os.fsync, other) for other in others]
        try:
            os.fsync(first)
        finally:
            # Before anything is closed, or has failed, each of them has come to its end.
            problems = [flushing.exception() for flushing in beside]
        for problem in problems:
            if problem is not None:
                raise problem


def write_new(path: Path, data: bytes = b"") -> None:
    """Write one file and flush it; see ``FlushGroup.write_new``. Raises OSError."""
    with FlushGroup() as group:
        group.write_new(path, data)
        group.flush()


def flush_directory(path: Path) -> None:
    """Make the names in the directory durable. Raises OSError."""
    with FlushGroup() as group:
        group.add_directory(path)
        group.flush()
