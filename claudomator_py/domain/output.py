"""What a run printed, by byte offset: a stream may have a hole where its cap has left something out."""

from collections.abc import Callable

from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """Some bytes of a stream that stand together. Empty at its end, and where there is none (yet)."""

    start: int
    """Where they stand: past the offset that was asked for, if nothing was kept there."""
    data: bytes
    size: int
    """Where the stream ended when it was read, in bytes from its beginning, holes counted."""

    @property
    def next(self) -> int:
        """Where to read on."""
        return self.start + len(self.data)


Read = Callable[[int, int], OutputPiece]
"""Reads one stream, from an offset at most so many bytes."""


def tail_of(read: Read, limit: int) -> bytes:
    """Return the last ``limit`` bytes of the stream as it is now. A hole in them reads as a line break."""
    size = read(0, 0).size
    position = max(0, size - limit)
    pieces = []
    while position < size and (piece := read(position, size - position)).data:
        pieces.append(b"\n" + piece.data if piece.start > position else piece.data)
        position = piece.next
    return b"".join(pieces)[-limit:]


def with_zeros(read: Read, offset: int, limit: int) -> bytes:
    """Return at most ``limit`` bytes from the offset, with zeros for what was not kept, so that offsets stay what they
    are."""
    piece = read(offset, limit)
    return (bytes(min(limit, piece.start - offset)) + piece.data)[:limit]
