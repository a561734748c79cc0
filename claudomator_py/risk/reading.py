"""Orders that act on more than the working tree, in languages whose words are in ``lexicon.toml``; pure.

Words are a courtesy: they see what is said plainly, and miss the rest. What a run does is kept within its reach by
``acts``, whatever its task says.
"""

import pkgutil
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

MAX_SENTENCES: Final = 400
"""Sentences of a text that are read."""
_SENTENCE = re.compile(r"(?:[^.!?\n\u3002\uff01\uff1f;]|[.!?](?=[^\s]))+")
_QUOTED = re.compile(r"`[^`\n]*`|```.*?```", re.DOTALL)
_WITHOUT_SPACES: Final = frozenset({"zh", "ja", "ko"})
"""Languages whose words are found within others."""
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u2060\ufeff]")


@dataclass(frozen=True, slots=True)
class Order:
    """A sentence that orders something risky."""

    kind: str
    """A class of the lexicon."""
    words: str
    """The sentence, cut to what can be shown."""


@dataclass(frozen=True, slots=True)
class _Language:
    marks: re.Pattern[str] | None
    """What tells the language; None: its script does."""
    code: re.Pattern[str]
    """What makes a sentence one about code."""
    classes: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]
    """Of each the name, its verbs, and its things."""

    def kind_of(self, sentence: str, *, foreign: bool) -> str | None:
        """Return the class of what a folded sentence orders; None: nothing of these. foreign: whether it has letters
        that English lacks."""
        if self.marks is not None and not foreign and not self.marks.search(sentence):
            return None
        of = (kind for kind, verbs, things in self.classes if verbs.search(sentence) and things.search(sentence))
        kind = next(of, None)
        return None if kind is None or self.code.search(sentence) else kind


def data() -> dict[str, Any]:
    """Return the lexicon as it is written: ``classes``, and a table for each language."""
    return tomllib.loads((pkgutil.get_data("claudomator_py.risk", "lexicon.toml") or b"").decode())


def orders(text: str) -> list[Order]:
    """Return the risky orders in a text, one for each sentence at most, in their order."""
    found = []
    for number, sentence in enumerate(_SENTENCE.finditer(_QUOTED.sub(" ", text))):
        if number == MAX_SENTENCES:
            break
        foreign = any(letter > "\x7f" and letter.isalpha() for letter in sentence[0])
        folded = fold(sentence[0])
        kind = next((one for language in _languages() if (one := language.kind_of(folded, foreign=foreign))), None)
        if kind is not None:
            found.append(Order(kind, " ".join(sentence[0].split())[:200]))
    return found


def fold(text: str) -> str:
    """Return the text without case, accents, width and what cannot be seen."""
    apart = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text)).casefold()
    marked = "".join(letter for letter in apart if not unicodedata.combining(letter) or letter in "\u3099\u309a")
    return unicodedata.normalize("NFKC", marked).replace("\u00df", "ss").replace("\u0142", "l")


@cache
def _languages() -> tuple[_Language, ...]:
    found = []
    for language, words in data().items():
        if language == "classes":
            continue
        marks = re.compile(rf"\b(?:{'|'.join(words['marks'])})\b") if "marks" in words else None
        classes = tuple(
            (kind, _pattern(language, entry["verbs"]), _pattern(language, entry["things"]))
            for kind, entry in words.items()
            if isinstance(entry, Mapping)
        )
        found.append(_Language(marks, _pattern(language, words["code"]), classes))
    return tuple(found)


def _pattern(language: str, words: list[str]) -> re.Pattern[str]:
    begins = "" if language in _WITHOUT_SPACES else r"(?<!\w)"
    return re.compile(begins + "(?:" + "|".join(re.escape(fold(word)) for word in words) + ")")
