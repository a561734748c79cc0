"""Turn an agent's output into what it said and did, line by line."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from claudomator_py.agents.jsonlines import MAX_LINE_BYTES, parse_events
from claudomator_py.agents.run_events import RunEvents
from claudomator_py.domain.run import Part, PromptPart


class LineTranscript(ABC):
    """Splits a stream into lines with their offsets. A line longer than MAX_LINE_BYTES becomes a notice."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        """Where the current line begins."""
        self._end = offset
        self._pending = bytearray()
        self._torn = False

    def feed(self, offset: int, data: bytes, *, final: bool = False) -> list[PromptPart]:
        """Return what the bytes at that offset complete. A gap after the previous bytes means that those in between
        were not kept."""
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
        """Return what a line says. Never raises, whatever it holds."""

    def _take(self, part: bytes, line_end: int) -> list[PromptPart]:
        """Return the line that ends with this part. line_end: bytes of its line break."""
        self._append(part)
        self._end += line_end
        line, torn, start = bytes(self._pending), self._torn, self.offset
        self.offset, self._pending, self._torn = self._end, bytearray(), False
        if torn:
            parts: list[Part] = [Part("notice", f"a line of {self._end - start} bytes is left out")]
        else:
            parts = list(self.line(line.strip(b"\0"))) if line.strip(b"\0\r ") else []
        return [PromptPart(start, self._end, part) for part in parts]

    def _append(self, part: bytes) -> None:
        self._end += len(part)
        if self._torn or len(self._pending) + len(part) > MAX_LINE_BYTES:
            self._torn = True
            self._pending = bytearray()
        else:
            self._pending += part

    def _jump(self, offset: int) -> list[PromptPart]:
        """Return a notice for a gap: the line before it has lost its end, and the one after it its beginning."""
        start, lost = self.offset, offset - self._end
        self._end, self.offset = offset, offset
        self._pending, self._torn = bytearray(), False
        return [PromptPart(start, offset, Part("notice", f"{lost} bytes were not kept"))]


class TextTranscript(LineTranscript):
    """Lines of text as they are."""

    def line(self, line: bytes) -> Iterator[Part]:
        """Yield the line as text."""
        yield Part("text", line.decode(errors="replace").rstrip("\r"))


class EventTranscript(LineTranscript):
    """Lines of JSON events; any other line is text. events: an empty reader."""

    def __init__(self, events: RunEvents, offset: int) -> None:
        super().__init__(offset)
        self._events = events

    def line(self, line: bytes) -> Iterator[Part]:
        """Yield what the line's events show."""
        events = parse_events(line)
        if events is None:
            yield Part("text", line.decode(errors="replace").rstrip("\r"))
            return
        for event in events:
            yield from self._events.take(event)


class StderrTranscript(TextTranscript):
    """Lines of stderr of a CLI with events, without its log."""

    def __init__(self, events: RunEvents, offset: int) -> None:
        super().__init__(offset)
        self._events = events

    def line(self, line: bytes) -> Iterator[Part]:
        """Return the line if it is for people."""
        return iter(()) if self._events.is_log(line) else super().line(line)
