"""Reading the output of runs outside of the tick: in small pieces, in turn, each byte once, however much there is.

The tick uses only what has been read so far, or reads the small rest of an ended run. A run that writes faster than it
is read falls behind, and delays nothing else.
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
"""How long a run is read before the next one's turn; a piece is always read to its end."""
MAX_REST_BYTES = 1 << 14
"""Maximum rest of an ended run that is read by the caller of ``report``, which is cheaper than a second call."""
_MAX_SHARE, _MAX_SHARE_OF_ENDED = 0.2, 0.5
"""Maximum share of a processor for reading live runs, and ended ones whose output is awaited. The same interpreter runs
the ticks and the API."""
_MIN_REST_S = 0.005
_MAX_CLOSE_S = 5.0
_AGAIN_S = 1.0


ReadOutput = Callable[[str, Stream, int, int], OutputPiece]
"""Reads a run's output; see ``RunHost.read``."""


@dataclass(frozen=True, slots=True)
class BacklogLimit:
    """How much of an ended run's output is read before its report. for_s: seconds during which all of it is read; after
    them, only the last_bytes of each stream are read, in which agents state their result."""

    for_s: float
    last_bytes: int


BACKLOG_LIMIT = BacklogLimit(5.0, 8 << 20)
CANCELLED_BACKLOG_LIMIT = BacklogLimit(1.0, 1 << 20)
"""Limit for a cancelled run, whose output does not matter."""
BEHIND_BYTES = 32 << 20
"""Unread bytes from which the log and the explanation of the task mention it."""
_LEFT_OUT = "too much output was unread when the run ended; its beginning and its end decide the outcome"
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an ended run, from its whole output. outcome: according to the exit record. undisturbed: as if
    nothing had ended the run; equal if nothing did."""

    outcome: Outcome
    undisturbed: Outcome
    answered: bool


@dataclass(slots=True)
class _Cursor:
    """Position in one stream. skipped: whether bytes before it were skipped. torn: whether it is in a line without its
    beginning."""

    stream: Stream
    offset: int = 0
    skipped: bool = False
    torn: bool = False

    def skip(self, read: ReadOutput, run_id: str, last_bytes: int) -> int:
        """Skip all but the last bytes. Return the number skipped. Raises OSError."""
        left_out = max(0, read(run_id, self.stream, 0, 0).size - last_bytes - self.offset)
        self.offset += left_out
        self.skipped = self.skipped or left_out > 0
        return left_out

    def take(self, read: ReadOutput, run_id: str) -> bytes | None:
        """Return the next bytes; None if there are none at present. A line that is interrupted by a hole ends there,
        and its rest is skipped, so that parts of two lines are never joined. Raises OSError."""
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
    """A run whose output is being read."""

    run_id: str
    reader: OutputReader
    cursors: tuple[_Cursor, ...] = field(default_factory=lambda: tuple(_Cursor(stream) for stream in STREAMS))
    wanted: bool = False
    """Whether to continue reading."""
    taken: bool = False
    """Whether a thread is reading it."""
    ended: bool = False
    record: ExitRecord | None = None
    """Its exit record, if known."""
    until_s: float | None = None
    """Time on the monotonic clock until which all output of an ended run is read."""
    latest: LiveOutput = field(default_factory=LiveOutput)
    latest_until: tuple[int, ...] = (0,) * len(STREAMS)
    """Offset in each stream up to which ``latest`` was derived."""
    report: Report | None = None
    """Its report, once it was read to its end."""
    problem: OSError | None = None
    """Why the last attempt to read failed."""
    not_understood: str | None = None
    is_behind: bool = False
    """Whether the log has mentioned that it is far behind."""
    is_awaited: bool = False
    """Whether somebody waits until everything available has been read."""

    def read(self, read: ReadOutput) -> bool:
        """Read for one turn. Return whether everything available was read. Raises OSError."""
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
        """Skip what would take too long to read after its end. Return the number of bytes. Raises OSError."""
        limit = (
            CANCELLED_BACKLOG_LIMIT if self.record is not None and self.record.ended_by == "cancel" else BACKLOG_LIMIT
        )
        if self.until_s is None:
            self.until_s = time.monotonic() + limit.for_s
        if time.monotonic() < self.until_s:
            return 0
        return sum(cursor.skip(read, self.run_id, limit.last_bytes) for cursor in self.cursors)

    def live_output(self, unread: int, now_ms: int) -> LiveOutput:
        """Return what it has said so far."""
        reader = self.reader
        stage = reader.stage
        return LiveOutput(
            stuck_until=reader.stuck_until,
            stuck_since=reader.stuck_since,
            answered=reader.answered,
            stage=stage,
            used=reader.used,
            stage_since=self.latest.stage_since if stage is self.latest.stage else now_ms,
            stdout=self.cursors[0].offset,
            unread=max(0, unread),
        )

    def make_report(self, now_ms: int) -> Report:
        """Return its report from what has been read."""
        if self.not_understood is not None:
            detail = f"its output could not be understood: {self.not_understood}"
            outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail=detail)
            return Report(outcome, outcome, answered=False)
        outcome = undisturbed = self.reader.outcome(self.record, now_ms)
        if self.record is not None and self.record.ended_by is not None:
            undisturbed = self.reader.outcome(replace(self.record, ended_by=None), now_ms)
        return Report(outcome, undisturbed, self.reader.answered)


class LiveRunMonitor:
    """Follows the output of runs. ``follow``, ``report`` and ``keep`` are for the tick and return at once. The reading,
    except that of the last few bytes, is done by ``turn``, on a separate thread once ``start`` was called.

    news: called on that thread after something was read on which a tick may have to act.
    """

    def __init__(self, read: ReadOutput, clock: Clock, rest: Callable[[float], object] | None = None) -> None:
        """rest: called with the number of seconds to leave the processor to others; None to sleep that long."""
        self._read_output = read
        self._clock = clock
        self.news: Callable[[], None] = lambda: None
        self._followed: dict[str, _Followed] = {}
        self._asked = threading.Condition()
        self._closed = threading.Event()
        self._rest = rest or self._closed.wait
        self._thread = threading.Thread(target=self._work, name="output", daemon=True)

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading; the next daemon starts from the files."""
        self._closed.set()
        with self._asked:
            self._asked.notify_all()
        if self._thread.ident is not None:
            self._thread.join(_MAX_CLOSE_S)

    def follow(self, run_id: str, make: Callable[[], OutputReader]) -> LiveOutput:
        """Return what the live run has said as far as is known, and continue reading. make: creates its reader, if it
        has none yet. Raises OSError if the last attempt to read failed."""
        followed = self._ask(run_id, make)
        _raise_problem(followed)
        return followed.latest

    def report(self, run_id: str, make: Callable[[], OutputReader], record: ExitRecord | None) -> Report | None:
        """Return the report of a run that has ended with all of its processes; None while its output is being read.

        make: as in ``follow``. record: its exit record; None if its supervisor was lost. Raises OSError if the last
        attempt to read failed.
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
        """Return whether everything that the run has printed is known; otherwise ``news`` is called once it is. Call
        this before judging a live run by what it has not said. Raises OSError."""
        followed = self._followed.get(run_id)
        if followed is None:
            return False
        followed.is_awaited = any(
            self._end(run_id, cursor.stream) > offset
            for cursor, offset in zip(followed.cursors, followed.latest_until, strict=True)
        )
        return not followed.is_awaited

    def backlog(self, run_id: str) -> Backlog | None:
        """Return the unread output of the run, if reading it takes long enough to mention. Safe from any thread."""
        followed = self._followed.get(run_id)
        if followed is None or followed.report is not None:
            return None
        unread, ended = followed.latest.unread, followed.ended
        return Backlog(unread, ended) if ended or unread >= BEHIND_BYTES else None

    def keep(self, run_ids: Collection[str]) -> None:
        """Forget all other runs."""
        with self._asked:
            self._followed = {run_id: output for run_id, output in self._followed.items() if run_id in run_ids}

    def turn(self) -> bool:
        """Read each wanted run for one turn, with rests. Return whether there is more to read."""
        owed_s = 0.0
        for followed in self._wanted():
            if not self._take(followed):
                continue
            begin_s = time.monotonic()
            try:
                self._read(followed)
            finally:
                followed.taken = False
            share = _MAX_SHARE_OF_ENDED if followed.ended else _MAX_SHARE
            owed_s += (time.monotonic() - begin_s) * (1 / share - 1)
            if owed_s >= _MIN_REST_S:
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
                # Without this thread every run would be awaited forever.
                log.exception("reading_failed")
                self._closed.wait(_AGAIN_S)

    def _wanted(self) -> list[_Followed]:
        with self._asked:
            return [output for output in self._followed.values() if output.wanted]

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
        """Return whether the caller may read it now, exclusively."""
        with self._asked:
            taken, followed.taken = followed.taken, True
            return not taken

    def _is_little(self, followed: _Followed) -> bool:
        """Return whether the unread rest is small."""
        try:
            return self._unread(followed) <= MAX_REST_BYTES
        except OSError as error:
            followed.problem = error
            return False

    def _read(self, followed: _Followed, *, tell: bool = True) -> None:
        """Read a run for one turn. Faults of its output or files never affect other runs. tell: call news."""
        followed.wanted = False
        ended = followed.ended  # read before the output: nothing is written after the end
        latest, is_all = followed.latest, True
        try:
            if followed.not_understood is None:
                left_out = followed.skip_backlog(self._read_output) if ended else 0
                if left_out > 0:
                    log.warning("run_output_left_out", run_id=followed.run_id, bytes=left_out, note=_LEFT_OUT)
                is_all = followed.read(self._read_output)
                latest = followed.live_output(0 if is_all and ended else self._unread(followed), self._clock())
            report = followed.make_report(self._clock()) if is_all and ended else None
        except OSError as error:
            followed.problem = error
            return
        except Exception as error:
            log.exception("output_not_understood", run_id=followed.run_id)
            followed.not_understood, followed.wanted = str(error), followed.ended
            return
        awaited = is_all and followed.is_awaited
        is_news = report is not None or awaited or latest.is_news_after(followed.latest)
        followed.latest, followed.report = latest, report
        followed.latest_until = tuple(cursor.offset for cursor in followed.cursors)
        followed.is_awaited = followed.is_awaited and not awaited
        if report is not None:
            followed.wanted = False
        elif not is_all:
            followed.wanted = True
            self._warn_behind(followed)
        if is_news and tell:
            self.news()

    def _unread(self, followed: _Followed) -> int:
        unread = (self._end(followed.run_id, cursor.stream) - cursor.offset for cursor in followed.cursors)
        return sum(max(0, number) for number in unread)

    def _end(self, run_id: str, stream: Stream) -> int:
        return self._read_output(run_id, stream, 0, 0).size

    def _warn_behind(self, followed: _Followed) -> None:
        if followed.latest.unread < BEHIND_BYTES or followed.is_behind:
            return
        followed.is_behind = True
        note = "it writes faster than it is read: its output is handled late, its cancellation and timeouts are not"
        log.warning("run_output_behind", run_id=followed.run_id, unread_bytes=followed.latest.unread, note=note)


def _raise_problem(followed: _Followed) -> None:
    """Raise the problem of the last attempt once, so that it is reported and the next attempt is made."""
    problem, followed.problem = followed.problem, None
    if problem is not None:
        raise problem
