"""Reading a run's output by byte offset, while it is being written and across the hole that its cap may leave."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from claudomator_py.core.run import Stream
from claudomator_py.runs.shim.output import STDERR, STDOUT

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
    try:
        fd = os.open(output_path(run, stream), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Chunk(offset, b"", 0)
    try:
        size = os.fstat(fd).st_size
        start, end = _data_extent(fd, offset, size)
        return Chunk(start, os.pread(fd, min(limit, end - start), start), size)
    finally:
        os.close(fd)


def pieces(run: Path, stream: Stream) -> Iterator[bytes]:
    """All that the stream holds, in pieces. A line that a hole has torn ends at the hole, and its rest is left out,
    so that no line is put together from two. Raises OSError."""
    position = 0
    torn = False
    while (chunk := read_output(run, stream, position)).data:
        data = chunk.data
        if chunk.start > position:
            torn = True
            yield b"\n"
        if torn:
            _, line_break, data = data.partition(b"\n")
            torn = not line_break
        if data:
            yield data
        position = chunk.next


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
