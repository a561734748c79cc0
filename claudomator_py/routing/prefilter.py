"""Patterns that know words without which they match nothing.

A text is asked for some sixty patterns, and most of its sentences have no word with which any of them begins. So the
words of a sentence are read once, and a pattern is tried only where one of its own is among them: what regular
expression engines know as a literal prefilter. It spares work and never changes what is found: where a pattern cannot
be told by words, it is always tried.

To read a pattern takes as long as to compile it, which a daemon with a few short tasks would do in vain: a pattern that
was tried in vain some times is read then.
"""

import re
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from string import ascii_lowercase
from typing import Any, Final

_LONGEST: Final = 12
"""Letters of a word that are looked at."""
_MOST_LETTERS: Final = 4
"""Letters that may stand in one place, as in ``[sz]``, before that place is taken for any letter."""
_MOST_REPEATS: Final = 3
TRIED: Final = 100
"""Sentences in which a pattern is looked for before it is read."""
_WORD: Final = re.compile(r"\b[a-z]+")
_FOLDED: Final = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
"""What is one of the letters a to z to a pattern that ignores case, but not to ``str.lower``."""

# How the standard library reads a pattern. That is none of its public names: what is not known here is any text.
_parser: Final = import_module("re._parser")


class _Signs:
    """What it means for patterns that a word is there. Grows as patterns are read, one after the other."""

    def __init__(self) -> None:
        self.known: dict[frozenset[str], int] = {}
        """Sets of words, by the bit that says that one of them is there."""
        self.of: dict[str, int] = {}
        """By the beginning of a word, or a whole one with a blank behind it, the bits of the sets that it is in."""

        self._lock = threading.Lock()

    def bit(self, words: frozenset[str]) -> int:
        """The bit of such a set. Any thread may ask."""
        with self._lock:
            if words not in self.known:
                bit = 1 << len(self.known)
                for word in words:
                    self.of[word] = self.of.get(word, 0) | bit
                self.known[words] = bit  # last: what was found before is not taken for all
            return self.known[words]


_signs: Final = _Signs()


class _Needs:
    """What has to be in a text that the pattern matches."""

    __slots__ = ("_always", "_any", "_first")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        needs = [[_signs.bit(one) for one in words] for words in needed(pattern)]
        self._always = [] in needs
        self._any = tuple({sum(set(bits)) for bits in needs})
        """All bits of one of these have to be there."""
        self._first = sum({bits[0] for bits in needs if bits})
        """So one of these has, which is soon seen."""

    def met(self, text: str) -> bool:
        there = _signs_in(text, len(_signs.known))
        if self._always or not there & self._first:
            return self._always
        return any(there & bits == bits for bits in self._any)


class Prefiltered:
    """A pattern for sentences, with the methods of ``re.Pattern`` that are asked of it."""

    __slots__ = ("_needs", "_tried", "pattern")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        """For a text that is no sentence."""
        self._tried = 0
        self._needs: _Needs | None = None

    def may_match(self, text: str) -> bool:
        """Whether words are in the text without which it does not match."""
        if self._needs is None:
            self._tried += 1
            if self._tried <= TRIED:
                return True
            self._needs = _Needs(self.pattern)
        return self._needs.met(text)

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


# Both are asked with the number of sets, so that what was found before another was known is not taken for all.
@lru_cache(maxsize=64)  # each rule asks for the sentence that is judged
def _signs_in(text: str, known: int) -> int:
    found = 0
    for word in set(_WORD.findall((text if text.isascii() else text.translate(_FOLDED)).lower())):
        found |= _signs_of(word[:_LONGEST], known)
    return found


@lru_cache(maxsize=20_000)
def _signs_of(word: str, known: int) -> int:  # noqa: ARG001 - part of what is cached
    found = _signs.of.get(f"{word} ", 0)
    for end in range(1, len(word) + 1):
        found |= _signs.of.get(word[:end], 0)
    return found


def needed(pattern: re.Pattern[str]) -> set[tuple[frozenset[str], ...]]:
    """The words that texts have which the pattern matches: for one of these, a word of each of its sets. Words are in
    small letters: as much of each as is certain, with a blank behind it if that is all of it."""
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
                places = _behind({_sort(chr(value))}, places, found)
            case "IN":
                places = _behind(_one_of(value), places, found)
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
                places = _behind(None, places, found)
    return places


def _behind(characters: set[str] | None, places: set[str], found: set[str]) -> set[str]:
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
    return after if most <= _MOST_REPEATS else after | _behind(None, places, found)


def _one_of(choices: Iterable[tuple[Any, Any]]) -> set[str] | None:
    """What may stand in a place; None: anything."""
    found = set()
    for kind, value in choices:
        if kind.name == "LITERAL":
            found.add(_sort(chr(value)))
        elif kind.name == "CATEGORY" and value.name in ("CATEGORY_SPACE", "CATEGORY_NOT_WORD"):
            found.add(_NO_WORD)
        elif kind.name == "CATEGORY" and value.name == "CATEGORY_DIGIT":
            found.add(_IN_WORD)
        else:
            return None
    return found if len(found) <= _MOST_LETTERS else None


def _sort(character: str) -> str:
    if (small := character.lower()) in ascii_lowercase:
        return small
    return _IN_WORD if character.isalnum() or character == "_" else _NO_WORD
