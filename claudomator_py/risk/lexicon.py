"""The words of ``lexicon.toml``: what each means, and how a sentence is read in a language."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple, TypeAlias

from claudomator_py.domain.folding import fold, listed
from claudomator_py.values import regex, toml_data

ENGLISH: Final = "en"
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
_BEGINS: Final = ACTS | {"lead", "when", "passive"}
_KEPT: Final = CONTEXT - {"code", "when"}
"""What a word means even within a phrase."""
_MAX_SHORT: Final = 3
"""Letters of an entry that is a whole word in any language."""
_STEM: Final = 6
"""Letters of a word that count in phrases of other languages than English."""
_MAX_PHRASE: Final = 6
"""Words of a phrase, with its gap."""
_MAX_TOKEN: Final = 200
"""Characters of a token that are looked at."""
_MAX_NAME: Final = 2
"""Words in quotation marks that are only a name."""
_MAX_MEMO: Final = 20_000
_QUOTES: Final = '"\u201c\u201e\u00ab'
_QUOTE: Final = regex(f"[`{_QUOTES}]")
_TOKEN: Final = regex(
    r"[$€£#]?[^\W_]\w*(?:(?:['\u2019./_:@\\-]|::|://|->)\w+)*(?:\(\)|[€$£])?"
    r"|[,:;](?!\S)|[\[\]{}\u2013\u2014|*&]|@[\w-]+|(?<!\S)-+(?!\S)|-->"
    r"|`[^`]*`|\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb|[\"\u201c\u201d\u201e]"
)
"""A word or a name, a mark that separates clauses, or what stands in quotation marks or backticks."""
_PART: Final = regex(r"[^\W_]+")


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


class Word(NamedTuple):
    """A word, a phrase, what stands in quotation marks, or a mark between clauses."""

    text: str
    folded: str
    tags: Names = NONE
    """The lists that have it, such as ``code`` or ``verbs:live``; none if it is not known."""
    verbs: Names = NONE
    """The classes of which it is a verb."""
    done: Names = NONE
    """The classes of which it is a participle, as in "has to be deleted"."""
    things: Names = NONE
    """The classes of what it names."""
    keys: Names = NONE
    """The keys of harm that it may be of."""
    features: Names = NONE
    """What it says of an order, if it is not the verb."""
    acts: bool = False
    """Whether a sentence may order something because of it."""
    begins: bool = False
    """Whether a clause may begin with it behind a mark or an "and"."""

    @classmethod
    def of(cls, text: str, tags: AbstractSet[str]) -> "Word":
        """Return the word that has these tags."""
        folded = fold(text[:_MAX_TOKEN])
        verbs, done, things, keys = (
            frozenset([tag.removeprefix(part) for tag in tags if tag.startswith(part)])
            for part in ("verbs:", "done:", "things:", "key:")
        )
        known = frozenset([tag for tag in tags if not tag.startswith("key:")])
        noun = {f"noun {folded.removesuffix('s')}"} if things else NONE
        acts, begins = bool(verbs or done or tags & {"program", "verb"}), bool(verbs or tags & _BEGINS)
        return cls(text, folded, known, verbs, done, things, keys, known & CONTEXT | noun, acts, begins)


class Language:
    """The words of a language."""

    def __init__(self, name: str, triggers: Iterable[tuple[str, str]]) -> None:
        self.is_english, self.is_spaceless = name == ENGLISH, name in SPACELESS
        self.common, self._stem = entries(name, "words"), None if self.is_english else _STEM
        self._whole, self._stems, self._phrases = (defaultdict[str, set[str]](set) for _ in range(3))
        self._openings = defaultdict[str, set[str]](set)
        """The second words of phrases, by the first."""
        self._word, self._phrase = lru_cache(_MAX_MEMO)(self._read_token), lru_cache(_MAX_MEMO)(Word.of)
        self._words = lru_cache(_MAX_MEMO)(self._read_chunk)
        for suffix, table in (("", data()[name]), *((f":{kind}", data()[name][kind]) for kind in KINDS)):
            for role, text in table.items():
                if isinstance(text, str):
                    self._add(text, role + suffix)
        for program in entries("commands", "programs"):
            self._whole[re.split("[-.]", program)[0]].add("program")
        for word, key in triggers:
            self._stems[word].add(f"key:{key}")
        self._longest = {stem[0]: len(stem) for stem in sorted(self._stems, key=len)}

    def _add(self, text: str, tag: str) -> None:
        for entry in listed(text):
            words = [] if self.is_spaceless else [word[: self._stem] for word in entry.strip("$").split()]
            if len(words) > 1:
                for last in (words[-1], f"{words[-1]}s") if self.is_english else words[-1:]:
                    self._phrases[" ".join([*words[:-1], last])].add(tag)
                    self._openings[words[0]].add([*words[:-1], last][1])
                if tag.startswith(("verbs:", "done:")):
                    self._whole[words[0]].add("verb")
            elif words and (
                self.is_english or tag in ("words", "own") or entry.endswith("$") or len(entry) <= _MAX_SHORT
            ):
                forms = {entry.strip("$")}
                if self.is_english and tag.startswith(("things:", "code", "outside")):
                    forms |= {f"{entry}s", f"{entry}es", re.sub("y$", "ies", entry)}
                for form in forms:
                    self._whole[form].add(tag)
            else:
                self._stems[entry].add(tag)

    def read(self, sentence: str) -> Sequence[Word]:
        """Return the words of a sentence."""
        if self.is_spaceless:
            return [*map(self._word, self._segments(fold(sentence)))]
        if _QUOTE.search(sentence):
            return self._read_chunk(sentence)
        return [*chain.from_iterable(map(self._words, sentence.split()))]

    def _read_chunk(self, text: str) -> Sequence[Word]:
        return [*map(self._word, _TOKEN.findall(text))]

    def _read_token(self, token: str) -> Word:
        folded = fold(token[:_MAX_TOKEN])
        parts = _PART.findall(folded)
        if token[0] == "@" or not parts:
            # Who is addressed stands before an order: "@ops restart the mail server".
            return Word.of(token, {"lead" if parts else "breaks"})
        # A compound such as "drop-down", or a name in quotation marks, means nothing of what its words mean.
        tags = self._tags(folded)
        tags |= {tag for part in parts for tag in self._tags(part) if tag.startswith(("program", "key:"))}
        if token[0] in _QUOTES and len(parts) > _MAX_NAME:
            tags = tags & {"program"} | {"number"}
        if not folded.isalpha():
            tags |= {name for name in data()["seen"] if pattern("seen", name).search(token[:_MAX_TOKEN])}
        return Word.of(token, tags)

    def _tags(self, word: str) -> Names:
        return NONE.union(self._whole.get(word, ()), *[self._stems.get(word[:n], ()) for n in range(1, len(word) + 1)])

    def _segments(self, text: str) -> Iterator[str]:
        """Yield the words of a text without blanks; what is not known is yielded letter by letter."""
        at = 0
        while at < len(text):
            sizes = range(self._longest.get(text[at], 1), 1, -1)
            size = next((size for size in sizes if text[at : at + size] in self._stems), 1)
            if not text[at].isspace():
                yield text[at : at + size]
            at += size

    def joined(self, words: Sequence[Word]) -> Sequence[Word]:
        """Return the words of a sentence, each phrase as one; the longest counts."""
        stems = [word.folded for word in words] if self.is_english else [word.folded[:_STEM] for word in words]
        joined, done = list[Word](), 0
        for at in [at for at, stem in enumerate(stems[:-1]) if stem in self._openings]:
            if at < done:
                continue
            word, end, seconds = words[at], at + 1, self._openings[stems[at]]
            if stems[end] in seconds:
                phrases = [*accumulate(stems[at : at + _MAX_PHRASE], "{} {}".format)]
                size = max([size for size, phrase in enumerate(phrases, 1) if phrase in self._phrases], default=1)
                if size > 1:
                    end, parts = at + size, words[at : at + size]
                    tags = NONE.union(self._phrases[phrases[size - 1]], *[part.tags & _KEPT for part in parts])
                    word = self._phrase(" ".join([part.text for part in parts]), tags)
            elif "_" in seconds:
                phrases = [f"{stems[at]} _ {stem}" for stem in stems[end : end + _MAX_PHRASE]]
                tags = NONE.union(*[self._phrases[phrase] for phrase in phrases if phrase in self._phrases])
                word = self._phrase(word.text, word.tags - ACTS - {"lead"} | tags) if tags else word
            if word is not words[at]:
                joined += [*words[done:at], word]
                done = end
        return [*joined, *words[done:]]
