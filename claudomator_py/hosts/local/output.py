"""Reading a run's output by byte offset, while it is being written and across the hole that its cap may leave."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from claudomator_py.domain.run import Stream
from claudomator_py.hosts.shim.output import STDERR, STDOUT

_FILES: dict[Stream, str] = {"stdout": STDOUT, "stderr": STDERR}
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of a stream. start: where they stand in it, past the offset asked for if a hole lay there. next: where to
    read on. end: the stream's size when read."""

    start: int
    data: bytes
    end: int

    @property
    def next(self) -> int:
        return self.start + len(self.data)


def output_path(run: Path, stream: Stream) -> Path:
    """The file of that stream. Read it through this module: a hole reads as zeros, perhaps gigabytes of them."""
    return run / _FILES[stream]


def read_output(run: Path, stream: Stream, offset: int, limit: int = _CHUNK) -> Chunk:
    """What the stream holds from the offset on, at most limit bytes; holes are skipped. Empty at the end, and for a
    run that has no output yet. Raises OSError."""
    with _opened(run, stream) as fd:
        if fd is None:
            return Chunk(offset, b"", 0)
        size = os.fstat(fd).st_size
        start, end = _data_extent(fd, offset, size)
        return Chunk(start, os.pread(fd, min(limit, end - start), start), size)


def read_raw(run: Path, stream: Stream, offset: int, limit: int) -> bytes:
    """At most limit bytes from the offset, holes as zeros. Empty at the end, and without output. Raises OSError."""
    with _opened(run, stream) as fd:
        return b"" if fd is None else os.pread(fd, limit, offset)


def output_size(run: Path, stream: Stream) -> int:
    """Where the stream ends, holes counted; 0 for a run that has no output yet. Raises OSError."""
    with _opened(run, stream) as fd:
        return 0 if fd is None else os.fstat(fd).st_size


def read_tail(run: Path, stream: Stream, limit: int) -> bytes:
    """The last limit bytes of the stream as it is now. A hole in them reads as a line break. Raises OSError."""
    size = output_size(run, stream)
    position = max(0, size - limit)
    pieces = []
    while position < size and (chunk := read_output(run, stream, position, size - position)).data:
        pieces.append(b"\n" + chunk.data if chunk.start > position else chunk.data)
        position = chunk.next
    return b"".join(pieces)[-limit:]


@contextmanager
def _opened(run: Path, stream: Stream) -> Iterator[int | None]:
    """The stream's file; None where there is none (yet). What an agent put in its place is none: a link leads nowhere,
    and nobody waits for the other end of a pipe. Raises OSError."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(output_path(run, stream), flags)
    except FileNotFoundError:
        yield None
        return
    except OSError as problem:
        if problem.errno != errno.ELOOP:
            raise
        yield None
        return
    try:
        yield fd if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def _data_extent(fd: int, offset: int, size: int) -> tuple[int, int]:
    """Start and end of the data at the offset or after it."""
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
