"""What a sentence asks for that is criminal, or may be meant so: by words that must stand together, see the lexicon."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import listed

_SPACELESS: Final = "[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_MAX_MEMO: Final = 5_000
_MAX_STEM: Final = 30


class Harm(NamedTuple):
    """Something that may be asked for."""

    refuse: bool
    """Whether it is refused; a person is asked about others."""
    needs: Sequence[re.Pattern[str]]
    without: re.Pattern[str]


class Harms:
    """All of them, with what is refused first."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        named = {f"${name}": listed(text) for name, text in said["harm_words"].items()}
        common = {*re.findall(r"\w+", f"{said['vague']['words']} {said['en']}")}
        self.all = list[Harm]()
        self.stems = dict[str, list[tuple[str, int]]]()
        """By the rarest word of each key, with which words of texts begin: the key, and whose it is."""
        self.keys = lru_cache(_MAX_MEMO)(self._keys)
        for number, one in enumerate(sorted(said["harm"], key=lambda one: not one.get("refuse", True))):
            texts = (one["key"], *one["with"], one.get("without", ""))
            needs = [[word for entry in listed(text) for word in named.get(entry, [entry])] for text in texts]
            *patterns, without = map(_pattern, needs)
            self.all.append(Harm(one.get("refuse", True), patterns, without))
            for key in needs[0]:
                words = re.findall(r"[^\W_]+", key)
                rarest = max(words, key=lambda word: (len(word) > 2 and word not in common, len(word)))
                self.stems.setdefault(rarest, []).append((key, number))

    def of(self, folded: str, words: Iterable[str]) -> Harm | None:
        """Return what a folded sentence asks for; None: nothing of these. words: of it, which may be of a key."""
        for number in sorted({number for word in words for key, number in self.keys(word) if key in folded}):
            harm = self.all[number]
            if all(one.search(folded) for one in harm.needs) and not harm.without.search(folded):
                return harm
        return None

    def _keys(self, word: str) -> Sequence[tuple[str, int]]:
        ends = range(1, min(len(word), _MAX_STEM) + 1)
        return [one for end in ends for one in self.stems.get(word[:end], ())]


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Words with which a word begins, or that are anywhere in a text without spaces."""
    either = (rf"(?<!\w){re.escape(word)}" if not re.search(_SPACELESS, word) else re.escape(word) for word in words)
    return re.compile("|".join(either) or r"(?!)")
