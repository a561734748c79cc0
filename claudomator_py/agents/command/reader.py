"""Turn the exit code and output of a plain program into an outcome, as configured."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claudomator_py.agents.ending import Result, RunVerdict, classify, failed, limited, outcome, verdict_of
from claudomator_py.agents.limit_text import find_reset
from claudomator_py.agents.plaintext import MAX_DETAIL, Tail, readable, shortened
from claudomator_py.domain.agent import ProgramOutput, ProgramResult, ResultFormat
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason, Tokens
from claudomator_py.domain.report import Stage, Used
from claudomator_py.domain.run import ExitRecord, Stream
from claudomator_py.json_fields import count_of

MAX_ANSWER_BYTES = 32 * 1024
MAX_RESULT_BYTES = 4 * 1024 * 1024
"""Bytes kept of the end of the output, if the answer is only a part of it."""
_LINE_LENGTH = 2_000
_INPUT = ("input_tokens", "inputTokens", "prompt_tokens", "promptTokens", "input")
_OUTPUT = ("output_tokens", "outputTokens", "completion_tokens", "completionTokens", "output")
_WAITS = (Reason.RATE_LIMITED, Reason.OVERLOADED, Reason.NETWORK)
"""Why a program may retry until its time is up."""
_COST = ("cost_usd", "total_cost_usd", "costUsd", "cost")


class CommandReader:
    """Reads one run of a program: the ends of its output, and its exit code. says: what these mean. zone: as for
    ``find_reset``."""

    stage = Stage.WORKING
    stuck_until: int | None = None
    stuck_since: int | None = None
    answered = False
    """Always False: there is no model to answer, and the exit code says enough."""
    used = Used()
    """Always empty: usage is reported at the end, if at all."""

    def __init__(self, says: ProgramOutput | None = None, zone: str | None = None) -> None:
        self._output_rules = says or ProgramOutput()
        self._zone = zone
        kept = MAX_ANSWER_BYTES if self._output_rules.result is None else MAX_RESULT_BYTES
        self._tails: dict[Stream, Tail] = {"stdout": Tail(kept), "stderr": Tail(MAX_DETAIL)}

    def feed(self, stream: Stream, data: bytes) -> None:
        self._tails[stream].feed(data)

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """Return the run's outcome. Without an exit code, nothing says that it succeeded."""
        printed = self._tails["stdout"].text()
        result = _answer_in(printed, self._output_rules.result) if self._output_rules.result is not None else None
        ended_ms = exit_record.ended_ms if exit_record is not None and exit_record.ended_ms > 0 else now_ms
        verdict = verdict_of(
            self._kept_waiting(exit_record, printed, ended_ms),
            exit_record,
            lambda record: self._by_exit(record, printed, result is not None, ended_ms),
            # One line on stderr may be all that a shell or ``env`` said of the program that it was to run.
            began=bool(printed) or "\n" in self._tails["stderr"].text(),
        )
        has_format = self._output_rules.result is not None
        answer = result or _AnswerFields(None if has_format else printed or None)
        text = answer.text if verdict.status is OutcomeStatus.SUCCEEDED or not has_format else None
        return outcome(verdict, Result(text=text, tokens=answer.tokens, cost_usd=answer.cost_usd))

    def _kept_waiting(self, record: ExitRecord | None, printed: str, now_ms: int) -> RunVerdict | None:
        """Return the verdict of a program that ran out of time while it retried, by the end of its output; None: it
        did not."""
        if record is None or record.ended_by not in ("timeout", "stall"):
            return None
        verdict = self._by_words(printed[-MAX_DETAIL:], now_ms)
        return verdict if verdict is not None and verdict.reason in _WAITS else None

    def _by_words(self, printed: str, now_ms: int) -> RunVerdict | None:
        text, rules = self._tails["stderr"].text(), self._output_rules
        if (line := _matching(rules.limit_text, text, printed)) is not None:
            return limited(line, find_reset(line, now_ms, self._zone))
        if (line := _matching(rules.failure_text, text, printed)) is not None:
            return classify(line, (), now_ms, zone=self._zone)
        return None

    def _by_exit(self, record: ExitRecord, printed: str, has_answer: bool, now_ms: int) -> RunVerdict:
        text, rules = self._tails["stderr"].text(), self._output_rules
        if (verdict := self._by_words(printed, now_ms)) is not None:
            return verdict
        code = record.exit_code or 0
        named = rules.exit_codes.get(code)
        reason = None if named is None else Reason(named)
        detail = text or shortened(printed, MAX_DETAIL)
        if reason is Reason.RATE_LIMITED:
            return limited(detail or f"it exited with {code}", find_reset(detail, now_ms, self._zone))
        if reason is not None or code != 0:
            return failed(reason or Reason.AGENT_ERROR, detail or f"it exited with {code} and printed nothing")
        if rules.result is not None and not has_answer:
            return failed(Reason.NO_ANSWER, f"it exited with 0, but printed no {rules.result.text}")
        return RunVerdict(OutcomeStatus.SUCCEEDED)


def _matching(expressions: Sequence[str], *texts: str) -> str | None:
    """Return the last line of the first text that matches one of the expressions, or the output around it."""
    patterns = [re.compile(expression) for expression in expressions]
    for text in texts if patterns else ():
        for line in reversed(text.split("\n")):
            if any(pattern.search(line[:_LINE_LENGTH]) for pattern in patterns):
                return line[:_LINE_LENGTH]
        # The program may have wrapped the message.
        whole = " ".join(text[-MAX_DETAIL:].split())
        if any(pattern.search(whole) for pattern in patterns):
            return whole
    return None


class _AnswerFields:
    """An answer and its usage."""

    def __init__(self, text: str | None = None) -> None:
        self.text = text
        self.tokens = Tokens()
        self.cost_usd: float | None = None


def _answer_in(printed: str, result: ProgramResult) -> _AnswerFields | None:
    """Return the last answer in the output, with the last usage; None: there is no answer."""
    fields, has_answer = _AnswerFields(), False
    for document in _documents(printed, result.format):
        text = _at(document, result.text)
        if isinstance(text, str) and text.strip():
            fields.text, has_answer = readable(text), True
        usage = _at(document, result.usage) if result.usage is not None else None
        if isinstance(usage, Mapping):
            fields.tokens = Tokens(input=_count(usage, _INPUT), output=_count(usage, _OUTPUT))
            fields.cost_usd = _amount(usage)
    return fields if has_answer else None


def _documents(printed: str, form: ResultFormat) -> Iterator[Any]:
    texts = [printed[printed.find("{") :]] if form is ResultFormat.JSON else printed.split("\n")
    for text in texts:
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            continue


def _at(document: Any, path: str) -> Any:
    """Return the value at a dotted path; None: there is none."""
    for key in path.split("."):
        if isinstance(document, Mapping):
            document = document.get(key)
        elif isinstance(document, list) and key.lstrip("-").isdecimal() and -len(document) <= int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


def _count(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := count_of(usage, name)) is not None), None)


def _amount(usage: Mapping[str, Any]) -> float | None:
    amounts = (usage.get(name) for name in _COST)
    return next(
        (float(amount) for amount in amounts if isinstance(amount, int | float) and not isinstance(amount, bool)), None
    )
