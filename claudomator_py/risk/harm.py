"""What a sentence asks for that is criminal, or may be meant so: by words that must stand together, see the lexicon."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from claudomator_py.risk.lexicon import data, listed

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SPACELESS: Final = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Harm(NamedTuple):
    """Something that may be asked for."""

    refuse: bool
    """Whether it is refused; a person is asked about others."""
    key: re.Pattern[str]
    beside: tuple[re.Pattern[str], ...]
    without: re.Pattern[str]

    def met(self, folded: str) -> bool:
        """Whether a folded sentence asks for it."""
        met = self.key.search(folded) is not None and all(one.search(folded) for one in self.beside)
        return met and self.without.search(folded) is None


@dataclass(frozen=True, slots=True)
class Harms:
    """All of them, with what is refused first."""

    all: tuple[Harm, ...]
    keys: Sequence[Sequence[str]]
    """The words of each key."""
    spaceless: re.Pattern[str]
    """Keys that are found within other words."""


def harm_in(folded: str) -> Harm | None:
    """Return what a folded sentence asks for; None: nothing of these."""
    return next((one for one in harms().all if one.met(folded)), None)


@cache
def harms() -> Harms:
    """Return what the lexicon has."""
    said = data()
    named = {f"${name}": listed(text) for name, text in said["harm_words"].items()}

    def entries(text: str) -> list[str]:
        return [word for entry in listed(text) for word in named.get(entry, [entry])]

    found, keys = [], list[str]()
    for one in sorted(said["harm"], key=lambda one: not one.get("refuse", True)):
        keys += entries(one["key"])
        beside = tuple(_pattern(entries(text)) for text in one["with"])
        without = _pattern(entries(one.get("without", "")))
        found.append(Harm(one.get("refuse", True), _pattern(entries(one["key"])), beside, without))
    spelt = [_WORD.findall(key) for key in keys if not _SPACELESS.search(key)]
    spaceless = _pattern([key for key in keys if _SPACELESS.search(key)])
    return Harms(tuple(found), spelt, spaceless)


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Words with which a word begins, or that are anywhere in a text without spaces."""
    spaceless = [re.escape(word) for word in words if _SPACELESS.search(word)]
    others = [re.escape(word) for word in words if not _SPACELESS.search(word)]
    either = [f"(?<!\\w)(?:{'|'.join(others)})"] if others else []
    return re.compile("|".join([*either, *spaceless]) or r"(?!)")
