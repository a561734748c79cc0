"""Read what opencode writes with ``--format json``, of any version."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from claudomator_py.agents.ending import (
    SAYS_NO_MODEL,
    Result,
    RunVerdict,
    caseless,
    classify,
    denials,
    error_rules,
    error_table,
    failed,
    limited,
)
from claudomator_py.agents.fence import beyond_reach, denied_call, fenced_call
from claudomator_py.agents.jsonlines import instant_of
from claudomator_py.agents.limit_text import find_reset, retry_at
from claudomator_py.agents.plaintext import MAX_TEXT, is_blank, shortened
from claudomator_py.agents.run_events import OutputEnd, RunEvents, arguments, content_text, shown, total, usage_parts
from claudomator_py.domain.outcome import OutcomeStatus, Reason, Tokens
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import Part
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.json_fields import Event, amount_of, count_of, event_of, text_of
from claudomator_py.values import dataclass, regex

_BY_NAME = error_table("opencode", "names")
_RULES = error_rules("opencode")
_BY_FINISH = {
    "content-filter": (Reason.REFUSED, "the model's service withheld the answer"),
    "length": (Reason.UNFINISHED, "its answer was cut off: it was as long as the model's settings allow"),
}
_OVERFLOW = "ContextOverflowError"
_CALLS = "tool-calls"
"""The end of a step that another one must follow."""
_KNOWN_FINISHES = {"stop", _CALLS, *_BY_FINISH}
"""The ends of steps that a service tells."""
_INVALID = "invalid"
"""The tool that answers a call without valid arguments."""
_MAX_BROKEN = 3
"""So many answers in a row without an end are no accident."""
_NO_MODEL = regex(rf"^.*(?:{SAYS_NO_MODEL}).*$", re.IGNORECASE | re.MULTILINE)
_REJECTED = caseless(r"rejected permission|permission denied|prevents you from using")
_DENIED_BY_RULE = caseless(r"prevents you from using")
_COMPLAINT = regex(r"^(?:Error|error|ERROR):? (?P<message>.+)")
_UNEXPECTED = "Unexpected error"
"""Says nothing; the next line does, such as `database is locked` when several begin at once in a new home."""
_LOGGED = regex(r"timestamp=\S+ level=ERROR ")
_LOG_FIELD = regex(r"(?<!\S)([\w.]+)=(?:\"((?:[^\"\\]|\\.)*)\"|(\S*))")
"""A name and its value, quoted or not. After a failed match the next attempt begins at another word: linear time."""
_REFUSED_REQUEST = "stream error"
_UNEXPLAINED = "check server logs"


@dataclass(frozen=True, slots=True)
class _Logged:
    """A line of its log. at_ms: epoch milliseconds. session: the conversation that it is about, if any."""

    message: str
    at_ms: int | None
    session: str | None
    refused: bool


def _logged(line: str) -> _Logged | None:
    """Return an error in the log; None: it is none, or about a side request, such as for a title."""
    if _LOGGED.match(line) is None:
        return None
    fields = {name: bare or quoted for name, quoted, bare in _LOG_FIELD.findall(line)}
    message = fields.get("error.error") or fields.get("error")
    if message is None or not fields.keys() >= {"run", "message"} or fields.get("small") == "true":
        return None
    refused = fields["message"] == _REFUSED_REQUEST
    return _Logged(message, instant_of(fields, "timestamp"), fields.get("session.id"), refused)


@dataclass(kw_only=True)
class OpencodeEvents(RunEvents):
    """The events of one run."""

    lost: ClassVar = caseless(r"session not found")

    error: Event | None = None
    error_at_ms: int | None = None
    finish: str | None = None
    """Why the last step ended; None: a step has begun since."""
    overflowed: bool = False
    """Whether the conversation was too long for the last request."""
    compacts: bool = False
    """Whether the last step summarises such a conversation: another one follows it."""
    answer: str = ""
    input: int = 0
    output: int = 0
    cost_usd: float | None = None
    complaint: str | None = None
    logged: _Logged | None = None
    """The last line of its log. If it is about another conversation, it is from an opencode that a tool started."""
    refused_since: int | None = None
    """When the service refused the first of the requests that it has refused since the last event."""
    broken: int = 0
    """How many steps in a row had no end and no valid call. It asks again at once, and forever."""
    broken_since: int | None = None
    """When the first of them ended."""
    has_valid_call: bool = False
    """In the current step."""
    last_at_ms: int | None = None

    @property
    def terminal(self) -> bool:
        return self.error is not None or self.finish == "stop" or self.finish in _BY_FINISH

    @property
    def stage(self) -> Stage:
        return Stage.WAITING if self.compacts and self.finish == "stop" else super().stage

    def take(self, event: Event) -> list[Part]:
        """Take the next event and return what the log shows of it. A call comes together with its result."""
        at_ms = instant_of(event, "timestamp")
        self.conversation_id = text_of(event, "sessionID") or self.conversation_id
        self.last_at_ms = at_ms or self.last_at_ms
        part = event_of(event, "part")
        match event.get("type"):
            case "error":
                self.error, self.error_at_ms = event_of(event, "error"), at_ms
                self.overflowed = text_of(self.error, "name") == _OVERFLOW
                return [Part("error", _words_of(self.error) or shown(event), at_ms=at_ms)]
            case "step_start":
                self.finish, self.answer, self.error, self.has_valid_call = None, "", None, False
                self.compacts, self.overflowed = self.overflowed, False
            case "text":
                text = text_of(part, "text") or ""
                if self.finish is not None:
                    # Outside any step the text is the program's, as after the conversation was compacted.
                    self.finish = None
                    return [Part("notice", text, at_ms=at_ms)]
                self.answered = True
                self.spoke = self.spoke or not is_blank(text)
                self.answer = shortened(f"{self.answer}\n\n{text}" if self.answer else text, 2 * MAX_TEXT)
                return [Part("message", text, at_ms=at_ms)]
            case "reasoning":
                return [Part("thinking", text_of(part, "text") or "", at_ms=at_ms)]
            case "tool_use":
                self.answered, self.finish = True, None
                self.has_valid_call = self.has_valid_call or text_of(part, "tool") != _INVALID
                self.tried += 1
                return self._take_tool(part, at_ms)
            case "step_finish":
                return self._take_step(part, at_ms)
        return []

    def take_stderr(self, line: str) -> None:
        if logged := _logged(line):
            self.logged = logged
            if logged.refused and (self.refused_since or 0) <= (self.last_at_ms or 0):
                self.refused_since = logged.at_ms
        elif match := _COMPLAINT.match(line):
            self.complaint = match["message"]
        elif self.complaint == _UNEXPECTED and line.strip():
            self.complaint = f"{_UNEXPECTED}: {line.strip()}"

    def _take_tool(self, part: Event, at_ms: int | None) -> list[Part]:
        state, tool = event_of(part, "state"), text_of(part, "tool")
        name, text = tool or "a tool", text_of(state, "error") or ""
        error, fenced = text[:500], fenced_call(tool or "", event_of(state, "input"), beyond_reach(text))
        if state.get("status") == "error" and (fenced is not None or _REJECTED.search(error)):
            self.denied.append(name)
            if fenced is not None:
                self.denied_calls.append(fenced)
            elif not _DENIED_BY_RULE.search(error):
                self.denied_calls.append(denied_call(name, event_of(state, "input"), name))
        result = content_text(state.get("output")) or shown(state.get("error")) or shown(state.get("status"))
        call = Part("tool_call", arguments(state.get("input")), tool, at_ms)
        return [call, Part("tool_result", result, tool, at_ms)]

    def _take_step(self, part: Event, at_ms: int | None) -> list[Part]:
        self.finish = text_of(part, "reason") or "unknown"
        self.broken = 0 if self.has_valid_call or self.finish in _KNOWN_FINISHES else self.broken + 1
        if self.broken == 1:
            self.broken_since = at_ms
        cost_usd = amount_of(part, "cost")
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd
        tokens = event_of(part, "tokens")
        given, cached = total(tokens, "input"), total(event_of(tokens, "cache"), "read", "write")
        used, made = (given or 0) + (cached or 0), total(tokens, "output", "reasoning") or 0
        self.input += used
        # Some versions include reasoning in the output: the total shows it.
        in_all = count_of(tokens, "total")
        self.output += made if in_all is None or in_all < used else min(made, in_all - used)
        return usage_parts(None if given is None else used, count_of(tokens, "output"), cost_usd, at_ms=at_ms)

    @property
    def _own_log(self) -> _Logged | None:
        """The last line of the log, if it is the run's own."""
        if self.logged is None or self.logged.session in (None, self.conversation_id):
            return self.logged
        return self.logged if self.conversation_id is None else None

    def stuck(self, started_ms: int | None) -> RunVerdict | None:
        """Return why it is stuck; None: it is not. It waits as long as a service asks for, and retries a failing one,
        without an event: only its log says why, and not until when."""
        if self.broken >= _MAX_BROKEN:
            return failed(Reason.NETWORK, f"the last {self.broken} answers of the model's service were broken off")
        last = self._own_log
        if last is None or not last.refused or last.at_ms is None or not self._is_latest(last):
            return None
        return classify(last.message, _RULES, last.at_ms)

    def _is_latest(self, logged: _Logged) -> bool:
        """Whether no event has come after that line."""
        return (logged.at_ms or 0) >= (self.last_at_ms or 0)

    @property
    def stuck_since(self) -> int | None:
        return self.broken_since if self.broken >= _MAX_BROKEN else self.refused_since

    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        if self.error is not None:
            printed_ms = self.error_at_ms if self.error_at_ms is not None else ending.printed_ms
            return _judge(self.error, self._own_log, printed_ms)
        if self.finish == "stop":
            return self.success(self.denied)
        known = _BY_FINISH.get(self.finish or "")
        return failed(*known) if known is not None else None

    def exited_well(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of exit code 0. A refused tool ends the run with 0 and without an error; in some versions
        so does an error before the first step."""
        if self.denied:
            return failed(Reason.PERMISSION_DENIED, denials(self.denied))
        if not self.anything:
            own = self._own_log
            complaint = self.complaint or (own.message if own is not None else "")
            if not complaint and (match := _NO_MODEL.search(f"{ending.stderr}\n{ending.stdout}")):
                complaint = match[0]
            if complaint:
                return classify(complaint, _RULES, ending.printed_ms)
        if self.finish is not None and self.finish != _CALLS:
            return failed(Reason.UNFINISHED, f"its model was cut off: {self.finish}")
        return super().exited_well(ending)

    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of stderr, of which only the log is its own once there are events."""
        last, silent = self._own_log, f"it exited with {ending.exit_code}"
        logged = last.message if last is not None and self._is_latest(last) else None
        if not self.anything:
            return classify(self.complaint or logged or ending.stderr or silent, _RULES, ending.printed_ms)
        if logged is not None:
            return classify(logged, _RULES, ending.printed_ms)
        return failed(Reason.AGENT_ERROR, self.complaint or silent)

    def result(self) -> Result:
        succeeded = self.error is None and self.finish == "stop"
        known = self.input + self.output > 0
        return replace(
            self.so_far,
            text=(self.answer or None) if succeeded else None,
            tokens=Tokens(input=self.input, output=self.output) if known else Tokens(),
            cost_usd=self.cost_usd,
        )


def _words_of(error: Event) -> str | None:
    return text_of(event_of(error, "data"), "message") or text_of(error, "message") or text_of(error, "name")


def _judge(error: Event, logged: _Logged | None, printed_ms: int) -> RunVerdict:
    name, data = text_of(error, "name") or "", event_of(error, "data")
    message = _words_of(error) or "it reported an error without a message"
    if logged is not None and _UNEXPLAINED in message.lower():
        message = logged.message
    if name in _BY_NAME:
        return failed(_BY_NAME[name], message)
    body = text_of(data, "responseBody")
    match = f"{message}\n{body}" if body is not None and body not in message else message
    verdict = classify(match, _RULES, printed_ms, status=count_of(data, "statusCode"))
    if verdict.status is not OutcomeStatus.LIMITED:
        return verdict
    return limited(match, _retry_at(event_of(data, "responseHeaders"), printed_ms) or find_reset(match, printed_ms))


def _retry_at(headers: Mapping[str, object], printed_ms: int) -> int | None:
    """Return when the service allows a retry, in epoch milliseconds."""
    for name, unit_ms in (("retry-after-ms", 1), ("retry-after", SECOND_MS)):
        value = headers.get(name)
        if isinstance(value, str) and (at_ms := retry_at(value, printed_ms, unit_ms)) is not None:
            return at_ms
    return None
