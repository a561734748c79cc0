"""What a sentence asks for that is criminal, or may be meant so: by words that must stand together, see the lexicon."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import listed
from claudomator_py.values import regex

_SPACELESS: Final = regex(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


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


class Harms(NamedTuple):
    """All of them, with what is refused first."""

    all: tuple[Harm, ...]
    stems: Mapping[str, Sequence[tuple[str, int]]]
    """By the rarest word of each key, with which words of texts begin: the key, and whose it is."""

    def of(self, folded: str, words: Sequence[str]) -> Harm | None:
        """Return what a folded sentence asks for; None: nothing of these. words: of it, which may be of a key."""
        may = {number for word in words for key, number in self.keys(word) if key in folded}
        return next((self.all[one] for one in sorted(may) if self.all[one].met(folded)), None)

    def keys(self, word: str) -> Sequence[tuple[str, int]]:
        """Return the keys of which it may be the rarest word."""
        known = _KEYS.get(word)
        if known is None:
            if len(_KEYS) > _MAX_MEMO:
                _KEYS.clear()
            stems = (word[:end] for end in range(1, len(word) + 1))
            known = _KEYS[word] = [one for stem in stems for one in self.stems.get(stem, ())]
        return known


_MAX_MEMO: Final = 5_000
_KEYS: Final[dict[str, Sequence[tuple[str, int]]]] = {}


def harms(said: Mapping[str, Any]) -> Harms:
    """Return what the lexicon has."""
    named = {f"${name}": listed(text) for name, text in said["harm_words"].items()}

    def entries(text: str) -> list[str]:
        return [word for entry in listed(text) for word in named.get(entry, [entry])]

    found, stems = list[Harm](), dict[str, list[tuple[str, int]]]()
    common = {*listed(said["en"]["words"]), *listed(said["vague"]["words"])}
    for number, one in enumerate(sorted(said["harm"], key=lambda one: not one.get("refuse", True))):
        keys = entries(one["key"])
        beside = tuple(_pattern(entries(text)) for text in one["with"])
        found.append(Harm(one.get("refuse", True), _pattern(keys), beside, _pattern(entries(one.get("without", "")))))
        for key in keys:
            words = re.findall(r"[^\W_]+", key)
            rarest = max(words, key=lambda word: (len(word) > 2 and word not in common, len(word)))
            stems.setdefault(rarest, []).append((key, number))
    return Harms(tuple(found), stems)


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Words with which a word begins, or that are anywhere in a text without spaces."""
    spaceless = [re.escape(word) for word in words if _SPACELESS.search(word)]
    others = [re.escape(word) for word in words if not _SPACELESS.search(word)]
    either = [f"(?<!\\w)(?:{'|'.join(others)})"] if others else []
    return re.compile("|".join([*either, *spaceless]) or r"(?!)")
