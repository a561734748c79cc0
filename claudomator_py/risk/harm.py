"""What a sentence asks for that is criminal, or may be meant so: by words that must stand together, see the lexicon."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from claudomator_py.risk.lexicon import data, listed

_WORD: Final = re.compile(r"[^\W_]+")
_SPACELESS: Final = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MIN_WORDS, _MAX_WORDS = 2, 4
"""Letters by which it is told whether a sentence has a word at all that a pattern needs."""


@dataclass(frozen=True, slots=True)
class Harm:
    """Something that may be asked for."""

    does: str
    refuse: bool
    """Whether it is refused; a person is asked about others."""
    key: re.Pattern[str]
    beside: tuple[re.Pattern[str], ...]
    without: re.Pattern[str]

    def met(self, folded: str) -> bool:
        """Whether a folded sentence asks for it."""
        return (
            self.key.search(folded) is not None
            and all(pattern.search(folded) for pattern in self.beside)
            and self.without.search(folded) is None
        )


@dataclass(frozen=True, slots=True)
class _Harms:
    all: tuple[Harm, ...]
    by_beginning: dict[str, set[int]]
    """Which of them have a key whose first word begins so."""
    spaceless: re.Pattern[str]
    """Those of keys that are found within others."""


def harm_in(folded: str, words: Sequence[str]) -> Harm | None:
    """Return what a folded sentence of those words asks for; None: nothing of these. What is refused comes first."""
    known = _harms()
    numbers: set[int] = set()
    for word in words:
        for length in range(_MIN_WORDS, _MAX_WORDS + 1):
            if (begins := known.by_beginning.get(word[:length])) is not None:
                numbers |= begins
    if not folded.isascii() and known.spaceless.search(folded) is not None:
        numbers |= set(range(len(known.all)))
    return next((known.all[number] for number in sorted(numbers) if known.all[number].met(folded)), None)


@cache
def _harms() -> _Harms:
    said = data()
    named = {f"${name}": listed(text) for name, text in said["harm_words"].items()}

    def entries(text: str) -> list[str]:
        return [word for entry in listed(text) for word in named.get(entry, [entry])]

    found: list[Harm] = []
    beginnings: dict[str, set[int]] = {}
    spaceless = set[str]()
    for number, one in enumerate(sorted(said["harm"], key=lambda one: not one.get("refuse", True))):
        keys = entries(one["key"])
        for key in keys:
            if _SPACELESS.search(key):
                spaceless.add(key)
            elif first := _WORD.search(key):
                beginnings.setdefault(first[0][:_MAX_WORDS], set()).add(number)
        beside = tuple(_pattern(entries(text)) for text in one["with"])
        without = _pattern(entries(one.get("without", "")))
        found.append(Harm(one["does"], one.get("refuse", True), _pattern(keys), beside, without))
    return _Harms(tuple(found), beginnings, _pattern(sorted(spaceless)))


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Words with which a word begins, or that are anywhere in a text without spaces."""
    spaceless = [re.escape(word) for word in words if _SPACELESS.search(word)]
    others = [re.escape(word) for word in words if not _SPACELESS.search(word)]
    either = [f"(?<!\\w)(?:{'|'.join(others)})"] if others else []
    return re.compile("|".join([*either, *spaceless]) or r"(?!)")
