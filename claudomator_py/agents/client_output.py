"""What our clients under the shim print, JSON events, one a line, and how their runs end; the standard library alone.

``agents/a2a/kind.py`` and ``agents/acp/events.py`` read it, each with the words of its own client.
"""

import json
import sys
import time
from typing import Any, BinaryIO, Final

MAX_SHOWN: Final = 8_000
"""Characters of what a tool said; of the rest nobody reads."""
_MAX_PIECE: Final = 16_000
ALIVE_S: Final = 20.0
"""Seconds between two events that only say that the agent is there."""


class End(Exception):
    """The run ends here."""

    def __init__(self, outcome: str, error: str | None = None, **fields: Any) -> None:
        """Take the word for it that the client's reader knows, the error in words, and fields of the last event."""
        super().__init__(error or outcome)
        self.outcome = outcome
        self.error = error
        self.fields = fields


class Terminated(BaseException):
    """The supervisor wants an end. No handler of errors is to take it for one."""


class Output:
    """Standard output, or another sink. Pieces of one message are joined until something else is to be printed."""

    def __init__(self, sink: BinaryIO | None = None) -> None:
        self._sink = sys.stdout.buffer if sink is None else sink
        self._alive_s = time.monotonic()
        self._kind = ""
        self._pieces: list[str] = []
        self._length = 0

    def event(self, kind: str, /, **fields: Any) -> None:
        """Print it, without the fields that say nothing."""
        self.flush()
        self._print(kind, {key: value for key, value in fields.items() if value not in (None, "")})

    def alive(self, state: str) -> None:
        """Say that the agent was just heard of, unless something was said a moment ago: a run that is silent stalls."""
        if time.monotonic() - self._alive_s >= ALIVE_S:
            self.event("alive", state=state)

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
        self._alive_s = time.monotonic()
        line = json.dumps({"type": kind, **fields}, ensure_ascii=False)
        self._sink.write(line.encode(errors="replace") + b"\n")
        self._sink.flush()


def shown(text: str) -> str:
    """Return the text, of a long one its beginning and its end."""
    half = MAX_SHOWN // 2
    return text if len(text) <= MAX_SHOWN else f"{text[:half]}\n[...]\n{text[-half:]}"
