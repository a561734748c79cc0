"""A text in pieces: its sentences and lines, and which of them are pasted, such as logs and code."""

from collections.abc import Iterator
from typing import Final

from claudomator_py.risk.folding import fold
from claudomator_py.risk.lexicon import ACTS, ENGLISH, LEAD, NUMBER, PROGRAM, lexicon
from claudomator_py.values import regex

_MAX_PIECE: Final = 600
"""Characters of a piece; a longer sentence is read in such."""
_MAX_WORDS: Final = 90
_STEP: Final = 60
"""Words after which the next piece of a long sentence begins, so that an order stands whole in one."""
_LISTED: Final = regex(r"(?:\d+[.)]|[-*\u2022])\s")
_END: Final = regex(r"[.!?;]\s+")
_FULL_END: Final = regex(r"[.!?;]\s+|[\u3002\uff01\uff1f\uff1b]\s*")
_GOES_ON: Final = regex(r"[a-z0-9`(\"'/]|--?\w")
_OPEN: Final = ",)\"'`_"
"""Marks with which a line may end that goes on."""
_MAX_LEAD: Final = 4
"""Words of a line among which its order begins."""


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Return them in order, each with whether it is pasted. Lines of which one may go on in the next are read
    together."""
    split = (_END if text.isascii() else _FULL_END).split
    for line, pasted in _lines(text):
        for sentence in split(line):
            for part in (sentence,) if len(sentence) <= _MAX_PIECE else _cut(sentence):
                if part:
                    yield part, pasted


def _cut(sentence: str) -> Iterator[str]:
    words = sentence.split()
    for begin in range(0, len(words), _STEP):
        yield " ".join(words[begin : begin + _MAX_WORDS])


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Return lines, and what goes on over some of them in one."""
    fenced = steps = False
    is_pasted, is_reported = (lexicon().lines[name].match for name in ("pasted", "reported"))
    before: list[str] = []
    for line in (*text.splitlines(), ""):
        bare = line.strip()
        fence = bare.startswith(("```", "~~~"))
        steps = bool(bare and (is_reported(bare) or (steps and _LISTED.match(bare))))
        pasted = fenced or fence or steps or is_pasted(line)
        if before and (pasted or not bare or not _goes_on(before[-1], bare)):
            yield " ".join(before), False
            before = []
        if fence:
            fenced = not fenced
        elif bare and pasted:
            yield bare, True
        elif bare:
            before.append(bare)


def _goes_on(before: str, line: str) -> bool:
    """Whether a line goes on in the next: not if that begins with an order or a command."""
    if before[-1].isalpha() and fold(before.rsplit(None, 1)[-1]) in lexicon().sets["open"]:
        return True
    if not _GOES_ON.match(line) or not (before[-1].isalnum() or before[-1] in _OPEN):
        return False
    english = lexicon().languages[ENGLISH]
    for word in line.split(None, _MAX_LEAD)[:_MAX_LEAD]:
        tells = english[fold(word).strip("`,:") or word]
        if not tells & (LEAD | NUMBER):
            return not tells & (ACTS | PROGRAM)
    return True
