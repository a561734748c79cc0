"""Where the benchmarks write, and what that costs there: making a file, and flushing it."""

import fcntl
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_TOP_OF_A_TREE = 0x00020000
_FILES = 50


@contextmanager
def undisturbed() -> Iterator[None]:
    """Have each temporary folder lie in a part of the disk of its own, as far as the file system has such parts.

    For minutes ext4 gives no file the inode of one that was deleted, and passes over each of those in the same part of
    the disk when it makes a file. Where tests, or the benchmark before, have just deleted tens of thousands, that takes
    ten times as long, and a run has twelve files: it would be they that are measured.
    """
    with tempfile.TemporaryDirectory() as folder:
        with suppress(OSError):
            _spread(Path(folder))
        before, tempfile.tempdir = tempfile.tempdir, folder
        try:
            yield
        finally:
            tempfile.tempdir = before


def costs() -> str:
    """What a file costs in a temporary folder."""
    made_s, flushed_s = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_FILES):
            began = time.perf_counter()
            file = os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT)
            made = time.perf_counter()
            os.fsync(file)
            flushed_s.append(time.perf_counter() - made)
            made_s.append(made - began)
            os.close(file)
    made_us, flushed_ms = statistics.median(made_s) * 1e6, statistics.median(flushed_s) * 1e3
    return f"a new file takes {made_us:.0f} µs, a flush {flushed_ms:.1f} ms"


def _spread(folder: Path) -> None:
    """Tell the file system that what is made in this folder does not belong together. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        (flags,) = struct.unpack("l", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(struct.calcsize("l"))))
        fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", flags | _TOP_OF_A_TREE))
    finally:
        os.close(descriptor)
