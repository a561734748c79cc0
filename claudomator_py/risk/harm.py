"""Criminal requests: words that must stand together in a sentence, from the lexicon's ``[[harm]]``."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from claudomator_py.risk.lexicon import NONE, PART, Names, data, entries
from claudomator_py.texts import fold, listed

_BLANKS: Final = dict.fromkeys([code for code in range(128) if not chr(code).isalnum()], " ")
_SPACELESS_FROM: Final = "\u2e80"
"""The first letter of scripts without blanks, in which an entry may begin anywhere."""


class Harm(NamedTuple):
    """What a sentence asks for that has a key of it, an entry of each list of ``also``, and none of ``without``."""

    refuse: bool
    """Whether it is refused; otherwise a person is asked."""
    also: Sequence[Sequence[str]]
    without: Sequence[str]


def harm_in(text: str, keys: Collection[Names]) -> Harm | None:
    """Return what a sentence asks for that is criminal, or may be. keys: those that each of its words may be of."""
    folded = fold(text)
    likely = [key for key in NONE.union(*keys) if all(map(folded.__contains__, key.split()))]
    if not likely:
        return None
    words = folded.translate(_BLANKS).split() if folded.isascii() else PART.findall(folded)
    within = f" {' '.join(words)}".__contains__
    matches = [
        harm
        for key in filter(within, likely)
        for harm in _harms()[key]
        if all(any(map(within, entries)) for entries in harm.also) and not any(map(within, harm.without))
    ]
    return max(matches, key=lambda harm: harm.refuse) if matches else None


def triggers() -> Iterator[tuple[str, str]]:
    """Yield the longest word of each key that is not a common one, and the key as its tag."""
    usual = entries("vague", "words") | entries("en", "words")
    for key in _harms():
        word = max(key.split(), key=lambda word: (len(word) > 2, word not in usual, len(word)))
        yield word, f"key:{key}"


@cache
def _harms() -> Mapping[str, Sequence[Harm]]:
    """Return the harms by key."""
    harms = defaultdict[str, list[Harm]](list)
    for entry in data()["harm"]:
        harm = Harm(entry["refuse"], [*map(_beginnings, entry["with"])], _beginnings(entry["without"]))
        for key in _beginnings(entry["key"]):
            harms[key].append(harm)
    return harms


def _beginnings(text: str) -> Sequence[str]:
    """Return the entries of a list, each behind a blank where words have blanks: words begin with them."""
    for name, words in data()["harm_words"].items():
        text = text.replace(f"${name}", words)
    return [f"{'' if entry > _SPACELESS_FROM else ' '}{' '.join(PART.findall(entry))}" for entry in listed(text)]
