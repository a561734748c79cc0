"""Removes secrets from text: known values, and whatever looks like a key.

A guard against mishaps: it finds a secret as such and as JSON, a URL, a page or Base64 writes it, but not one that a
program took apart.
"""

import html
import json
import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping, Set
from enum import Enum
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel

from claudomator_py.acts import without_words
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.lifecycle import STATE_NAMES, InputKind, Phase, QueueReason, WaitReason
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.values import regex

MARK = "[redacted]"
SHORTEST = 8
"""Minimum length of a secret: a shorter value would match everywhere."""
MAX_HELD = 64 * 1024
"""Maximum characters held back while they may be the start of a secret."""

_LINE_OF_SECRET = 16
_OPEN_LOOKBACK = 4_096
# Characters of a key, and the backslash of an escape before it: in JSON, ``\nsk-...`` is a line end and a key.
_KEY_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-\\"
_BEGINS = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_PEM_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"[A-Za-z0-9+/=\s\\:,.()-]*"
_TOKENS = regex(
    rf"{_BEGINS}(?:"
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|cm[tr]_[A-Za-z0-9_-]{20,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|A[KS]IA[A-Z0-9]{16,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|(?i:bearer)\s{1,4}(?P<token>[A-Za-z0-9._~+/=-]{8,})"
    r")"
)
# A cheap test for a possible match, at a tenth of the cost: searches for the literal that a pattern begins with.
_SIGNS = tuple(
    (literal, re.compile(rf"{literal}(?:(?<![A-Za-z0-9_-]{literal})|(?<=\\[nrt]{literal}))").search)
    for literal in ("sk-", "AIza", "cmt_", "cmr_", "gh", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "eyJ")
)
_SIGN_OF_BEARER = "bearer"
# Matched separately: text before it must not take its first line for a token and leave the rest.
_PEM = regex(rf"-----BEGIN {_PEM_NAME}(?:{_PEM_BODY}?-----END {_PEM_NAME}|{_PEM_BODY})")
# The password in a URL, as git prints for remotes and databases for their hosts.
_PASSWORD = regex(r"://[^\s/@:\"'\\<>]{0,128}:(?P<token>[^\s/@\"'\\<>]{1,512})@")
# An incomplete match of a pattern that contains more than a token's characters.
_OPEN = regex(
    r"(?::(?:/(?:/[^\s/@\"'\\<>]{0,700})?)?"
    r"|eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_.-]*|(?i:bearer)(?:\s{1,4}[A-Za-z0-9._~+/=-]*)?|-----BEGIN[A-Z0-9 ]*-*)\Z"
)

_RESERVED = regex(rb"[^A-Za-z0-9_.~-]")
_PLAIN = regex(r"[A-Za-z0-9_.~-]+")
# By number of bytes before a value (its shift in Base64): the leading characters that those bytes affect.
_SHARED = (0, 2, 3)

_ELLIPSES = regex(r"\.\.\.\.*"), regex(r"\N{HORIZONTAL ELLIPSIS}")
_MAX_CUT = 500

Span = tuple[int, int]


class Redactor:
    """Removes these values and whatever looks like a secret. Values shorter than SHORTEST are ignored."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._know({form for value in values for form in _forms(value)})

    def _know(self, forms: Set[str]) -> None:
        self._known = sorted(forms)
        self._longest = max(map(len, forms), default=0)

    def knowing(self, values: Iterable[str]) -> "Redactor":
        """Return a redactor that also removes these values."""
        other = Redactor(values)
        other._know({*self._known, *other._known})
        return other

    def redact(self, text: str) -> str:
        """Return the text with each secret replaced by MARK."""
        return _marked(text, self._spans(text))

    def redact_cut(self, text: str) -> str:
        """Redact like ``redact``, for texts that may have been shortened: also removes what is left of a secret cut off
        before an ellipsis, if at least SHORTEST long."""
        return _marked(text, self._spans_of_cut(text))

    def redact_piece(self, text: str) -> str:
        """Redact like ``redact_cut``, for a text whose start or end may be missing, and with it part of a secret."""
        begun = max((_begun(form, text) for form in self._known), default=0)
        ended = max((_ended(form, text) for form in self._known), default=0)
        ends = [(0, ended)] * (ended >= SHORTEST) + [(len(text) - begun, len(text))] * (begun >= SHORTEST)
        return _marked(text, _merged([*self._spans_of_cut(text), *ends]))

    def finds(self, text: str) -> bool:
        """Return whether the text contains a secret, or the remainder of one before an ellipsis."""
        return bool(self._spans_of_cut(text))

    def safe_length(self, text: str) -> int:
        """Return how much of the text can be shown whatever follows: no secret begins in that part and ends after
        it."""
        place = len(text)
        if (opened := _OPEN.search(text, max(0, place - _OPEN_LOOKBACK))) is not None:
            place = opened.start()
        place = min([place, *(len(text) - _begun(form, text) for form in self._known)])
        spans = self._spans(text, announced=True)
        while True:
            before = place
            place = len(text[:place].rstrip(_KEY_LETTERS))
            for start, end in reversed(spans):
                if start < place <= end:
                    place = start
            if place == before:
                break
        return place if len(text) - place <= MAX_HELD else len(text)

    def _spans(self, text: str, *, announced: bool = False) -> list[Span]:
        """Spans of secrets, in order, merged if they overlap or touch. announced: include the words that announce a
        secret."""
        span: Callable[[re.Match[str]], Span] = re.Match.span if announced else _secret
        # No comprehensions: there are many texts, and most contain no secret.
        spans = [*map(span, _PASSWORD.finditer(text))] if "://" in text else []
        if _has_sign(text):
            spans += map(span, _TOKENS.finditer(text))
        if "-----BEGIN" in text:
            spans += map(re.Match.span, _PEM.finditer(text))
        for form in self._known:
            if form in text:
                start = text.find(form)
                while start >= 0:
                    spans.append((start, start + len(form)))
                    start = text.find(form, start + 1)
        return _merged(spans) if spans else spans

    def _spans_of_cut(self, text: str) -> list[Span]:
        spans = self._spans(text)
        ends: list[Span] = []
        is_cut = "..." in text or "\N{HORIZONTAL ELLIPSIS}" in text
        for ellipsis in islice(_ellipses(text), _MAX_CUT) if self._known and is_cut else ():
            place = ellipsis.start()
            before = text[max(0, place - self._longest) : place]
            begun = max(_begun(form, before) for form in self._known)
            if begun >= SHORTEST:
                ends.append((place - begun, place))
        return _merged([*spans, *ends]) if ends else spans


def _has_sign(text: str) -> bool:
    # Written out: a generator takes several times as long as a search in a short text.
    for literal, search in _SIGNS:
        if literal in text and search(text):
            return True
    return _SIGN_OF_BEARER in text.lower()


def _ellipses(text: str) -> Iterable[re.Match[str]]:
    """All matches, in order."""
    return merge(*(pattern.finditer(text) for pattern in _ELLIPSES), key=re.Match.start)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _marked(text: str, spans: Iterable[Span]) -> str:
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts += (text[position:start], MARK)
        position = end
    return "".join((*parts, text[position:])) if parts else text


def _secret(match: re.Match[str]) -> Span:
    return match.span("token") if match["token"] is not None else match.span()


def _forms(value: str) -> set[str]:
    """The ways in which a secret may be written. Each long line of a multi-line secret counts as a secret, too."""
    whole = value.strip()
    parts = {whole, *(line for line in map(str.strip, whole.splitlines()) if len(line) >= _LINE_OF_SECRET)}
    forms = set()
    for part in parts:
        if len(part) >= SHORTEST and _PLAIN.fullmatch(part):
            # For example a run's token, of which each run has a new one: JSON, HTML and URLs write it unchanged.
            forms |= {part, *_in_base64(part.encode())}
        elif len(part) >= SHORTEST:
            forms |= {part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1], _quoted(part)}
            forms |= {_in_html(part), *_in_base64(part.encode(errors="replace"))}
    return forms


def _in_html(text: str) -> str:
    """As HTML writes it."""
    return html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def _in_base64(value: bytes) -> set[str]:
    """The part shared by all Base64 texts that contain the value, whatever precedes and follows it."""
    forms, length = set(), len(value)
    for shift, shared in enumerate(_SHARED):
        whole = b2a_base64(bytes(shift) + value, newline=False).decode()
        open_bytes = (shift + length) % 3
        own = whole[shared : -(4 - open_bytes) if open_bytes else None]
        forms.add(own)
        if "+" in own or "/" in own:
            forms.add(own.replace("+", "-").replace("/", "_"))
    return forms


def _quoted(text: str) -> str:
    """As a URL writes it."""
    return _RESERVED.sub(lambda byte: b"%%%02X" % byte[0][0], text.encode(errors="replace")).decode()


def _ended(form: str, text: str) -> int:
    """Length of the longest proper prefix of the text that the form ends with."""
    last = form[-1]
    end = text.rfind(last, 0, len(form) - 1)
    while end >= 0:
        if form.endswith(text[: end + 1]):
            return end + 1
        end = text.rfind(last, 0, end)
    return 0


def _begun(form: str, text: str) -> int:
    """Length of the longest proper suffix of the text that the form begins with."""
    first = form[0]
    start = text.find(first, max(0, len(text) - len(form) + 1))
    while start >= 0:
        if form.startswith(text[start:]):
            return len(text) - start
        start = text.find(first, start + 1)
    return 0


T = TypeVar("T")

_ENUMS: tuple[type[Enum], ...] = (
    *(InputKind, OutcomeStatus, Phase, Provenance, QueueReason, Reason, Tier, WaitReason),
)
_CODES = frozenset({code.value for enum in _ENUMS for code in enum} | set(STATE_NAMES.values()))
"""Public words that programs act on. They stay even if they equal a secret, so that no task variable can make stored
data unreadable."""

_TEXT_FIELDS = ("text", "detail", "question", "limit", "family", "model", "near_limit")


def clean(value: T, redactor: Redactor) -> T:
    """Return the value with secrets removed from its texts. Codes, field names and mapping keys are unchanged. A model
    is copied, not validated. The value itself is returned if it contains no secret."""
    # One search over everything: most values are clean, and many small texts cost more than one of their total size.
    if not redactor.finds("\0".join(_texts(value))):
        return value
    cleaned: T = replaced(value, redactor.redact_cut)
    return cleaned


def without_secrets(outcome: Outcome, redactor: Redactor) -> Outcome:
    """Return the outcome with secrets removed from everything an agent said and did, including parts of secrets at the
    ends of its texts.

    Values that programs act on must contain no secret and are dropped if they do: a conversation's id, and a rule that
    would name a secret on a command line.
    """

    def said(text: str | None) -> str | None:
        return None if text is None else redactor.redact_piece(text)

    def exact(text: str | None) -> str | None:
        return None if text is None or redactor.finds(text) else text

    def rule(text: str | None) -> str | None:
        return exact(text) or (text and exact(without_words(text)))

    values = outcome.__dict__
    changes: dict[str, object] = {name: said(text) for name in _TEXT_FIELDS if (text := values[name]) is not None}
    if outcome.conversation_id is not None:
        changes["conversation_id"] = exact(outcome.conversation_id)
    if outcome.windows:
        changes["windows"] = {redactor.redact(name): clean(use, redactor) for name, use in outcome.windows.items()}
    if outcome.changes is not None:
        changes["changes"] = replaced(outcome.changes, redactor.redact)
    if outcome.handoff is not None:
        changes["handoff"] = replaced(outcome.handoff, redactor.redact_piece)
    if outcome.denied:
        changes["denied"] = tuple(
            Denied(
                tool=redactor.redact(call.tool),
                input=redactor.redact_piece(call.input),
                rule=rule(call.rule),
                beyond=said(call.beyond),
            )
            for call in outcome.denied
        )
    return outcome.model_copy(update=changes) if changes else outcome


def _texts(value: object) -> list[str]:
    """All texts in the value, in any order. Uses an explicit list: nested generators over the many small parts of a
    stored decision cost more than the processing of their texts."""
    texts: list[str] = []
    parts: list[Any] = [value]
    for part in parts:  # grows during iteration
        kind = _KINDS[type(part)]
        if kind is _Kind.TEXT:
            if part not in _CODES:
                texts.append(part)
        elif kind is _Kind.MAPPING:
            parts += part.values()
        elif kind is _Kind.MODEL:
            parts += part.__dict__.values()
        elif kind is _Kind.PARTS:
            parts += part
    return texts


class _Kind(Enum):
    """Where the texts of a value are."""

    NOWHERE = 0
    TEXT = 1
    MAPPING = 2
    MODEL = 3
    PARTS = 4


class _KindByType(dict[type, _Kind]):
    """By type. To ask what a value is an instance of takes several times as long as to look its type up."""

    def __missing__(self, of: type) -> _Kind:
        self[of] = kind = _kind(of)
        return kind


def _kind(of: type) -> _Kind:
    if issubclass(of, str):
        return _Kind.NOWHERE if issubclass(of, Enum) else _Kind.TEXT
    if issubclass(of, BaseModel):
        return _Kind.MODEL
    if issubclass(of, Mapping):
        return _Kind.MAPPING
    return _Kind.PARTS if issubclass(of, (list, tuple, set, frozenset)) else _Kind.NOWHERE


_KINDS = _KindByType()


def replaced(value: Any, redact: Callable[[str], str]) -> Any:
    """Return the value with each of its texts redacted, except our own names."""
    if isinstance(value, str):
        return value if isinstance(value, Enum) or value in _CODES else redact(value)
    if isinstance(value, BaseModel):
        parts = {name: (part, replaced(part, redact)) for name, part in value.__dict__.items()}
        changed = {name: after for name, (before, after) in parts.items() if after is not before}
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, Mapping):
        return {key: replaced(part, redact) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(replaced(part, redact) for part in value)
    return value
