"""What a program wrote, as text for people: decoded, without terminal codes, without secrets; piece by piece."""

import codecs
from dataclasses import dataclass

from claudomator_py.core.plaintext import finished, place_in, plain
from claudomator_py.core.redact import Redactor


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that the bytes from ``offset`` up to ``next_offset`` make. A reader that begins anew there goes on."""

    offset: int
    next_offset: int
    text: str


class ReadableText:
    """Reads a stream that arrives in parts of any size, from that byte on.

    What may be cut short is held back: a character, a control sequence, the beginning of what may be a secret.
    """

    def __init__(self, redactor: Redactor, offset: int = 0) -> None:
        self._redactor = redactor
        self._pending = b""
        self.offset = offset
        """Up to where the bytes have become pieces."""

    def feed(self, data: bytes, *, final: bool = False) -> Piece | None:
        """The next piece, if there is one. final: nothing follows."""
        pending = self._pending + data
        size = len(pending) if final else self._settled(pending)
        if size == 0:
            self._pending = pending
            return None
        self._pending = pending[size:]
        text = self._redactor.redact(plain(pending[:size].decode(errors="replace")))
        piece = Piece(self.offset, self.offset + size, text)
        self.offset = piece.next_offset
        return piece

    def skip_to(self, offset: int) -> list[Piece]:
        """What was held back, and a word about the bytes up to there, which were not kept."""
        pieces = [piece for piece in (self.feed(b"", final=True),) if piece is not None]
        text = f"\n[{offset - self.offset} bytes were not kept]\n"
        pieces.append(Piece(self.offset, offset, text))
        self.offset = offset
        return pieces

    def _settled(self, pending: bytes) -> int:
        """How many of the bytes no later ones can change the meaning of."""
        # One character for every byte that is none, so that the text leads back to the bytes.
        text, _ = codecs.utf_8_decode(pending, "surrogateescape", False)
        text = text[: finished(text)]
        place = place_in(text, self._redactor.settled(plain(text)))
        return len(text[:place].encode(errors="surrogateescape"))
