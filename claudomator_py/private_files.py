"""Files of the daemon's user alone (0600, whatever the umask), which no reader sees incomplete."""

import os
import secrets
from collections.abc import Iterator
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


def flush_path(path: Path) -> None:
    """Make a file, or the names in a directory, durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
