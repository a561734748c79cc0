"""Whether what a command printed is what the page shows, but for what differs from time to time."""

import re
from collections.abc import Sequence

ELLIPSIS = "…"

_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,12}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"\b(?:\d{4}-\d\d-\d\d )?\d\d:\d\d(?::\d\d)?(?: UTC)?\b"), "CLOCK"),
    (re.compile(r"\bjust now\b|\b\d+(?:ms|s|m|h|d)(?:\d+m)? ago\b"), "AGO"),
    (re.compile(r"\b(?:\d+(?:ms|s|m|h|d))+\b"), "DURATION"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "URL"),
    (re.compile(r"-{3,}|─{3,}"), "RULE"),
    (re.compile(r"[ \t]+"), " "),
)


def settled(text: str) -> str:
    """The text without what differs between two runs: ids, times, durations, ports, widths of columns."""
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def matches(expected: Sequence[str], printed: str) -> bool:
    """Whether this is what was expected."""
    parts = []
    for line in settled("\n".join(expected)).split("\n"):
        if line.strip() == ELLIPSIS:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.split(ELLIPSIS)) + r"\n")
    return re.fullmatch("".join(parts), settled(printed) + "\n") is not None
