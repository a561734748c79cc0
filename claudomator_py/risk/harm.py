"""Criminal requests: words that must stand together in a sentence, from the lexicon's ``[[harm]]``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from claudomator_py.risk.folding import data, entries, fold, listed
from claudomator_py.values import regex

_WORD: Final = regex(r"[^\W_]+")
_SPACELESS_FROM: Final = "\u2e80"
"""The first letter of scripts without blanks, in which an entry may begin anywhere."""


class Harm(NamedTuple):
    """What a sentence asks for that has a key, an entry of each list of ``also``, and none of ``without``."""

    refuse: bool
    """Whether it is refused; otherwise a person is asked."""
    keys: Sequence[str]
    also: Sequence[Sequence[str]]
    without: Sequence[str]


def harm_in(text: str, keys: Collection[str]) -> Harm | None:
    """Return what a sentence asks for that is criminal, or may be. keys: those that its words may be of."""
    within = f" {' '.join(_WORD.findall(fold(text)))}".__contains__ if keys else bool
    for place in sorted({place for key in filter(within, keys) for place in _places()[key]}):
        harm = _harms()[place]
        if all(any(map(within, texts)) for texts in harm.also) and not any(map(within, harm.without)):
            return harm
    return None


@cache
def _harms() -> Sequence[Harm]:
    """Return what the lexicon has; what is refused comes first."""
    harms = [
        Harm(entry["refuse"], _begin(entry["key"]), [*map(_begin, entry["with"])], _begin(entry["without"]))
        for entry in data()["harm"]
    ]
    return sorted(harms, key=lambda harm: not harm.refuse)


@cache
def _places() -> Mapping[str, Sequence[int]]:
    """Return the places of harms by key."""
    keys = {key for harm in _harms() for key in harm.keys}
    return {key: [place for place, harm in enumerate(_harms()) if key in harm.keys] for key in keys}


def _begin(text: str) -> Sequence[str]:
    """Return the entries of a list, each behind a blank where words have blanks: words begin with them."""
    for name, words in data()["harm_words"].items():
        text = text.replace(f"${name}", words)
    return [f"{'' if entry > _SPACELESS_FROM else ' '}{' '.join(_WORD.findall(entry))}" for entry in listed(text)]


def stems() -> Iterator[tuple[str, str]]:
    """Yield the longest word of each key that is not a common one, and the key."""
    common = {word for entry in entries("vague", "words") | entries("en", "words") for word in entry.split()}
    for key in _places():
        yield max(key.split(), key=lambda word: (len(word) > 2 and word not in common, len(word))), key
