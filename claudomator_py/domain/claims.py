"""Detects results that claim a change, using the words in ``claims.toml``, so that false claims can be flagged."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from claudomator_py.domain.folding import fold, listed
from claudomator_py.values import dataclass, regex, toml_data

MAX_CHARS: Final = 4_000
"""How many characters at the start of a result are examined."""
_SENTENCE_END: Final = regex(r"[.!?]+(?=\s|$)|[\u3002\uff01\uff1f;\n]+")
_WORD: Final = regex(r"[\w'\u2019/-]*\w")
_QUOTED: Final = regex(r"`[^`\n]*`")
_UNSPACED: Final = ("zh", "ja", "ko")


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of one language; see the file."""

    done: Sequence[str]
    says: Sequence[str]
    refuted: Sequence[str]
    outside: Sequence[str]
    none: Sequence[str]
    first: frozenset[str]
    """The first word of each entry of ``done``; empty for languages written without spaces."""


def claims_changes(text: str) -> bool:
    """Return whether a result's text claims that files were changed."""
    words_of_text = fold(text[:MAX_CHARS])
    sentences = [_QUOTED.sub(" x ", sentence) for sentence in _SENTENCE_END.split(words_of_text)]
    seen = frozenset(_WORD.findall(words_of_text))
    return any(
        _claims(words_of_text, sentences, words)
        for words in _languages()
        if not words.first or not words.first.isdisjoint(seen)
    )


def _claims(text: str, sentences: Sequence[str], words: _Words) -> bool:
    if any(phrase in text for phrase in words.none):
        return False
    return any(_is_claim(sentence, words) for sentence in sentences)


def _is_claim(sentence: str, words: _Words) -> bool:
    if not words.first:
        return any(phrase in sentence for phrase in words.done) and not any(
            phrase in sentence for phrase in (*words.refuted, *words.outside)
        )
    spaced = f" {' '.join(_WORD.findall(sentence))} "
    if _has(spaced, words.outside):
        return False
    for phrase in words.done:
        before, there, after = spaced.partition(f" {phrase} ")
        # What follows describes what was done, except for a word as in "changed nothing".
        if (
            there
            and not _has(f"{before} ", words.refuted)
            and not _has(f" {' '.join(after.split()[:1])} ", words.refuted)
        ):
            return not words.says or not (before.strip() and after.strip()) or _has(f"{before} ", words.says)
    return False


def _has(spaced: str, words: Sequence[str]) -> bool:
    return any(f" {word} " in spaced for word in words)


@cache
def examples() -> Mapping[str, tuple[Sequence[str], Sequence[str]]]:
    """Return for each language results that make such a claim, and results that do not."""
    return {
        name: (entry["is"], entry["is_not"])
        for name, entry in toml_data("claudomator_py.domain", "claims.toml").items()
    }


@cache
def _languages() -> tuple[_Words, ...]:
    return tuple(
        _Words(
            done=listed(entry["done"]),
            says=listed(entry["says"]),
            refuted=listed(entry["not"]),
            outside=listed(entry["outside"]),
            none=listed(entry["none"]),
            first=frozenset(() if name in _UNSPACED else (item.split()[0] for item in listed(entry["done"]))),
        )
        for name, entry in toml_data("claudomator_py.domain", "claims.toml").items()
    )
