"""Read what Gemini CLI writes with ``-o stream-json``, of any version, and classify its errors."""

from dataclasses import field, replace
from functools import partial
from typing import ClassVar

from claudomator_py.acts.shell import is_simple
from claudomator_py.agents.ending import (
    MAX_READ,
    SAYS_NO_LOGIN,
    Result,
    RunVerdict,
    caseless,
    classify,
    error_rules,
    error_table,
    failed,
    limited,
)
from claudomator_py.agents.fence import beyond_reach, denied_call, fenced_call, questions
from claudomator_py.agents.jsonlines import instant_of
from claudomator_py.agents.plaintext import MAX_TEXT, is_blank, readable, shortened
from claudomator_py.agents.run_events import OutputEnd, RunEvents, arguments, begins, content_text, shown, usage_parts
from claudomator_py.domain.outcome import Denied, OutcomeStatus, Reason, Tokens
from claudomator_py.domain.run import Part
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.json_fields import Event, count_of, event_of, list_of, text_of
from claudomator_py.values import dataclass, regex

STUCK_MS = 6 * MINUTE_MS
"""A longer sleep is a limit: its own retries wait five minutes at most, plus up to a fifth."""

_ATTEMPT = regex(r"Attempt \d{1,3} failed: ")
"""Begins a message about a refused request; the service's message follows, on one line or several."""
_SLEEP = regex(r"\. Retrying after (\d{1,13})ms\.\.\.$")
"""Ends that message when a sleep follows."""
_PRINTED_SLEEP = regex(r"Retrying after (\d{1,13})ms")
_MAX_PRINTED = 1_000
"""Sleeps in tool output that are remembered; with more, no sleep is believed."""
_STOPPED = caseless(
    r"loop detected|agent execution (?:stopped|blocked)"
    r"|(?:model|request|response|turn)[^\n]{0,40} (?:stopped|truncated|cut)|max(?:imum)? session turns"
)
_STOPS = "stop_execution"
"""The type of a tool's error after which the CLI stops."""
_DENIED = caseless(r"requires user confirmation|denied by policy|not allowed by policy|policy_violation")
_ASK = "ask_user"
_SHELL = "run_shell_command"
# Tools that it offers only when they are allowed; any other unknown tool does not exist.
_NEEDS_LEAVE = regex(rf"{_SHELL}|write_file|replace|edit|smart_edit|web_fetch|save_memory|mcp_\w+")
_LIMITS = ((caseless(r"\bdaily\b|per[ _]?day"), "daily"), (caseless(r"per[ _]?minute"), "per_minute"))
_ITS_MODEL = caseless(r"on this model|PerModel\b|per[ _]model\b")
"""A quota of the requested model."""
_METRIC = caseless(r"metric ['\"]?(?P<model>gemini[ \w.-]+?) requests")
"""Code Assist writes a model's quota in words: ``Gemini 2.5 Pro Requests per day``."""


@dataclass(slots=True)
class _Sleep:
    """An announced sleep. failed_tools: how many failures of tools stderr had shown by then."""

    message: str
    length_ms: int
    failed_tools: int


@dataclass(kw_only=True)
class GeminiEvents(RunEvents):
    """The events of one run. Times are epoch milliseconds."""

    lost: ClassVar = caseless(r"error resuming session|invalid session identifier|no previous sessions")

    terminal_event: Event | None = None
    """The result of the last turn, if no other has begun."""
    stats: Event = field(default_factory=dict)
    """What was used, by the last result."""
    model: str | None = None
    """The run's model, from its first event."""
    error: str | None = None
    stopped: str | None = None
    """Why the program stopped the model, if nothing came after that."""
    answer: str = ""
    remark: str = ""
    open_calls: dict[str, tuple[str, Event]] = field(default_factory=dict)
    """The calls without a result yet, by id."""
    sleep: _Sleep | None = None
    attempt: str = ""
    """The message on stderr about a refused request, as far as it was read."""
    failed_tools: int = 0
    """How many tool results were errors."""
    reported_failures: int = 0
    """How many of them stderr has repeated."""
    printed_sleeps: set[int] = field(default_factory=set)
    """Lengths of the sleeps in tool output, in milliseconds."""
    last_at_ms: int | None = None
    longest_gap_ms: int = 0

    @property
    def terminal(self) -> bool:
        return self.terminal_event is not None

    def take(self, event: Event) -> list[Part]:
        """Take the next event and return what the log shows of it. A partial message continues in the next event."""
        at_ms = instant_of(event, "timestamp")
        self._take_time(at_ms)
        self.conversation_id = text_of(event, "session_id") or self.conversation_id
        match event.get("type"):
            case "init":
                self.terminal_event = None
                self.model = text_of(event, "model") or self.model
                return [Part("notice", begins(event, "model"), at_ms=at_ms)]
            case "message" if event.get("role") == "assistant":
                return [self._take_message(event, at_ms)]
            case "tool_use":
                return [self._take_call(event, at_ms)]
            case "tool_result":
                return [self._take_tool_result(event, at_ms)]
            case "error":
                passing = event.get("severity") == "warning"
                message = text_of(event, "message")
                if passing and message is not None and _STOPPED.match(message):
                    self.stopped = message
                elif not passing:
                    self.error = message or "it reported an error without a message"
                return [Part("notice" if passing else "error", message or shown(event), at_ms=at_ms)]
            case "result":
                return self._take_result(event, at_ms)
            case None if "response" in event or event_of(event, "error"):  # what -o json prints
                self.answer = text_of(event, "response") or ""
                self._end_turn({"status": "error" if event.get("error") else "success", **event})
        return []

    def take_stderr(self, line: str) -> None:
        if line.startswith(TOOL_FAILED):
            self.reported_failures += 1
            self.attempt = ""
            return
        if _ATTEMPT.match(line):
            self.attempt = line
        elif self.attempt and len(self.attempt) < COMPLAINT:
            self.attempt += f"\n{line}"
        else:
            self.attempt = ""
        if match := _SLEEP.search(self.attempt):
            self.sleep = _Sleep(self.attempt, int(match[1]), self.reported_failures)
            self.attempt = ""

    def _take_time(self, at_ms: int | None) -> None:
        if at_ms is None:
            return
        if self.last_at_ms is not None:
            self.longest_gap_ms = max(self.longest_gap_ms, at_ms - self.last_at_ms)
        self.last_at_ms = at_ms

    def _take_message(self, event: Event, at_ms: int | None) -> Part:
        self.error, self.stopped, self.answered, self.terminal_event = None, None, True, None
        text = text_of(event, "content") or ""
        self.spoke = self.spoke or not is_blank(text)
        self.answer = self.answer + text if event.get("delta") else text
        if len(self.answer) > 8 * MAX_TEXT:
            self.answer = shortened(self.answer, 4 * MAX_TEXT)
        return Part("message", text, None, at_ms, partial=event.get("delta") is True)

    def _take_call(self, event: Event, at_ms: int | None) -> Part:
        self.answered, self.terminal_event = True, None
        self.remark, self.answer, self.error, self.stopped = self.answer or self.remark, "", None, None
        tool, call_id = text_of(event, "tool_name"), text_of(event, "tool_id")
        self.open_calls[call_id or ""] = (tool or "a tool", event_of(event, "parameters"))
        self.called(call_id, tool)
        return Part("tool_call", arguments(event.get("parameters")), tool, at_ms)

    def _take_tool_result(self, event: Event, at_ms: int | None) -> Part:
        self.terminal_event = None
        tool_id = text_of(event, "tool_id")
        name, given = self.open_calls.pop(tool_id or "", ("a tool", {}))
        error = event_of(event, "error")
        kind, message = text_of(error, "type") or "", text_of(error, "message") or ""
        if kind == _STOPS:
            self.stopped = message or "a hook stopped it"
        self.failed_tools += bool(error)
        self._take_printed(text_of(event, "output") or "")
        self._take_printed(message)
        if kind in ("tool_not_registered", "policy_violation") or _DENIED.search(message[:500]):
            fenced = fenced_call(name, given, beyond_reach(message))
            self._take_denial(name, given, fenced, unknown=kind == "tool_not_registered")
        output = content_text(event.get("output")) or message
        return Part("tool_result", output or shown(event.get("status")), self.tool_of(tool_id), at_ms)

    def _take_denial(self, name: str, given: Event, fenced: Denied | None, *, unknown: bool) -> None:
        self.denied.append(name)
        if fenced is not None:
            self.denied_calls.append(fenced)
        elif name == _ASK:
            self.question = questions(given) or self.question
        elif not unknown or _NEEDS_LEAVE.fullmatch(name):
            self.denied_calls.append(denied_call(name, given, _rule(name, given)))

    def _take_result(self, event: Event, at_ms: int | None) -> list[Part]:
        self._end_turn(event)
        parts = []
        if event.get("status") != "success":
            message = text_of(event_of(event, "error"), "message")
            parts.append(Part("error", message or shown(event), at_ms=at_ms))
        stats = event_of(event, "stats")
        return parts + usage_parts(count_of(stats, "input_tokens"), count_of(stats, "output_tokens"), at_ms=at_ms)

    def _end_turn(self, event: Event) -> None:
        self.terminal_event, self.stats = event, event_of(event, "stats")
        warnings = (
            warning for warning in list_of(event, "warnings") if isinstance(warning, str) and _STOPPED.match(warning)
        )
        self.stopped = next(warnings, self.stopped)
        # -o json prints nothing else: there, output tokens prove that the model worked.
        counted = event.get("type") is None and (_tokens(self.stats).output or 0) > 0
        self.spoke = self.spoke or not is_blank(self.answer) or counted

    def _take_printed(self, text: str) -> None:
        plain = text.replace("\n", "").isprintable()  # skips a costly pass over megabytes of output
        for match in _PRINTED_SLEEP.finditer(text if plain else readable(text)):
            if len(self.printed_sleeps) <= _MAX_PRINTED:
                self.printed_sleeps.add(int(match[1]))

    def stuck(self, started_ms: int | None) -> RunVerdict | None:
        """Return the limit that it sleeps in; None: it does not. The order of stdout and stderr is unknown, but a sleep
        that is over shows as a gap between events."""
        since = self.last_at_ms if self.last_at_ms is not None else started_ms
        if self.sleep is None or since is None or not self._is_its_own(self.sleep, ended=started_ms is not None):
            return None
        if self.sleep.length_ms <= STUCK_MS or self.longest_gap_ms >= self.sleep.length_ms:
            return None
        return self._named(limited(self.sleep.message, since + self.sleep.length_ms))

    def _is_its_own(self, sleep: _Sleep, *, ended: bool) -> bool:
        """Whether the CLI announced the sleep, not a tool whose output looks like it.

        Stderr repeats a failed tool's output right after the event with the result: only once that event is read can
        the two be told apart. ended: all output has been read.
        """
        distinguishable = (ended or not self.open_calls) and sleep.failed_tools <= self.failed_tools
        few = len(self.printed_sleeps) <= _MAX_PRINTED
        return distinguishable and few and sleep.length_ms not in self.printed_sleeps

    @property
    def stuck_since(self) -> int | None:
        return self.last_at_ms

    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        result = self.terminal_event
        if result is None:
            return None
        if self._succeeded(result):
            return self._stopped or self.success(self.denied, undone=0 if self.question is not None else None)
        error = event_of(result, "error")
        message = text_of(error, "message") or self.error or f"it ended with status {result.get('status')}"
        printed_ms = self.last_at_ms if self.last_at_ms is not None else ending.printed_ms
        return self._named(judge(message, text_of(error, "type"), ending.exit_code, printed_ms))

    @property
    def _stopped(self) -> RunVerdict | None:
        """Return the verdict of a "success" whose model was stopped by a hook or for looping; None: it was not."""
        return None if self.stopped is None else failed(Reason.UNFINISHED, self.stopped)

    def _succeeded(self, result: Event) -> bool:
        """Whether the turn succeeded: after an error that was not thrown, the status is "success" as well."""
        return result.get("status") == "success" and not result.get("error") and self.error is None

    def last_error(self, ending: OutputEnd) -> RunVerdict | None:
        printed_ms = self.last_at_ms if self.last_at_ms is not None else ending.printed_ms
        return None if self.error is None else self._named(judge(self.error, None, None, printed_ms))

    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of stderr. Once tools may have run, stderr may repeat their output, so only the exit code
        counts."""
        message = self.error or complaint_of(ending.stderr) or f"it exited with {ending.exit_code}"
        its_own = self.error is not None or not (self.tools_ran or self.reported_failures)
        by_all = partial(judge, kind=None) if its_own else by_exit_code
        return self._named(by_all(message, exit_code=ending.exit_code, printed_ms=ending.printed_ms))

    def _named(self, verdict: RunVerdict) -> RunVerdict:
        """Return the verdict with the name of its limit and the model it applies to."""
        if verdict.status is not OutcomeStatus.LIMITED:
            return verdict
        detail = verdict.detail or ""
        name = next((name for pattern, name in _LIMITS if pattern.search(detail)), None)
        if metric := _METRIC.search(detail):
            return replace(verdict, limit=name, family="-".join(metric["model"].lower().split()))
        own = self._ran_model if _ITS_MODEL.search(detail) else None
        return replace(verdict, limit=name, family=verdict.family or own)

    @property
    def _ran_model(self) -> str | None:
        """The model that was called last, by its own name: the one in the first event may be an alias."""
        asked = event_of(self.stats, "models")
        return next(reversed(list(asked)), self.model)

    def result(self) -> Result:
        result = self.terminal_event
        so_far = replace(self.so_far, tokens=_tokens(self.stats), model=self._ran_model)
        if result is None:
            return replace(so_far, question=None, denials=0)
        text = self.answer or self.remark or None
        return replace(so_far, text=text if self._succeeded(result) and self.stopped is None else None)


def _rule(tool: str, given: Event) -> str | None:
    """Return the rule for the call: a command prefix, or else the tool. A comma would begin another rule."""
    if tool != _SHELL:
        return tool
    command = text_of(given, "command")
    return f"{_SHELL}({command})" if command is not None and "," not in command and is_simple(command) else None


def _tokens(stats: Event) -> Tokens:
    """Return the tokens. Thoughts are output, but only the total includes them."""
    used, made, total = (count_of(stats, key) for key in ("input_tokens", "output_tokens", "total_tokens"))
    if used is not None and made is not None:
        return Tokens(input=used, output=max(made, (total or 0) - used))
    models = [event_of(model, "tokens") for model in event_of(stats, "models").values() if isinstance(model, dict)]
    if not models:
        return Tokens()
    return Tokens(
        input=sum(count_of(model, "prompt") or 0 for model in models),
        output=sum((count_of(model, "candidates") or 0) + (count_of(model, "thoughts") or 0) for model in models),
    )


TOOL_FAILED = "Error executing tool "
"""Begins a passage of stderr that repeats a tool's output, over any number of lines and without an end mark."""
_CHATTER = ("Warning: ", "YOLO mode is", "Approval mode", "Ripgrep is not", "[STARTUP]", "Loaded cached credentials")
_FAILED_REQUEST = "Error when talking to"
COMPLAINT = 2_000
"""Characters of stderr that are searched."""
_BY_TYPE = error_table("gemini", "types")
_BY_EXIT_CODE = error_table("gemini", "exit_codes")
# An exit code has eight bits, so 429 becomes 173. Statuses below 400 would collide with signals.
_STATUS_BY_EXIT_CODE = {status % 256: status for status in range(400, 512)}
_LOGIN = caseless(rf"{SAYS_NO_LOGIN}|gemini_api_key")
_RULES = error_rules("gemini")


def judge(message: str, kind: str | None, exit_code: int | None, printed_ms: int) -> RunVerdict:
    """Return the verdict. kind: the error's type. printed_ms: epoch milliseconds."""
    its_own = not message.startswith(TOOL_FAILED)
    known = _BY_TYPE.get(kind or "") or _BY_EXIT_CODE.get(exit_code or 0)
    if known is Reason.BAD_INVOCATION and its_own and _LOGIN.search(message[:MAX_READ]):
        known = Reason.AUTH  # the CLI reports a missing login as an error of configuration
    if known is not None:
        return failed(known, message)
    if not its_own:
        return by_exit_code(message, exit_code, printed_ms)
    return classify(message, _RULES, printed_ms, status=_STATUS_BY_EXIT_CODE.get(exit_code or 0))


def by_exit_code(message: str, exit_code: int | None, printed_ms: int) -> RunVerdict:
    """Return the verdict of the exit code alone, when the message may be a tool's."""
    known = _BY_EXIT_CODE.get(exit_code or 0)
    if known is not None:
        return failed(known, message)
    verdict = classify("", (), printed_ms, status=_STATUS_BY_EXIT_CODE.get(exit_code or 0))
    return replace(verdict, detail=message)


def complaint_of(stderr: str) -> str:
    """Return the part of stderr that says what went wrong: its end, also for a usage error."""
    own = "\n".join(line for line in stderr.splitlines() if not line.startswith((TOOL_FAILED, *_CHATTER)))
    _, cause, after = own.rpartition(_FAILED_REQUEST)
    return cause + after if cause else own[-COMPLAINT:]
