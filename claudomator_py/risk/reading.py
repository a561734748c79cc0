"""Splits a text into sentences, and finds out which of them are only shown: logs, code, steps of a bug report."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from claudomator_py.risk.folding import cleaned, data, entries, fold, pattern
from claudomator_py.risk.harm import Harm, harm_in
from claudomator_py.risk.lexicon import ACTS, ENGLISH, NONE, Language, Word, languages
from claudomator_py.values import regex

_MARK: Final = regex('["\u201c\u201d\u201e\u00ab\u00bb]')
_ALL_QUOTED: Final = regex(
    '^\\s*["\u201c\u201e\u00ab]([^"\u201c\u201d\u201e\u00ab\u00bb]{4,})["\u201c\u201d\u00bb]\\s*$'
)
_END: Final = regex(r"[.!?\u3002\uff01\uff1f\uff1b](?:\s+|(?<![.!?]))")
_CONTINUES: Final = regex(r"[a-z0-9`(\"'/]|--?\w")
"""How a line may begin that continues the one before, and the marks that may end that."""
_CONTINUED: Final = ",)\"'`_"
_MAX_OPENING: Final = 40
"""Characters of a line among which its order begins."""
_MIN_COMMON: Final = 3
"""Common words of English by which a sentence is."""
_ASIDE: Final = regex(r"\([^()]{1,120}\)")
_DIGITS: Final = str.maketrans("123456789", "000000000")


class Sentence(NamedTuple):
    """A sentence, or a line."""

    text: str
    pasted: bool
    """Whether the text only shows it."""
    sole: bool
    """Whether it is all of the text."""
    language: Language
    words: Sequence[Word]

    @property
    def harm(self) -> Harm | None:
        """What it asks for that is criminal, or may be."""
        return harm_in(self.text, NONE.union(*[word.keys for word in self.words if word.keys]))


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences in order, each once, and so are lines of a log that differ by their numbers. If all of a text
    is pasted or quoted, nothing is."""
    pieces = dict.fromkeys(_pieces(_ALL_QUOTED.sub(r"\1", text)))
    every = all(pasted for _, pasted in pieces)
    for piece, pasted in pieces:
        yield Sentence(piece, pasted and not every, len(pieces) == 1, *_read(piece))


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    for line, pasted in _lines(text):
        if pasted:
            yield line.translate(_DIGITS), True
            continue
        # What stands in brackets ends no clause: "Run the scan (ZAP, full policy) on production".
        line = _ASIDE.sub(lambda aside: aside[0].replace(",", ""), line) if "(" in line else line
        line = _MARK.sub(" , ", line) if line[0] in "{[" else line
        for sentence in _END.split(line):
            if sentence:
                yield sentence, False


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield lines; those over which a sentence continues are one."""
    fenced, is_pasted = False, pattern("lines", "pasted").match
    before = ""
    for line in (*cleaned(text).splitlines(), ""):
        bare = line.strip()
        fence = bare.startswith(("```", "~~~"))
        pasted = fenced or fence or is_pasted(line)
        if before and (pasted or not bare or not _continues(before, bare)):
            yield before, False
            before = ""
        if fence:
            fenced = not fenced
        elif bare and pasted:
            yield bare, True
        elif bare:
            before = f"{before} {bare}".lstrip()


def _continues(before: str, line: str) -> bool:
    """Whether a line continues the one before: not if it begins with an order or a command."""
    if before[-1].isalpha() and fold(before.rsplit(None, 1)[-1]) in entries("wrapped", "open"):
        return True
    if not _CONTINUES.match(line) or not (before[-1].isalnum() or before[-1] in _CONTINUED):
        return False
    first = next(
        (word for word in languages()[ENGLISH].read(line[:_MAX_OPENING]) if word.tags.isdisjoint({"lead", "number"})),
        None,
    )
    return not first or not (first.verbs or first.tags & (ACTS | {"program"}))


@cache
def _latin() -> tuple[Sequence[Language], frozenset[str]]:
    """Return the languages in Latin letters, English first, and the common words of the others that are none of it."""
    latin = [language for name, language in languages().items() if name not in data()["scripts"]]
    return latin, frozenset[str]().union(*[language.common for language in latin[1:]]) - latin[0].common


def _read(sentence: str) -> tuple[Language, Sequence[Word]]:
    """Return the language of a sentence and its words."""
    folded = fold(sentence)
    for name in () if folded.isascii() else data()["scripts"]:
        if pattern("scripts", name).search(folded):
            return languages()[name], languages()[name].read(sentence)
    latin, strange = _latin()
    english = latin[0]
    words = english.read(sentence)
    known = len([word for word in words if word.tags])
    if known * 10 >= len(words) * 7:
        return english, words
    present = {word.folded for word in words}
    common = len(present & english.common)
    if common >= _MIN_COMMON and (common * 3 >= len(words) or strange.isdisjoint(present)):
        return english, words
    # The language of which most words are common, or else known; in doubt, English.
    shares = [len(present & language.common) for language in latin]
    most = max(shares)
    if not most and known * 2 > len(words):
        return english, words
    best = [language for language, share in zip(latin, shares, strict=True) if share == most]
    language = max(best, key=lambda language: language.knows(words)) if len(best) > 1 else best[0]
    return language, words if language is english else language.read(sentence)
