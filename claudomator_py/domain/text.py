"""Text of agents made safe to show: a terminal's control codes could hide, forge or run something there."""

import codecs
import json
import re
from typing import TYPE_CHECKING

from claudomator_py.values import dataclass, regex

if TYPE_CHECKING:
    # With every word of a tool call that may stand in a text; what only escapes a text needs none of it.
    from claudomator_py.domain.redaction import Redactor

_MAX_UNFINISHED = 4_096

# Control sequences: CSI; strings (OSC, DCS, SOS, PM, APC) up to their terminator; other escapes. Then line ends and
# what is left of control characters, those included that turn the direction of text. A string ends where another one
# begins and only the first of a row of carriage returns looks ahead: so no text is gone through more than once.
_BEGINS_STRING = r"\x90\x98\x9d-\x9f"
_STRING = rf"(?:\x1b[\]PX^_]|[{_BEGINS_STRING}])[^\x07\x1b\x9c\n{_BEGINS_STRING}]*"
_RETURNS = r"(?<!\r)\r+"
_SEQUENCE = rf"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
_LINE_END = rf"(?P<line_end>{_RETURNS}\n|[\r\u2028\u2029])"
# Control characters, and what turns the direction of text or takes no room: nobody sees that it is there.
_UNSEEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# These take no room either, but without them many scripts and emoji are not right.
_JOINERS = "\u200c\u200d"
_UNWANTED = regex(f"{_SEQUENCE}|{_LINE_END}|[{_UNSEEN}]")
_JOINER = regex(f"[{_JOINERS}]")
_TO_ESCAPE = regex(f"[{_UNSEEN}{_JOINERS}\u2028\u2029\ud800-\udfff]")
# What a later part of the text may complete.
_UNFINISHED = regex(rf"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|{_STRING}\x1b?|\x1b[ -/]*|{_RETURNS})\Z")
# Where a clause ends: a sentence's end, a semicolon, or where data, a URL or a note in brackets begins.
_CLAUSE_END = regex(r"(?<=[^.\s])\. |; | \{|\{\"| \(?https?://| · ")


def plain(text: str) -> str:
    """Return the text without control sequences and control characters; carriage returns become line ends."""
    # Most that is shown is short and plain, and a page shows hundreds of texts.
    return text if text.isascii() and text.isprintable() else _UNWANTED.sub(_replacement, text)


def one_line(text: str) -> str:
    """Return the clean text with all white space as single blanks: for a cell of a table."""
    return " ".join(_JOINER.sub("", plain(text)).split())


def escaped(text: str) -> str:
    """Return the text with all that nobody sees, but for tabs and line ends, written as JSON does: ``\\u202e``.

    JSON means the same after it.
    """
    return _TO_ESCAPE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def clause(text: str, most: int = 120) -> str:
    """Return the first clause of what a program said, for a list; empty where it begins with data, which says nothing
    there.

    most: characters; what is longer is cut at a word.
    """
    line = next((one_line(part) for part in text.splitlines() if part.strip()), "")
    if line.startswith(("{", "[{", "<!", "<html", "Traceback")):
        return ""
    end = _CLAUSE_END.search(line)
    return _cut((line if end is None else line[: end.start()]).rstrip(" .:;,-([{"), most)


def subject_line(text: str, most: int = 120) -> str:
    """Return the first line of a text of our own, which says what the others are about; cut like a clause."""
    return _cut(one_line(text.partition("\n")[0]), most)


def finished(text: str) -> int:
    """Return how much of the text no later part can change: all but a control sequence that is not yet whole."""
    unfinished = _UNFINISHED.search(text)
    if unfinished is None or len(text) - unfinished.start() > _MAX_UNFINISHED:
        return len(text)
    return unfinished.start()


def place_in(text: str, place: int) -> int:
    """Return where in the text that stands which stands at ``place`` in the plain one, after what is left out before
    it."""
    shown = 0
    position = 0
    for unwanted in _UNWANTED.finditer(text):
        between = unwanted.start() - position
        if shown + between > place:
            break
        instead = len(_replacement(unwanted))
        if shown + between + instead > place:
            return unwanted.start()
        shown += between + instead
        position = unwanted.end()
    return position + place - shown


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 1].rsplit(' ', 1)[0]}…"


def _replacement(unwanted: re.Match[str]) -> str:
    return "\n" if unwanted["line_end"] is not None else ""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The text of the bytes from ``offset`` up to ``next_offset``, where a reader that begins again continues."""

    offset: int
    next_offset: int
    text: str


class ReadableText:
    """Reads a stream that arrives in parts of any size, from that byte on.

    What may be cut short is held back: a character, a control sequence, the beginning of what may be a secret.
    """

    def __init__(self, redactor: "Redactor", offset: int = 0) -> None:
        self._redactor = redactor
        self._pending = b""
        self.offset = offset
        """Up to where the bytes have become pieces."""

    def feed(self, data: bytes, *, final: bool = False) -> TextPiece | None:
        """Return the next piece, if there is one. final: nothing follows."""
        pending = self._pending + data
        size = len(pending) if final else self._settled(pending)
        if size == 0:
            self._pending = pending
            return None
        self._pending = pending[size:]
        text = self._redactor.redact(plain(pending[:size].decode(errors="replace")))
        piece = TextPiece(self.offset, self.offset + size, text)
        self.offset = piece.next_offset
        return piece

    def skip_to(self, offset: int) -> list[TextPiece]:
        """Return what was held back, and a word about the bytes up to there, which were not kept."""
        pieces = [piece for piece in (self.feed(b"", final=True),) if piece is not None]
        text = f"\n[{offset - self.offset} bytes were not kept]\n"
        pieces.append(TextPiece(self.offset, offset, text))
        self.offset = offset
        return pieces

    def _settled(self, pending: bytes) -> int:
        """How many of the bytes no later ones can change the meaning of."""
        # One character for every byte that is none, so that the text leads back to the bytes.
        text, _ = codecs.utf_8_decode(pending, "surrogateescape", False)
        text = text[: finished(text)]
        place = place_in(text, self._redactor.settled(plain(text)))
        return len(text[:place].encode(errors="surrogateescape"))
