"""Reading what runs write beside the tick: in small pieces, in turn, each byte once, however much there is.

The tick only ever looks at what has been read so far, or reads the little that an ended run has left to be read. A run
that writes faster than it is read falls behind; nothing else does.
"""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import field, replace

from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.report import Backlog, LiveOutput, OutputPiece
from claudomator_py.domain.run import ExitRecord, Stream
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock, OutputReader
from claudomator_py.values import dataclass

log = get_logger("claudomator.output")

PIECE_BYTES = 1 << 16
TURN_S = 0.01
"""How long one run is read before the next has its turn; a piece is always read to its end."""
AT_ONCE_BYTES = 1 << 14
"""Of a run that has ended no more than this is read by whoever asks for its report: less work than asking twice."""
SHARE, SHARE_OF_ENDED = 0.2, 0.5
"""The most of one processor that reading takes, and while the output of an ended run is waited for: one interpreter
runs the ticks and the API as well."""
_SHORTEST_REST_S = 0.005
_MAX_CLOSE_S = 5.0
_AGAIN_S = 1.0


ReadOutput = Callable[[str, Stream, int, int], OutputPiece]
"""Reads what a run printed; see ``RunHost.read``."""


@dataclass(frozen=True, slots=True)
class BacklogLimit:
    """How much of an ended run's output is read before what it comes to is said. for_s: so many seconds all of it is
    read; then only the last_bytes of each stream, where agents say how they came out."""

    for_s: float
    last_bytes: int


BACKLOG_LIMIT = BacklogLimit(5.0, 8 << 20)
CANCELLED_BACKLOG_LIMIT = BacklogLimit(1.0, 1 << 20)
"""With one that is stopped already, whatever it said."""
BEHIND_BYTES = 32 << 20
"""A run that is further behind is named in the log, and its task's explanation says so."""
_LEFT_OUT = "there was too much to read when the run ended; its beginning and its end say what became of it"
_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Report:
    """What the output of an ended run comes to, all of it read.

    outcome: by the exit record. undisturbed: as if nothing had ended the run; the same where nothing did.
    """

    outcome: Outcome
    undisturbed: Outcome
    answered: bool


@dataclass(slots=True)
class _Cursor:
    """The way through one stream. skipped: what follows is not what comes next. torn: in a line that has lost its
    beginning."""

    stream: Stream
    offset: int = 0
    skipped: bool = False
    torn: bool = False

    def skip(self, read: ReadOutput, run_id: str, last_bytes: int) -> int:
        """Leave out all but the last bytes; how many were left out. Raises OSError."""
        left_out = max(0, read(run_id, self.stream, 0, 0).size - last_bytes - self.offset)
        self.offset += left_out
        self.skipped = self.skipped or left_out > 0
        return left_out

    def take(self, read: ReadOutput, run_id: str) -> bytes | None:
        """The next bytes; None: there are none at present. A line that a hole has torn ends at the hole, and its rest
        is left out, so that no line is put together from two. Raises OSError."""
        piece = read(run_id, self.stream, self.offset, PIECE_BYTES)
        data = piece.data
        if not data:
            return None
        hole, self.skipped = self.skipped or piece.start > self.offset, False
        self.offset = piece.next
        self.torn = self.torn or hole
        if self.torn:
            _, line_break, data = data.partition(b"\n")
            self.torn = not line_break
        return b"\n" + data if hole else data


@dataclass(slots=True)
class _Followed:
    """A run whose output is read."""

    run_id: str
    reader: OutputReader
    cursors: tuple[_Cursor, ...] = field(default_factory=lambda: tuple(_Cursor(stream) for stream in _STREAMS))
    wanted: bool = False
    """Whether to keep reading it."""
    taken: bool = False
    """Whether a thread reads it at this moment."""
    ended: bool = False
    record: ExitRecord | None = None
    """How it ended, where that is known."""
    until_s: float | None = None
    """The monotonic clock's time until which all of an ended run's output is read."""
    said: LiveOutput = field(default_factory=LiveOutput)
    heard_until: tuple[int, ...] = (0,) * len(_STREAMS)
    """The offset in each stream up to which it has said what it ``said``."""
    report: Report | None = None
    """What it comes to, read to its end."""
    problem: OSError | None = None
    """What kept it from being read at the last attempt."""
    not_understood: str | None = None
    is_behind: bool = False
    """Whether the log has said that it is far behind."""
    is_awaited: bool = False
    """Whether somebody waits until all that is there has been read."""

    def read(self, read: ReadOutput) -> bool:
        """Read it for a moment; whether there was no more. Raises OSError."""
        end_s = time.monotonic() + TURN_S
        unread = list(self.cursors)
        while unread:
            for cursor in list(unread):
                data = cursor.take(read, self.run_id)
                if data is None:
                    unread.remove(cursor)
                elif data:
                    self.reader.feed(cursor.stream, data)
            if unread and time.monotonic() >= end_s:
                return False
        return True

    def skip_backlog(self, read: ReadOutput) -> int:
        """Leave out what would take too long, now that it has ended; how many bytes. Raises OSError."""
        limit = (
            CANCELLED_BACKLOG_LIMIT if self.record is not None and self.record.ended_by == "cancel" else BACKLOG_LIMIT
        )
        if self.until_s is None:
            self.until_s = time.monotonic() + limit.for_s
        if time.monotonic() < self.until_s:
            return 0
        return sum(cursor.skip(read, self.run_id, limit.last_bytes) for cursor in self.cursors)

    def heard(self, unread: int, now_ms: int) -> LiveOutput:
        """What it has said by now."""
        reader = self.reader
        stage = reader.stage
        return LiveOutput(
            stuck_until=reader.stuck_until,
            stuck_since=reader.stuck_since,
            answered=reader.answered,
            stage=stage,
            used=reader.used,
            stage_since=self.said.stage_since if stage is self.said.stage else now_ms,
            stdout=self.cursors[0].offset,
            unread=max(0, unread),
        )

    def come_to(self, now_ms: int) -> Report:
        """What it comes to by what has been read."""
        if self.not_understood is not None:
            detail = f"its output could not be understood: {self.not_understood}"
            outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail=detail)
            return Report(outcome, outcome, answered=False)
        outcome = undisturbed = self.reader.outcome(self.record, now_ms)
        if self.record is not None and self.record.ended_by is not None:
            undisturbed = self.reader.outcome(replace(self.record, ended_by=None), now_ms)
        return Report(outcome, undisturbed, self.reader.answered)


class LiveRunMonitor:
    """Follows the output of runs. ``follow``, ``report`` and ``keep`` are for the tick and return at once; what they
    ask for is read by ``turn``, on a thread of its own once ``start`` was called, but for the last few bytes.

    news: called, on that thread, when something was read that a tick may have to act on.
    """

    def __init__(self, read: ReadOutput, clock: Clock, rest: Callable[[float], object] | None = None) -> None:
        """rest: told how many seconds to leave the processor to others; None: it sleeps for as long."""
        self._read_output = read
        self._clock = clock
        self.news: Callable[[], None] = lambda: None
        self._followed: dict[str, _Followed] = {}
        self._asked = threading.Condition()
        self._closed = threading.Event()
        self._rest = rest or self._closed.wait
        self._thread = threading.Thread(target=self._work, name="output", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Read nothing more; the next daemon begins from the files."""
        self._closed.set()
        with self._asked:
            self._asked.notify_all()
        if self._thread.ident is not None:
            self._thread.join(_MAX_CLOSE_S)

    def follow(self, run_id: str, make: Callable[[], OutputReader]) -> LiveOutput:
        """Return what the live run has said as far as is known; it is read on. make: a reader for it, if it has none
        yet.

        Raises OSError that kept it from being read.
        """
        followed = self._ask(run_id, make)
        _raise_problem(followed)
        return followed.said

    def report(self, run_id: str, make: Callable[[], OutputReader], record: ExitRecord | None) -> Report | None:
        """Return what the run comes to; None: its output is being read. It has ended, and nothing that could write is
        left.

        make: as in ``follow``. record: how it ended; None: its supervisor was lost. Raises OSError that kept it from
        being read.
        """
        with self._asked:
            followed = self._follow(run_id, make)
            if not followed.ended:
                followed.record, followed.ended = record, True
        if followed.report is None and self._take(followed):
            try:
                if self._is_little(followed):
                    self._read(followed, tell=False)
            finally:
                followed.taken = False
        _raise_problem(followed)
        if followed.report is None:
            self._ask(run_id, make)
        return followed.report

    def is_current(self, run_id: str) -> bool:
        """Return whether the run has printed nothing since what is known of it was read; else ``news`` comes once it
        is.

        Ask before a live run is judged by what it does not say. Raises OSError.
        """
        followed = self._followed.get(run_id)
        if followed is None:
            return False
        followed.is_awaited = any(
            self._end(run_id, cursor.stream) > offset
            for cursor, offset in zip(followed.cursors, followed.heard_until, strict=True)
        )
        return not followed.is_awaited

    def backlog(self, run_id: str) -> Backlog | None:
        """Return what there is to be read of the run, if it takes long enough to be told about. From any thread."""
        followed = self._followed.get(run_id)
        if followed is None or followed.report is not None:
            return None
        unread, ended = followed.said.unread, followed.ended
        return Backlog(unread, ended) if ended or unread >= BEHIND_BYTES else None

    def keep(self, run_ids: Collection[str]) -> None:
        """Forget all runs but these."""
        with self._asked:
            self._followed = {run_id: one for run_id, one in self._followed.items() if run_id in run_ids}

    def turn(self) -> bool:
        """Read each run for a moment that is to be read, and rest for it; whether there is more to be read."""
        owed_s = 0.0
        for followed in self._wanted():
            if not self._take(followed):
                continue
            begin_s = time.monotonic()
            try:
                self._read(followed)
            finally:
                followed.taken = False
            share = SHARE_OF_ENDED if followed.ended else SHARE
            owed_s += (time.monotonic() - begin_s) * (1 / share - 1)
            if owed_s >= _SHORTEST_REST_S:
                self._rest(owed_s)
                owed_s = 0.0
            if self._closed.is_set():
                return False
        return bool(self._wanted())

    def _work(self) -> None:
        while not self._closed.is_set():
            with self._asked:
                if not (self._wanted() or self._closed.is_set()):
                    self._asked.wait()
            try:
                self.turn()
            except Exception:
                # Every run would be waited for without this thread.
                log.exception("reading_failed")
                self._closed.wait(_AGAIN_S)

    def _wanted(self) -> list[_Followed]:
        with self._asked:
            return [one for one in self._followed.values() if one.wanted]

    def _ask(self, run_id: str, make: Callable[[], OutputReader]) -> _Followed:
        with self._asked:
            followed = self._follow(run_id, make)
            followed.wanted = followed.report is None
            self._asked.notify_all()
            return followed

    def _follow(self, run_id: str, make: Callable[[], OutputReader]) -> _Followed:
        """The lock is held."""
        followed = self._followed.get(run_id)
        if followed is None:
            followed = self._followed[run_id] = _Followed(run_id, make())
        return followed

    def _take(self, followed: _Followed) -> bool:
        """Whether it is the caller's to read now; nobody else reads it at the same time."""
        with self._asked:
            taken, followed.taken = followed.taken, True
            return not taken

    def _is_little(self, followed: _Followed) -> bool:
        """Whether what is left to be read takes no time."""
        try:
            return self._unread(followed) <= AT_ONCE_BYTES
        except OSError as error:
            followed.problem = error
            return False

    def _read(self, followed: _Followed, *, tell: bool = True) -> None:
        """One turn of that run. Whatever its output or its files are like, no other run is worse off. tell: of news."""
        followed.wanted = False
        ended = followed.ended  # before the look at the bytes: after the end nothing is written
        said, is_all = followed.said, True
        try:
            if followed.not_understood is None:
                left_out = followed.skip_backlog(self._read_output) if ended else 0
                if left_out > 0:
                    log.warning("run_output_left_out", run_id=followed.run_id, bytes=left_out, note=_LEFT_OUT)
                is_all = followed.read(self._read_output)
                said = followed.heard(0 if is_all and ended else self._unread(followed), self._clock())
            report = followed.come_to(self._clock()) if is_all and ended else None
        except OSError as error:
            followed.problem = error
            return
        except Exception as error:
            log.exception("output_not_understood", run_id=followed.run_id)
            followed.not_understood, followed.wanted = str(error), followed.ended
            return
        awaited = is_all and followed.is_awaited
        is_news = report is not None or awaited or said.is_news_after(followed.said)
        followed.said, followed.report = said, report
        followed.heard_until = tuple(cursor.offset for cursor in followed.cursors)
        followed.is_awaited = followed.is_awaited and not awaited
        if report is not None:
            followed.wanted = False
        elif not is_all:
            followed.wanted = True
            self._tell_behind(followed)
        if is_news and tell:
            self.news()

    def _unread(self, followed: _Followed) -> int:
        unread = (self._end(followed.run_id, cursor.stream) - cursor.offset for cursor in followed.cursors)
        return sum(max(0, number) for number in unread)

    def _end(self, run_id: str, stream: Stream) -> int:
        return self._read_output(run_id, stream, 0, 0).size

    def _tell_behind(self, followed: _Followed) -> None:
        if followed.said.unread < BEHIND_BYTES or followed.is_behind:
            return
        followed.is_behind = True
        note = "it writes faster than it is read: what it says is taken in late, its cancel and timeouts are not"
        log.warning("run_output_behind", run_id=followed.run_id, unread_bytes=followed.said.unread, note=note)


def _raise_problem(followed: _Followed) -> None:
    """Once for each attempt, so that what is wrong is told, and the next attempt is made."""
    problem, followed.problem = followed.problem, None
    if problem is not None:
        raise problem
