"""Files of the daemon's user alone (0600, whatever the umask), which no reader sees incomplete, or which survive a loss
of power."""

import os
import secrets
from collections.abc import Iterator
from concurrent.futures import Executor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".*.partial"
"""Pattern of the names from ``unfinished``. A killed process leaves such files behind."""


def create_private(path: str | Path, folder: int | None = None) -> BinaryIO:
    """Create the file and return it, open for writing. folder: descriptor to which the path is relative.

    Raises FileExistsError, also for a link that leads nowhere; OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600, dir_fd=folder), "wb")


def unfinished(path: Path) -> Path:
    """Return a name next to the path for its content until that is complete; two processes get different names."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file that takes the path at the end of the block, and is removed if the block raises.

    durable: flush its content first. Raises OSError.
    """
    new = unfinished(path)
    try:
        with create_private(new) as file:
            yield file
            if durable:
                flush(file)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def flush(file: BinaryIO) -> None:
    """Write what is buffered for the file to the disk. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def flush_path(path: str | Path) -> None:
    """Make a file, or the names in a directory, durable. Raises OSError."""
    _flush(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


def create_file(path: str | Path, data: bytes) -> int:
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


def flush_files(path: str | Path, helpers: Executor) -> None:
    """Make the names in the directory and the contents of its files durable. Raises OSError.

    helpers: its threads flush at the same time. Such flushes share a commit of the file system; in sequence, five of
    them take about five times as long.
    """
    descriptors = [os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        for name in names:
            descriptors.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=descriptors[0]))
        flushes = [helpers.submit(os.fsync, descriptor) for descriptor in descriptors]
        wait(flushes)  # before a descriptor is closed, even after a failure
        for done in flushes:
            done.result()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _flush(descriptor: int) -> None:
    """Flush and close it."""
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
