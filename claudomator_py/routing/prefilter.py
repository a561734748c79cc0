"""Patterns that know words without which they match nothing.

A text is asked for some sixty patterns, and most of its sentences have no word with which any of them begins. So the
words of a sentence are read once, and a pattern is tried only where one of its own is among them: what regular
expression engines know as a literal prefilter. It spares work and never changes what is found: where a pattern cannot
be told by words, it is always tried.

To read the patterns takes as long as to compile them, and a daemon with a few short tasks would do it in vain: they are
read once they have been tried on some sentences.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache, reduce
from importlib import import_module
from itertools import chain
from operator import or_
from string import ascii_lowercase
from typing import Any, Final

_LONGEST: Final = 12
"""Letters of a word that are looked at."""
_MOST_LETTERS: Final = 4
"""Letters that may stand in one place, as in ``[sz]``, before that place is taken for any letter."""
_MOST_REPEATS: Final = 3
TRIED: Final = 10_000
"""How often patterns are tried before they are read: on some hundred sentences."""
_WORD: Final = re.compile(r"\b[a-z]+")
_FOLDED: Final = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
"""What is one of the letters a to z to a pattern that ignores case, but not to ``str.lower``."""

# How the standard library reads a pattern, which is none of its public names: what is not known here is any text, and
# where there is no such module, every pattern is always tried.
try:
    _parser: Any = import_module("re._parser")
except ImportError:
    _parser = None


class Prefiltered:
    """A pattern for sentences, with the methods of ``re.Pattern`` that are asked of it."""

    __slots__ = ("pattern",)

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        """For a text that is no sentence."""
        _all.patterns.append(self)

    def may_match(self, text: str) -> bool:
        """Whether words are in the text without which it does not match. Any thread may ask."""
        needs = _all.needs(self)
        return needs is None or needs.met(self, text)

    def search(self, text: str) -> re.Match[str] | None:
        """See ``re.Pattern.search``."""
        return self.pattern.search(text) if self.may_match(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        """See ``re.Pattern.match``."""
        return self.pattern.match(text) if self.may_match(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """See ``re.Pattern.finditer``."""
        return self.pattern.finditer(text) if self.may_match(text) else iter(())

    def sub(self, instead: str, text: str) -> str:
        """See ``re.Pattern.sub``."""
        return self.pattern.sub(instead, text) if self.may_match(text) else text


def prefiltered(pattern: str) -> Prefiltered:
    """Compiled, for any case."""
    return Prefiltered(re.compile(pattern, re.IGNORECASE))


class _Needs:
    """What has to be in a text that one of these patterns matches. Nothing of it changes, so any thread may ask.

    Each set of words has a bit, and a text the bits of all sets of which a word is in it: its signs. They are found
    once, whichever patterns ask.
    """

    def __init__(self, patterns: Iterable[Prefiltered]) -> None:
        bits: dict[frozenset[str], int] = {}
        self._of_word: dict[str, int] = {}
        """By the beginning of a word, or a whole one with a blank behind it, the bits of the sets that it is in."""
        self._of_pattern: dict[Prefiltered, tuple[int, list[int]] | None] = {}
        """The bits of which any has to be there, and combinations of which one has to be there whole. None: nothing."""
        for pattern in patterns:
            found = needed(pattern.pattern)
            for words in chain(*found):
                bit = bits.setdefault(words, 1 << len(bits))
                self._of_word |= {word: self._of_word.get(word, 0) | bit for word in words}
            each = [[bits[words] for words in one] for one in found]
            first = reduce(or_, (one[0] for one in each if one), 0)
            self._of_pattern[pattern] = None if [] in each else (first, [reduce(or_, one) for one in each])

    def __contains__(self, pattern: Prefiltered) -> bool:
        return pattern in self._of_pattern

    def met(self, pattern: Prefiltered, text: str) -> bool:
        """Whether what the pattern needs is in the text."""
        wanted = self._of_pattern[pattern]
        if wanted is None:
            return True
        signs = _signs(self, text)
        return bool(signs & wanted[0]) and any(signs & bits == bits for bits in wanted[1])

    def signs(self, text: str) -> int:
        """The bits of the sets of which a word is in the text."""
        words = set(_WORD.findall((text if text.isascii() else text.translate(_FOLDED)).lower()))
        return reduce(or_, (_signs_of(self, word[:_LONGEST]) for word in words), 0)

    def signs_of(self, word: str) -> int:
        """Those of a word."""
        beginnings = (self._of_word.get(word[:end], 0) for end in range(1, len(word) + 1))
        return reduce(or_, beginnings, self._of_word.get(f"{word} ", 0))


@lru_cache(maxsize=64)  # each rule asks for the sentence that is judged
def _signs(needs: _Needs, text: str) -> int:
    return needs.signs(text)


@lru_cache(maxsize=20_000)
def _signs_of(needs: _Needs, word: str) -> int:
    return needs.signs_of(word)


class _All:
    """All patterns that there are, which are read when they have been tried often enough, or there are more."""

    def __init__(self) -> None:
        self.patterns: list[Prefiltered] = []
        self._tried = 0
        self._read: _Needs | None = None

    def needs(self, pattern: Prefiltered) -> _Needs | None:
        """What patterns need, this one among them; None: not read yet. Two threads may read them at the same time, and
        find the same."""
        needs = self._read
        if needs is None or pattern not in needs:
            self._tried += 1
            if self._tried <= TRIED:
                return None
            needs = self._read = _Needs(self.patterns.copy())
        return needs


_all: Final = _All()


@cache
def needed(pattern: re.Pattern[str]) -> set[tuple[frozenset[str], ...]]:
    r"""The words that texts have which the pattern matches: for one of these, a word of each of its sets. Words are in
    small letters: as much of each as is certain, with a blank behind it if that is all of it.

    ``\b(?:log(?:s|ging)?|read\w*)\b .*\bkeys?\b`` needs one of ``log``, ``logs`` and ``logging``, and behind it ``key``
    or ``keys``; or a word that begins with ``read``, and behind it those.
    """
    if _parser is None:
        return {()}
    return {tuple(_in_turn(one)) for one in _alternatives(list(_parser.parse(pattern.pattern, pattern.flags)))}


def _alternatives(items: list[tuple[Any, Any]]) -> list[list[tuple[Any, Any]]]:
    """The pattern for each of the first things among which it chooses."""
    for at, (kind, value) in enumerate(items):
        if kind.name == "SUBPATTERN":
            return _alternatives([*items[:at], *value[3], *items[at + 1 :]])
        if kind.name == "BRANCH":
            return [[*items[:at], *branch, *items[at + 1 :]] for branch in value[1]]
    return [items]


def _in_turn(items: list[tuple[Any, Any]]) -> Iterator[frozenset[str]]:
    """What is needed, as far as it is certain: each set behind the words of the one before."""
    places, found = {_ANYWHERE}, set[str]()
    for item in [*items, _END]:
        places = _read([item], places, found)
        if not places:
            yield frozenset(found)
            places, found = {_ANYWHERE}, set()


# Where whoever reads a pattern may be: behind the first letters of a word, or in one of these places.
_BETWEEN: Final = ""
"""Where the next letter begins a word."""
_ANYWHERE: Final = "*"
"""Where that is not known."""
_NO_WORD: Final = " "
"""Stands for all characters that are in no word."""
_IN_WORD: Final = "0"
"""Stands for those that are in words, and none of the letters a to z."""


class _End:
    """The end of a pattern, behind which there may be any text."""

    name = "END"


_END: Final = (_End, None)


def _read(items: Iterable[tuple[Any, Any]], places: set[str], found: set[str]) -> set[str]:
    """Where one may be behind these parts of a pattern. Words that have ended are added to what was found."""
    for kind, value in items:
        match kind.name:
            case "LITERAL":
                places = _after({_kind_of(chr(value))}, places, found)
            case "IN":
                places = _after(_one_of(value), places, found)
            case "SUBPATTERN":
                places = _read(value[3], places, found)
            case "ATOMIC_GROUP":
                places = _read(value, places, found)
            case "BRANCH":
                places = {place for branch in value[1] for place in _read(branch, places, found)}
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                places = _repeated(value[0], value[1], value[2], places, found)
            case "AT" if value.name in ("AT_BOUNDARY", "AT_BEGINNING", "AT_BEGINNING_STRING"):
                found |= {f"{place} " for place in places - {_BETWEEN, _ANYWHERE}}
                places = {_BETWEEN} if places & {_BETWEEN, _ANYWHERE} else set()
            case "ASSERT" | "ASSERT_NOT":
                pass
            case _:
                places = _after(None, places, found)
    return places


def _after(characters: set[str] | None, places: set[str], found: set[str]) -> set[str]:
    """Where one may be behind one of these characters. None: behind any text."""
    after = set()
    for place in places:
        word = place not in (_BETWEEN, _ANYWHERE)
        if characters is None:
            if word:
                found.add(place)
            else:
                after.add(_ANYWHERE)
            continue
        for character in characters:
            if character in (_NO_WORD, _IN_WORD):
                if word:
                    found.add(f"{place} ")
                else:
                    after.add(_BETWEEN if character == _NO_WORD else _ANYWHERE)
            elif place == _ANYWHERE:
                after.add(_ANYWHERE)
            elif len(place) + 1 == _LONGEST:
                found.add(place + character)
            else:
                after.add(place + character)
    return after


def _repeated(least: int, most: int, items: Any, places: set[str], found: set[str]) -> set[str]:
    after = set(places) if least == 0 else set()
    for number in range(1, min(most, _MOST_REPEATS) + 1):
        before, places = places, _read(items, places, found)
        if places == before:
            return after | places
        if number >= least:
            after |= places
    return after if most <= _MOST_REPEATS else after | _after(None, places, found)


def _one_of(choices: Iterable[tuple[Any, Any]]) -> set[str] | None:
    """What may stand in a place; None: anything."""
    found = set()
    for kind, value in choices:
        if kind.name == "LITERAL":
            found.add(_kind_of(chr(value)))
        elif kind.name == "CATEGORY" and value.name in ("CATEGORY_SPACE", "CATEGORY_NOT_WORD"):
            found.add(_NO_WORD)
        elif kind.name == "CATEGORY" and value.name == "CATEGORY_DIGIT":
            found.add(_IN_WORD)
        else:
            return None
    return found if len(found) <= _MOST_LETTERS else None


def _kind_of(character: str) -> str:
    if (small := character.lower()) in ascii_lowercase:
        return small
    return _IN_WORD if character.isalnum() or character == "_" else _NO_WORD
