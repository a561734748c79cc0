"""Make the output of programs fit to store and to show: bounded, valid Unicode, without terminal codes."""

import unicodedata

from claudomator_py.values import regex

MAX_TEXT = 100_000
"""Characters kept of a final answer."""
MAX_DETAIL = 4_000
"""Characters kept of an error."""

_TERMINAL_CODES = regex(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and other strings: titles, links
    r"|\x1b[ -/]*[0-~]?"  # two-byte sequences
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NOT_PLAIN = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def is_blank(text: str) -> bool:
    """Return whether none of the text is visible: blanks, controls, and zero-width characters."""
    return all(unicodedata.category(character)[0] in "ZC" for character in text)


class Tail:
    """The last bytes of a stream."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._kept += data[-self._max_bytes :]
        if len(self._kept) > 2 * self._max_bytes:
            del self._kept[: -self._max_bytes]

    def text(self) -> str:
        """Return the bytes as readable text."""
        return readable(bytes(self._kept[-self._max_bytes :]).decode(errors="replace"))

    def copy(self) -> "Tail":
        """Return an independent copy."""
        other = Tail(self._max_bytes)
        other._kept = self._kept.copy()
        return other


def readable(text: str) -> str:
    """Return the text as a terminal would show it, without control codes and surrounding space."""
    if _NOT_PLAIN.search(text) is None:
        return text.strip()
    plain = _TERMINAL_CODES.sub("", text)
    # A progress bar returns to the start of its line and overwrites it: only the last version was visible.
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return storable(_CONTROLS.sub("", "\n".join(lines))).strip()


def storable(text: str) -> str:
    """Return the text without what no database stores: NUL and lone surrogates."""
    return text.replace("\0", "").encode(errors="replace").decode()


def shortened(text: str, limit: int) -> str:
    """Return at most limit characters: a long text loses its middle, as its beginning and end say most."""
    if len(text) <= limit:
        return text
    mark = "\n[...]\n"
    head = (limit - len(mark)) // 2
    tail = limit - len(mark) - head
    return text[:head] + mark + text[-tail:]
