"""An agent's output as what it said and did, line by line: what the transcripts of all kinds share."""

import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from claudomator_py.agents.jsonlines import MAX_LINE_BYTES, Event, count_of, parse_events
from claudomator_py.domain.run import Entry, Part, Stream

_MOST_CALLS = 1_000
_SOME_TEXT = ("text", "content", "output", "message")


class LineTranscript(ABC):
    """Splits a stream into lines that know where they stand. One longer than MAX_LINE_BYTES is left out, and said."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        """Where the line begins that has not ended yet."""
        self._end = offset
        self._pending = bytearray()
        self._torn = False

    def feed(self, offset: int, data: bytes, *, final: bool = False) -> list[Entry]:
        """What the bytes at that offset complete. It is past the end of those before if bytes there were not kept."""
        entries = self._jump(offset) if offset > self._end else []
        *ended, rest = data.split(b"\n")
        for part in ended:
            entries += self._take(part, 1)
        self._append(rest)
        if final and (self._pending or self._torn):
            entries += self._take(b"", 0)
        return entries

    @abstractmethod
    def line(self, line: bytes) -> Iterator[Part]:
        """What a line says. Never raises, whatever it holds."""

    def _take(self, part: bytes, line_end: int) -> list[Entry]:
        """The line that ends with this part. line_end: bytes of its end."""
        self._append(part)
        self._end += line_end
        line, torn, start = bytes(self._pending), self._torn, self.offset
        self.offset, self._pending, self._torn = self._end, bytearray(), False
        if torn:
            said: list[Part] = [Part("notice", f"a line of {self._end - start} bytes is left out")]
        else:
            said = list(self.line(line.strip(b"\0"))) if line.strip(b"\0\r ") else []
        return [Entry(start, self._end, one) for one in said]

    def _append(self, part: bytes) -> None:
        self._end += len(part)
        if self._torn or len(self._pending) + len(part) > MAX_LINE_BYTES:
            self._torn = True
            self._pending = bytearray()
        else:
            self._pending += part

    def _jump(self, offset: int) -> list[Entry]:
        """A hole: the line before it has lost its end, and the one after it its beginning."""
        start, lost = self.offset, offset - self._end
        self._end, self.offset = offset, offset
        self._pending, self._torn = bytearray(), False
        return [Entry(start, offset, Part("notice", f"{lost} bytes were not kept"))]


class TextTranscript(LineTranscript):
    """Lines of text, whatever they say."""

    def line(self, line: bytes) -> Iterator[Part]:
        """The line."""
        yield Part("text", line.decode(errors="replace").rstrip("\r"))


class EventTranscript(LineTranscript):
    """Lines that are JSON events; any other line is text."""

    def __init__(self, offset: int = 0) -> None:
        super().__init__(offset)
        self._calls: OrderedDict[str, str] = OrderedDict()

    def line(self, line: bytes) -> Iterator[Part]:
        """What the events of the line say."""
        events = parse_events(line)
        if events is None:
            yield Part("text", line.decode(errors="replace").rstrip("\r"))
            return
        for event in events:
            yield from self.event(event)

    @abstractmethod
    def event(self, event: Event) -> Iterator[Part]:
        """What an event says. Never raises, whatever it holds."""

    def called(self, call_id: str | None, tool: str | None) -> None:
        """Remember which tool that call is of."""
        if call_id is not None and tool is not None:
            self._calls[call_id] = tool
            if len(self._calls) > _MOST_CALLS:
                self._calls.popitem(last=False)

    def tool_of(self, call_id: str | None) -> str | None:
        """The tool of that call, if it was seen."""
        return self._calls.get(call_id or "")


def of_stream(transcript: type[LineTranscript], stream: Stream, offset: int) -> LineTranscript:
    """What a kind writes to that stream: events go to stdout, words for people to stderr."""
    return transcript(offset) if stream == "stdout" else TextTranscript(offset)


def shown(value: Any) -> str:
    """A value as people read it: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def content_text(content: Any) -> str:
    """The text of a content that is a text or a list of blocks; of a block without text, its type in brackets."""
    if not isinstance(content, list):
        return shown(content)
    return "\n".join(_block_text(block) for block in content)


def arguments(value: Any) -> str:
    """What a tool is called with: its only argument as it is, several as JSON."""
    if isinstance(value, dict) and len(value) == 1:
        return shown(next(iter(value.values())))
    return shown(value)


def tokens_text(used: int | None, made: int | None, cost_usd: float | None = None) -> str:
    """What was used, in words."""
    parts = [f"{used or 0} tokens in, {made or 0} out"] if used is not None or made is not None else []
    if cost_usd is not None:
        parts.append(f"${cost_usd:.4f}")
    return ", ".join(parts)


def total(event: Event, *keys: str) -> int | None:
    """The sum of these counts; None if there is none of them."""
    counts = [count for key in keys if (count := count_of(event, key)) is not None]
    return sum(counts) if counts else None


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return shown(block)
    texts = (block[key] for key in _SOME_TEXT if isinstance(block.get(key), str))
    return next(texts, f"[{shown(block.get('type')) or 'block'}]")
