"""Splits a text into sentences, and finds out which of them are only shown: logs, code, steps of a bug report."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple

from claudomator_py.domain.text import fold, visible
from claudomator_py.risk.harm import triggers
from claudomator_py.risk.lexicon import ACTS, ENGLISH, MAX_MEMO, NONE, Language, Names, Word, data, entries, pattern
from claudomator_py.values import regex

_MARKS: Final = '"\u201c\u201d\u201e\u00ab\u00bb'
_ALL_QUOTED: Final = regex(rf"^\s*[{_MARKS}]([^{_MARKS}]{{4,}})[{_MARKS}]\s*$")
_SPACED: Final = regex(r"[ ._*-][^\W\d_](?:[ ._*-][^\W\d_]){2,}\b")
"""A word such as ``d e l e t e``."""
_END: Final = regex(r"[.!?\u3002\uff01\uff1f\uff1b](?:\s+|(?<![.!?]))")
_CONTINUES: Final = regex(r"[\w,)\"'`]\n(?:[a-z0-9`(\"'/]|--?\w)")
"""What may end a line that goes on in the next, and with what that begins."""
_DIGITS: Final = str.maketrans("123456789", "000000000")
_MIN_SHARE, _MIN_COMMON = 0.7, 3
"""The share of known words by which a sentence is English, or its common words, if every third word is one."""


class Sentence(NamedTuple):
    """A sentence, or a line."""

    text: str
    pasted: bool
    """Whether the text only shows it."""
    sole: bool
    """Whether it is all of the text."""
    language: Language
    words: Sequence[Word]
    known: int
    """How many of its words the language knows."""


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences in order, each once, and so are lines of a log that differ by their numbers. If all of a text
    is pasted or quoted, nothing is."""
    lines = _lines(_ALL_QUOTED.sub(r"\1", text))
    cut = [([line.translate(_DIGITS)] if pasted else _END.split(line), pasted) for line, pasted in lines]
    pieces = dict.fromkeys([(piece, pasted) for pieces, pasted in cut for piece in pieces if piece])
    every = all(pasted for _, pasted in pieces)
    for piece, pasted in pieces:
        yield Sentence(piece, pasted and not every, len(pieces) == 1, *_read(piece, pasted and not every))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield lines; those over which a sentence continues are one."""
    fenced, before, is_pasted = False, "", pattern("lines", "pasted").match
    spaced = _SPACED.sub(lambda word: f" {word[0][1::2]}", f" {visible(text)}")[1:]
    for line in (*spaced.splitlines(), ""):
        bare = line.strip()
        is_fence = bare.startswith(("```", "~~~"))
        pasted = fenced or is_fence or is_pasted(line)
        if before and (pasted or not bare or not _continues(before, bare)):
            yield before, False
            before = ""
        fenced ^= is_fence
        if bare and not is_fence and pasted:
            yield bare, True
        elif bare and not pasted:
            before = f"{before} {bare}".lstrip()


def _continues(before: str, line: str) -> bool:
    """Whether a line continues the one before: not if it begins with an order or a command."""
    if before[-1].isalpha() and fold(before.rsplit(None, 1)[-1]) in entries("wrapped", "open"):
        return True
    if not _CONTINUES.match(f"{before[-1]}\n{line}"):
        return False
    words = languages()[ENGLISH].read(line)[1]
    first = next((word for word in words if word.tags.isdisjoint({"lead", "number"})), None)
    return not first or not (first.verbs or first.tags & (ACTS | {"program"}))


@cache
def languages() -> Mapping[str, Language]:
    """Return the languages of the lexicon; English is the first."""
    return {name: Language(name, triggers()) for name, table in data().items() if "reads" in table}


def _read(sentence: str, pasted: bool) -> tuple[Language, Sequence[Word], int]:
    """Return the language of a sentence, its words, and how many are known: by its letters, else that of most of its
    common words. What is pasted orders nothing, and keys of harm are of no language."""
    if not sentence.isascii():
        folded = fold(sentence)
        for name in data()["scripts"]:
            if pattern("scripts", name).search(folded):
                return languages()[name].read(sentence)
    english, words, known = read = languages()[ENGLISH].read(sentence)
    if pasted or known >= _MIN_SHARE * len(words):
        return read
    present, (others, common) = {word.stem for word in words}, _others()
    share, elsewhere = len(present & english.common), present & common
    if share >= max(_MIN_COMMON, len(words) / 3) or len(elsewhere) < share:
        return read
    if not (elsewhere or any(_is_foreign(word.text) for word in words if not word.tags)):
        return read
    shares = [share, *[len(elsewhere & of.common) for of in others]]
    reads = [of.read(sentence) for of, known in zip((english, *others), shares, strict=True) if known == max(shares)]
    return max(reads, key=lambda of: of[2])


@cache
def _others() -> tuple[Sequence[Language], Names]:
    """Return the other languages in Latin letters, and what is common in any of them."""
    of_letters = [language for name, language in languages().items() if name not in {ENGLISH, *data()["scripts"]}]
    return of_letters, NONE.union(*[language.common for language in of_letters])


@lru_cache(MAX_MEMO)
def _is_foreign(word: str) -> bool:
    """Whether a language other than English knows a word."""
    return any(language.tags(fold(word)) for language in languages().values() if not language.is_english)
