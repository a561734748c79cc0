"""Reads a CLI that writes JSON events to stdout and words to stderr: what the readers of such CLIs share.

What a CLI's events mean is told by a ``Seen`` of its own. Only what bears an error, and stderr, can say that something
went wrong; what a model wrote never does.
"""

import copy
import dataclasses
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

from claudomator_py.agents.ending import Result, Verdict, failed, outcome, settle, with_lost_conversation
from claudomator_py.agents.jsonlines import MAX_COUNT, MAX_PEEK_BYTES, Event, EventSplitter, LineSplitter, parse_events
from claudomator_py.agents.plaintext import MAX_DETAIL, MAX_TEXT, Tail, readable, shortened, storable
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason, Tokens
from claudomator_py.domain.pricing import Used
from claudomator_py.domain.run import ExitRecord, Stream

_MAX_ID = 100
_MAX_WORDS_BYTES = 16 * 1024
"""A longer line of stderr is no message."""


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
    answered: bool = False
    """Whether the model has said or done anything."""
    conversation_id: str | None = None

    def copy(self) -> Self:
        """Another one that has seen the same. Events are shared: nobody changes them."""
        other = copy.copy(self)
        for field in dataclasses.fields(other):  # type: ignore[arg-type]  # each CLI's is a dataclass
            value = getattr(other, field.name)
            if isinstance(value, dict | list | set):
                setattr(other, field.name, value.copy())
        return other

    @abstractmethod
    def take(self, event: Event) -> None:
        """Take the next event."""

    @abstractmethod
    def take_stderr(self, line: str) -> None:
        """Take the next line of stderr, for people to read."""

    @property
    @abstractmethod
    def terminal(self) -> bool:
        """Whether there was a complete terminal event."""

    def stuck(self, started_ms: int | None) -> Verdict | None:
        """What the CLI waits out without an event, as far as it says. started_ms: when the run began, if known."""
        return None

    @property
    def stuck_since(self) -> int | None:
        """When it said so, in epoch milliseconds, where that is known."""
        return None

    @abstractmethod
    def said(self, ending: Ending) -> Verdict | None:
        """What the terminal event means; None: there was none."""

    def exited_well(self) -> Verdict:
        """What a run without a terminal event came to that exited with 0."""
        return failed(Reason.AGENT_ERROR, "it exited with 0, but without saying that it succeeded")

    @abstractmethod
    def unsaid(self, ending: Ending) -> Verdict:
        """What a run without a terminal event came to that exited with anything else."""

    @abstractmethod
    def result(self) -> Result:
        """What the run said and used."""


class EventReader:
    """Reads one run. zone: that of the CLI's own clock times.

    lost: how the CLI says that it does not know the conversation that the run was to go on in; None: to none.
    """

    def __init__(self, seen: Seen, zone: str | None = None, *, lost: re.Pattern[str] | None = None) -> None:
        self._seen = seen
        self._zone = zone
        self._lost = lost
        self._events = EventSplitter()
        self._words = LineSplitter(_MAX_WORDS_BYTES)
        self._plain = Tail(4 * MAX_TEXT)
        self._stderr = Tail(MAX_DETAIL)
        self._peeked: Seen | None = None

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take the next bytes of a stream."""
        self._peeked = None
        if stream == "stdout":
            for part in self._events.feed(data):
                _take(self._seen, self._plain, part)
            return
        self._stderr.feed(data)
        for line in self._words.feed(data):
            self._seen.take_stderr(readable(line.decode(errors="replace")))

    @property
    def answered(self) -> bool:
        """Whether the model has said or done anything."""
        return self._seen.answered

    @property
    def used(self) -> Used:
        """What the run has used so far, as far as it has said."""
        result = self._seen.result()
        return Used(_fit_tokens(result.tokens), result.cost_usd)

    @property
    def terminal(self) -> bool:
        """Whether a complete terminal event has been seen."""
        return self._so_far().terminal

    @property
    def stuck_until(self) -> int | None:
        """The epoch milliseconds until which the CLI sleeps in a limit, as far as it has said by now.

        Such a run may be ended, in whatever way: its outcome will be the limit.
        """
        stuck = self._stuck()
        return None if stuck is None else stuck.reset_at

    @property
    def stuck_since(self) -> int | None:
        """Since when, in epoch milliseconds, the CLI waits out a limit, whether or not it has said until when."""
        return None if self._stuck() is None else self._so_far().stuck_since

    def _stuck(self) -> Verdict | None:
        seen = self._so_far()
        stuck = None if seen.terminal else seen.stuck(None)
        return stuck if stuck is not None and stuck.status is OutcomeStatus.LIMITED else None

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """What the run came to. May be asked at any time, and again."""
        seen, plain = self._all()
        printed_ms = exit_record.ended_ms if exit_record is not None and exit_record.ended_ms > 0 else now_ms
        exit_code = exit_record.exit_code if exit_record is not None else None
        ending = Ending(exit_code, printed_ms, plain, self._stderr.text(), self._zone)
        stuck = None if exit_record is None or seen.terminal else seen.stuck(exit_record.started_ms)
        if stuck is not None and stuck.status is not OutcomeStatus.LIMITED and not _ran_out(exit_record):
            stuck = None
        verdict = stuck or settle(
            seen.said(ending), exit_record, lambda _: seen.exited_well() if exit_code == 0 else seen.unsaid(ending)
        )
        if self._lost is not None:
            verdict = with_lost_conversation(verdict, self._lost)
        return outcome(_fit(verdict), _fit_result(seen.result()))

    def _so_far(self) -> Seen:
        """What was seen, with the lines that have no end yet, unless they are long: the last one may have none."""
        if self._peeked is None:
            self._peeked = self._with_rests()[0] if self._events.rest_bytes <= MAX_PEEK_BYTES else self._seen
        return self._peeked

    def _all(self) -> tuple[Seen, str]:
        """What was seen in all, and the text that was no event."""
        seen, plain = self._with_rests()
        if not seen.anything:
            seen = seen.copy()
            for event in parse_events(plain.text().encode()) or []:  # one object over many lines
                seen.take(event)
        return seen, plain.text()

    def _with_rests(self) -> tuple[Seen, Tail]:
        seen, plain = self._seen, self._plain
        said, words = self._events.rest, self._words.rest
        if said or words:
            seen = seen.copy()
        if words:
            seen.take_stderr(readable(words.decode(errors="replace")))
        if said:
            plain, events = plain.copy(), parse_events(said)
            _take(seen, plain, said if events is None else events)
        return seen, plain


def _ran_out(exit_record: ExitRecord | None) -> bool:
    """Whether the run was ended because it took too long."""
    return exit_record is not None and exit_record.ended_by in ("timeout", "stall")


def _take(seen: Seen, plain: Tail, part: list[Event] | bytes) -> None:
    if isinstance(part, bytes):
        plain.feed(part)
        return
    for event in part:
        seen.anything = True
        seen.take(event)


def _fit(verdict: Verdict) -> Verdict:
    detail = shortened(storable(verdict.detail), MAX_DETAIL) if verdict.detail else None
    return replace(verdict, detail=detail)


def _fit_result(result: Result) -> Result:
    return Result(
        conversation_id=storable(result.conversation_id)[:_MAX_ID] if result.conversation_id is not None else None,
        text=shortened(storable(result.text), MAX_TEXT) if result.text is not None else None,
        tokens=_fit_tokens(result.tokens),
        cost_usd=result.cost_usd,
        question=shortened(storable(result.question), MAX_DETAIL) if result.question is not None else None,
        denied=result.denied,
    )


def _fit_tokens(tokens: Tokens) -> Tokens:
    return Tokens(input=_bounded(tokens.input), output=_bounded(tokens.output))


def _bounded(count: int | None) -> int | None:
    return None if count is None else min(count, MAX_COUNT)
