"""What a sentence asks for that is criminal, or may be meant so: by words that must stand together, see the lexicon."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import listed
from claudomator_py.values import dataclass, regex

_SPACELESS: Final = regex(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MAX_MEMO: Final = 5_000


class Harm(NamedTuple):
    """Something that may be asked for."""

    refuse: bool
    """Whether it is refused; a person is asked about others."""
    key: re.Pattern[str]
    beside: tuple[re.Pattern[str], ...]
    without: re.Pattern[str]

    def met(self, folded: str) -> bool:
        """Return whether a folded sentence asks for it."""
        met = self.key.search(folded) is not None and all(one.search(folded) for one in self.beside)
        return met and self.without.search(folded) is None


@dataclass(frozen=True, slots=True)
class Harms:
    """All of them, with what is refused first."""

    all: tuple[Harm, ...]
    stems: Mapping[str, Sequence[tuple[str, int]]]
    """By the rarest word of each key, with which words of texts begin: the key, and whose it is."""
    spaceless: re.Pattern[str]
    """Keys that are found within other words."""
    _memo: dict[str, Sequence[tuple[str, int]]] = field(default_factory=dict)

    def of(self, folded: str, words: Sequence[str], *, foreign: bool) -> Harm | None:
        """Return what a folded sentence asks for; None: nothing of these. words: of it, if one may be of a key."""
        if foreign and self.spaceless.search(folded):
            return next((one for one in self.all if one.met(folded)), None)
        may = {number for word in words for key, number in self.keys(word) if key in folded}
        return next((self.all[one] for one in sorted(may) if self.all[one].met(folded)), None)

    def keys(self, word: str) -> Sequence[tuple[str, int]]:
        """Return the keys of which it may be the rarest word."""
        known = self._memo.get(word)
        if known is None:
            if len(self._memo) >= _MAX_MEMO:
                self._memo.clear()
            stems = (word[:end] for end in range(2, len(word) + 1))
            known = self._memo[word] = [one for stem in stems for one in self.stems.get(stem, ())]
        return known


def harms(said: Mapping[str, Any]) -> Harms:
    """Return what the lexicon has."""
    named = {f"${name}": listed(text) for name, text in said["harm_words"].items()}

    def entries(text: str) -> list[str]:
        return [word for entry in listed(text) for word in named.get(entry, [entry])]

    found, spaceless, stems = list[Harm](), list[str](), dict[str, list[tuple[str, int]]]()
    common = {*listed(said["en"]["words"]), *listed(said["vague"]["words"])}
    for number, one in enumerate(sorted(said["harm"], key=lambda one: not one.get("refuse", True))):
        keys = entries(one["key"])
        beside = tuple(_pattern(entries(text)) for text in one["with"])
        found.append(Harm(one.get("refuse", True), _pattern(keys), beside, _pattern(entries(one.get("without", "")))))
        for key in keys:
            if _SPACELESS.search(key):
                spaceless.append(key)
            else:
                words = re.findall(r"[^\W_]+", key)
                rarest = max(words, key=lambda word: (len(word) > 2 and word not in common, len(word)))
                stems.setdefault(rarest, []).append((key, number))
    return Harms(tuple(found), stems, _pattern(spaceless))


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Words with which a word begins, or that are anywhere in a text without spaces."""
    spaceless = [re.escape(word) for word in words if _SPACELESS.search(word)]
    others = [re.escape(word) for word in words if not _SPACELESS.search(word)]
    either = [f"(?<!\\w)(?:{'|'.join(others)})"] if others else []
    return re.compile("|".join([*either, *spaceless]) or r"(?!)")
