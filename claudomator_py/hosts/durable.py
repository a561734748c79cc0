"""Files and directories that are there after a loss of power."""

import os
from pathlib import Path


def write_new(path: Path, data: bytes = b"") -> None:
    """Write a private file (0600) and flush it; it replaces what is there. The directory is the caller's to flush.

    A link in its place is not followed, and a pipe not waited for. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def flush_directory(path: Path) -> None:
    """Make the names in the directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
