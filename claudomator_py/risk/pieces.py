"""A text in pieces: its sentences and lines, and which of them are pasted, such as logs and code."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from claudomator_py.risk.lexicon import lexicon

MAX_PIECE: Final = 600
"""Characters of a piece; a longer sentence is cut between two words."""
_OVERLAP: Final = 200
"""Characters that a piece of a long sentence has in common with the one before: an order stands whole in one."""
_FENCE: Final = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
_INDENTED: Final = re.compile(r"(?: {4}|\t)(?![-*\d])")
_LISTED: Final = re.compile(r"\s*(?:\d+[.)]|[-*\u2022])\s")
_END: Final = re.compile(r"[.!?;]\s+|[\u3002\uff01\uff1f\uff1b]\s*")
_GOES_ON: Final = re.compile(r"[a-z0-9`(\"'/]")
_MAY_GO_ON: Final = re.compile(r"[\w,)\"'`]")


class TextPart(NamedTuple):
    """A sentence or line. pasted: it stands in what somebody has copied."""

    text: str
    pasted: bool
    logged: bool = False
    """Whether it is a line of a log, of which there are many that differ by their numbers."""


def pieces(text: str) -> Iterator[TextPart]:
    """Return them in order. A line that may go on in the next is there by itself, and again with what follows it. If
    all of a text is pasted, nothing is."""
    found = list(_lines(text))
    every = all(line.pasted for line in found)
    before = ""
    for line in found:
        said = _sentences(line.text)
        for sentence in said:
            for part in _parts(sentence):
                yield TextPart(part, line.pasted and not every, line.logged)
        if before and not line.pasted and _GOES_ON.match(said[0].lstrip()):
            said[0] = f"{before} {said[0].lstrip()}"
            for part in _parts(said[0]):
                yield TextPart(part, pasted=False)
        goes_on = not line.pasted and _MAY_GO_ON.match(line.text.rstrip()[-1:])
        before = said[-1].rstrip()[-_OVERLAP:] if goes_on else ""


def _sentences(line: str) -> list[str]:
    ends = list(_END.finditer(line))
    if not ends:
        return [line]
    begins = [0, *(end.end() for end in ends)]
    return [line[begin:end] for begin, end in zip(begins, [*(end.start() + 1 for end in ends), len(line)], strict=True)]


def _lines(text: str) -> Iterator[TextPart]:
    fenced = steps = False
    logs, reports = lexicon().logged, lexicon().reported
    for line in text.splitlines():
        if not line.strip():
            steps = False
            continue
        if _FENCE.match(line):
            fenced = not fenced
            continue
        steps = reports.match(line) is not None or (steps and _LISTED.match(line) is not None)
        logged = logs.match(line) is not None
        yield TextPart(line, fenced or steps or logged or _INDENTED.match(line) is not None, logged)


def _parts(sentence: str) -> Iterator[str]:
    if len(sentence) <= MAX_PIECE:
        if sentence and not sentence.isspace():
            yield sentence
        return
    begin = 0
    while len(sentence) - begin > MAX_PIECE:
        end = sentence.rfind(" ", begin + MAX_PIECE - _OVERLAP // 2, begin + MAX_PIECE)
        end = begin + MAX_PIECE if end < 0 else end
        yield sentence[begin:end]
        after = sentence.find(" ", end - _OVERLAP, end)
        begin = end - _OVERLAP if after < 0 else after + 1
    if sentence[begin:].strip():
        yield sentence[begin:]
