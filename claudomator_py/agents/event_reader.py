"""Reads a CLI that writes JSON events to stdout and words to stderr: what the readers of such CLIs share.

What a CLI's events mean is told by a ``Seen`` of its own. Only what bears an error, and stderr, can say that something
went wrong; what a model wrote never does.
"""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from claudomator_py.agents.ending import Result, Verdict, failed, outcome, settle
from claudomator_py.agents.jsonlines import MAX_COUNT, Event, LineSplitter, parse_events
from claudomator_py.agents.plaintext import MAX_DETAIL, MAX_TEXT, Tail, readable, shortened, storable
from claudomator_py.core.outcome import Outcome, Reason, Tokens
from claudomator_py.core.run import ExitRecord, Stream

_MAX_ID = 100


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known at the end, besides the events.

    exit_code: None where there is none. printed_ms: the present for what does not say when it was printed. stdout: what
    was no event. stderr: its end. zone: as for ``find_reset``.
    """

    exit_code: int | None
    printed_ms: int
    stdout: str
    stderr: str
    zone: str | None


class Seen(ABC):
    """What the events of one CLI said so far."""

    anything: bool = False
    conversation_id: str | None = None

    @abstractmethod
    def take(self, event: Event) -> None:
        """Take the next event."""

    def take_stderr(self, line: str) -> None:
        """Take the next line of stderr, for people to read."""

    @property
    @abstractmethod
    def terminal(self) -> bool:
        """Whether there was a complete terminal event."""

    @property
    def stuck_until(self) -> int | None:
        """The epoch milliseconds until which the CLI sleeps in a limit; None: it does not, as far as it says."""
        return None

    @abstractmethod
    def said(self, ending: Ending) -> Verdict | None:
        """What the terminal event means; None: there was none."""

    @abstractmethod
    def unsaid(self, ending: Ending) -> Verdict:
        """What a run without a terminal event came to that ended by itself, and not with 0."""

    @abstractmethod
    def result(self) -> Result:
        """What the run said and used."""


class EventReader:
    """Reads one run. zone: that of the CLI's own clock times."""

    def __init__(self, seen: Seen, zone: str | None = None) -> None:
        self._seen = seen
        self._zone = zone
        self._lines: dict[Stream, LineSplitter] = {"stdout": LineSplitter(), "stderr": LineSplitter()}
        self._plain = Tail(MAX_TEXT)
        self._stderr = Tail(MAX_DETAIL)

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take the next bytes of a stream."""
        if stream == "stderr":
            self._stderr.feed(data)
        for line in self._lines[stream].feed(data):
            _take_line(self._seen, self._plain, stream, line)

    @property
    def terminal(self) -> bool:
        """Whether a complete terminal event has been seen."""
        return self._all()[0].terminal

    @property
    def stuck_until(self) -> int | None:
        """The epoch milliseconds until which the CLI sleeps in a limit, as far as it has said by now.

        Such a run may be ended: its outcome will be the limit.
        """
        seen, _ = self._all()
        return None if seen.terminal else seen.stuck_until

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """What the run came to. May be asked at any time, and again."""
        seen, plain = self._all()
        printed_ms = exit_record.ended_ms if exit_record is not None and exit_record.ended_ms > 0 else now_ms
        exit_code = exit_record.exit_code if exit_record is not None else None
        ending = Ending(exit_code, printed_ms, plain, self._stderr.text(), self._zone)
        verdict = settle(seen.said(ending), exit_record, lambda _: _unsaid(seen, ending))
        return outcome(_fit(verdict), _fit_result(seen.result()))

    def _all(self) -> tuple[Seen, str]:
        """What was seen, with the lines that have no end yet: the last one may have none."""
        rests = [(stream, lines.rest) for stream, lines in self._lines.items() if lines.rest]
        if not rests:
            return self._seen, self._plain.text()
        seen, plain = copy.deepcopy(self._seen), copy.deepcopy(self._plain)
        for stream, rest in rests:
            _take_line(seen, plain, stream, rest)
        return seen, plain.text()


def _take_line(seen: Seen, plain: Tail, stream: Stream, line: bytes) -> None:
    if stream == "stderr":
        seen.take_stderr(readable(line.decode(errors="replace")))
        return
    events = parse_events(line)
    if events is None:
        plain.feed(line + b"\n")
        return
    for event in events:
        seen.anything = True
        seen.take(event)


def _unsaid(seen: Seen, ending: Ending) -> Verdict:
    if ending.exit_code == 0:
        return failed(Reason.AGENT_ERROR, "it exited with 0, but without saying that it succeeded")
    return seen.unsaid(ending)


def _fit(verdict: Verdict) -> Verdict:
    detail = shortened(storable(verdict.detail), MAX_DETAIL) if verdict.detail else None
    return replace(verdict, detail=detail)


def _fit_result(result: Result) -> Result:
    tokens = result.tokens
    return Result(
        conversation_id=storable(result.conversation_id)[:_MAX_ID] if result.conversation_id is not None else None,
        text=shortened(storable(result.text), MAX_TEXT) if result.text is not None else None,
        tokens=Tokens(input=_bounded(tokens.input), output=_bounded(tokens.output)),
        cost_usd=result.cost_usd,
    )


def _bounded(count: int | None) -> int | None:
    return None if count is None else min(count, MAX_COUNT)
