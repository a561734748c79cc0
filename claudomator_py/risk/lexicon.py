"""The words of ``lexicon.toml``: what each means, and how a sentence is read in a language."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain
from typing import Any, Final, TypeAlias

from claudomator_py.texts import fold, listed
from claudomator_py.values import dataclass, regex, toml_data

SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages in which words are looked for anywhere in the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
"""The classes of orders, the most telling first."""
Names: TypeAlias = frozenset[str]
NONE: Final[Names] = frozenset()
ACTS: Final = frozenset({"reads", "builds"})
"""Verbs that change nothing beyond the working tree."""
CONTEXT: Final = frozenset({"code", "outside", "test", "dry", "prod", "many", "own", "not", "fails", "when"})
"""What the words of a clause say of it, wherever they stand."""
_ACTING: Final = frozenset({"program", "verb"})
_BEGINS: Final = ACTS | {"lead", "when", "passive"}
_KEPT: Final = CONTEXT - {"code", "when"}
"""What a word means even within a phrase."""
_WHOLE: Final = frozenset({"words", "own"})
_MAX_SHORT: Final = 3
"""Letters of an entry that is a whole word in any language."""
_STEM: Final = 6
"""Letters of a word that count in phrases of other languages than English."""
_MAX_GAP: Final = 6
"""Words among which the last of a phrase with a gap may be."""
_MAX_TOKEN: Final = 200
"""Characters of a token that are looked at."""
_MAX_NAME: Final = 2
"""Words in quotation marks that are only a name."""
MAX_MEMO: Final = 20_000
"""Words that are remembered."""
_QUOTES: Final = "\"\u201c\u201e\u00ab'"
_QUOTE: Final = regex(f"[`{_QUOTES[:-1]}]|(?<![^\\s(\\[:,])'")
_TOKEN: Final = regex(
    r"[$€£#]?[^\W_]\w*(?:(?:['\u2019./_:@\\-]|::|://|->)\w+)*(?:\(\)|[€$£])?"
    r"|[,:;](?!\S)|[\[\]{}\u2013\u2014|*&]|@[\w-]+|(?<!\S)-+(?!\S)|-->"
    r"|(?<![^\s(\[:,])'[^'\n]*'(?!\w)|`[^`]*`|\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb|[\"\u201c\u201d\u201e]"
)
"""A word or a name, a mark that separates clauses, or what stands in quotation marks or backticks."""
PART: Final = regex(r"[^\W_]+")


def data() -> dict[str, Any]:
    """Return the tables of the lexicon."""
    return toml_data("claudomator_py.risk", "lexicon.toml")


@cache
def entries(table: str, key: str) -> Names:
    """Return the entries of a list, folded."""
    return frozenset(listed(data()[table][key]))


@cache
def pattern(table: str, key: str) -> re.Pattern[str]:
    """Return an expression of a table."""
    return re.compile(data()[table][key])


@dataclass(frozen=True, slots=True)
class Word:
    """A word, a phrase, what stands in quotation marks, or a mark between clauses."""

    text: str
    stem: str
    """Its letters, folded, as far as they count in phrases."""
    opens: Names
    """The second words of phrases that begin with it; ``_`` for a gap."""
    features: Names
    """What it says of an order, if it is not the verb."""
    tags: Names
    """The lists that have it, such as ``code`` or ``verbs:live``; none if it is not known."""
    verbs: Names
    """The classes of which it is a verb."""
    done: Names
    """The classes of which it is a participle, as in "has to be deleted"."""
    things: Names
    """The classes of what it names."""
    keys: Names
    """The keys of harm that it may be of."""
    acts: bool
    """Whether a sentence may order something because of it."""
    begins: bool
    """Whether a clause may begin with it behind a mark or an "and"."""


@lru_cache(MAX_MEMO)
def _meaning(tags: Names) -> tuple[Names, Names, Names, Names, Names, bool, bool]:
    """Return the fields of a word that has these tags, from ``tags`` on."""
    verbs, done, things, keys = (
        frozenset([tag.removeprefix(part) for tag in tags if tag.startswith(part)])
        for part in ("verbs:", "done:", "things:", "key:")
    )
    known = frozenset([tag for tag in tags if not tag.startswith("key:")])
    return known, verbs, done, things, keys, bool(verbs or done or tags & _ACTING), bool(verbs or tags & _BEGINS)


@cache
def _same(tags: Names) -> Names:
    """Return the set that stands for all equal ones: there are thousands of words, but few combinations of tags."""
    return tags


def _tag(words: dict[str, Names], word: str, tag: str) -> None:
    words[word] = _same(words.get(word, NONE) | {tag})


Stems: TypeAlias = dict[str, dict[str, Names]]
"""The tags of stems, by their first letters, up to three, and by stem."""


def stems_of(tagged: Iterable[tuple[str, str]]) -> Stems:
    """Return pairs of a stem and a tag as stems."""
    stems: Stems = {}
    for stem, tag in tagged:
        _tag(stems.setdefault(stem[:3], {}), stem, tag)
    return stems


class Language:
    """The words of a language. keys: the stems that may be of harm, in any language."""

    def __init__(self, name: str, keys: Stems) -> None:
        self.is_english, self.is_spaceless = name == "en", name in SPACELESS
        self.common, self._stem = entries(name, "words"), None if self.is_english else _STEM
        self._whole, self._stems, self._keys = dict[str, Names](), Stems(), keys
        self._phrases, self._openings, self._gaps = dict[str, Names](), dict[str, Names](), dict[str, Names]()
        self._word, self._phrase = lru_cache(MAX_MEMO)(self._read_token), lru_cache(MAX_MEMO)(self._word_of)
        self._words = lru_cache(MAX_MEMO)(self._read_chunk)
        for suffix, table in (("", data()[name]), *((f":{kind}", data()[name][kind]) for kind in KINDS)):
            for role, text in table.items():
                if isinstance(text, str):
                    self._add(text, role + suffix)
        for program in entries("commands", "programs"):
            _tag(self._whole, re.split("[-.]", program)[0], "program")

    def _add(self, text: str, tag: str) -> None:
        for entry in listed(text):
            words = [] if self.is_spaceless else [word[: self._stem] for word in entry.strip("$").split()]
            if len(words) > 1:
                for last in (words[-1], f"{words[-1]}s") if self.is_english else words[-1:]:
                    first, second, *_ = phrase = (*words[:-1], last)
                    for opening in accumulate(phrase, "{} {}".format):
                        self._phrases.setdefault(opening, NONE)
                    _tag(self._phrases, " ".join(phrase), tag)
                    self._openings[first] = self._openings.get(first, NONE) | {second}
                    if second == "_":
                        self._gaps[first] = self._gaps.get(first, NONE) | {last}
                if tag.startswith(("verbs:", "done:")):
                    _tag(self._whole, words[0], "verb")
            elif words and (self.is_english or tag in _WHOLE or entry.endswith("$") or len(entry) <= _MAX_SHORT):
                forms = {entry.strip("$")}
                if self.is_english and tag.startswith(("things:", "code", "outside")):
                    forms |= {f"{entry}s", f"{entry}es", re.sub("y$", "ies", entry)}
                for form in forms:
                    _tag(self._whole, form, tag)
            else:
                _tag(self._stems.setdefault(entry[:3], {}), entry, tag)

    def read(self, sentence: str) -> tuple["Language", Sequence[Word], int]:
        """Return the language, the words of a sentence, and how many of them it knows."""
        is_one = self.is_spaceless or _QUOTE.search(sentence)
        words = self._read_chunk(sentence) if is_one else [*chain.from_iterable(map(self._words, sentence.split()))]
        return self, words, len([word for word in words if word.tags])

    def _read_chunk(self, text: str) -> list[Word]:
        return [*map(self._word, self._segments(fold(text)) if self.is_spaceless else _TOKEN.findall(text))]

    def _read_token(self, token: str) -> Word:
        folded = fold(token[:_MAX_TOKEN])
        if folded.isalpha():
            return self._word_of(token, self.tags(folded))
        parts = PART.findall(folded)
        if token[0] == "@" or not parts:
            # Who is addressed stands before an order: "@ops restart the mail server".
            return self._word_of(token, frozenset({"lead" if parts else "breaks"}))
        # A compound such as "drop-down", or a name in quotation marks, means nothing of what its words mean.
        tags = self.tags(folded) or self.tags(pattern("elided", "begin").sub("", folded))
        more = (tag for part in parts if part != folded for tag in self.tags(part))
        tags |= {tag for tag in more if tag.startswith(("program", "key:"))}
        if token[0] in _QUOTES and len(parts) > _MAX_NAME:
            tags = tags & {"program"} | {"number"}
        seen = (names.split() for names in data()["seen"] if pattern("seen", names).search(token[:_MAX_TOKEN]))
        tags = tags.union(*seen)
        return self._word_of(token, tags)

    def _word_of(self, text: str, tags: Names) -> Word:
        known, _, _, things, *_ = meaning = _meaning(tags)
        folded = fold(text[:_MAX_TOKEN])
        stem, noun = folded[: self._stem], {f"noun {folded.removesuffix('s')}"} if things else NONE
        return Word(text, stem, self._openings.get(stem, NONE), known & CONTEXT | noun, *meaning)

    def tags(self, word: str) -> Names:
        """Return the lists that have a word, folded, or what it begins with."""
        return NONE.union(self._whole.get(word, ()), *[tags for _, tags in self._stems_at(word, 0)])

    def _stems_at(self, text: str, at: int) -> list[tuple[str, Names]]:
        heads = text[at], text[at : at + 2], text[at : at + 3]
        likely = [stems[head] for stems in (self._stems, self._keys) for head in heads if head in stems]
        return [(stem, tags) for stems in likely for stem, tags in stems.items() if text.startswith(stem, at)]

    def _segments(self, text: str) -> Iterator[str]:
        """Yield the words of a text without blanks; what is not known is yielded letter by letter."""
        at = 0
        while at < len(text):
            size = max([len(stem) for stem, _ in self._stems_at(text, at)], default=1)
            if not text[at].isspace():
                yield text[at : at + size]
            at += size

    def joined(self, words: Sequence[Word]) -> Sequence[Word]:
        """Return the words of a sentence, each phrase as one; the longest counts."""
        may_open = [
            at
            for at, word in enumerate(words[:-1])
            if word.opens and ("_" in word.opens or words[at + 1].stem in word.opens)
        ]
        if not may_open:
            return words
        joined, done, stems = list[Word](), 0, [word.stem for word in words]
        for at in may_open:
            if at < done:
                continue
            word, end, phrase, tags = words[at], at + 1, stems[at], NONE
            if stems[end] in word.opens:
                for after, stem in enumerate(stems[end:], end + 1):
                    phrase = f"{phrase} {stem}"
                    if (longer := self._phrases.get(phrase)) is None:
                        break
                    end, tags = (after, longer) if longer else (end, tags)
                if tags:
                    tags = tags.union(*[part.tags & _KEPT for part in words[at:end]])
                    word = self._phrase(" ".join([part.text for part in words[at:end]]), tags)
            elif "_" in word.opens and (
                lasts := self._gaps.get(phrase, NONE).intersection(stems[end : end + _MAX_GAP])
            ):
                tags = NONE.union(*[self._phrases.get(f"{phrase} _ {last}", NONE) for last in lasts])
                word = self._phrase(word.text, word.tags - ACTS - {"lead"} | tags)
            if tags:
                joined += [*words[done:at], word]
                done = end
        return [*joined, *words[done:]] if joined else words
