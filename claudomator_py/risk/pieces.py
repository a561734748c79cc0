"""A text in pieces: its sentences and lines, and which of them are pasted, such as logs and code."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from claudomator_py.risk.folding import fold
from claudomator_py.risk.lexicon import BUILD, ENGLISH, LEAD, NUMBER, PROGRAM, READ, VERB, lexicon
from claudomator_py.values import regex

MAX_PIECE: Final = 600
"""Characters of a piece; a longer sentence is cut between two words."""
_OVERLAP: Final = 200
"""Characters that a piece of a long sentence has in common with the one before: an order stands whole in one."""
_INDENTED: Final = regex(r"(?: {4}|\t)(?![-*\d])")
_LISTED: Final = regex(r"(?:\d+[.)]|[-*\u2022])\s")
_PLAIN_END: Final = regex(r"[.!?;]\s+")
_END: Final = regex(r"[.!?;]\s+|[\u3002\uff01\uff1f\uff1b]\s*")
_GOES_ON: Final = regex(r"[a-z0-9`(\"'/]|--?\w")
_MAX_LEAD: Final = 4
"""Words of a line among which its order begins."""
_MAY_GO_ON: Final = regex(r"[\w,)\"'`]")


class TextPart(NamedTuple):
    """A sentence or line. pasted: it stands in what somebody has copied."""

    text: str
    pasted: bool
    logged: bool = False
    """Whether it is a line of a log, of which there are many that differ by their numbers."""


def pieces(text: str) -> Iterator[TextPart]:
    """Return them in order. Lines of which one may go on in the next are read together, with their ends in them. If all
    of a text is pasted, nothing is."""
    found = list(_lines(text))
    every = all(line.pasted for line in found)
    end = (_PLAIN_END if text.isascii() else _END).finditer
    for line in found:
        begin, pasted = 0, line.pasted and not every
        for stop, then in (*((one.start() + 1, one.end()) for one in end(line.text)), (len(line.text), 0)):
            sentence = line.text[begin:stop]
            for part in (sentence,) if len(sentence) <= MAX_PIECE else _cut(sentence):
                if part and not part.isspace():
                    yield TextPart(part, pasted, line.logged)
            begin = then


def _lines(text: str) -> Iterator[TextPart]:
    """Return lines, and what goes on over some of them in one."""
    fenced = steps = False
    logs, reports = lexicon().logged, lexicon().reported
    before: list[str] = []
    for line in text.splitlines():
        bare = line.lstrip()
        fence = bare.startswith(("```", "~~~"))
        logged = False
        if bare and not fence:
            steps = reports.match(bare) is not None or (steps and _LISTED.match(bare) is not None)
            logged = logs.match(bare) is not None
            if not (fenced or steps or logged or _INDENTED.match(line)):
                if before and not _goes_on(before[-1], bare):
                    yield TextPart(" ".join(before), pasted=False)
                    before = []
                before.append(bare)
                continue
        if before:
            yield TextPart(" ".join(before), pasted=False)
            before = []
        if fence:
            fenced = not fenced
        elif bare:
            yield TextPart(line, pasted=True, logged=logged)
        else:
            steps = False
    if before:
        yield TextPart(" ".join(before), pasted=False)


def _goes_on(before: str, line: str) -> bool:
    """Whether a line goes on in the next: not if that begins with an order or a command."""
    before = before.rstrip()
    if before[-1].isalpha() and fold(before.rsplit(None, 1)[-1]) in lexicon().sets["open"]:
        return True
    if not (_GOES_ON.match(line) and _MAY_GO_ON.match(before[-1])):
        return False
    for word in line.split(None, _MAX_LEAD)[:_MAX_LEAD]:
        tells = lexicon().languages[ENGLISH][fold(word).strip("`,:") or word]
        if tells & (VERB | READ | BUILD | PROGRAM) and not tells & LEAD:
            return False
        if not tells & (LEAD | NUMBER):
            break
    return True


def _cut(sentence: str) -> Iterator[str]:
    """Return a long sentence in pieces."""
    begin = 0
    while len(sentence) - begin > MAX_PIECE:
        end = sentence.rfind(" ", begin + MAX_PIECE - _OVERLAP // 2, begin + MAX_PIECE)
        end = begin + MAX_PIECE if end < 0 else end
        yield sentence[begin:end]
        after = sentence.find(" ", end - _OVERLAP, end)
        begin = end - _OVERLAP if after < 0 else after + 1
    yield sentence[begin:]
