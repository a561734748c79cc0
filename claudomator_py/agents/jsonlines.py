"""Split a stream into lines and JSON events. Any bytes may come, in any pieces; nothing raises.

Text that is no event is passed on cheaply, however much of it there is.
"""

import json
from collections.abc import Iterator
from datetime import datetime

from claudomator_py.json_fields import MAX_DEPTH, Event, count_of, is_deep
from claudomator_py.values import regex

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A final answer has some hundred kilobytes at most. Only tool output is longer, which is not read."""

MAX_PEEK_BYTES = 64 * 1024
"""A longer line without an end is parsed only once the run has ended."""

# JSON has no raw NUL, but a hole punched into a file reads as zeros: they end a line as well.
_ZEROS = regex(rb"\x00+")
# What may precede the first brace of an event's line.
_INDENT = regex(rb"[ \t\r]{0,64}(?:\[[ \t\r]{0,64})?")
_MAX_INDENT = 129


class LineSplitter:
    """Joins pieces into complete lines. A line longer than max_bytes is dropped."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that these bytes complete, without their ends; empty lines are dropped."""
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
        """The line without an end so far."""
        return b"" if self._too_long else bytes(self._pending)

    def _append(self, part: bytes) -> None:
        if self._too_long:
            return
        if len(self._pending) + len(part) > self._max_bytes:
            self._too_long = True
            self._pending = bytearray()
        else:
            self._pending += part


class EventSplitter:
    """Joins pieces into events, in order with the text between them, which is passed on at once. A line that begins
    like an event and is longer than max_bytes is dropped."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._in_text = False
        self._too_long = False

    def feed(self, data: bytes) -> "Iterator[list[Event] | bytes]":
        """Yield what these bytes complete: the events of a line, or text of any number of lines, with its line
        breaks."""
        data = data.replace(b"\0", b"\n")
        position = 0
        if self._in_text or self._pending or self._too_long:
            position = data.find(b"\n") + 1 or len(data)
            yield from self._go_on(data[:position])
        while position < len(data):
            begin = _line_of_event(data, position)
            if begin > position:
                yield data[position:begin]
                self._in_text = not data.endswith(b"\n", position, begin)
            position = data.find(b"\n", begin) + 1 or len(data)
            line = data[begin:position]
            if line.endswith(b"\n") and len(line) <= self._max_bytes:
                yield parse_events(line) or line  # the fast path, as most events come whole; _go_on would do the same
            else:
                yield from self._go_on(line)

    @property
    def rest(self) -> bytes:
        """The line without an end so far, if it may be an event."""
        return bytes(self._pending)

    @property
    def rest_bytes(self) -> int:
        """The size of ``rest``."""
        return len(self._pending)

    def _go_on(self, part: bytes) -> "Iterator[list[Event] | bytes]":
        """Continue the current line. part: up to its end or the end of the data."""
        ends = part.endswith(b"\n")
        if not self._in_text and not self._too_long:
            is_event = len(self._pending) > _MAX_INDENT
            self._pending += part
            is_event = is_event or _begins_like_event(self._pending)
            if is_event and len(self._pending) - ends > self._max_bytes:
                self._too_long, self._pending = True, bytearray()
            elif ends:
                line, self._pending = bytes(self._pending), bytearray()
                events = parse_events(line) if is_event else None
                yield line if events is None else events
            elif not is_event and not _begins_like_event(self._pending, unless_more=True):
                text, self._pending, self._in_text = bytes(self._pending), bytearray(), True
                yield text
        elif self._in_text and part:
            yield part
        if ends:
            self._in_text = self._too_long = False


def _line_of_event(data: bytes, position: int) -> int:
    """Return where the first line begins, from there on, that begins like an event, or may once more of it has come."""
    while (brace := data.find(b"{", position)) >= 0:
        begin = data.rfind(b"\n", position, brace) + 1 or position
        if _indent_end(data, begin) == brace:
            return begin
        position = data.find(b"\n", brace) + 1
        if position == 0:
            return len(data)
    begin = data.rfind(b"\n", position) + 1 or position
    return begin if _indent_end(data, begin) == len(data) else len(data)


def _begins_like_event(line: bytes | bytearray, *, unless_more: bool = False) -> bool:
    """Whether the line begins like an event. unless_more: or may do so once more of it has come."""
    end = _indent_end(line, 0)
    return line[end : end + 1] == b"{" or (unless_more and end == len(line))


def _indent_end(data: bytes | bytearray, begin: int) -> int:
    match = _INDENT.match(data, begin)
    return begin if match is None else match.end()


def parse_events(line: bytes) -> list[Event] | None:
    """Return the JSON objects of a line: one, or an array of them. None: the line is no such JSON, or nests too
    deeply."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    events = [value] if isinstance(value, dict) else value
    if not (isinstance(events, list) and events and all(isinstance(event, dict) for event in events)):
        return None
    return None if line.count(b"{") + line.count(b"[") > MAX_DEPTH and is_deep(events) else events


def instant_of(event: Event, key: str) -> int | None:
    """Return the field in epoch milliseconds, if it is an RFC 3339 time or an integer of epoch milliseconds."""
    value = event.get(key)
    if not isinstance(value, str):
        number = count_of(event, key)
        return number if number is not None and 1e12 <= number < 5e12 else None
    try:
        moment = datetime.fromisoformat(value)
        return round(moment.timestamp() * 1000) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
