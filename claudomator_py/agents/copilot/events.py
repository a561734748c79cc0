"""Read what GitHub Copilot CLI writes with ``--output-format json``, of any version.

Its errors are events with the service's status, and its last event has its exit code. It reports no tokens.
"""

from dataclasses import field, replace
from typing import ClassVar

from claudomator_py.acts.shell import is_simple
from claudomator_py.agents.ending import Result, RunVerdict, caseless, classify, error_rules, failed
from claudomator_py.agents.fence import denied_call
from claudomator_py.agents.jsonlines import instant_of
from claudomator_py.agents.plaintext import is_blank
from claudomator_py.agents.run_events import OutputEnd, RunEvents, arguments, shown
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.run import Part
from claudomator_py.json_fields import Event, count_of, event_of, list_of, text_of
from claudomator_py.values import dataclass, regex

_RULES = error_rules("copilot")
_BY_TYPE = {"rate_limit": 429, "authentication": 401, "quota": 429}
"""The HTTP status for an error's type, for errors without a status."""
_DENIED = frozenset({"denied", "rejected"})
_FILES = frozenset({"create", "edit", "str_replace", "write", "apply_patch"})
_OF_A_TURN = frozenset({"user", "assistant", "tool"})
"""Prefixes of the types of a turn's events. Such an event after a result begins another turn."""
_BY_SUBCOMMAND = frozenset({"git", "gh"})
_WORD = regex(r"[\w./+-]+")
_IN_VAIN = 3
"""From how many calls on whose arguments are cut off, one after the other, their model does not get any further."""


@dataclass(kw_only=True)
class CopilotEvents(RunEvents):
    """The events of one run. given: the conversation's id, which holds once there is a message."""

    lost: ClassVar = caseless(r"no session[^\n]{0,60}(?:match|found)")

    given: str = ""
    last: Event | None = None
    error: Event | None = None
    """The last error's data, if no message came after it."""
    message: str | None = None
    """The text of the last message, if it called no tools."""
    calls: dict[str, Event] = field(default_factory=dict)
    """The arguments of the open tool calls by id."""
    asks: bool = False
    """Whether the last message called tools of which none has started."""
    is_aborted: bool = False
    """Whether the turn was aborted, with nothing since."""
    cut: int = 0
    """How many of the last calls were cut off in their arguments."""
    cut_since: int | None = None
    """When the first of them was, in epoch milliseconds."""

    @property
    def terminal(self) -> bool:
        # A turn that is told to stop has a result as well, with exit code 0.
        return self.last is not None and not (self.is_aborted and self.cut >= _IN_VAIN)

    def take(self, event: Event) -> list[Part]:
        data = event_of(event, "data")
        if str(event.get("type")).partition(".")[0] in _OF_A_TURN:
            self.last, self.is_aborted = None, False
        match event.get("type"):
            case "abort":
                self.is_aborted = True
            case "assistant.idle":
                self.is_aborted = data.get("aborted") is True
            case "user.message":
                self.conversation_id = self.given or self.conversation_id
            case "assistant.message":
                return self._take_message(data)
            case "assistant.reasoning":
                return [Part("thinking", text_of(data, "content") or "")]
            case "tool.execution_start":
                return [self._take_call(data)]
            case "tool.execution_complete":
                self._take_cut(data, instant_of(event, "timestamp"))
                return [self._take_result(data)]
            case "session.error":
                self.error = data
                return [Part("error", text_of(data, "message") or shown(data.get("errorType")))]
            case "session.info" | "session.warning":
                return [Part("notice", text_of(data, "message") or "")]
            case "result":
                self.last = event
                self.conversation_id = text_of(event, "sessionId") or self.conversation_id
        return []

    def _take_message(self, data: Event) -> list[Part]:
        text, asks = text_of(data, "content") or "", bool(list_of(data, "toolRequests"))
        has_words = not is_blank(text)
        if has_words or asks:
            self.answered = True
            self.error = None
        self.spoke, self.asks = self.spoke or has_words, asks
        self.message = text if has_words and not asks else None
        return [Part("message", text)] if text else []

    def _take_call(self, data: Event) -> Part:
        self.asks = False
        call_id, tool = text_of(data, "toolCallId"), text_of(data, "toolName")
        self.called(call_id, tool)
        given = event_of(data, "arguments")
        if len(self.calls) < 1_000:
            self.calls[call_id or ""] = given
        return Part("tool_call", arguments(given), tool)

    def _take_result(self, data: Event) -> Part:
        call_id = text_of(data, "toolCallId")
        tool, given = self.tool_of(call_id) or "a tool", self.calls.pop(call_id or "", {})
        error = event_of(data, "error")
        if text_of(error, "code") in _DENIED:
            self.denied.append(tool)
            self.denied_calls.append(denied_call(tool, given, _rule(tool, given)))
        text = text_of(event_of(data, "result"), "content") or text_of(error, "message") or ""
        return Part("tool_result", text, tool)

    def _take_cut(self, data: Event, at_ms: int | None) -> None:
        """Count the calls that were cut off. Nothing ends a turn that consists of them."""
        properties = event_of(event_of(data, "toolTelemetry"), "properties")
        self.cut = self.cut + 1 if text_of(properties, "wasSyntaxError") == "true" else 0
        if self.cut == 1:
            self.cut_since = at_ms

    def stuck(self, started_ms: int | None) -> RunVerdict | None:
        if self.cut < _IN_VAIN:
            return None
        return failed(Reason.UNFINISHED, f"the arguments of its model's last {self.cut} tool calls were cut off")

    @property
    def stuck_since(self) -> int | None:
        return self.cut_since

    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        if self.last is None:
            return None
        if self.error is not None:
            return self._judge(self.error, ending)
        code = count_of(self.last, "exitCode")
        if code != 0:
            return failed(Reason.AGENT_ERROR, ending.stderr or f"it ended with {shown(self.last.get('exitCode'))}")
        if self.is_aborted:
            return failed(Reason.INTERRUPTED, "it was told to stop")
        if self.asks:
            return failed(Reason.UNFINISHED, "its model called a tool that was not run")
        return self.success(self.denied)

    def last_error(self, ending: OutputEnd) -> RunVerdict | None:
        return None if self.error is None else self._judge(self.error, ending)

    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of stderr, unless it may be the output of tools."""
        if (known := self.last_error(ending)) is not None:
            return known
        message = ending.stderr or f"it exited with {ending.exit_code}"
        if self.tools_ran:
            return failed(Reason.AGENT_ERROR, message)
        return classify(message, _RULES, ending.printed_ms, zone=self.zone)

    def result(self) -> Result:
        succeeded = self.last is not None and self.error is None and count_of(self.last, "exitCode") == 0
        return replace(self.so_far, text=self.message if succeeded else None)

    def _judge(self, error: Event, ending: OutputEnd) -> RunVerdict:
        kind = text_of(error, "errorType")
        message = text_of(error, "message") or kind or "it gave no reason"
        status = count_of(error, "statusCode") or _BY_TYPE.get(kind or "")
        return classify(message, _RULES, ending.printed_ms, status=status, zone=self.zone)


def _rule(tool: str, given: Event) -> str | None:
    """Return the rule for the call. Rules match a command by its first word, for git and gh by two words."""
    command = text_of(given, "command")
    if command is not None:
        return _shell_rule(command) if is_simple(command) else None
    path = text_of(given, "path")
    if tool in _FILES and path is not None and path.startswith("/") and not set("()*,") & set(path):
        return f"write({path})"
    return None


def _shell_rule(command: str) -> str | None:
    words = command.split()
    if not words or _WORD.fullmatch(words[0]) is None:
        return None
    if words[0] in _BY_SUBCOMMAND:
        if len(words) < 2 or _WORD.fullmatch(words[1]) is None or words[1].startswith("-"):
            return None
        return f"shell({words[0]} {words[1]}:*)"
    return f"shell({words[0]}:*)"
