"""Splits a text into sentences, and finds out which of them are only shown: logs, code, steps of a bug report."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from claudomator_py.domain.folding import fold, visible
from claudomator_py.risk.harm import Harm, harm_in, triggers
from claudomator_py.risk.lexicon import ACTS, ENGLISH, NONE, Language, Word, data, entries, pattern
from claudomator_py.values import regex

_MARKS: Final = '"\u201c\u201d\u201e\u00ab\u00bb'
_ALL_QUOTED: Final = regex(rf"^\s*[{_MARKS}]([^{_MARKS}]{{4,}})[{_MARKS}]\s*$")
_SPACED: Final = regex(r"[ ._*-][^\W\d_](?:[ ._*-][^\W\d_]){2,}\b")
"""A word such as ``d e l e t e``."""
_END: Final = regex(r"[.!?\u3002\uff01\uff1f\uff1b](?:\s+|(?<![.!?]))")
_CONTINUES: Final = regex(r"[\w,)\"'`]\n(?:[a-z0-9`(\"'/]|--?\w)")
"""What may end a line that goes on in the next, and with what that begins."""
_MAX_OPENING: Final = 40
"""Characters of a line among which its order begins."""
_DIGITS: Final = str.maketrans("123456789", "000000000")
_MIN_SHARE: Final = 0.7
"""The share of known words by which a sentence is English, whatever other languages it may be."""
_MIN_COMMON: Final = 3
"""Common words of English by which it is, if every third word is one."""


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
        yield Sentence(piece, pasted and not every, len(pieces) == 1, *_read(piece, pasted and not every))


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    for line, pasted in _lines(text):
        if pasted:
            yield line.translate(_DIGITS), True
        else:
            yield from ((sentence, False) for sentence in _END.split(line) if sentence)


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
    words = languages()[ENGLISH].read(line[:_MAX_OPENING])
    first = next((word for word in words if word.tags.isdisjoint({"lead", "number"})), None)
    return not first or not (first.verbs or first.tags & (ACTS | {"program"}))


@cache
def languages() -> Mapping[str, Language]:
    """Return the languages of the lexicon; English is the first."""
    return {name: Language(name, triggers()) for name, table in data().items() if "reads" in table}


def _read(sentence: str, pasted: bool) -> tuple[Language, Sequence[Word]]:
    """Return the language of a sentence and its words: by its letters, else that of most of its common words. What is
    pasted orders nothing, and keys of harm are of no language."""
    scripts, folded = data()["scripts"], "" if sentence.isascii() else fold(sentence)
    for name in scripts if folded else ():
        if pattern("scripts", name).search(folded):
            return languages()[name], languages()[name].read(sentence)
    english = languages()[ENGLISH]
    words = english.read(sentence)
    if pasted or len([word for word in words if word.tags]) >= _MIN_SHARE * len(words):
        return english, words
    present = {word.folded for word in words}
    if len(present & english.common) >= max(_MIN_COMMON, len(words) / 3):
        return english, words
    shares = [(len(present & of.common), of) for name, of in languages().items() if name not in scripts]
    most = max([share for share, _ in shares])
    read = [(of, words if of is english else of.read(sentence)) for share, of in shares if share == most]
    return max(read, key=lambda candidate: len([word for word in candidate[1] if word.tags]))
