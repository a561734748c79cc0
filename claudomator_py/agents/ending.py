"""Combines what an agent reported about its run with how its process ended, and classifies errors of a model's service:
by the CLI's own words, by HTTP status, by any words.

What the words of each mean is data: ``errors.toml`` here and in the package of each kind.
"""

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

from claudomator_py.agents.limit_text import find_model, find_reset
from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Provenance, Reason, Tokens
from claudomator_py.domain.run import ExitRecord
from claudomator_py.values import dataclass, regex, toml_data

_ENDED_BY: dict[str, tuple[Reason, str]] = {
    "timeout": (Reason.TIMEOUT, "it was stopped at its timeout"),
    "stall": (Reason.STALLED, "it was stopped at its stall timeout: it neither wrote nor computed anything"),
    "output_limit": (Reason.OUTPUT_LIMIT, "it was stopped because it wrote more than allowed"),
    "interrupt": (Reason.INTERRUPTED, "it was stopped because its supervisor was told to stop, as at a shutdown"),
    "disk_full": (Reason.DISK_FULL, "it was stopped because the disk was full"),
    "wind_down": (Reason.INTERRUPTED, "it was stopped as it had had its last word, but it began again just then"),
}
_MAX_NAMED_DENIALS = 5
_SHELL_SIGNALS = {128 + number for number in (1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 14, 15)}
_CRASHES = {
    int(signal.Signals[name]): name
    for name in ("SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS")
}
"""Signals that a process brings on itself by a fault."""
_NOT_STARTED = {126: "could not be executed", 127: "was not found"}
"""What a shell or ``env`` means by these exit codes: of the agent's program, or of one that it started."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """How a run ended, without its result. reset_at: epoch milliseconds. conversation_lost: the agent does not know the
    conversation that the run was to continue."""

    status: OutcomeStatus
    reason: Reason | None = None
    detail: str | None = None
    reset_at: int | None = None
    provenance: Provenance | None = None
    limit: str | None = None
    family: str | None = None
    """The model family that the limit applies to; None: all models."""
    conversation_lost: bool = False


_LOST = RunVerdict(OutcomeStatus.LOST, Reason.LOST, "its supervisor was killed before it could record the end")


@dataclass(frozen=True, slots=True)
class NearLimitNotice:
    """An account's limit that is nearly used up."""

    until: int
    """Epoch milliseconds."""
    limit: str | None
    used: float | None
    """The share that is used up."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run produced and used, however it ended."""

    conversation_id: str | None = None
    text: str | None = None
    """The final answer."""
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    question: str | None = None
    """The question that the run asked a person."""
    denied: tuple[Denied, ...] = ()
    """Tool calls that were denied, each listed once."""
    denials: int = 0
    """Total number of denied calls."""
    dropped: int = 0
    """Number of things it had scheduled for later, which were lost with its program."""
    windows: Mapping[str, WindowUse] = field(default_factory=dict)
    """Use of each of the account's windows, by name."""
    near: NearLimitNotice | None = None
    model: str | None = None
    """The model that it used, as its program names it; None if it did not say."""


def failed(reason: Reason, detail: str | None = None) -> RunVerdict:
    """Return a failure for this reason."""
    return RunVerdict(OutcomeStatus.FAILED, reason, detail)


def with_lost_conversation(verdict: RunVerdict, words: re.Pattern[str]) -> RunVerdict:
    """Return the verdict on a resumed run. words: the agent's message for an unknown conversation."""
    lost = verdict.reason is Reason.BAD_INVOCATION and words.search(verdict.detail or "") is not None
    return replace(verdict, conversation_lost=True) if lost else verdict


def with_detail(verdict: RunVerdict, sentence: str) -> RunVerdict:
    """Return the verdict with the sentence appended to its detail."""
    return replace(verdict, detail=" ".join(filter(None, (verdict.detail, sentence))))


def denials(names: Sequence[str]) -> str | None:
    """Return a sentence about denied tool calls. names: the tool of each call."""
    if not names:
        return None
    tools = sorted(set(names))
    named = ", ".join(tools[:_MAX_NAMED_DENIALS]) + (", ..." if len(tools) > _MAX_NAMED_DENIALS else "")
    calls = "1 tool call was" if len(names) == 1 else f"{len(names)} tool calls were"
    return f"{calls} denied: {named}. Allow what it needs with permissions.mode or permissions.allowed_tools."


def verdict_of(
    reported: RunVerdict | None,
    exit_record: ExitRecord | None,
    by_exit: Callable[[ExitRecord], RunVerdict],
    *,
    began: bool,
) -> RunVerdict:
    """Return the verdict. reported: that of a complete terminal event, if any; by_exit: judges a run without one;
    began: its output shows that it did something, so that a program it then lacked is no fault of its set-up.

    A cancelled run stays cancelled. Otherwise the agent's report takes precedence: if the agent finished before the
    shim lost patience with its process, the work is done. An agent that only reports an interruption adds nothing to a
    shim that knows the cause.
    """
    if exit_record is not None and exit_record.ended_by == "cancel":
        return RunVerdict(OutcomeStatus.CANCELLED, Reason.CANCELLED)
    if reported is not None and reported.reason is not Reason.INTERRUPTED:
        return reported
    if exit_record is None:
        return reported or _LOST
    if exit_record.ended_by is not None:
        return failed(*_ENDED_BY[exit_record.ended_by])
    if exit_record.exit_code is None:
        return failed(Reason.SETUP_FAILED, exit_record.error or "its program was not started")
    if reported is not None:
        return reported
    code = exit_record.exit_code
    if code < 0 or code in _SHELL_SIGNALS:
        return _by_signal(-code if code < 0 else code - 128)
    verdict = by_exit(exit_record)
    if code in _NOT_STARTED and verdict.reason is Reason.AGENT_ERROR:
        why = f"a program {'that it started later ' if began else ''}{_NOT_STARTED[code]}"
        reason = Reason.AGENT_ERROR if began else Reason.SETUP_FAILED
        return failed(reason, ": ".join(filter(None, (why, verdict.detail))))
    return verdict


def _by_signal(number: int) -> RunVerdict:
    if number in _CRASHES:
        return failed(Reason.AGENT_ERROR, f"it crashed with {_CRASHES[number]} (signal {number})")
    return failed(Reason.INTERRUPTED, f"it was ended by signal {number}")


_OF_VERDICT = tuple(item.name for item in fields(RunVerdict))
_OF_RESULT = tuple(item.name for item in fields(Result) if item.name != "near")


def outcome(verdict: RunVerdict, result: Result) -> Outcome:
    """Return verdict and result as an ``Outcome``."""
    near = result.near
    known = {name: getattr(verdict, name) for name in _OF_VERDICT} | {
        name: getattr(result, name) for name in _OF_RESULT
    }
    return Outcome(
        **known,
        near_limit_until=near.until if near is not None else None,
        near_limit=near.limit if near is not None else None,
        near_limit_used=near.used if near is not None else None,
    )


Rules = Sequence[tuple[re.Pattern[str], Reason]]
"""(pattern, reason) pairs; the first match counts."""

MAX_READ = 2_000
"""Characters of a message that are searched: an error says at its beginning what it is."""
_FORBIDDEN = 403
_BY_STATUS = {
    401: Reason.AUTH,
    402: Reason.NO_CREDIT,
    _FORBIDDEN: Reason.AUTH,
    408: Reason.NETWORK,
    413: Reason.CONTEXT_TOO_LONG,
    429: Reason.RATE_LIMITED,
}
_STATUS = regex(
    r"(?:\bstatus(?: code)?\W{1,4}|\berror\W{1,3}|\"code\"\W{1,3}|\bHTTP )([45]\d\d)\b"
    r"|\b([45]\d\d) (?:Unauthorized|Forbidden|Not Found|Too Many Requests|Internal|Bad Gateway|Service Unavailable)"
    r"|\b(?:request|call)\b[^\n]{0,60}\bfailed(?: with)?\W{1,3}([45]\d\d)\b",
    re.IGNORECASE,
)


_FILE_NAME = regex(
    r"(?<![\w./\\@-])[\w./\\@-]*\w\.(?:[cm]?[jt]sx?|pyi?|go|rs|rb|java|kt|cs|php|[ch]|[ch]pp|swift|sh|sql|md|rst|txt|json|ya?ml|toml"
    r"|html?|s?css|vue|svelte|lua|exs?|xml|log|lock)\b(?::\d+)*"
)
_PAGE = regex(r"<!doctype html|<html\b", re.IGNORECASE)
"""A web page in place of an answer comes from something before the service, such as a proxy or the network's login, so
its words mean nothing."""


def caseless(pattern: str) -> re.Pattern[str]:
    """Return the pattern compiled without regard to case."""
    return re.compile(pattern, re.IGNORECASE)


_USED_UP = r"(?:hit|reached|exceeded|exhausted|used (?:up|all)|r[ua]n out of|out of|depleted|no more)"
_OF_TIME = (
    r"\b(?:your|daily|weekly|monthly|hourly|yearly|usage|requests?|messages?|plan'?s?|premium|session|\d+-(?:hour|day)"
    r"|per[- ](?:minute|hour|day|week|month))\b"
)
_QUOTA = r"\b(?:limits?|quotas?|allowance|requests|messages|usage)\b"
_NEAR = r"(?:[^\n.]|\.(?=\S)){0,60}?"
"""Within one sentence: a dot may be part of a model's name."""
SAYS_LIMITED = (
    rf"\b{_USED_UP}\b{_NEAR}(?:{_OF_TIME}{_NEAR}{_QUOTA}|\bquota\b)"
    rf"|(?:{_OF_TIME}{_NEAR}{_QUOTA}|\bquota\b){_NEAR}\b{_USED_UP}\b"
)
"""A quota for some time is used up, in any wording and order."""
SAYS_NO_LOGIN = (
    r"(?:incorrect|invalid|missing|expired|bad) (?:api|access|auth|bearer|oauth)[ _-]?\w*"
    r"|api[ _]key[ _](?:not valid|invalid|expired|is )"
    r"|unauthenticated|unauthorized|authenticat|\blogg?ed (?:in|out)\b|\blog ?in\b|\bsign(?:ed)?[ -]?(?:in|out)\b"
    r"|credentials|invalid_grant|\bauth (?:method|type)\b"
)
"""There is no valid login."""
SAYS_NO_MODEL = (
    r"model[^\n]{0,80}(?:not (?:be )?found|does not exist|not supported|no access|not available|not configured)"
    r"|models?/\S+ is not found|(?:unknown|invalid|no such|unrecognized|unsupported) model|modelnotfound"
)
"""The model does not exist, or not for this account."""
_SHARED = {"{limited}": SAYS_LIMITED, "{no_login}": SAYS_NO_LOGIN, "{no_model}": SAYS_NO_MODEL}


def error_rules(kind: str) -> Rules:
    """Return what the words of a kind of agent mean, from ``errors.toml`` in its package."""
    return rules_of(f"{__package__}.{kind}")


def error_table(kind: str, name: str) -> Mapping[Any, Reason]:
    """Return the reason by code or name, from a table of ``errors.toml`` in the package of a kind of agent."""
    reasons: Mapping[str, Sequence[Any]] = toml_data(f"{__package__}.{kind}", "errors.toml")[name]
    return {key: Reason(reason) for reason, keys in reasons.items() for key in keys}


def rules_of(package: str) -> Rules:
    """Return the rules of ``errors.toml`` in the package, in order."""
    return tuple(
        (caseless("|".join(_SHARED.get(word, word) for word in rule["words"])), Reason(rule["reason"]))
        for rule in toml_data(package, "errors.toml")["rules"]
    )


_ANY_WORDS = rules_of(__package__)


def classify(
    message: str, rules: Rules, now_ms: int, *, status: int | None = None, zone: str | None = None
) -> RunVerdict:
    """Return the verdict of an error. rules: the meaning of this CLI's words. now_ms: when the message was printed.
    status: the HTTP status, if known. zone: as for ``find_reset``."""
    lowered = message[:MAX_READ].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    status = status if status is not None else find_status(lowered)
    own = _PAGE.split(lowered, maxsplit=1)[0]
    reason = by_words(own, rules) or by_page(lowered, status) or by_status(status)
    reason = reason or by_words(own, _ANY_WORDS) or Reason.AGENT_ERROR
    if reason is Reason.RATE_LIMITED:
        return limited(message, find_reset(lowered, now_ms, zone))
    return failed(reason, message)


def limited(message: str, reset_at: int | None, limit: str | None = None) -> RunVerdict:
    """Return the verdict of a used-up quota, for one model if the message names it. reset_at: epoch milliseconds; None:
    the caller has to estimate it."""
    provenance = Provenance.ESTIMATED if reset_at is None else Provenance.REPORTED
    family = find_model(message[:MAX_READ])
    return RunVerdict(OutcomeStatus.LIMITED, Reason.RATE_LIMITED, message, reset_at, provenance, limit, family)


def find_status(message: str) -> int | None:
    """Return the HTTP status that an error message names."""
    match = _STATUS.search(message)
    return int(match[1] or match[2] or match[3]) if match else None


def by_status(status: int | None) -> Reason | None:
    """Return the reason that an HTTP status alone means; None: none. A model's service does not redirect; what stands
    before it does, such as a proxy or the network's login."""
    if status is not None and 300 <= status < 400:
        return Reason.NETWORK
    if status is not None and 500 <= status < 600:
        return Reason.OVERLOADED
    return _BY_STATUS.get(status or 0)


def by_page(message: str, status: int | None) -> Reason | None:
    """Return the reason of a web page that forbids access; None: it is none. A service refuses a key in JSON."""
    return Reason.NETWORK if status == _FORBIDDEN and _PAGE.search(message[:MAX_READ]) else None


def by_words(message: str, rules: Rules) -> Reason | None:
    """Return the reason of the first rule that matches; None: none does. A file that a task is about may be called
    ``rate_limit.py`` or ``login.ts``: names of files say only of settings what is wrong."""
    plain = _FILE_NAME.sub(" ", message)
    of_settings = (Reason.BAD_INVOCATION, Reason.INVALID_MODEL)
    found = (reason for pattern, reason in rules if pattern.search(message if reason in of_settings else plain))
    return next(found, None)
