"""Turn the end of an ACP turn into a verdict. An ended turn is no success unless something shows it.

In this order: what the client itself saw, error codes and their data, what the agent says about its turn. Free text
counts last, and only where something marks it as an error.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from claudomator_py.agents.acp.profiles import AcpProfile
from claudomator_py.agents.ending import (
    RunVerdict,
    by_page,
    caseless,
    classify,
    denials,
    error_rules,
    error_table,
    failed,
    limited,
)
from claudomator_py.agents.limit_text import find_reset
from claudomator_py.agents.plaintext import is_blank
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.json_fields import Event, count_of, event_of, text_of
from claudomator_py.values import dataclass, regex

LOST_SESSION = caseless(r"does not know the session")
"""How the client says that the agent does not know the conversation."""
_OUTCOMES = error_table("acp", "outcomes")
_BY_NAME = error_table("acp", "names")
_BY_CODE: Mapping[int, Reason] = MappingProxyType(
    {401: Reason.AUTH, 402: Reason.NO_CREDIT, 403: Reason.AUTH, 429: Reason.RATE_LIMITED}
)
_AUTH_REQUIRED = -32000
_KEYS = ("errorkind", "errorname", "codexerrorinfo", "errortype", "code", "type", "kind", "category", "status")
"""Without separators and in lower case."""
_STATUS_KEYS = ("httpStatusCode", "statusCode", "http_status", "status", "code")
_MAX_DEPTH = 6
_SEPARATORS = regex(r"[\W_]+")
_RULES = error_rules("acp")
_STOPS = error_table("acp", "stops")
_TOLD = (Reason.AUTH, Reason.NO_CREDIT, Reason.NETWORK, Reason.NO_ANSWER)
"""Reasons for a silence that an agent's last retry names; without one, its service is overloaded."""
_LOOKS_LIKE_ERROR = regex(
    r"\s*(?:(?i:\W{0,3}(?:API |Internal |Fatal |Request )?error\W{0,3}:|unexpected status [45]\d\d"
    r"|\W{0,3}(?:API|model) (?:call|request) failed\b)|HTTP [45]\d\d:|[45]\d\d [A-Z{])"
)
"""How an error begins, for agents whose turns end alike with or without one."""
_PREFIX = regex(r"\A\s*(?:internal error|server error)\b:?", re.IGNORECASE)
"""A prefix that ACP libraries put before every foreign error; it says nothing about the service."""
_MAX_ERROR = 2_000


@dataclass(frozen=True)
class TurnEnd:
    """The end of a run as the client printed it. rejected: the tool of each denied call."""

    end: Event
    profile: AcpProfile
    printed_ms: int
    zone: str | None = None
    rejected: Sequence[str] = ()
    asked: bool = False
    """Whether the agent asked a person something, which ended its turn."""
    stderr: str = ""

    def verdict(self) -> RunVerdict:
        """Return the verdict."""
        outcome = text_of(self.end, "outcome") or ""
        error = text_of(self.end, "error") or "it gave no reason"
        match outcome:
            case "answered":
                return self._answered()
            case "refused":
                return self._refused(error)
            case "silent":
                return self._silent(error)
            case "interrupted" if text_of(event_of(self.end, "retry"), "text"):
                return self._silent(error)
            case "gone":
                return self._process_end(error)
        return failed(_OUTCOMES.get(outcome) or Reason.AGENT_ERROR, error)

    # --- errors ---

    def _refused(self, error: str) -> RunVerdict:
        """Return the verdict of an answer that is an error: by its code and data, then by its words."""
        code, data = self.end.get("code"), self.end.get("data")
        message = _message(error, data)
        status = code if isinstance(code, int) and 400 <= code < 600 else _status(data)
        reason = by_page(message, status) or self._by_code(code) or _by_data(data) or _BY_CODE.get(status or 0)
        if reason is Reason.RATE_LIMITED:
            verdict = self._by_words(message)
            # A limit that is a matter of money ends when somebody pays.
            if verdict.reason is Reason.NO_CREDIT:
                return verdict
            return limited(message, find_reset(message, self.printed_ms, self.zone))
        if reason is not None:
            return failed(reason, message)
        verdict = self._by_words(message, status)
        if verdict.reason is Reason.AGENT_ERROR and code == _AUTH_REQUIRED:
            return failed(Reason.AUTH, message)
        return verdict

    def _by_code(self, code: object) -> Reason | None:
        if isinstance(code, bool) or not isinstance(code, int | str):
            return None
        named = self.profile.codes.get(str(code))
        return Reason(named) if named is not None else _BY_CODE.get(code) if isinstance(code, int) else None

    def _by_words(self, message: str, status: int | None = None) -> RunVerdict:
        return classify(message, _RULES, self.printed_ms, status=status, zone=self.zone)

    def _silent(self, error: str) -> RunVerdict:
        """Return the verdict of a silent turn. Agents go silent in limits and outages; their last retry says which."""
        retry = event_of(self.end, "retry")
        message = text_of(retry, "text") or ""
        detail = f"{error}; it last said: {message}" if message else error
        reason = _by_data(retry.get("data")) or _BY_CODE.get(count_of(retry, "status") or 0)
        if reason is None and message:
            reason = self._by_words(message, count_of(retry, "status")).reason
        if reason is Reason.RATE_LIMITED:
            return limited(detail, None)
        return failed(reason if reason in _TOLD else Reason.OVERLOADED, detail)

    def _process_end(self, error: str) -> RunVerdict:
        code = self.end.get("exit_code")
        step = text_of(self.end, "step") or "its start"
        how = (
            ""
            if code is None
            else f" with {code}"
            if isinstance(code, int) and code >= 0
            else f" by signal {-int(code)}"
        )
        output = "\n".join(part for part in (text_of(self.end, "said"), self.stderr) if part)
        detail = f"its program ended{how} before answering {step}" + (f": {output}" if output else "")
        if isinstance(code, int) and code < 0:
            return failed(Reason.INTERRUPTED, detail)
        if text_of(self.end, "step") == "session/prompt" or not output:
            return failed(Reason.AGENT_ERROR, detail)
        judged = self._by_words(output)
        return judged if judged.reason is Reason.AUTH else failed(Reason.AGENT_ERROR, detail)

    # --- a turn that ended ---

    def _answered(self) -> RunVerdict:
        stop = text_of(self.end, "stop_reason")
        text = text_of(self.end, "text") or ""
        text = "" if is_blank(text) else text.strip()
        if stop != "end_turn":
            if stop == "cancelled" and self.rejected:
                return self._denied()
            # Some end with a refusal when their service fails.
            error_text = self._error_text(text, proven=False) if stop == "refusal" else None
            if error_text is not None and (verdict := self._error_turn(error_text)).reason is not Reason.AGENT_ERROR:
                return verdict
            reason = _STOPS.get(stop, Reason.UNFINISHED) if stop is not None else Reason.AGENT_ERROR
            return failed(reason, f"its turn ended with {stop or 'no reason'}{f': {text}' if text else ''}")
        counts = text_of(self.end, "counts") or "absent"
        silent = counts == "nothing" or (counts == "absent" and self.profile.tells)
        if self.end.get("failed_status") is True or (silent and text):
            return self._error_turn(text)
        if (error_text := self._error_text(text, proven=counts == "counts")) is not None:
            return self._error_turn(error_text)
        if self.asked:
            return RunVerdict(OutcomeStatus.SUCCEEDED, detail=denials(self.rejected))
        if not text and self.rejected:
            return self._denied()
        if text and not silent:
            return RunVerdict(OutcomeStatus.SUCCEEDED, detail=denials(self.rejected))
        return self._mute(count_of(self.end, "tools") or 0, counts)

    def _denied(self) -> RunVerdict:
        return failed(Reason.PERMISSION_DENIED, denials(self.rejected))

    def _error_turn(self, text: str) -> RunVerdict:
        """Return the verdict of a turn that ended normally with an error as its text."""
        if not text:
            return failed(Reason.AGENT_ERROR, "its turn ended with an error, without saying which")
        retry = event_of(self.end, "retry")
        return self._by_words(text, count_of(retry, "status"))

    def _error_text(self, text: str, *, proven: bool) -> str | None:
        """Return the error that the end of the answer is; None: it is none. proven: whether the turn reports usage. If
        so, only the profile's patterns make it an error."""
        piece = (text_of(self.end, "last_piece") or "").strip()
        for pattern in self.profile.error_text:
            if (match := re.fullmatch(pattern, piece, re.DOTALL)) is not None:
                return match[match.lastindex or 0]
        looks = (line for line in (piece, text) if len(line) <= _MAX_ERROR and _LOOKS_LIKE_ERROR.match(line))
        return None if proven else next(looks, None)

    def _mute(self, tools: int, counts: str) -> RunVerdict:
        """Return the verdict of a turn that ended without a last message."""
        retry = event_of(self.end, "retry")
        message = text_of(retry, "text")
        if message or (self.profile.mute and counts != "counts"):
            why = (
                f"it ended without a word{f', after: {message}' if message else ', as it does when its service fails'}"
            )
            return failed(Reason.OVERLOADED, why)
        if tools and counts == "counts":
            return RunVerdict(OutcomeStatus.SUCCEEDED, detail=denials(self.rejected))
        if tools:
            return failed(Reason.UNFINISHED, "its turn ended after a tool call, without a message about the result")
        return failed(Reason.NO_ANSWER, "it reported success, but its model neither said nor did anything")


def _message(error: str, data: object) -> str:
    """Return the error's message, followed by those in its data, which often say more."""
    own = _PREFIX.sub("", error).strip()
    others = [text for text in _texts(data) if text not in error]
    return "\n".join(part for part in (own, *others) if part) or error


def _texts(data: object, depth: int = 0) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping) and depth < _MAX_DEPTH:
        for key in ("message", "details", "detail", "error", "data", "reason"):
            yield from _texts(data.get(key), depth + 1)


def _by_data(data: object, depth: int = 0) -> Reason | None:
    """Return the reason that the error's data names; None: none that is known."""
    if not isinstance(data, Mapping) or depth > _MAX_DEPTH:
        return None
    by_name = {_plain(str(key)): value for key, value in data.items()}
    for key in _KEYS:
        value = by_name.get(key)
        named = next(iter(value), None) if isinstance(value, Mapping) else value
        if isinstance(named, str) and (reason := _BY_NAME.get(_plain(named))) is not None:
            return reason
    return next((verdict for inner in data.values() if (verdict := _by_data(inner, depth + 1)) is not None), None)


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


def _status(data: Any, depth: int = 0) -> int | None:
    if not isinstance(data, Mapping) or depth > _MAX_DEPTH:
        return None
    for key in _STATUS_KEYS:
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return next((status for inner in data.values() if (status := _status(inner, depth + 1)) is not None), None)
