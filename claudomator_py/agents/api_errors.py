"""Classify errors of a model's service: by the CLI's own words, by HTTP status, by any words.

What the words of each mean is data: ``errors.toml`` here and in the package of each kind.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from claudomator_py.agents.ending import RunVerdict, failed
from claudomator_py.agents.limit_text import find_model, find_reset
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from claudomator_py.values import regex, toml_data

Rules = Sequence[tuple[re.Pattern[str], Reason]]
"""(pattern, reason) pairs; the first match counts."""

MAX_READ = 2_000
"""Characters of a message that are searched: an error says at its beginning what it is."""
_BY_STATUS = {
    401: Reason.AUTH,
    402: Reason.NO_CREDIT,
    403: Reason.AUTH,
    408: Reason.NETWORK,
    413: Reason.CONTEXT_TOO_LONG,
    429: Reason.RATE_LIMITED,
}
_STATUS = regex(
    r"(?:\bstatus(?: code)?\W{1,4}|\berror\W{1,3}|\"code\"\W{1,3})([45]\d\d)\b"
    r"|\b([45]\d\d) (?:Unauthorized|Forbidden|Not Found|Too Many Requests|Internal|Bad Gateway|Service Unavailable)",
    re.IGNORECASE,
)


def words(pattern: str) -> re.Pattern[str]:
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
        (words("|".join(_SHARED.get(word, word) for word in rule["words"])), Reason(rule["reason"]))
        for rule in toml_data(package, "errors.toml")["rules"]
    )


_ANY_WORDS = rules_of(__package__)


def classify(
    message: str, rules: Rules, now_ms: int, *, status: int | None = None, zone: str | None = None
) -> RunVerdict:
    """Return the verdict of an error. rules: the meaning of this CLI's words. now_ms: when the message was printed.
    status: the HTTP status, if known. zone: as for ``find_reset``.
    """
    lowered = message[:MAX_READ].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    reason = by_words(lowered, rules) or by_status(status if status is not None else find_status(lowered))
    reason = reason or by_words(lowered, _ANY_WORDS) or Reason.AGENT_ERROR
    if reason is Reason.RATE_LIMITED:
        return limited(message, find_reset(lowered, now_ms, zone))
    return failed(reason, message)


def limited(message: str, reset_at: int | None, limit: str | None = None) -> RunVerdict:
    """Return the verdict of a used-up quota, for one model if the message names it. reset_at: epoch milliseconds; None:
    the caller has to estimate it.
    """
    provenance = Provenance.ESTIMATED if reset_at is None else Provenance.REPORTED
    family = find_model(message[:MAX_READ])
    return RunVerdict(OutcomeStatus.LIMITED, Reason.RATE_LIMITED, message, reset_at, provenance, limit, family)


def find_status(message: str) -> int | None:
    """Return the HTTP status that an error message names."""
    match = _STATUS.search(message)
    return int(match[1] or match[2]) if match else None


def by_status(status: int | None) -> Reason | None:
    """Return the reason that an HTTP status alone means; None: none."""
    if status is not None and 500 <= status < 600:
        return Reason.OVERLOADED
    return _BY_STATUS.get(status or 0)


def by_words(message: str, rules: Rules) -> Reason | None:
    """Return the reason of the first rule that matches; None: none does."""
    return next((reason for pattern, reason in rules if pattern.search(message)), None)
