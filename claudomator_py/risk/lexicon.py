"""The words of ``lexicon.toml``: what each means, and how a sentence is read in a language."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from claudomator_py.risk.folding import data, entries, fold, listed, pattern
from claudomator_py.risk.harm import stems
from claudomator_py.values import regex

ENGLISH: Final = "en"
SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages in which words are looked for anywhere in the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
"""The classes of orders, the most telling first."""
Names: TypeAlias = frozenset[str]
NONE: Final[Names] = frozenset()
ACTS: Final = frozenset({"reads", "builds"})
"""Verbs that change nothing beyond the working tree."""
_VERB, _DONE, _THING, _KEY = "verb:", "done:", "thing:", "key:"
_WHOLE: Final = frozenset({"words", "own", "program"})
"""Lists of whole words in any language."""
_KEPT: Final = frozenset({"outside", "test", "dry", "prod", "many", "own", "not", "fails", "det", "stops"})
"""What a word means even within a phrase."""
_SHORT: Final = 3
"""An entry with so few letters is a whole word in any language."""
_OPENING: Final = 4
"""Letters of the second word of a phrase that it is found by."""
_MAX_PHRASE: Final = 6
"""Words within which a phrase ends."""
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


class Word(NamedTuple):
    """A word, a phrase, what stands in quotation marks, or a mark between clauses."""

    text: str
    folded: str
    tags: Names = NONE
    """The lists that have it, such as ``code`` or ``verb:live``; none if it is not known."""
    verbs: Names = NONE
    """The classes of which it is a verb."""
    done: Names = NONE
    """The classes of which it is a participle, as in "has to be deleted"."""
    things: Names = NONE
    """The classes of what it names."""
    keys: Names = NONE
    """The keys of harm that it may be of."""
    acts: bool = False
    """Whether a sentence may order something because of it."""

    @classmethod
    def of(cls, text: str, folded: str, tags: Collection[str]) -> "Word":
        """Return the word with these tags."""
        verbs, done, things, keys = (
            frozenset([tag.removeprefix(part) for tag in tags if tag.startswith(part)])
            for part in (_VERB, _DONE, _THING, _KEY)
        )
        known = frozenset([tag for tag in tags if not tag.startswith(_KEY)])
        return cls(text, folded, known, verbs, done, things, keys, bool(verbs or done or "program" in tags))


class Language:
    """The words of a language."""

    def __init__(self, name: str, document: Mapping[str, Any], programs: str) -> None:
        self.is_english, self.is_spaceless = name == ENGLISH, name in SPACELESS
        self.common = frozenset(listed(document["words"]))
        self._whole, self._stems = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        self._phrases, self._gaps = (
            defaultdict[str, defaultdict[str, set[str]]](lambda: defaultdict(set)) for _ in "pg"
        )
        """The tags of phrases, by the first word with the beginning of the second, and by what follows the first; and
        those of verbs with a gap ("shut it _down_"), by the first and the last word."""
        self._first, self._first_of_verb = set[str](), set[str]()
        self._word, self._phrase = lru_cache(_MAX_MEMO)(self._read_token), lru_cache(_MAX_MEMO)(self._read_phrase)
        self._words = lru_cache(_MAX_MEMO)(self._read_chunk)
        for tag, text in (("program", programs), *document.items()):
            if isinstance(text, str):
                self._put(text, tag)
        for kind in KINDS:
            for prefix, words in ((_VERB, "verbs"), (_DONE, "done"), (_THING, "things")):
                self._put(document[kind].get(words, ""), prefix + kind)
        for stem, key in stems():
            self._stems[stem].add(_KEY + key)
        self._longest = {stem[0]: len(stem) for stem in sorted(self._stems, key=len)}

    def _put(self, text: str, tag: str) -> None:
        plural = self.is_english and tag.startswith((_THING, "code", "outside"))
        for entry in listed(text):
            first, _, rest = (entry, "", "") if self.is_spaceless else entry.strip("$").partition(" ")
            is_whole = not self.is_spaceless and (
                self.is_english or tag in _WHOLE or entry.endswith("$") or len(entry) <= _SHORT
            )
            if rest:
                self._first.add(first)
                self._first_of_verb.update([first] if tag.startswith((_VERB, _DONE)) else [])
            if rest.startswith("_ "):
                self._gaps[first][rest.split()[-1]].add(tag)
            elif rest:
                for ending in (" ", "s ") if self.is_english else ("",):
                    self._phrases[f"{first} {rest.split()[0][:_OPENING]}"][rest + ending].add(tag)
            else:
                for form in _plurals(first) if plural else (first,):
                    (self._whole if is_whole else self._stems)[form].add(tag)

    def read(self, sentence: str) -> Sequence[Word]:
        """Return the words of a sentence."""
        if self.is_spaceless:
            return [*map(self._word, self._segments(fold(sentence)))]
        if _QUOTE.search(sentence):
            return self._read_chunk(sentence)
        return [word for chunk in sentence.split() for word in self._words(chunk)]

    def knows(self, words: Sequence[Word]) -> int:
        """Return how many of the words it has."""
        return sum([bool(self._word(word.text).tags) for word in words])

    def _read_chunk(self, text: str) -> Sequence[Word]:
        return [*map(self._word, _TOKEN.findall(text))]

    def _read_token(self, token: str) -> Word:
        folded = fold(token[:_MAX_TOKEN])
        parts = _PART.findall(folded)
        if token[0] == "@" or not parts:
            # Who is addressed stands before an order: "@ops restart the mail server".
            return Word(token, folded, frozenset({"lead" if parts else "breaks"}))
        # A compound such as "drop-down", or a name in quotation marks, means nothing of what its words mean.
        tags = self._tags(folded)
        tags |= {tag for part in parts for tag in self._tags(part) if tag.startswith(("program", _KEY))}
        if token[0] in _QUOTES and len(parts) > _MAX_NAME:
            tags = tags & {"program"} | {"number"}
        if not folded.isalpha():
            tags |= {name for name in data()["seen"] if pattern("seen", name).search(token[:_MAX_TOKEN])}
        word = Word.of(token, folded, tags)
        return word._replace(acts=word.acts or folded in self._first_of_verb)

    def _tags(self, word: str) -> Names:
        return NONE.union(
            self._whole.get(word, ()), *[self._stems.get(word[:end], ()) for end in range(1, len(word) + 1)]
        )

    def _segments(self, text: str) -> Iterator[str]:
        """Yield the words of a text without blanks; what is not known is yielded letter by letter."""
        at = 0
        while at < len(text):
            sizes = range(self._longest.get(text[at], 1), 1, -1)
            size = next((size for size in sizes if text[at : at + size] in self._stems), 1)
            if not text[at].isspace():
                yield text[at : at + size]
            at += size

    def joined(self, plain: Sequence[Word]) -> Sequence[Word]:
        """Return the words of a sentence, phrases in one."""
        words, done = list[Word](), 0
        for at in [at for at, word in enumerate(plain[:-1]) if word.folded in self._first]:
            if at < done:
                continue
            word, size, after = plain[at], 1, plain[at + 1 : at + 1 + _MAX_PHRASE]
            if rests := self._phrases.get(f"{word.folded} {after[0].folded[:_OPENING]}"):
                follows = " ".join([other.folded for other in after]) + " "
                if rest := max(filter(follows.startswith, rests), key=len, default=""):
                    size += len(rest.split())
                    word = self._phrase(tuple(plain[at : at + size]), rest)
            for tags in (
                [self._gaps[word.folded].get(other.folded) for other in after] if word.folded in self._gaps else ()
            ):
                word = Word.of(word.text, word.folded, word.tags - ACTS - {"lead"} | tags) if tags else word
            words += [*plain[done:at], word]
            done = at + size
        return [*words, *plain[done:]]

    def _read_phrase(self, parts: Sequence[Word], rest: str) -> Word:
        text, folded = " ".join([part.text for part in parts]), " ".join([part.folded for part in parts])
        tags = self._phrases[f"{parts[0].folded} {parts[1].folded[:_OPENING]}"][rest]
        word = Word.of(text, folded, tags.union(*[part.tags & _KEPT for part in parts]))
        return word if word.verbs or word.done else word._replace(verbs=parts[0].verbs)


@cache
def languages() -> Mapping[str, Language]:
    """Return the languages of the lexicon; English is the first."""
    programs = ", ".join(re.split("[-.]", name)[0] for name in entries("commands", "programs"))
    return {name: Language(name, text, programs) for name, text in data().items() if "reads" in text}


def _plurals(word: str) -> tuple[str, ...]:
    return word, f"{word}{'es' if word.endswith(('s', 'x', 'ch', 'sh')) else 's'}", re.sub("y$", "ies", word)
