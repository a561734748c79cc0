"""Reads the output of runs incrementally, as pieces of text or as the agent's messages and actions."""

import codecs
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Literal

from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.redaction import MAX_HELD, Redactor
from claudomator_py.domain.report import OutputPiece, Read
from claudomator_py.domain.run import LogKind, PromptPart, Stream
from claudomator_py.domain.units import format_instant
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import RunHost, Transcript
from claudomator_py.resources.runs import LogEntryView, LogTextView
from claudomator_py.resources.session import Service, find_run
from claudomator_py.store import task_rows
from claudomator_py.store.tables import Run
from claudomator_py.texts import finished, place_in, plain
from claudomator_py.values import dataclass

CHUNK = 64 * 1024
CONTEXT = 1024 * 1024
"""Bytes before its start that a feed of entries reads, to match results with their calls."""
SHOWN: dict[LogKind, int] = {"tool_call": 4_000, "tool_result": 4_000, "usage": 4_000, "notice": 4_000}
_MAX_TOOL_LENGTH = 200
MAX_SHOWN = 100_000
"""Characters of an entry's text, except for the kinds in SHOWN."""


LogView = Literal["text", "structured"]


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in a log, written as ``4711``, or as ``4711.2`` if entries of the line were taken already."""

    offset: int = 0
    """Start of a line or piece, in bytes."""
    taken: int = 0
    """Number of entries of that line that were taken already."""

    def __str__(self) -> str:
        return f"{self.offset}.{self.taken}" if self.taken else str(self.offset)


@dataclass(frozen=True, slots=True)
class LogItem:
    """A piece of text or an entry, and the position after it."""

    after: LogPosition
    view: LogTextView | LogEntryView


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a feed. over: returns whether the run has ended, so that its output is complete."""

    read: Read
    over: Callable[[], bool]


class LogFeed(ABC):
    """An incremental reader of a log, of either view. Not thread-safe."""

    def __init__(self, source: Source, position: LogPosition) -> None:
        self._source = source
        self._next = position.offset
        self._ready: deque[LogItem] = deque()
        self._final = False
        self.position = position
        """Position from which a new feed would continue without a gap."""
        self.caught_up = False
        """Whether the last read found nothing new."""

    @property
    def ended(self) -> bool:
        """Whether the run has ended and everything was read."""
        return self._final and not self._ready

    def read(self, most: int) -> list[LogItem]:
        """Return up to that many of the next items; empty if there are none yet, or none left. Raises OSError."""
        if not self._ready and not self._final:
            over = self._source.over()  # ask before reading: after the end nothing is written
            piece = self._source.read(self._next, CHUNK)
            self._final = over and not piece.data
            self.caught_up = not piece.data
            self._ready.extend(self._take(piece.start, piece.data))
            self._next = piece.next
        items = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        if items:
            self.position = items[-1].after
        if not self._ready:
            self.position = self._position()
        return items

    @abstractmethod
    def _take(self, start: int, data: bytes) -> Sequence[LogItem]:
        """Return the items that are completed by these bytes, which begin at start."""

    @abstractmethod
    def _position(self) -> LogPosition:
        """Return the position after everything that was taken and is not held back."""


class ReadableText:
    """Reads a stream that arrives in parts of any size, starting at an offset. Holds back whatever may be incomplete: a
    character, a control sequence, the start of a possible secret. A reader that starts again does so after a piece."""

    def __init__(self, redactor: Redactor, offset: int = 0) -> None:
        self._redactor = redactor
        self._pending = b""
        self.offset = offset
        """Offset up to which bytes have been turned into pieces."""

    def feed(self, data: bytes, *, final: bool = False) -> LogTextView | None:
        """Return the next piece, if there is one. final: no more data follows."""
        pending = self._pending + data
        size = len(pending) if final else self._final_length(pending)
        if size == 0:
            self._pending = pending
            return None
        self._pending = pending[size:]
        return self._piece(size, self._redactor.redact(plain(pending[:size].decode(errors="replace"))))

    def skip_to(self, offset: int) -> list[LogTextView]:
        """Return what was held back, and a note about the bytes up to that offset, which were not kept."""
        pieces = [piece for piece in (self.feed(b"", final=True),) if piece is not None]
        missing = offset - self.offset
        return [*pieces, self._piece(missing, f"\n[{missing} bytes were not kept]\n")]

    def _piece(self, size: int, text: str) -> LogTextView:
        """Return the text of the next ``size`` bytes."""
        start, self.offset = self.offset, self.offset + size
        return LogTextView(offset=start, next_offset=self.offset, text=text)

    def _final_length(self, pending: bytes) -> int:
        """Number of bytes whose meaning no later ones can change."""
        # Each undecodable byte becomes one character, so that positions in the text map back to bytes.
        text, _ = codecs.utf_8_decode(pending, "surrogateescape", False)
        text = text[: finished(text)]
        place = place_in(text, self._redactor.safe_length(plain(text)))
        return len(text[:place].encode(errors="surrogateescape"))


class TextFeed(LogFeed):
    """Yields the output as text."""

    def __init__(self, source: Source, redactor: Redactor, position: LogPosition) -> None:
        super().__init__(source, position)
        self._text = ReadableText(redactor, position.offset)

    def _take(self, start: int, data: bytes) -> Sequence[LogItem]:
        pieces = self._text.skip_to(start) if start > self._next else []
        if (piece := self._text.feed(data, final=self._final)) is not None:
            pieces.append(piece)
        return [LogItem(LogPosition(piece.next_offset), piece) for piece in pieces]

    def _position(self) -> LogPosition:
        return LogPosition(self._text.offset)


class EntryFeed(LogFeed):
    """Yields the agent's messages and actions. transcript: creates a reader that begins at an offset."""

    def __init__(
        self, source: Source, redactor: Redactor, position: LogPosition, transcript: Callable[[int], Transcript]
    ) -> None:
        super().__init__(source, position)
        self._redactor = redactor
        self._begin = position
        self._held: PromptPart | None = None
        self._next = max(0, position.offset - CONTEXT)
        self._transcript = transcript(self._next)
        while self._next < position.offset:
            piece = source.read(self._next, min(CHUNK, position.offset - self._next))
            if not piece.data or piece.start >= position.offset:
                break
            self._transcript.feed(piece.start, piece.data)
            self._next = piece.next
        self._next = max(self._next, position.offset)

    def _take(self, start: int, data: bytes) -> Sequence[LogItem]:
        entries = self._joined(self._transcript.feed(start, data, final=self._final))
        items = []
        for next_offset, group in groupby(entries, key=lambda entry: entry.next_offset):
            if next_offset <= self._begin.offset:
                continue  # a last line without a line end that was taken before
            line = list(group)
            positions = [LogPosition(entry.offset, taken) for taken, entry in enumerate(line, 1)]
            positions[-1] = LogPosition(next_offset)
            skip = self._begin.taken if line[0].offset == self._begin.offset else 0
            new = list(zip(positions, line, strict=True))[skip:]
            items += [LogItem(position, self._view(entry)) for position, entry in new]
        return items

    def _position(self) -> LogPosition:
        if self._held is not None:
            return LogPosition(self._held.offset)
        return max(self._begin, LogPosition(self._transcript.offset), key=lambda place: (place.offset, place.taken))

    def _joined(self, entries: Sequence[PromptPart]) -> list[PromptPart]:
        """Join consecutive parts as long as the boundary between them may split a secret."""
        joined: list[PromptPart] = []
        for entry in entries:
            held, self._held = self._held, None
            if held is not None and (held.part.kind, held.part.tool) == (entry.part.kind, entry.part.tool):
                part = replace(entry.part, text=held.part.text + entry.part.text, at_ms=held.part.at_ms)
                entry = PromptPart(held.offset, entry.next_offset, part)
            elif held is not None:
                joined.append(held)
            text = entry.part.text
            if entry.part.partial and self._redactor.safe_length(text) < len(text) <= MAX_HELD:
                self._held = entry
            else:
                joined.append(entry)
        if self._final and self._held is not None:
            joined.append(self._held)
            self._held = None
        return joined

    def _view(self, entry: PromptPart) -> LogEntryView:
        part = entry.part
        limit = SHOWN.get(part.kind, MAX_SHOWN)
        text = self._without_secrets(part.text, limit)
        omitted = max(0, len(text) - limit) + max(0, len(part.text) - limit - MAX_HELD)
        return LogEntryView(
            offset=entry.offset,
            next_offset=entry.next_offset,
            kind=part.kind,
            text=text[:limit],
            tool=self._without_secrets(part.tool, _MAX_TOOL_LENGTH)[:_MAX_TOOL_LENGTH]
            if part.tool is not None
            else None,
            at=format_instant(part.at_ms) if part.at_ms is not None else None,
            omitted=omitted,
            partial=part.partial,
        )

    def _without_secrets(self, text: str, limit: int) -> str:
        """Return the redacted text, to be cut at the limit afterwards: a secret that is cut in two would not be found.
        Text far beyond the limit is not searched."""
        return self._redactor.redact(plain(text[: limit + MAX_HELD]))


CHECK_KIND = "command"
"""Kind whose reader is used for the output of checks."""


def log_step(run: Run, *, check: bool) -> int:
    """Return the step that has the output: the agent's, or the latest start of its check."""
    return max(1, run.check_seq) if check else 0


@dataclass(eq=False, repr=False)
class Logs(Service):
    """Opens logs for a principal. Safe to call from many threads. Every method may raise
    ``domain.errors.ServiceError``."""

    registry: AgentRegistry
    host: RunHost
    secrets: Secrets

    def open_log(
        self, run_id: str, stream: Stream, view: LogView, position: LogPosition, *, check: bool = False
    ) -> LogFeed:
        """Return a feed of the run's output from that position. check: of its check. Raises NotFound."""
        run = self._read(lambda connection: find_run(connection, run_id, self._by))
        spec = self._read(lambda connection: task_rows.spec_of(connection, run.task_id, run.revision))
        redactor = self.secrets.redactor(spec.env, run.id)
        source = Source(partial(self._output, run.id, stream, log_step(run, check=check)), self._until_over(run.id))
        kind = self.registry.kinds.get(CHECK_KIND if check else run.kind)
        if view == "text" or kind is None:
            return TextFeed(source, redactor, position)
        return EntryFeed(source, redactor, position, lambda offset: kind.transcript(stream, offset))

    def _until_over(self, run_id: str) -> Callable[[], bool]:
        """Return what returns whether the run has ended, and reads the database only after new commits."""
        seen: int | None = None
        is_over = False

        def over() -> bool:
            nonlocal seen, is_over
            commits = self.database.commits
            if not is_over and commits != seen:
                is_over = not self._read(lambda connection: find_run(connection, run_id, self._by)).live
                seen = commits
            return is_over

        return over

    def _output(self, run_id: str, stream: Stream, step: int, offset: int, limit: int) -> OutputPiece:
        try:
            return self.host.read(run_id, stream, offset, limit, step)
        except OSError as error:
            detail = f"The output of run {run_id} cannot be read ({error.strerror})."
            raise Unavailable(detail, remedy="Check the disk, and the permissions of the state folder.") from error
