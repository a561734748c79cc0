"""Files and directories that are there after a loss of power."""

import os
import threading
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Self

_HELPERS = 4
"""Threads that flush beside the one that asks: with it, as many as a run directory has to flush."""


class _Flushing:
    """Flushes that are under way. Whoever waits for them is woken by the last one alone."""

    def __init__(self, number: int) -> None:
        """number: how many there are, at least one."""
        self._over = threading.Lock()
        self._over.acquire()
        self._ended, self._last = count(1), number
        self._problem: Exception | None = None

    def end(self, problem: Exception | None) -> None:
        """Say that one has ended. problem: why it failed."""
        if problem is not None:
            self._problem = problem
        if next(self._ended) == self._last:  # one step for all threads
            self._over.release()

    def wait(self) -> Exception | None:
        """Return once all have ended: what came of one that failed."""
        self._over.acquire()
        return self._problem


class _Helpers:
    """The threads, begun when first needed. A fork inherits none of them.

    No ThreadPoolExecutor: what that does for each flush takes longer than a flush on a disk that is not busy.
    """

    def __init__(self) -> None:
        self._threads: list[threading.Thread]
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def flush(self, descriptors: Sequence[int]) -> _Flushing:
        """Flush these, at least one, each on a thread of its own if there are enough."""
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
        """End the threads once all that was asked for is flushed."""
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
    """End the threads that flush; the next flush begins new ones."""
    _helpers.end()


class FlushGroup:
    """Files and directories that become durable together, in whichever order: see ``flush``. Closed by ``with``.

    What is flushed at the same time shares a commit of the file system. Five flushes, one waited for after the other,
    take some five times as long.
    """

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def write_new(self, path: str | Path, data: bytes = b"", directory: int | None = None) -> None:
        """Write a private file (0600), which replaces what is there. Its directory is the caller's to add.

        directory: an opened one, in which a relative path lies. A link in its place is not followed, and a pipe not
        waited for. Raises OSError.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600, dir_fd=directory)
        self._descriptors.append(descriptor)
        while data:
            data = data[os.write(descriptor, data) :]

    def add_directory(self, path: str | Path) -> int:
        """Have the names in the directory flushed; a descriptor of it. Raises OSError."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._descriptors.append(descriptor)
        return descriptor

    def flush(self) -> None:
        """Return once all of it is durable. Raises OSError."""
        first, *others = self._descriptors
        flushing = _helpers.flush(others) if others else None
        try:
            os.fsync(first)
        finally:
            # Before anything is closed, or has failed, each of them has come to its end.
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
