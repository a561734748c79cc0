"""Secrets taken out of text: values that are known, and what looks like a key.

A guard against mishaps: it finds a secret as it is, and as JSON or a URL writes it, not one that a program took apart.
"""

import json
import re
from collections.abc import Iterable

MARK = "[redacted]"
SHORTEST = 8
"""A shorter value is not taken for a secret: it would be found everywhere."""
MAX_HELD = 64 * 1024
"""Characters that are held back at most, while they may be the beginning of a secret."""

_LINE_OF_SECRET = 16
_OPEN_LOOKBACK = 4_096
# What a key is made of, and the backslash of an escape before it: ``\nsk-...`` as JSON writes a line end and a key.
_KEY_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-\\"
_BEGINS = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_PEM_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"[A-Za-z0-9+/=\s\\:,.()-]*"
_TOKENS = re.compile(
    rf"{_BEGINS}(?:"
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|A[KS]IA[A-Z0-9]{16,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|(?i:bearer)\s{1,4}(?P<token>[A-Za-z0-9._~+/=-]{8,})"
    r")"
)
# Looked for on its own: what stands before it must not take its first line for a token, and leave the rest.
_PEM = re.compile(rf"-----BEGIN {_PEM_NAME}(?:{_PEM_BODY}?-----END {_PEM_NAME}|{_PEM_BODY})")
# What may yet become one of those that hold more than the characters of a token.
_OPEN = re.compile(
    r"(?:eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_.-]*|(?i:bearer)(?:\s{1,4}[A-Za-z0-9._~+/=-]*)?|-----BEGIN[A-Z0-9 ]*-*)\Z"
)

_RESERVED = re.compile(rb"[^A-Za-z0-9_.~-]")

Span = tuple[int, int]


class Redactor:
    """Takes out these values, and what looks like a secret. Values shorter than SHORTEST are left alone."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in _forms(value)}
        self._known = sorted(forms)

    def redact(self, text: str) -> str:
        """The text with MARK in the place of each secret."""
        parts: list[str] = []
        position = 0
        for start, end in self._spans(text):
            parts += (text[position:start], MARK)
            position = end
        return "".join((*parts, text[position:])) if parts else text

    def settled(self, text: str) -> int:
        """How much of the text can be shown whatever follows it: no secret begins there and ends later."""
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
        """Where secrets are, in order, those that overlap or touch as one. announced: with the words that say so."""
        found = [match.span() if announced else _secret(match) for match in _TOKENS.finditer(text)]
        found += [match.span() for match in _PEM.finditer(text)]
        for form in self._known:
            start = text.find(form)
            while start >= 0:
                found.append((start, start + len(form)))
                start = text.find(form, start + 1)
        merged: list[Span] = []
        for start, end in sorted(found):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged


def _secret(match: re.Match[str]) -> Span:
    return match.span("token") if match["token"] is not None else match.span()


def _forms(value: str) -> set[str]:
    """How a secret may be written. A long line of one that has several is one as well."""
    whole = value.strip()
    parts = [whole, *(line for line in map(str.strip, whole.splitlines()) if len(line) >= _LINE_OF_SECRET)]
    forms = set()
    for part in parts:
        if len(part) >= SHORTEST:
            forms |= {part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1], _quoted(part)}
    return forms


def _quoted(text: str) -> str:
    """As a URL writes it."""
    return _RESERVED.sub(lambda byte: b"%%%02X" % byte[0][0], text.encode(errors="replace")).decode()


def _begun(form: str, text: str) -> int:
    """The length of the longest end of the text with which the form begins, short of all of it."""
    first = form[0]
    start = text.find(first, max(0, len(text) - len(form) + 1))
    while start >= 0:
        if form.startswith(text[start:]):
            return len(text) - start
        start = text.find(first, start + 1)
    return 0
