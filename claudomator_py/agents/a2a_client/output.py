"""What the client prints: JSON events, one a line, which ``agents/a2a/events.py`` reads."""

import json
import sys
import time
from typing import Any, Final

ALIVE_S: Final = 20.0
"""Seconds between two events that only say that the remote agent is there."""


class Output:
    """Standard output."""

    def __init__(self) -> None:
        self._alive_s = time.monotonic()

    def event(self, kind: str, **fields: Any) -> None:
        """Print it, without the fields that say nothing."""
        self._alive_s = time.monotonic()
        said = {key: value for key, value in fields.items() if value not in (None, "")}
        line = json.dumps({"type": kind, **said}, ensure_ascii=False)
        sys.stdout.buffer.write(line.encode(errors="replace") + b"\n")
        sys.stdout.buffer.flush()

    def alive(self, state: str) -> None:
        """Say that it has just been heard of, unless something was said a moment ago: a run that is silent stalls."""
        if time.monotonic() - self._alive_s >= ALIVE_S:
            self.event("alive", state=state)
