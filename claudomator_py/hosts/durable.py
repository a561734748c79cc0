"""Files and directories that survive a loss of power."""

import os
import threading
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Self

_HELPERS = 4
"""Number of flushing threads. With the calling thread they are as many as a run directory has files to flush."""


class _Flushing:
    """Flushes in progress. Only the last one to end wakes the waiting thread."""

    def __init__(self, number: int) -> None:
        """number: number of flushes, at least one."""
        self._over = threading.Lock()
        self._over.acquire()
        self._ended, self._last = count(1), number
        self._problem: Exception | None = None

    def end(self, problem: Exception | None) -> None:
        """Note the end of a flush. problem: why it failed, or None."""
        if problem is not None:
            self._problem = problem
        if next(self._ended) == self._last:  # one step for all threads
            self._over.release()

    def wait(self) -> Exception | None:
        """Wait until all flushes have ended. Return the exception of one that failed, or None."""
        self._over.acquire()
        return self._problem


class _Helpers:
    """Flushing threads, started when first needed. A forked process inherits none of them.

    Not a ThreadPoolExecutor: its overhead per flush exceeds the time of a flush on an idle disk.
    """

    def __init__(self) -> None:
        self._threads: list[threading.Thread]
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def flush(self, descriptors: Sequence[int]) -> _Flushing:
        """Flush these descriptors, at least one, in parallel as far as there are threads."""
        flushing = _Flushing(len(descriptors))
        with self._lock:
            if not self._threads:
                self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(_HELPERS)]
                for number, thread in enumerate(self._threads):
                    thread.name = f"flush_{number}"
                    thread.start()
            for descriptor in descriptors:
                self._asked.put((descriptor, flushing))
        return flushing

    def end(self) -> None:
        """End the threads after all requested flushes."""
        with self._lock:
            for _ in self._threads:
                self._asked.put(None)
            for thread in self._threads:
                thread.join()
            self._threads = []

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._threads = []
        self._asked: SimpleQueue[tuple[int, _Flushing] | None] = SimpleQueue()

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            descriptor, flushing = asked
            problem = None
            try:
                os.fsync(descriptor)
            except Exception as error:
                problem = error
            flushing.end(problem)


_helpers = _Helpers()


def end_helpers() -> None:
    """End the flushing threads; the next flush starts new ones."""
    _helpers.end()


class FlushGroup:
    """Files and directories that become durable together, in any order: see ``flush``. Closed by ``with``.

    Simultaneous flushes share a commit of the file system. Five flushes in sequence take about five times as long.
    """

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def write_new(self, path: str | Path, data: bytes = b"", directory: int | None = None) -> None:
        """Write a private file (0600), replacing any existing one. The caller adds its directory.

        directory: descriptor to which the path is relative. Does not follow a link or wait for a pipe at the path.
        Raises OSError.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600, dir_fd=directory)
        self._descriptors.append(descriptor)
        while data:
            data = data[os.write(descriptor, data) :]

    def add_directory(self, path: str | Path) -> int:
        """Add the names in the directory to the group. Return its descriptor. Raises OSError."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._descriptors.append(descriptor)
        return descriptor

    def flush(self) -> None:
        """Make the whole group durable. Raises OSError."""
        first, *others = self._descriptors
        flushing = _helpers.flush(others) if others else None
        try:
            os.fsync(first)
        finally:
            # All flushes end before a descriptor is closed, even after a failure.
            problem = None if flushing is None else flushing.wait()
        if problem is not None:
            raise problem


def write_new(path: str | Path, data: bytes = b"") -> None:
    """Write one file and flush it; see ``FlushGroup.write_new``. Raises OSError."""
    with FlushGroup() as group:
        group.write_new(path, data)
        group.flush()


def flush_directory(path: str | Path) -> None:
    """Make the names in the directory durable. Raises OSError."""
    with FlushGroup() as group:
        group.add_directory(path)
        group.flush()
