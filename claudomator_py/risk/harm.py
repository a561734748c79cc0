"""What a sentence asks for that is criminal, or may be meant so: by words that must stand together, see the lexicon."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import listed
from claudomator_py.values import regex

_SPACELESS: Final = regex(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_MAX_MEMO: Final = 5_000
_MAX_STEM: Final = 30


class Harm(NamedTuple):
    """Something that may be asked for."""

    refuse: bool
    """Whether it is refused; a person is asked about others."""
    needs: Sequence[re.Pattern[str]]
    without: re.Pattern[str]

    def met(self, folded: str) -> bool:
        """Return whether a folded sentence asks for it."""
        return all(one.search(folded) for one in self.needs) and not self.without.search(folded)


class Harms:
    """All of them, with what is refused first."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        named = {f"${name}": listed(text) for name, text in said["harm_words"].items()}
        common = {*listed(said["en"]["words"]), *listed(said["vague"]["words"])}
        self.all = list[Harm]()
        self.stems = dict[str, list[tuple[str, int]]]()
        """By the rarest word of each key, with which words of texts begin: the key, and whose it is."""
        self.keys = lru_cache(_MAX_MEMO)(self._keys)
        for number, one in enumerate(sorted(said["harm"], key=lambda one: not one.get("refuse", True))):
            keys, *beside, without = (
                [word for entry in listed(text) for word in named.get(entry, [entry])]
                for text in (one["key"], *one["with"], one.get("without", ""))
            )
            needs = [_pattern(words) for words in (keys, *beside)]
            self.all.append(Harm(one.get("refuse", True), needs, _pattern(without)))
            for key in keys:
                words = re.findall(r"[^\W_]+", key)
                rarest = max(words, key=lambda word: (len(word) > 2 and word not in common, len(word)))
                self.stems.setdefault(rarest, []).append((key, number))

    def of(self, folded: str, words: Iterable[str]) -> Harm | None:
        """Return what a folded sentence asks for; None: nothing of these. words: of it, which may be of a key."""
        may = {number for word in words for key, number in self.keys(word) if key in folded}
        return next((self.all[one] for one in sorted(may) if self.all[one].met(folded)), None)

    def _keys(self, word: str) -> Sequence[tuple[str, int]]:
        return [one for end in range(1, min(len(word), _MAX_STEM) + 1) for one in self.stems.get(word[:end], ())]


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Words with which a word begins, or that are anywhere in a text without spaces."""
    spaceless = [re.escape(word) for word in words if _SPACELESS.search(word)]
    others = [re.escape(word) for word in words if not _SPACELESS.search(word)]
    either = [f"(?<!\\w)(?:{'|'.join(others)})"] if others else []
    return re.compile("|".join([*either, *spaceless]) or r"(?!)")
