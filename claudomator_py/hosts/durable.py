"""Files and directories that survive a loss of power."""

import os
from concurrent.futures import Executor, wait
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def create_file(path: str | Path, data: bytes = b"") -> int:
    """Write a private file (0600), replacing any existing one, and return its descriptor. Nothing is flushed.

    Does not follow a link or wait for a pipe at the path. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_new(path: str | Path, data: bytes = b"") -> None:
    """Write a file and flush it; see ``create_file``. Its name is not durable before its directory is flushed. Raises
    OSError."""
    _flush(create_file(path, data))


def flush_directory(path: str | Path) -> None:
    """Make the names in the directory durable. Raises OSError."""
    _flush(os.open(path, _DIRECTORY))


def flush_files(path: str | Path, helpers: Executor) -> None:
    """Make the names in the directory and the contents of its files durable. Raises OSError.

    helpers: its threads flush at the same time. Such flushes share a commit of the file system; in sequence, five of
    them take about five times as long.
    """
    descriptors = [os.open(path, _DIRECTORY)]
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        for name in names:
            descriptors.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=descriptors[0]))
        flushes = [helpers.submit(os.fsync, descriptor) for descriptor in descriptors]
        wait(flushes)  # before a descriptor is closed, even after a failure
        for flush in flushes:
            flush.result()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _flush(descriptor: int) -> None:
    """Flush and close it."""
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
