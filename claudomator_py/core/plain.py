"""Text of agents made plain: control codes could hide, forge or run something in a terminal or on a page."""

import re

# Control sequences: CSI; strings (OSC, DCS, SOS, PM, APC) up to their terminator; other escapes.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
)
_NEWLINE = re.compile(r"\r+\n|\r")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """The text without control sequences and control characters; carriage returns become line ends."""
    return _CONTROL.sub("", _NEWLINE.sub("\n", _SEQUENCE.sub("", text)))


def one_line(text: str) -> str:
    """The clean text with all white space as single blanks: for a cell of a table."""
    return " ".join(plain(text).split())
