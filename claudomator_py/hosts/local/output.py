"""Reading a run's output by byte offset, while it is being written, and across the hole left by its size limit."""

import errno
import os
import stat

from claudomator_py.domain.report import OutputPiece
from claudomator_py.domain.run import Stream
from claudomator_py.hosts.local.fate import AnyPath
from claudomator_py.hosts.shim.output import STDERR, STDOUT

_FILES: dict[Stream, str] = {"stdout": STDOUT, "stderr": STDERR}
_CHUNK = 1 << 18


def output_path(run: AnyPath, stream: Stream) -> str:
    """Return the path of the stream's file. Read it only through this module: a hole may read as gigabytes of zeros."""
    return f"{run}/{_FILES[stream]}"


def read_output(run: AnyPath, stream: Stream, offset: int, limit: int = _CHUNK) -> OutputPiece:
    """Return at most limit bytes of the stream, starting at the offset; holes are skipped. Raises OSError."""
    if limit == 0:  # the size is requested more often than the content
        return OutputPiece(offset, b"", _size(run, stream))
    fd = _open(run, stream)
    if fd is None:
        return OutputPiece(offset, b"", 0)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return OutputPiece(offset, b"", 0)
        start, end = _data_extent(fd, offset, status.st_size)
        data = os.pread(fd, min(limit, end - start), start) if end > start else b""
        return OutputPiece(start, data, status.st_size)
    finally:
        os.close(fd)


def _size(run: AnyPath, stream: Stream) -> int:
    """Return the size of the stream's file; 0 if there is none, see ``_open``. Raises OSError."""
    try:
        status = os.lstat(output_path(run, stream))
    except FileNotFoundError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _open(run: AnyPath, stream: Stream) -> int | None:
    """Open the stream's file; None if it does not exist yet. Never follows a link or waits for a pipe that an agent has
    put in its place. Raises OSError."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(output_path(run, stream), flags)
    except FileNotFoundError:
        return None
    except OSError as problem:
        if problem.errno != errno.ELOOP:
            raise
        return None


def _data_extent(fd: int, offset: int, size: int) -> tuple[int, int]:
    """Return start and end of the first data at or after the offset."""
    if offset >= size:
        return offset, offset
    try:
        start = os.lseek(fd, offset, os.SEEK_DATA)
        return start, min(os.lseek(fd, start, os.SEEK_HOLE), size)
    except OSError as problem:
        if problem.errno == errno.ENXIO:
            return size, size
        if problem.errno == errno.EINVAL:
            return offset, size
        raise
