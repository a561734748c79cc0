"""What the client prints: JSON events, one a line, which ``agents/acp/events.py`` reads."""

import json
import sys
from typing import Any, BinaryIO, Final

MAX_SHOWN: Final = 8_000
"""Characters of what a tool said; of the rest nobody reads."""
_MAX_PIECE: Final = 16_000


class Output:
    """Standard output, or another sink. Pieces of one message are joined until something else is to be printed."""

    def __init__(self, sink: BinaryIO | None = None) -> None:
        self._sink = sys.stdout.buffer if sink is None else sink
        self._kind = ""
        self._pieces: list[str] = []
        self._length = 0

    def event(self, kind: str, /, **fields: Any) -> None:
        """Print it, without the fields that say nothing."""
        self.flush()
        self._print(kind, {key: value for key, value in fields.items() if value not in (None, "")})

    def piece(self, kind: str, text: str) -> None:
        """Take a piece of a message or a thought."""
        if kind != self._kind or self._length > _MAX_PIECE:
            self.flush()
        self._kind = kind
        self._pieces.append(text)
        self._length += len(text)

    def flush(self) -> None:
        """Print what was taken."""
        text, kind = "".join(self._pieces), self._kind
        self._kind, self._pieces, self._length = "", [], 0
        if text:
            self._print(kind, {"text": text})

    def _print(self, kind: str, fields: dict[str, Any]) -> None:
        line = json.dumps({"type": kind, **fields}, ensure_ascii=False)
        self._sink.write(line.encode(errors="replace") + b"\n")
        self._sink.flush()


def shown(text: str) -> str:
    """The text, of a long one its beginning and its end."""
    half = MAX_SHOWN // 2
    return text if len(text) <= MAX_SHOWN else f"{text[:half]}\n[...]\n{text[-half:]}"
