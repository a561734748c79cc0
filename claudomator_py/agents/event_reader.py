"""Determines a run's outcome from a CLI that writes JSON events to stdout and plain text to stderr."""

from collections.abc import Mapping
from dataclasses import replace

from claudomator_py.agents.ending import Result, RunVerdict, outcome, verdict_of, with_detail, with_lost_conversation
from claudomator_py.agents.jsonlines import MAX_PEEK_BYTES, EventSplitter, LineSplitter, parse_events
from claudomator_py.agents.plaintext import MAX_DETAIL, MAX_TEXT, Tail, readable, shortened, storable
from claudomator_py.agents.run_events import OutputEnd, RunEvents
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Tokens
from claudomator_py.domain.report import Stage, Used
from claudomator_py.domain.run import ExitRecord, Stream
from claudomator_py.json_fields import MAX_COUNT, Event

_MAX_NAME = 100
"""Maximum number of characters of an id or a name."""
_MAX_WORDS_BYTES = 16 * 1024
"""Maximum size of a message; a longer line of stderr is not one."""
_STOPPED = ("timeout", "stall", "cancel")
"""How a run is stopped that waits for its service."""
_STAYED = "Its program did not exit after its last word, and was stopped."
_FOR_LATER = "Have it done in the foreground, or give it a task of its own, with `schedule` or `not_before`."
_LEFT_BEHIND = "What it had left in the background neither wrote nor computed anything more, and was stopped."


class EventReader:
    """The ``OutputReader`` of one run. seen: the interpreter of its events, initially empty."""

    def __init__(self, seen: RunEvents) -> None:
        self._seen = seen
        self._events = EventSplitter()
        self._words = LineSplitter(_MAX_WORDS_BYTES)
        self._plain = Tail(4 * MAX_TEXT)
        self._stderr = Tail(MAX_DETAIL)
        self._peeked: RunEvents | None = None

    def feed(self, stream: Stream, data: bytes) -> None:
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
        return self._seen.answered

    @property
    def used(self) -> Used:
        result = self._seen.result()
        return Used(_fit_tokens(result.tokens), result.cost_usd, result.windows)

    @property
    def stage(self) -> Stage:
        return self._so_far().stage

    @property
    def stuck_until(self) -> int | None:
        """When what the CLI currently waits out ends, in epoch milliseconds, if known. Such a run may be stopped: its
        outcome will be what it waited for."""
        stuck = self._stuck()
        return None if stuck is None else stuck.reset_at

    @property
    def stuck_since(self) -> int | None:
        return None if self._stuck() is None else self._so_far().stuck_since

    def _stuck(self) -> RunVerdict | None:
        seen = self._so_far()
        return None if seen.terminal else seen.stuck(None)

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """Return the run's outcome. May be called at any time, and repeatedly."""
        seen, plain = self._all()
        printed_ms = exit_record.ended_ms if exit_record is not None and exit_record.ended_ms > 0 else now_ms
        exit_code, ended_by = (None, None) if exit_record is None else (exit_record.exit_code, exit_record.ended_by)
        ending = OutputEnd(exit_code, printed_ms, plain, self._stderr.text())
        stuck = None if exit_record is None or seen.terminal else seen.stuck(exit_record.started_ms)
        if stuck is not None and stuck.status is not OutcomeStatus.LIMITED and ended_by not in _STOPPED:
            stuck = None
        reported = seen.terminal_verdict(ending)
        stage = Stage.WORKING if self._ends_within_event else seen.stage
        if reported is not None and not _is_final(reported, stage, exit_record):
            reported = None
        reported = reported or _limit(seen.last_error(ending))
        by_exit = seen.exited_well if exit_code == 0 else seen.exit_verdict
        verdict = stuck or verdict_of(reported, exit_record, lambda _: by_exit(ending), began=seen.anything)
        stopped = reported is not None and ended_by == "wind_down"
        if stopped:
            # A program that is being stopped reports that its background work has ended; that does not make the run
            # DONE.
            verdict = with_detail(verdict, _STAYED if seen.stage is Stage.DONE else _LEFT_BEHIND)
        result = seen.result()
        if verdict.status is OutcomeStatus.SUCCEEDED and (dropped := seen.to_come(printed_ms, stopped=stopped)):
            verdict = with_detail(verdict, _dropped(dropped))
            result = replace(result, dropped=sum(dropped.values()))
        if seen.resumed and seen.lost is not None:
            verdict = with_lost_conversation(verdict, seen.lost)
        return outcome(_fit(verdict), _fit_result(result))

    @property
    def _ends_within_event(self) -> bool:
        """Whether the output ends in an incomplete event."""
        rest = self._events.rest.strip()
        return bool(rest) and parse_events(rest) is None

    def _so_far(self) -> RunEvents:
        """Everything seen, including unfinished lines unless they are long: the last line may lack its newline."""
        if self._peeked is None:
            self._peeked = self._with_rests()[0] if self._events.rest_bytes <= MAX_PEEK_BYTES else self._seen
        return self._peeked

    def _all(self) -> tuple[RunEvents, str]:
        """Everything seen, and the text that was not an event."""
        seen, plain = self._with_rests()
        if not seen.anything:
            seen = seen.copy()
            for event in parse_events(plain.text().encode()) or []:  # one object over many lines
                seen.take(event)
        return seen, plain.text()

    def _with_rests(self) -> tuple[RunEvents, Tail]:
        seen, plain = self._seen, self._plain
        rests, words = self._events.rest, self._words.rest
        if rests or words:
            seen = seen.copy()
        if words:
            seen.take_stderr(readable(words.decode(errors="replace")))
        if rests:
            plain, events = plain.copy(), parse_events(rests)
            _take(seen, plain, rests if events is None else events)
        return seen, plain


def _is_final(verdict: RunVerdict, stage: Stage, exit_record: ExitRecord | None) -> bool:
    """Whether the result of the last turn is that of the run. A success between two turns counts only if the program
    then exited by itself: any other end prevented the next turn."""
    if stage is Stage.DONE or verdict.status is not OutcomeStatus.SUCCEEDED:
        return True
    if exit_record is None:
        return False
    return exit_record.ended_by == "wind_down" or (exit_record.ended_by is None and exit_record.exit_code == 0)


def _dropped(what: Mapping[str, int]) -> str:
    """A sentence about the work that was still to come."""
    named = " and ".join(f"{number} {noun if number == 1 else f'{noun}s'}" for noun, number in what.items())
    return f"Its program ended, and with it what it had set up for later: {named}. {_FOR_LATER}"


def _limit(verdict: RunVerdict | None) -> RunVerdict | None:
    """The verdict if it is a limit: a limit met last decides the outcome, however the CLI was then ended."""
    return verdict if verdict is not None and verdict.status is OutcomeStatus.LIMITED else None


def _take(seen: RunEvents, plain: Tail, part: list[Event] | bytes) -> None:
    if isinstance(part, bytes):
        plain.feed(part)
        return
    for event in part:
        seen.anything = True
        seen.take(event)


def _fit(verdict: RunVerdict) -> RunVerdict:
    detail = shortened(storable(verdict.detail), MAX_DETAIL) if verdict.detail else None
    return replace(verdict, detail=detail, limit=_fit_name(verdict.limit), family=_fit_name(verdict.family))


def _fit_result(result: Result) -> Result:
    return replace(
        result,
        conversation_id=_fit_name(result.conversation_id),
        model=_fit_name(result.model),
        text=shortened(storable(result.text), MAX_TEXT) if result.text is not None else None,
        tokens=_fit_tokens(result.tokens),
        question=shortened(storable(result.question), MAX_DETAIL) if result.question is not None else None,
    )


def _fit_name(name: str | None) -> str | None:
    return storable(name)[:_MAX_NAME] if name is not None else None


def _fit_tokens(tokens: Tokens) -> Tokens:
    return Tokens(input=_bounded(tokens.input), output=_bounded(tokens.output))


def _bounded(count: int | None) -> int | None:
    return None if count is None else min(count, MAX_COUNT)
