"""Reads what Claude Code writes with ``--output-format stream-json``: by meaning, whatever its version.

Only events that bear an error, and stderr, can say that something went wrong. What the model wrote never does: an
answer may quote a limit message word for word.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from claudomator_py.agents.claude.errors import ENDINGS, Failure, Rejection, classify
from claudomator_py.agents.claude.rules import rule_for
from claudomator_py.agents.claude.use import INPUT_FIELDS, Messages, windows_of
from claudomator_py.agents.denied import denied_call, distinct, questions
from claudomator_py.agents.ending import Result, Verdict, denials, failed, outcome, settle, with_lost_conversation
from claudomator_py.agents.jsonlines import (
    MAX_COUNT,
    MAX_PEEK_BYTES,
    Event,
    EventSplitter,
    amount_of,
    count_of,
    event_of,
    instant_of,
    list_of,
    parse_events,
    text_of,
)
from claudomator_py.agents.limit_text import epoch_ms
from claudomator_py.agents.plaintext import MAX_DETAIL, MAX_TEXT, Tail, shortened, storable
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Reason, Tokens
from claudomator_py.domain.pricing import Used as SoFar
from claudomator_py.domain.run import ExitRecord, Stream

_LOST = re.compile(r"no conversation found", re.IGNORECASE)
_RULED = re.compile(r"Permission to use .* has been denied\.\s*\Z", re.DOTALL)
_ASK = "AskUserQuestion"
_TALK = frozenset({_ASK, "ExitPlanMode"})
"""Tools by which it speaks to whoever watches: none that would need leave."""
_MODEL_INPUT_FIELDS = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens and dollars. cost_usd None: not known."""

    input: int = 0
    output: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: "Used") -> "Used":
        known = self.cost_usd is not None and other.cost_usd is not None
        cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
        return Used(self.input + other.input, self.output + other.output, cost)


@dataclass(frozen=True, slots=True)
class Warned:
    """A limit that is near. until: epoch milliseconds; used: the share that was used up."""

    until: int | None = None
    limit: str | None = None
    used: float | None = None


@dataclass(frozen=True, slots=True)
class _Denial:
    """given: what the tool was to be used with. ruled: a rule denies it, so that no leave changes that."""

    tool: str
    given: Event = field(default_factory=dict)
    ruled: bool = False


@dataclass(slots=True)
class _Seen:
    """What the events said so far."""

    anything: bool = False
    answered: bool = False
    conversation_id: str | None = None
    result: Event | None = None
    failure: Failure | None = None
    rejection: Rejection | None = None
    warned: Warned = Warned()
    denied: dict[str, _Denial] = field(default_factory=dict)
    since_last: Used | None = Used()
    turns: Used = Used()
    messages: Messages = field(default_factory=Messages)
    windows: Mapping[str, WindowUse] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        self.anything = True
        self.conversation_id = text_of(event, "session_id") or self.conversation_id
        match event.get("type"):
            case "rate_limit_event":
                self._take_rate_limit(event_of(event, "rate_limit_info"))
            case "assistant":
                self._take_assistant(event)
            case "system" if event.get("subtype") == "permission_denied":
                self._take_denial(event)
            case "result":
                self._take_result(event)

    def _take_rate_limit(self, info: Event) -> None:
        self.windows = {**self.windows, **windows_of(info)}
        resets_at = epoch_ms(info.get("resetsAt"))
        near = info.get("status") == "allowed_warning" and resets_at is not None
        limit, used = text_of(info, "rateLimitType"), amount_of(info, "utilization")
        self.warned = Warned(resets_at, storable(limit)[:MAX_DETAIL] if limit else None, used) if near else Warned()
        rejected = info.get("status") == "rejected"
        self.rejection = Rejection(resets_at, text_of(info, "rateLimitType")) if rejected else None

    def _take_assistant(self, event: Event) -> None:
        category = text_of(event, "error")
        self.messages.take(event)
        if category is None:
            self.failure, self.answered = None, True
            return
        info = event_of(event_of(event, "api_error_params"), "rate_limit_info")
        if info.get("status") == "rejected":
            self._take_rate_limit(info)
        blocks = list_of(event_of(event, "message"), "content")
        texts = [text_of(block, "text") or "" for block in blocks if isinstance(block, dict)]
        self.failure = Failure(
            message="\n".join(texts),
            kind=text_of(event, "api_error"),
            status=count_of(event, "api_error_status"),
            category=category,
            at_ms=instant_of(event, "timestamp"),
        )

    def _take_denial(self, event: Event) -> None:
        key = text_of(event, "tool_use_id") or f"#{len(self.denied)}"
        known = self.denied.get(key) or _Denial(text_of(event, "tool_name") or "a tool")
        given = event_of(event, "tool_input")
        ruled = _RULED.match(text_of(event, "message") or "") is not None
        self.denied[key] = replace(known, given=given or known.given, ruled=ruled or known.ruled)

    def _take_result(self, event: Event) -> None:
        self.result = event
        for denial in list_of(event, "permission_denials"):
            if isinstance(denial, dict):
                self._take_denial(denial)
        usage = event_of(event, "usage")
        self.turns += Used(
            sum(count_of(usage, key) or 0 for key in INPUT_FIELDS), count_of(usage, "output_tokens") or 0
        )
        since = event.get("model_usage_since_last_result")
        if not isinstance(since, dict) or self.since_last is None:
            self.since_last = None
        else:
            self.since_last += _by_model(since)


class ClaudeReader:
    """Reads one run. resumed, prior_cost_usd: as in LaunchRequest. zone: that of the agent's own clock times."""

    stuck_until: int | None = None
    stuck_since: int | None = None

    def __init__(self, *, resumed: bool = False, prior_cost_usd: float | None = None, zone: str | None = None) -> None:
        self._resumed = resumed
        self._prior_cost_usd = prior_cost_usd
        self._zone = zone
        self._events = EventSplitter()
        self._seen = _Seen()
        self._plain = Tail(MAX_DETAIL)
        self._stderr = Tail(MAX_DETAIL)
        self._terminal: bool | None = None

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take the next bytes of a stream."""
        self._terminal = None
        if stream == "stderr":
            self._stderr.feed(data)
            return
        for part in self._events.feed(data):
            _take(self._seen, self._plain, part)

    @property
    def answered(self) -> bool:
        """Whether the model has said anything."""
        return self._seen.answered

    @property
    def used(self) -> SoFar:
        """What the run has used so far, as far as it has said."""
        result = self._result(self._seen)
        return SoFar(result.tokens, result.cost_usd, self._seen.windows)

    @property
    def terminal(self) -> bool:
        """Whether a complete terminal event has been seen."""
        if self._terminal is None:
            seen = self._all()[0] if self._events.rest_bytes <= MAX_PEEK_BYTES else self._seen
            self._terminal = seen.result is not None
        return self._terminal

    def outcome(self, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        """What the run came to. May be asked at any time, and again."""
        seen, plain = self._all()
        printed_ms = exit_record.ended_ms if exit_record is not None and exit_record.ended_ms > 0 else now_ms
        said = None if seen.result is None else self._said(seen, seen.result, printed_ms)
        verdict = settle(said, exit_record, lambda record: self._unsaid(seen, plain, record, printed_ms))
        if self._resumed:
            verdict = with_lost_conversation(verdict, _LOST)
        found = outcome(_storable(verdict), self._result(seen))
        near: dict[str, object] = {"near_limit_until": seen.warned.until, "near_limit": seen.warned.limit}
        near |= {"near_limit_used": seen.warned.used, "windows": dict(seen.windows)}
        return found.model_copy(update=near)

    def _all(self) -> tuple[_Seen, str]:
        """What was seen, with the line that has no end yet: the last one may have none."""
        rest = self._events.rest
        if not rest:
            return self._seen, self._plain.text()
        seen, plain, events = copy.copy(self._seen), self._plain.copy(), parse_events(rest)
        seen.denied, seen.messages = seen.denied.copy(), seen.messages.copy()
        _take(seen, plain, rest if events is None else events)
        return seen, plain.text()

    def _said(self, seen: _Seen, result: Event, printed_ms: int) -> Verdict:
        if _succeeded(result):
            return Verdict(OutcomeStatus.SUCCEEDED, detail=denials([one.tool for one in seen.denied.values()]))
        last = seen.failure
        failure = Failure(
            message=_message(result) or (last.message if last is not None else ""),
            ending=_ending(result),
            stop_reason=text_of(result, "stop_reason"),
            kind=text_of(result, "api_error") or (last.kind if last is not None else None),
            status=count_of(result, "api_error_status") or (last.status if last is not None else None),
            category=last.category if last is not None else None,
            at_ms=last.at_ms if last is not None else None,
            mixed=seen.answered and _lists_all_errors(result),
        )
        return classify(failure, seen.rejection, printed_ms, self._zone)

    def _unsaid(self, seen: _Seen, plain: str, exit_record: ExitRecord, printed_ms: int) -> Verdict:
        """There was no terminal event, and nobody ended it: what its last error, its exit code and stderr say."""
        if exit_record.exit_code == 0:
            return failed(Reason.AGENT_ERROR, "it exited with 0, but without saying that it succeeded")
        if seen.failure is not None:
            return classify(seen.failure, seen.rejection, printed_ms, self._zone)
        # Before there is a conversation the CLI speaks plain text; afterwards, what is no event may be a tool's.
        message = "\n".join(part for part in (self._stderr.text(), "" if seen.anything else plain) if part)
        failure = Failure(message or f"it exited with {exit_record.exit_code}", mixed=seen.anything)
        return classify(failure, None, printed_ms, self._zone)

    def _result(self, seen: _Seen) -> Result:
        result = seen.result
        if result is None:
            return Result(conversation_id=_id(seen.conversation_id), tokens=seen.messages.tokens)
        used = self._used(seen, result)
        text = text_of(result, "result") if _succeeded(result) else None
        return Result(
            conversation_id=_id(seen.conversation_id),
            text=shortened(storable(text), MAX_TEXT) if text is not None else None,
            tokens=Tokens(input=min(used.input, MAX_COUNT), output=min(used.output, MAX_COUNT)),
            cost_usd=used.cost_usd,
            question=next((asked for one in seen.denied.values() if (asked := _asked(one)) is not None), None),
            denied=distinct(_call(one) for one in seen.denied.values() if not one.ruled and one.tool not in _TALK),
        )

    def _used(self, seen: _Seen, result: Event) -> Used:
        """The run's own share.

        Newer versions say what was used since the last result. Older ones give dollars and tokens per model for the
        whole conversation, and tokens per turn: of a resumed conversation, the tokens are the turn's, and the dollars
        what came on top of what was used before, or unknown.
        """
        if seen.since_last is not None:
            return seen.since_last
        total_usd = amount_of(result, "total_cost_usd")
        if self._resumed:
            own = None
            if total_usd is not None and self._prior_cost_usd is not None:
                own = max(0.0, total_usd - self._prior_cost_usd)
            return Used(seen.turns.input, seen.turns.output, own)
        per_model = _by_model(event_of(result, "modelUsage"))
        tokens = per_model if per_model.input + per_model.output > 0 else seen.turns
        return Used(tokens.input, tokens.output, total_usd)


def _asked(denial: _Denial) -> str | None:
    found = questions(denial.given) if denial.tool == _ASK else None
    return shortened(storable(found), MAX_DETAIL) if found is not None else None


def _call(denial: _Denial) -> Denied:
    return denied_call(denial.tool, denial.given, rule_for(denial.tool, denial.given))


def _take(seen: _Seen, plain: Tail, part: list[Event] | bytes) -> None:
    if isinstance(part, bytes):
        plain.feed(part)
        return
    for event in part:
        seen.take(event)


def _by_model(models: Event) -> Used:
    used = Used()
    for model in models.values():
        if isinstance(model, dict):
            tokens = sum(count_of(model, key) or 0 for key in _MODEL_INPUT_FIELDS)
            used += Used(tokens, count_of(model, "outputTokens") or 0, amount_of(model, "costUSD"))
    return used


def _succeeded(result: Event) -> bool:
    """Old versions say ``is_error: false`` of a run that used up its turns; none is to be trusted in its "success"."""
    subtype = text_of(result, "subtype") or ""
    stopped = subtype.startswith("error") or _ending(result) is not None or result.get("stop_reason") == "refusal"
    return result.get("is_error") is False and not stopped


def _ending(result: Event) -> str | None:
    named = (text_of(result, "terminal_reason"), text_of(result, "subtype"))
    return next((name for name in named if name in ENDINGS), None)


def _message(result: Event) -> str:
    errors = [error for error in list_of(result, "errors") if isinstance(error, str)]
    return text_of(result, "result") or "\n".join(errors)


def _lists_all_errors(result: Event) -> bool:
    """Whether its message is everything that went wrong in the process, tools that failed included."""
    return text_of(result, "result") is None and text_of(result, "subtype") == "error_during_execution"


def _storable(verdict: Verdict) -> Verdict:
    detail = shortened(storable(verdict.detail), MAX_DETAIL) if verdict.detail else None
    limit = storable(verdict.limit)[:100] if verdict.limit else None
    return replace(verdict, detail=detail, limit=limit)


def _id(conversation_id: str | None) -> str | None:
    return storable(conversation_id)[:100] if conversation_id is not None else None
