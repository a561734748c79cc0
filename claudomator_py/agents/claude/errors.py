"""Classify errors of Claude Code, by typed fields if the version has them, else by words; and read its last result: not
every result that claims success is one."""

from dataclasses import replace

from claudomator_py.agents.claude.use import family_of
from claudomator_py.agents.ending import (
    MAX_READ,
    SAYS_LIMITED,
    RunVerdict,
    by_status,
    by_words,
    caseless,
    error_rules,
    error_table,
    failed,
    limited,
)
from claudomator_py.agents.limit_text import find_reset
from claudomator_py.domain.limits import in_family
from claudomator_py.domain.outcome import Reason
from claudomator_py.json_fields import Event, count_of, list_of, text_of
from claudomator_py.values import dataclass, regex

_BY_ENDING = error_table("claude", "endings")
ENDINGS = frozenset(_BY_ENDING)
"""Terminal reasons and result subtypes that say alone why a run did not finish."""
USAGE_LIMIT = "usage_limit_reached"
"""The kind of an error that means a used-up limit."""
_BY_KIND = error_table("claude", "kinds")
_BY_CATEGORY = error_table("claude", "categories")
_NO_CREDIT = caseless(
    r"credit balance is too low|out of (?:extra usage|usage credits|credits)|out of usage\b|requires usage credits"
    r"|spend(?:ing)? limit|add funds|usage limit is set to \$0|usage allocation has been disabled"
)
_LIMIT = caseless(
    r"\blimit reached\b|hit your [^\n]{0,60}\blimit\b|request rejected \(429\)|usage limit\b"
    rf"|temporarily limiting requests|exceed your account's rate limit|{SAYS_LIMITED}"
)
_BY_WORDS = error_rules("claude")
_WINDOWS = (
    (caseless(r"\bweekly limit\b"), "seven_day"),
    (caseless(r"\b(?:session|5-hour) limit\b"), "five_hour"),
)
_NO_FAMILY = r"(?:Claude|Session|Daily|Weekly|Monthly|Usage|Rate|Spend(?:ing)?|Free|Pro|Max|Team|Enterprise|API)\b"
"""Words before "limit" that are no model family: windows, plans, and the product."""
_FAMILY_LIMIT = regex(
    rf"\b(?P<whose>your (?:weekly )?(?:Claude )?)?(?!{_NO_FAMILY})(?P<family>[A-Z][a-z]+)(?: \d[\d.]*)?"
    r"(?:[ -]only)?(?: (?:weekly|usage))? limit\b"
    rf"|\blimit (?:reached |exceeded )?(?:for|on) (?:Claude )?(?!{_NO_FAMILY})(?P<whom>[A-Z][a-z]+)\b"
    r"|\blimit for (?:the )?(?:model )?[`'\"]?(?P<model>claude-[\w.-]*\w)"
)
"""A limit with a name. After ``your`` the name is a model family; at the start of a sentence only if the run's model is
of that family. A limit of one model gives the model's id."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """What the service said when it refused a request for lack of quota. reset_at: epoch milliseconds."""

    reset_at: int | None
    limit: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """The error fields of an event, or a message on stderr."""

    message: str
    ending: str | None = None
    """A terminal reason or subtype in ENDINGS."""
    stop_reason: str | None = None
    kind: str | None = None
    status: int | None = None
    category: str | None = None
    at_ms: int | None = None
    """When it was printed, in epoch milliseconds; None: unknown."""
    mixed: bool = False
    """Whether a tool may have printed the message, so that its words mean nothing."""


def classify(
    failure: Failure, rejection: Rejection | None, now_ms: int, zone: str | None, model: str | None = None
) -> RunVerdict:
    """Return the verdict of a failure. now_ms: used if the failure has no time of its own. zone: as for ``find_reset``.
    model: the run's model, as far as known."""
    known = _typed(failure)
    if known is not None:
        return failed(known, failure.message)
    words = _words_of(failure)
    if failure.kind == USAGE_LIMIT or failure.status == 429 or failure.category == "rate_limit":
        return _limited(failure, rejection, now_ms, zone, model)
    if _NO_CREDIT.search(words):
        return failed(Reason.NO_CREDIT, failure.message)
    reason = by_status(failure.status) or _BY_CATEGORY.get(failure.category or "")
    if reason is None and _LIMIT.search(words):
        return _limited(failure, rejection, now_ms, zone, model)
    return failed(reason or by_words(words, _BY_WORDS) or Reason.AGENT_ERROR, failure.message)


def _words_of(failure: Failure) -> str:
    return "" if failure.mixed else failure.message[:MAX_READ]


def _typed(failure: Failure) -> Reason | None:
    if failure.ending is not None:
        return _BY_ENDING[failure.ending]
    if failure.stop_reason == "refusal":
        return Reason.REFUSED
    return _BY_KIND.get(failure.kind or "")


def _limited(
    failure: Failure, rejection: Rejection | None, now_ms: int, zone: str | None, model: str | None
) -> RunVerdict:
    """Return the verdict of a used-up limit, with the reset that was reported, or else none, for the caller to
    estimate. The service's own epoch is exact; a message has the time to the minute, without a date."""
    words = _words_of(failure)
    reset_at = rejection.reset_at if rejection is not None else None
    if reset_at is None:
        reset_at = find_reset(words, failure.at_ms if failure.at_ms is not None else now_ms, zone)
    if reset_at is None and _NO_CREDIT.search(words):
        return failed(Reason.NO_CREDIT, failure.message)
    family = _family_named(words, model)
    named = (name for pattern, name in _WINDOWS if pattern.search(words))
    limit = rejection.limit if rejection is not None else None
    one_model = family is not None and family.startswith("claude-")
    limit = limit or (next(named, None) if family is None or one_model else f"seven_day_{family}")
    return replace(limited(failure.message, reset_at, limit), family=family or family_of(limit))


def _family_named(message: str, model: str | None) -> str | None:
    """Return the model family, or the one model, whose limit the message names; None: it names none."""
    for match in _FAMILY_LIMIT.finditer(message):
        family = (match["family"] or match["whom"] or match["model"]).lower()
        if match["whose"] or not match["family"] or in_family(model, family):
            return family
    return None


_FINISHED = frozenset({"end_turn", "stop_sequence", "stop"})
"""Stop reasons of a model that finished its answer."""
_FIRST_ERROR = 400
_NO_ROOM = "model_context_window_exceeded"
_FINISHED_TURN = frozenset({"completed", "stop_hook_prevented"})
"""Terminal reasons of a finished turn."""


def succeeded(result: Event) -> bool:
    """Return whether the result claims success and nothing in it contradicts that. Old versions report ``is_error:
    false`` for a run out of turns, so no version's "success" is trusted alone."""
    subtype = text_of(result, "subtype") or ""
    stopped = subtype.startswith("error") or ending_of(result) is not None or result.get("stop_reason") == "refusal"
    refused = text_of(result, "api_error") is not None or (count_of(result, "api_error_status") or 0) >= _FIRST_ERROR
    return result.get("is_error") is False and not stopped and not refused


def cut_off(result: Event, last: str | None) -> RunVerdict | None:
    """Return the verdict of a model that was cut off although the result claims success; None: it was not.

    An unknown stop reason is a cut. A model that answers ``--json-schema`` ends its turn with a tool call. last: why
    the last message ended, for versions whose results do not say.
    """
    stop_reason, terminal_reason = text_of(result, "stop_reason") or last, text_of(result, "terminal_reason")
    if not succeeded(result) or stop_reason == "refusal":
        return None
    subtype = text_of(result, "subtype")
    if subtype not in (None, "success"):
        return failed(Reason.UNFINISHED, f"its turn ended with {subtype}, which is no success")
    answers = stop_reason in _FINISHED or (stop_reason == "tool_use" and "structured_output" in result)
    if stop_reason is not None and not answers:
        reason = Reason.CONTEXT_TOO_LONG if stop_reason == _NO_ROOM else Reason.UNFINISHED
        return failed(reason, f"its model was cut off: {stop_reason}")
    if terminal_reason is not None and terminal_reason not in _FINISHED_TURN:
        return failed(Reason.UNFINISHED, f"its turn was cut off: {terminal_reason}")
    return None


def ending_of(result: Event) -> str | None:
    """Return the terminal reason or subtype that says why the run did not finish; None: none does."""
    named = (text_of(result, "terminal_reason"), text_of(result, "subtype"))
    return next((name for name in named if name in ENDINGS), None)


def message_of(result: Event) -> str:
    """Return the result's text, or else its errors."""
    errors = [error for error in list_of(result, "errors") if isinstance(error, str)]
    return text_of(result, "result") or "\n".join(errors)


def lists_all_errors(result: Event) -> bool:
    """Return whether the message lists every error of the process, including those of tools."""
    return text_of(result, "result") is None and text_of(result, "subtype") == "error_during_execution"
