"""Read what Claude Code writes with ``--output-format stream-json``, of any version.

Only error events and stderr can say that something went wrong. The model's text never does: an answer may quote a limit
message word for word.
"""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

from claudomator_py.agents.claude.errors import (
    USAGE_LIMIT,
    Failure,
    Rejection,
    classify,
    cut_off,
    ending_of,
    lists_all_errors,
    message_of,
    succeeded,
)
from claudomator_py.agents.claude.turns import Turns, is_of_no_turn
from claudomator_py.agents.claude.use import INPUT_FIELDS, SYNTHETIC, ClaudeUsage, rule_for, windows_of
from claudomator_py.agents.ending import NearLimitNotice, Result, RunVerdict, caseless
from claudomator_py.agents.fence import distinct, questions
from claudomator_py.agents.jsonlines import instant_of
from claudomator_py.agents.limit_text import epoch_ms
from claudomator_py.agents.plaintext import MAX_DETAIL, is_blank, storable
from claudomator_py.agents.run_events import MessageEvents, OutputEnd, arguments, begins, shown, tokens_text, total
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.report import Stage
from claudomator_py.domain.run import Part
from claudomator_py.domain.units import counted
from claudomator_py.json_fields import Event, amount_of, count_of, event_of, list_of, objects_of, text_of
from claudomator_py.values import dataclass, regex

_RULED = regex(r"Permission to use .* has been denied\.\s*\Z", re.DOTALL)
_ASK = "AskUserQuestion"
_TALK = frozenset({_ASK, "ExitPlanMode"})
"""Tools that speak to the user and need no permission."""
_API_ERROR = "API Error"
"""How the program's own message about a failed request begins."""
_NO_CONTENT = "(no content)"
"""The text of a message in which the model said nothing."""


@dataclass(frozen=True, slots=True)
class _Denial:
    """A denied call. given: the tool's input. ruled: a rule denies it, which no grant changes."""

    tool: str
    given: Event = field(default_factory=dict)
    ruled: bool = False


@dataclass(kw_only=True)
class ClaudeEvents(MessageEvents):
    """The events of one run. Message chunks (``stream_event``) are skipped, as the whole message follows."""

    lost: ClassVar = caseless(r"no conversation found")

    prior_cost_usd: float | None = None
    """What the resumed conversation had cost before this run, if known."""
    turns: Turns = field(default_factory=Turns)
    streamed: bool = False
    """Whether messages are printed as they come, not only the result."""
    remark: str | None = None
    """The text of the last message if the program wrote it itself."""
    failure: Failure | None = None
    rejection: Rejection | None = None
    is_rejected: bool = False
    """Whether the last request was rejected for quota, with nothing since."""
    near: NearLimitNotice | None = None
    denials: dict[str, _Denial] = field(default_factory=dict)
    usage: ClaudeUsage = field(default_factory=ClaudeUsage)
    model: str | None = None
    """The run's model, from the first event."""
    windows: Mapping[str, WindowUse] = field(default_factory=dict)

    @property
    def terminal(self) -> bool:
        return self.turns.ended

    @property
    def stage(self) -> Stage:
        """A result ends a turn. The program goes on by itself while something pending will begin another."""
        return self.turns.stage

    def to_come(self, at_ms: int, *, stopped: bool) -> Mapping[str, int]:
        """Return the numbers of scheduled jobs, wake-ups and background tasks."""
        return self.turns.to_come(at_ms, stopped=stopped)

    def take(self, event: Event) -> list[Part]:
        at_ms = instant_of(event, "timestamp")
        self.turns.take(event, at_ms)
        self.conversation_id = text_of(event, "session_id") or self.conversation_id
        match event.get("type"):
            case "system":
                self.streamed = True
                if event.get("subtype") == "permission_denied":
                    self._take_denial(event)
                elif event.get("subtype") == "init":
                    self.model = text_of(event, "model") or self.model
                return _system(event, at_ms)
            case "assistant":
                return self._take_assistant(event, at_ms)
            case "user":
                if text_of(event, "parent_tool_use_id") is None:
                    self.stop_reason = None
                return self._take_user(event_of(event, "message").get("content"), at_ms)
            case "rate_limit_event":
                info = event_of(event, "rate_limit_info")
                self._take_rate_limit(info)
                named = f"limited: {text_of(info, 'rateLimitType') or 'rate limit'}"
                return [Part("notice", named, at_ms=at_ms)] if info.get("status") == "rejected" else []
            case "result":
                return self._take_result(event, at_ms)
        return []

    def _take_rate_limit(self, info: Event) -> None:
        self.windows = {**self.windows, **windows_of(info)}
        resets_at = epoch_ms(info.get("resetsAt"))
        limit, used = text_of(info, "rateLimitType"), amount_of(info, "utilization")
        self.near = None
        if info.get("status") == "allowed_warning" and resets_at is not None:
            self.near = NearLimitNotice(resets_at, storable(limit)[:MAX_DETAIL] if limit else None, used)
        rejected = info.get("status") == "rejected"
        self.rejection = Rejection(resets_at, text_of(info, "rateLimitType")) if rejected else None
        self.is_rejected = rejected and not (info.get("isUsingOverage") or info.get("overageStatus") == "allowed")

    def _take_assistant(self, event: Event, at_ms: int | None) -> list[Part]:
        self.usage.take_message(event)
        message = event_of(event, "message")
        blocks = objects_of(message, "content")
        if text_of(event, "parent_tool_use_id") is None:
            calls = any(block.get("type") == "tool_use" for block in blocks)
            self.stop_reason = text_of(message, "stop_reason") or ("tool_use" if calls else None)
        category = text_of(event, "error")
        if category is None:
            self.failure, self.answered, self.is_rejected = None, True, False
        else:
            info = event_of(event_of(event, "api_error_params"), "rate_limit_info")
            if info.get("status") == "rejected":
                self._take_rate_limit(info)
            self.failure = Failure(
                message="\n".join(text_of(block, "text") or "" for block in blocks),
                kind=text_of(event, "api_error"),
                status=count_of(event, "api_error_status"),
                category=category,
                at_ms=at_ms,
            )
        is_synthetic = message.get("model") == SYNTHETIC
        if text_of(event, "parent_tool_use_id") is None:
            is_its_own = is_synthetic or category is not None
            self.remark = "\n".join(text_of(block, "text") or "" for block in blocks) if is_its_own else None
        if category is None and not is_synthetic:
            texts = (text_of(block, "text") or "" for block in blocks if block.get("type") == "text")
            self.spoke = self.spoke or any(map(_has_words, texts))
        ends = (self._take_block(block, at_ms, failed=bool(event.get("error"))) for block in blocks)
        return [part for part in ends if part is not None]

    def _take_block(self, block: Event, at_ms: int | None, *, failed: bool) -> Part | None:
        match block.get("type"):
            case "text":
                self.message = text_of(block, "text") or ""
                return Part("error" if failed else "message", self.message, at_ms=at_ms)
            case "thinking":
                return Part("thinking", text_of(block, "thinking") or "", at_ms=at_ms)
            case "redacted_thinking":
                return Part("thinking", "(withheld by the service)", at_ms=at_ms)
            case str() as kind if kind.endswith("tool_use"):
                tool = text_of(block, "name")
                self.spoke = self.spoke or tool in _TALK
                self.called(text_of(block, "id"), tool)
                return Part("tool_call", arguments(block.get("input")), tool, at_ms)
            case str() as kind if kind.endswith("tool_result"):
                return self.take_tool_result(block, at_ms)
        return None

    def _take_user(self, content: object, at_ms: int | None) -> list[Part]:
        """Take a user message: tool results, and texts of the program."""
        if isinstance(content, str):
            return [Part("notice", content, at_ms=at_ms)]
        parts = []
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                parts.append(self.take_tool_result(block, at_ms))
            elif isinstance(block, dict) and (text := text_of(block, "text")):
                parts.append(Part("notice", text, at_ms=at_ms))
        return parts

    def _take_denial(self, event: Event) -> None:
        key = text_of(event, "tool_use_id") or f"#{len(self.denials)}"
        known = self.denials.get(key) or _Denial(text_of(event, "tool_name") or "a tool")
        given = event_of(event, "tool_input")
        ruled = _RULED.match(text_of(event, "message") or "") is not None
        self.denials[key] = replace(known, given=given or known.given, ruled=ruled or known.ruled)

    def _take_result(self, event: Event, at_ms: int | None) -> list[Part]:
        self.last = event
        for denial in objects_of(event, "permission_denials"):
            self._take_denial(denial)
        self.usage.take_result(event)
        # A streamed message has shown whether the model wrote it; for a lone result, its tokens show it.
        has_counted = not self.streamed and (count_of(event_of(event, "usage"), "output_tokens") or 0) > 0
        text = (text_of(event, "result") or "").strip()
        new = _has_words(text) and text != (self.message or "").strip()
        own = (new or has_counted) and not is_of_no_turn(event)
        self.spoke = self.spoke or own or bool(event.get("structured_output"))
        return self._result_parts(event, at_ms)

    def _result_parts(self, event: Event, at_ms: int | None) -> list[Part]:
        """Return what the log shows of a result."""
        errors = [error for error in list_of(event, "errors") if isinstance(error, str)]
        parts = self.last_words(event, "\n".join(errors) if errors else None, at_ms)
        usage, dollars = event_of(event, "usage"), amount_of(event, "total_cost_usd")
        used = tokens_text(total(usage, *INPUT_FIELDS), count_of(usage, "output_tokens"), dollars)
        turns = count_of(event, "num_turns")
        if summary := ", ".join(part for part in (used, counted(turns, "turn") if turns is not None else "") if part):
            parts.append(Part("usage", summary, at_ms=at_ms))
        return parts

    def terminal_verdict(self, ending: OutputEnd) -> RunVerdict | None:
        result = self.last
        if result is None or not self.terminal:
            return None
        if (cut_off := self._cut_off) is not None:
            return cut_off
        last = self.failure
        if self._has_succeeded(result):
            if (own := self._own_last_word(result)) is None:
                return self.success([call.tool for call in self.denials.values() if call.tool not in _TALK])
            last = own
        failure = Failure(
            message=message_of(result) or (last.message if last is not None else ""),
            ending=ending_of(result),
            stop_reason=text_of(result, "stop_reason") or self.stop_reason,
            kind=text_of(result, "api_error") or (last.kind if last is not None else None),
            status=count_of(result, "api_error_status") or (last.status if last is not None else None),
            category=last.category if last is not None else None,
            at_ms=last.at_ms if last is not None else None,
            mixed=self.answered and lists_all_errors(result),
        )
        return classify(failure, self.rejection, ending.printed_ms, self.zone, self.model)

    @property
    def _cut_off(self) -> RunVerdict | None:
        return None if self.last is None else cut_off(self.last, self.stop_reason)

    def _has_succeeded(self, result: Event) -> bool:
        return succeeded(result) and (text_of(result, "stop_reason") or self.stop_reason) != "refusal"

    def _own_last_word(self, result: Event) -> Failure | None:
        """Return the failure that the program's own last message means, even if the result claims success; None: none.
        No model wrote a ``<synthetic>`` message, so its words count."""
        text = (text_of(result, "result") or "").strip()
        if self.remark is None or text not in ("", self.remark.strip()):
            return None
        if self.failure is not None:
            return self.failure
        return self._own_error(self.remark)

    def _own_error(self, remark: str) -> Failure | None:
        own = Failure(message=remark)
        known = classify(own, self.rejection, 0, self.zone, self.model).reason is not Reason.AGENT_ERROR
        return own if known or remark.startswith(_API_ERROR) else None

    def last_error(self, ending: OutputEnd) -> RunVerdict | None:
        failure = self.failure or (None if self.remark is None else self._own_error(self.remark))
        if failure is None:
            return self._refused(ending) if self.is_rejected else None
        return classify(failure, self.rejection, ending.printed_ms, self.zone, self.model)

    def _refused(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of a request that was refused for quota, with nothing said since."""
        failure = Failure("the service refused a request: a limit is used up", kind=USAGE_LIMIT)
        return classify(failure, self.rejection, ending.printed_ms, self.zone, self.model)

    def exited_well(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of exit code 0. If only results outside any turn came, the run was asked nothing."""
        if self.worked or self.last is None:
            return super().exited_well(ending)
        # A command of its own, or of a file whose shell it may not run, says here what came of it.
        return self.success(result=(text_of(self.last, "result") or "") if "local_command" in self.last else "")

    def exit_verdict(self, ending: OutputEnd) -> RunVerdict:
        """Return the verdict of its last error, else of its exit code and stderr."""
        if (verdict := self.last_error(ending)) is not None:
            return verdict
        plain = "" if self.tools_ran else ending.stdout[-MAX_DETAIL:]
        message = "\n".join(part for part in (ending.stderr, plain) if part)
        failure = Failure(message or f"it exited with {ending.exit_code}", mixed=self.tools_ran)
        return classify(failure, None, ending.printed_ms, self.zone)

    def result(self) -> Result:
        tokens, cost_usd = self.usage.used(resumed=self.resumed, prior_cost_usd=self.prior_cost_usd)
        so_far = Result(
            conversation_id=self.conversation_id,
            tokens=tokens,
            cost_usd=cost_usd,
            windows=self.windows,
            near=self.near,
            model=self.model,
        )
        if self.last is None or not self.terminal:
            return so_far
        is_good = self._has_succeeded(self.last) and self._cut_off is None and self._own_last_word(self.last) is None
        asked = (questions(call.given) for call in self.denials.values() if call.tool == _ASK)
        return replace(
            so_far,
            text=text_of(self.last, "result") if is_good else None,
            question=next((question for question in asked if question is not None), None),
            denials=len(self.denials),
            denied=distinct(
                self.denial(key, call.tool, call.given, rule_for(call.tool, call.given))
                for key, call in self.denials.items()
                if not call.ruled and call.tool not in _TALK
            ),
        )


def _has_words(text: str) -> bool:
    return not is_blank(text) and text.strip() != _NO_CONTENT


def _system(event: Event, at_ms: int | None) -> list[Part]:
    match event.get("subtype"):
        case "init":
            return [Part("notice", begins(event, "model", "claude_code_version", "permissionMode"), at_ms=at_ms)]
        case "api_retry":
            attempt, most = (shown(event.get(key)) or "?" for key in ("attempt", "max_retries"))
            cause = " ".join(part for part in (shown(event.get("error_status")), shown(event.get("error"))) if part)
            return [Part("notice", f"asks again ({attempt} of {most}): {cause}", at_ms=at_ms)]
        case "permission_denied":
            return [Part("notice", text_of(event, "message") or "denied", text_of(event, "tool_name"), at_ms)]
        case _:
            if text := text_of(event, "content") or text_of(event, "message"):
                return [Part("notice", text, at_ms=at_ms)]
    return []
