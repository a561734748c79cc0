"""Read what Codex writes with ``--json``, of any version."""

import re
from dataclasses import field, replace
from typing import ClassVar

from claudomator_py.acts.tool_calls import rule_for
from claudomator_py.agents.ending import (
    SAYS_LIMITED,
    Result,
    RunVerdict,
    by_status,
    caseless,
    classify,
    error_rules,
    failed,
    limited,
)
from claudomator_py.agents.fence import MAX_CALLS, FenceVerdict, beyond_reach, distinct, fenced_call
from claudomator_py.agents.jsonlines import instant_of
from claudomator_py.agents.limit_text import epoch_ms, find_model, retry_at
from claudomator_py.agents.plaintext import is_blank
from claudomator_py.agents.run_events import OutputEnd, RunEvents, arguments, content_text, shown, tokens_text
from claudomator_py.domain.outcome import Denied, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.run import Part
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.json_fields import Event, count_of, event_of, text_of
from claudomator_py.values import dataclass, regex

_RULES = error_rules("codex")
_USED_UP = caseless(SAYS_LIMITED)
_RETRYING = regex(r"^Reconnecting\W+(?:\d+/\d+|waiting for network) \((?P<cause>.*)\)$", re.DOTALL)
_COMPLAINT = regex(r"^(?:ERROR|Error|error):? (?P<message>.+)")
_MAX_COMPLAINTS = 5
_BANNER = "OpenAI Codex"
"""How stderr begins without ``--json``: the whole conversation follows, with the output of tools."""
REQUEST = "codex_http_client::client: Request completed "
"""Marks a log line about the answer to a request."""
_FAILED_REQUEST = regex(r"(\S+Z) +DEBUG (?:\S.*: )?codex_http_client::client: Request failed method=")
"""A log line about a request that got no answer."""
_LOGGED = regex(r"\d{4}-\d\d-\d\dT[\d:.]+Z +DEBUG (?:\S.*: )?")
_HEADERS = " headers="
_STATUS = regex(r"(?<!\S)status=(\d{3})\b")
_RETRY_AFTER = regex(r'"retry-after": "([^"]{1,40})"')
_SHORT_PAUSE_MS = MINUTE_MS
"""A shorter pause is an ordinary one between two requests."""
_WINDOW = regex(r'"x-codex-(primary|secondary)-(used-percent|reset-at)": "(\d{1,15}(?:\.\d{1,9})?)"')
_ALL_USED = 100.0
_LIMITED = 429
_ROUNDED_MS = MINUTE_MS
"""How far the words for a reset can be from the exact one, in addition to the offset of their zone."""
_ZONES_MS = 15 * MINUTE_MS
"""Zone offsets are multiples of this."""
_FARTHEST_ZONE_MS = 26 * HOUR_MS
"""Between any two zones, or the same time on another day."""
_LOG_LINE = regex(r"\d{4}-\d\d-\d\dT[\d:.]+Z +[A-Z]+ ")
_BLOCKED = regex(
    r"\S+ +ERROR \S+ error=.*?blocked by PreToolUse hook: .*?\[beyond reach [\w.]+\]\.?"
    r"(?: (?:Command|Tool): )?(?P<call>.*)"
)
"""A log line about a call that the hook denied."""
_MAX_LINES = 200
_CHATTER = ("Reading ", "WARNING: ")
_OUTAGES = (Reason.NETWORK, Reason.OVERLOADED)
_WORDS = {"agent_message": "message", "reasoning": "thinking"}
_PASSING = "Reconnecting"
_PLAN = "todo_list"
"""A plan is not work yet."""
NOTHING = Tokens(input=0, output=0)
"""What a new thread has used."""


@dataclass(frozen=True, slots=True)
class _Response:
    """The service's answer to a request, from the log. at_ms: when it came, in epoch milliseconds; None: unknown."""

    at_ms: int | None
    status: int
    headers: str

    @property
    def pause_until(self) -> int | None:
        """When the request is sent again, in epoch milliseconds. Codex keeps to a ``Retry-After`` of any length,
        without an event; None: it does not pause for long."""
        asked = _RETRY_AFTER.search(self.headers)
        if self.status < 400 or self.at_ms is None or asked is None:
            return None
        until = retry_at(asked[1], self.at_ms)
        return until if until is not None and until - self.at_ms > _SHORT_PAUSE_MS else None


@dataclass(frozen=True, slots=True)
class _Fenced:
    """A call that the fence denied. lines: of its command."""

    verdict: FenceVerdict
    lines: list[str]

    @property
    def call(self) -> Denied:
        text = "\n".join(self.lines[:_MAX_LINES]).strip()
        known = fenced_call("Bash", {"command": text}, self.verdict)
        if known is not None:
            return known
        # Blanks were lost in the log, or it is no command: the digest identifies the call.
        rule = rule_for("Bash", {"command": text}, self.verdict.digest)
        return Denied(tool="Bash", input=text, rule=rule, beyond=self.verdict.does)


@dataclass(kw_only=True)
class CodexEvents(RunEvents):
    """The events of one run."""

    lost: ClassVar = caseless(r"no rollout found")

    prior: Tokens | None = NOTHING
    """What the thread had used before; None: unknown."""
    completed: bool = False
    failure: str | None = None
    error: str | None = None
    has_given_up: bool = False
    """Whether the last event was an error without a retry."""
    remark: str | None = None
    """The last item, if it is an error."""
    reported_error: str | None = None
    """The last error event, verbatim."""
    trouble: str | None = None
    """Why it is retrying, if that was its last event."""
    answer: str | None = None
    usage: Event = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    """Lines of stderr that are marked as errors; in a plain-text conversation (``talks``), which contains the output of
    tools, only those at its end."""
    resets_at: int | None = None
    """When the used-up windows reset, in epoch milliseconds, from the answer that refused a request."""
    last_response: _Response | None = None
    """The service's last answer, from the log."""
    failing_since: int | None = None
    """When the first of the requests since then failed without an answer, in epoch milliseconds."""
    talks: bool = False
    fenced: list["_Fenced"] = field(default_factory=list)
    """The calls that the fence denied, from the log."""
    declined: int = 0
    """How many calls were declined."""
    is_in_denied_call: bool = False
    """Whether the next line may continue the last of them."""

    @property
    def terminal(self) -> bool:
        return self.completed or self.failure is not None

    def take(self, event: Event) -> list[Part]:
        gave_up = self.has_given_up
        self.trouble, self.has_given_up = None, False
        item = event_of(event, "item")
        match event.get("type"):
            case "thread.started":
                self.conversation_id = text_of(event, "thread_id") or self.conversation_id
                return [Part("notice", f"begins: {shown(event.get('thread_id'))}")]
            case "turn.started":
                self.completed, self.failure = False, None
            case "item.started":
                self.completed, self.failure = False, None
                self._note_item(item)
                return _call(item)
            case "item.updated":
                self._note_item(item)
            case "item.completed":
                return self._take_item(item)
            case "error":
                return [self._take_error(event)]
            case "turn.completed":
                # An error without a retry has ended the turn, even if the turn is reported as completed.
                self.failure = self.error if gave_up else self.failure
                if self.remark is not None and _USED_UP.search(self.remark):
                    self.failure = self.failure or self.remark
                self.completed, self.error = True, None
                self.usage = event_of(event, "usage")
                counts = (count_of(self.usage, "input_tokens"), count_of(self.usage, "output_tokens"))
                return [Part("usage", tokens_text(*counts))]
            case "turn.failed":
                return self._take_failure(event)
        return []

    def take_stderr(self, line: str) -> None:
        self.is_in_denied_call = self.is_in_denied_call and not _LOG_LINE.match(line)
        if response := _response_in(line):
            self.last_response, self.failing_since = response, None
            self.resets_at = _reset(response.headers) if response.status == _LIMITED else self.resets_at
        elif match := _FAILED_REQUEST.match(line):
            self.failing_since = self.failing_since or instant_of({"at": match[1]}, "at")
        elif (verdict := beyond_reach(line)) is not None and (blocked := _BLOCKED.match(line)):
            self.fenced = [*self.fenced, _Fenced(verdict, [blocked["call"]])][-MAX_CALLS:]
            self.is_in_denied_call = True
        elif self.is_in_denied_call and not _LOG_LINE.match(line):
            self.fenced[-1].lines.append(line)
        elif match := _COMPLAINT.match(line):
            self.complaints = [*self.complaints, match["message"]][-_MAX_COMPLAINTS:]
        else:
            self.talks = self.talks or line.startswith(_BANNER)
            self.complaints = [] if self.talks else self.complaints

    def _note_item(self, item: Event) -> None:
        self.answered = self.answered or item.get("type") not in (None, "error")
        value = item.get("type") == "agent_message" and not is_blank(text_of(item, "text") or "")
        self.spoke = self.spoke or value
        call_id, tool = text_of(item, "id"), _tool(item)
        if tool not in (None, _PLAN) and (call_id is None or self.tool_of(call_id) is None):
            self.called(call_id, tool)

    def _take_item(self, item: Event) -> list[Part]:
        is_new = self.tool_of(text_of(item, "id")) is None
        self._note_item(item)
        self.declined += item.get("status") == "declined"
        if item.get("type") != "error":
            self.completed, self.failure = False, None
        text = text_of(item, "text")
        self.remark = text_of(item, "message") if item.get("type") == "error" else None
        match item.get("type"):
            case "agent_message":
                self.answer, self.error = text or self.answer, None
                return [Part("message", text or "")]
            case "reasoning":
                return [Part("thinking", text or "")]
            case "error":
                return [Part("error", text_of(item, "message") or shown(item))]
        call = _call(item) if is_new else []
        tool = _tool(item)
        return call if tool is None else [*call, Part("tool_result", _result(item), tool)]

    def _take_error(self, event: Event) -> Part:
        message = text_of(event, "message")
        retried = _RETRYING.match(message or "")
        self.trouble = retried["cause"] if retried else None
        self.error = self.trouble or message or self.error
        self.has_given_up = self.trouble is None
        self.completed = False
        self.reported_error = message
        passing = (message or "").startswith(_PASSING)
        return Part("notice" if passing else "error", message or shown(event))

    def _take_failure(self, event: Event) -> list[Part]:
        error_text = text_of(event_of(event, "error"), "message")
        self.completed = False
        self.failure = error_text or self.error or "its turn failed, and it did not say why"
        message = error_text or shown(event)
        return [] if message == self.reported_error else [Part("error", message)]

    def is_log(self, line: bytes) -> bool:
        """Return whether the line is about a request."""
        return REQUEST.encode() in line

    def stuck(self, started_ms: int | None) -> RunVerdict | None:
        """Return the verdict of a pause that the service asked for, or of a lost network, which Codex waits for
        forever; None: it is not stuck."""
        last = self.last_response
        if last is not None and not self.talks and (until := last.pause_until) is not None:
            asked = f"the service answered with HTTP {last.status} and asked it to wait"
            if last.status == _LIMITED:
                return limited(asked, until)
            if (reason := by_status(last.status)) in _OUTAGES:
                return failed(reason, asked)
        verdict = classify(self.trouble, _RULES, started_ms or 0) if self.trouble is not None else None
        return verdict if verdict is not None and verdict.reason in _OUTAGES else None

    @property
    def stuck_since(self) -> int | None:
        paused = self.last_response
        return paused.at_ms if paused is not None and paused.pause_until is not None else self.failing_since

    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        if self.failure is not None:
            return self._with_exact_reset(_judge(self.failure, ending, self.zone))
        return self.success(["Bash"] * self._denials, undone=self.declined) if self.completed else None

    def last_error(self, ending: OutputEnd) -> RunVerdict | None:
        if self.error is None or not self.has_given_up:
            return None
        return self._with_exact_reset(_judge(self.error, ending, self.zone))

    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of stderr until tools ran; then the events say what went wrong, as stderr may contain
        the output of tools."""
        complaint = "\n".join(self.complaints[-1:])
        if self.tools_ran and self.error is None:
            return failed(Reason.AGENT_ERROR, complaint or _unexplained(ending))
        message = self.error or complaint
        if not message and not self.talks:
            lines = ending.stderr.splitlines()
            message = "\n".join(line for line in lines if not line.startswith(_CHATTER))
        return _judge(message or _unexplained(ending), ending, self.zone)

    def _with_exact_reset(self, verdict: RunVerdict) -> RunVerdict:
        """Take the exact reset from the log if the words agree; they give the minute, whose beginning is too early."""
        if verdict.status is not OutcomeStatus.LIMITED or self.resets_at is None:
            return verdict
        if verdict.reset_at is not None and not _agree(self.resets_at, verdict.reset_at):
            return verdict
        return replace(verdict, reset_at=self.resets_at, provenance=Provenance.REPORTED)

    def result(self) -> Result:
        succeeded = self.completed and self.failure is None
        return replace(
            self.so_far,
            text=self.answer if succeeded else None,
            tokens=self._tokens(),
            model=self._model,
            denied=distinct(entry.call for entry in self.fenced),
            denials=self._denials,
        )

    @property
    def _denials(self) -> int:
        """How many calls were denied. The log and the events each have some of them."""
        return max(len(self.fenced), self.declined)

    @property
    def _model(self) -> str | None:
        """The run's model, which is named only in its limit."""
        return find_model(self.failure or self.error or "")

    def _tokens(self) -> Tokens:
        """Return what the thread has used since this run began. Cached input is input; reasoning is output."""
        if self.prior is None:
            return Tokens()
        return Tokens(
            input=_difference(count_of(self.usage, "input_tokens"), self.prior.input),
            output=_difference(count_of(self.usage, "output_tokens"), self.prior.output),
        )


def _unexplained(ending: OutputEnd) -> str:
    return f"it exited with {ending.exit_code}, and did not say why"


def _agree(exact_ms: int, said_ms: int) -> bool:
    """Whether a time to the minute, in an unnamed zone, can be that exact time."""
    apart_ms = abs(exact_ms - said_ms)
    beside_ms = apart_ms % _ZONES_MS
    return apart_ms <= _FARTHEST_ZONE_MS and min(beside_ms, _ZONES_MS - beside_ms) <= _ROUNDED_MS


def _judge(message: str, ending: OutputEnd, zone: str | None) -> RunVerdict:
    verdict = classify(message, _RULES, ending.printed_ms, zone=zone)
    return replace(verdict, limit=verdict.family)


def _response_in(line: str) -> _Response | None:
    """Return the service's answer in a log line; None: it has none."""
    before, _, answer = line.partition(REQUEST)
    fields, named, headers = answer.partition(_HEADERS)
    if not named or not fields.startswith("method=") or _LOGGED.fullmatch(before) is None:
        return None
    status = _STATUS.search(fields)
    if status is None:
        return None
    return _Response(instant_of({"at": before.split(" ")[0]}, "at"), int(status[1]), headers)


def _reset(headers: str) -> int | None:
    """Return when the last used-up window resets, in epoch milliseconds, from an answer's headers."""
    windows: dict[str, dict[str, float]] = {}
    for window, what, value in _WINDOW.findall(headers):
        windows.setdefault(window, {})[what] = float(value)
    used_up = [window for window in windows.values() if window.get("used-percent", 0) >= _ALL_USED]
    return max((reset for window in used_up if (reset := epoch_ms(window.get("reset-at"))) is not None), default=None)


def _difference(total: int | None, prior: int | None) -> int | None:
    if total is None or prior is None:
        return None
    return max(0, total - prior)


def _tool(item: Event) -> str | None:
    kind = text_of(item, "type")
    if kind is None or kind in _WORDS or kind == "error":
        return None
    return text_of(item, "tool") or kind


def _call(item: Event) -> list[Part]:
    tool = _tool(item)
    if tool is None:
        return []
    asked = next((item[key] for key in ("command", "arguments", "query", "changes", "items") if item.get(key)), None)
    return [Part("tool_call", arguments(asked), tool)]


def _result(item: Event) -> str:
    output = next((item[key] for key in ("aggregated_output", "error", "result") if item.get(key)), None)
    if isinstance(output, dict):
        output = output.get("message") or output.get("content") or output
    exit_code = item.get("exit_code")
    end = f"[exit code {exit_code}]" if isinstance(exit_code, int) and exit_code != 0 else ""
    return "\n".join(part for part in (content_text(output).rstrip("\n"), end) if part) or shown(item.get("status"))
