"""What the clients under the shim print, JSON events one a line, and how their runs end. Standard library only.

``agents/a2a/kind.py`` and ``agents/acp/events.py`` read it, each with its client's own events.
"""

import json
import signal
import sys
import time
import types
from typing import Any, BinaryIO, Final

MAX_SHOWN: Final = 8_000
"""Characters kept of a tool's output."""
_MAX_PIECE: Final = 16_000
ALIVE_S: Final = 20.0
"""Seconds between two ``alive`` events."""


class End(Exception):
    """The end of the run."""

    def __init__(self, outcome: str, error: str | None = None, **fields: Any) -> None:
        """Take the outcome as the reader knows it, the error in words, and further fields of the last event."""
        super().__init__(error or outcome)
        self.outcome = outcome
        self.error = error
        self.fields = fields


class Terminated(BaseException):
    """The supervisor ended the run. Not an Exception, so that no error handler catches it."""


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def raise_on_termination() -> None:
    """Have the supervisor's signals raise Terminated."""
    for number in _SIGNALS:
        signal.signal(number, _terminate)


def ignore_termination() -> None:
    """Ignore the supervisor's signals from now on, as the end is on its way."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _terminate(_number: int, _frame: types.FrameType | None) -> None:
    raise Terminated


class Output:
    """Events on standard output or another sink. Chunks of a message are joined until something else is printed."""

    def __init__(self, sink: BinaryIO | None = None) -> None:
        self._sink = sys.stdout.buffer if sink is None else sink
        self._alive_s = time.monotonic()
        self._kind = ""
        self._pieces: list[str] = []
        self._length = 0

    def event(self, kind: str, /, **fields: Any) -> None:
        """Print an event, without its empty fields."""
        self.flush()
        self._print(kind, {key: value for key, value in fields.items() if value not in (None, "")})

    def alive(self, state: str) -> None:
        """Print that the agent gave a sign of life, unless something was printed lately: a silent run stalls."""
        if time.monotonic() - self._alive_s >= ALIVE_S:
            self.event("alive", state=state)

    def piece(self, kind: str, text: str) -> None:
        """Take a chunk of a message or a thought."""
        if kind != self._kind or self._length > _MAX_PIECE:
            self.flush()
        self._kind = kind
        self._pieces.append(text)
        self._length += len(text)

    def flush(self) -> None:
        """Print the chunks taken so far."""
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
    """Return the text; of a long one, its beginning and its end."""
    half = MAX_SHOWN // 2
    return text if len(text) <= MAX_SHOWN else f"{text[:half]}\n[...]\n{text[-half:]}"
