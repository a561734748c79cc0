"""Splits a stream into lines as it comes, and reads a line as JSON events: any bytes, in any pieces, never raise."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

Event = Mapping[str, Any]

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A final answer has some hundred kilobytes at most; only a tool's output is longer, and nothing is read from that."""

MAX_COUNT = 2**53
"""The largest whole number that JSON carries exactly everywhere."""

# JSON holds no raw NUL, but a file whose middle was punched out reads as zeros: they end a line as well.
_ZEROS = re.compile(rb"\x00+")


class LineSplitter:
    """Complete lines out of pieces. A line longer than max_bytes is dropped whole."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes completed, without their ends; empty lines are left out."""
        if b"\0" in data:
            data = _ZEROS.sub(b"\n", data)
        *ended, rest = data.split(b"\n")
        lines = []
        for part in ended:
            self._append(part)
            if line := self.rest:
                lines.append(line)
            self._pending = bytearray()
            self._too_long = False
        self._append(rest)
        return lines

    @property
    def rest(self) -> bytes:
        """The line that has not ended yet."""
        return b"" if self._too_long else bytes(self._pending)

    def _append(self, part: bytes) -> None:
        if self._too_long:
            return
        if len(self._pending) + len(part) > self._max_bytes:
            self._too_long = True
            self._pending = bytearray()
        else:
            self._pending += part


def parse_events(line: bytes) -> list[Event] | None:
    """The JSON objects of a line: one, or an array of them. None: the line is not such JSON."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return [value]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return value
    return None


def text_of(event: Event, key: str) -> str | None:
    """The field, if it is a text that is not empty."""
    value = event.get(key)
    return value if isinstance(value, str) and value else None


def count_of(event: Event, key: str) -> int | None:
    """The field, if it is a whole number from 0 up to MAX_COUNT."""
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None


def amount_of(event: Event, key: str) -> float | None:
    """The field, if it is a number from 0 up to MAX_COUNT."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return float(value)


def event_of(event: Event, key: str) -> Event:
    """The field, if it is an object; else an empty one."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def list_of(event: Event, key: str) -> list[Any]:
    """The field, if it is a list; else an empty one."""
    value = event.get(key)
    return value if isinstance(value, list) else []


def instant_of(event: Event, key: str) -> int | None:
    """The field, if it is a time in RFC 3339 or a whole number of epoch milliseconds: in epoch milliseconds."""
    value = event.get(key)
    if not isinstance(value, str):
        number = count_of(event, key)
        return number if number is not None and 1e12 <= number < 5e12 else None
    try:
        moment = datetime.fromisoformat(value)
        return round(moment.timestamp() * 1000) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
