"""Text of agents made safe for a terminal: its control codes could hide, forge or run something there."""

import codecs
import re

from claudomator_py.core.plaintext import one_line, plain

__all__ = ["PlainText", "one_line", "plain"]

_MAX_HELD = 4_096

# What a later part of the text may complete.
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*\x1b?|\x1b[ -/]*|\r)\Z"
)


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
