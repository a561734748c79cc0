"""Text of agents made safe for a terminal: its control codes could hide, forge or run something there."""

import codecs
import re

_MAX_HELD = 4_096

# Control sequences: CSI; strings (OSC, DCS, SOS, PM, APC) up to their terminator; other escapes.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
)
# What a later part of the text may complete.
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*\x1b?|\x1b[ -/]*|\r)\Z"
)
_NEWLINE = re.compile(r"\r+\n|\r")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class PlainText:
    """Decodes and cleans a stream that arrives in parts of any size."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The clean text of a further part; a sequence that is not yet whole is held back."""
        text = self._held + self._decoder.decode(data, final)
        self._held = ""
        if not final and (unfinished := _UNFINISHED.search(text)) and len(text) - unfinished.start() <= _MAX_HELD:
            self._held = unfinished[0]
            text = text[: unfinished.start()]
        return plain(text)


def plain(text: str) -> str:
    """The text without control sequences and control characters; carriage returns become line ends."""
    return _CONTROL.sub("", _NEWLINE.sub("\n", _SEQUENCE.sub("", text)))


def one_line(text: str) -> str:
    """The clean text with all white space as single blanks: for a cell of a table."""
    return " ".join(plain(text).split())
