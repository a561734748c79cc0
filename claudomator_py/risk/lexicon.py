"""The words of ``lexicon.toml``, each with flags as bits of a number, and the flags of what stands in a text.

They are compared as a reader sees them: without case, accents and width, and with look-alike letters undone.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, reduce
from itertools import chain
from operator import or_
from typing import Any, Final, NamedTuple

from claudomator_py.values import regex, toml_data

ENGLISH: Final = "en"
SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages whose words are parts of the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
_ROLES: Final = (
    "known reads builds code test dry prod many own not fails when strong lead passive det back stops breaks outside"
)
_OTHERS: Final = "number program phrase orders leads strange match thing alone bare command sole"
_CLASSES: Final = [f"{part}:{kind}" for part in ("v", "done", "t") for kind in KINDS]
BIT: Final = {name: 1 << place for place, name in enumerate([*_ROLES.split(), *_CLASSES, *_OTHERS.split()])}
"""The flags. First the lists of a language; then for each class that a word is its verb (``v``), another form of it
(``done``), or what it acts on (``t``). ``phrase``: a phrase may begin with the word, which ``orders``, or ``leads`` to
an order; ``strange``: another language has it; the last six are those of clauses only."""
SEEN: Final = len(BIT)
"""The first bit for expressions (``seen``) and harm (``harm``), in the order of the lexicon."""
VERB, DONE, THING = (sum(BIT[f"{part}:{kind}"] for kind in KINDS) for part in ("v", "done", "t"))
ACTS: Final = VERB | BIT["reads"] | BIT["builds"]
_KNOWN, _PHRASE, _STRANGE, _CODE = BIT["known"], BIT["phrase"], BIT["strange"], BIT["code"]
_ORDERS: Final = ACTS | DONE | BIT["lead"] | BIT["passive"]
_LOANED: Final = VERB | THING | _CODE | BIT["test"] | BIT["prod"]
"""What English words mean in other languages that do not have them."""
_SHORT: Final = 3
"""An entry with so few letters is a whole word in any language."""
_ANY: Final = "_ "
_MAX_PHRASE: Final = 6
"""Words among which a phrase ends."""
_KEY: Final = 4
"""Letters of the second word of a phrase that it is found by."""
_MAX_TOKEN: Final = 200
"""Characters that are looked at of what stands between blanks."""
_MAX_NAME: Final = 2
"""Words in quotation marks that are only a name."""
_QUOTES: Final = '"\u201c\u201e\u00ab'
_SPACELESS_FROM: Final = "\u2e80"
_MAX_MEMO: Final = 20_000

# --- letters ----------------------------------------------------------------------------------------------------------

_INVISIBLE: Final = regex(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_ACCENTS: Final = regex("[\u0300-\u036f]")
_LIKE: Final = str.maketrans("авекмнорстухіјѕԁԛԝһӏԍьαβεικνορτυχϲ", "abekmhopctyxijsdqwhlgbabeikvoptuxc")
"""Letters of Cyrillic and Greek that look like Latin ones."""
_PLAIN: Final = str.maketrans({"ł": "l", "\u0131": "i", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "\u2019": "'"})
_OTHER: Final = regex("[\u0370-\u052f]")
_MIXED: Final = regex(r"\w*(?:[a-z]\w*[\u0370-\u052f]|[\u0370-\u052f]\w*[a-z])\w*")
_SPACED: Final = regex(r"[ ._*-][^\W\d_][ ._*-][^\W\d_][ ._*-][^\W\d_](?![^\W_])")
_ALSO_SPACED: Final = regex(r"(?<![^\W_])[^\W\d_](?:[ ._*-][^\W\d_])+(?![^\W_])")


def cleaned(text: str) -> str:
    """Return the text without what cannot be seen, in letters of one width, and with words in one that are spelt with a
    blank or a mark after each letter: ``d e l e t e``. Digits stay apart, as in version 2.4.0."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return _ALSO_SPACED.sub(lambda word: word[0][::2], plain) if _SPACED.search(plain) else plain


def fold(text: str) -> str:
    """Return the text without case, accents and width; a word that mixes alphabets is Latin."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text)).casefold()
    plain = unicodedata.normalize("NFKC", _ACCENTS.sub("", apart)).translate(_PLAIN)
    return _MIXED.sub(lambda word: word[0].translate(_LIKE), plain) if _OTHER.search(plain) else plain


# --- words ------------------------------------------------------------------------------------------------------------

TOKEN: Final = regex(
    r"[$€£#]?[^\W_]\w*(?:(?:['\u2019./_:@\\-]|::|://|->)\w+)*(?:\(\)|[€$£])?"
    r"|[,:;](?!\S)|[\[\]{}\u2013\u2014|*&]|@[\w-]+|(?<!\S)-+(?!\S)|-->"
    r"|`[^`]*`|\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb|[\"\u201c\u201d\u201e]"
)
"""A name in quotation marks or backticks, what stands between blanks, or a mark that parts clauses."""
_WORD: Final = regex(r"[^\W_]+")


@lru_cache(_MAX_MEMO)
def word_of(token: str) -> str:
    """Return a token as it is compared."""
    return fold(token[:_MAX_TOKEN])


_IN_QUOTES: Final = regex('[`"\u201c\u201e\u00ab]')


def tokens(text: str) -> Sequence[str]:
    """Return the tokens of a sentence in order."""
    if _IN_QUOTES.search(text):
        return TOKEN.findall(text)
    return [*chain.from_iterable(map(_tokens, text.split()))]


@lru_cache(_MAX_MEMO)
def _tokens(chunk: str) -> Sequence[str]:
    return TOKEN.findall(chunk)


class Language:
    """The words of a language."""

    def __init__(
        self,
        name: str,
        document: Mapping[str, Any],
        english: "Language | None",
        harmful: Mapping[str, int],
        seen: Sequence[tuple[int, re.Pattern[str]]],
    ) -> None:
        self.name, self.english, self.spaceless = name, english, name in SPACELESS
        self.common = frozenset(listed(document["words"]))
        self.flags = lru_cache(_MAX_MEMO)(self._flags)
        self._nouns, self._seen = (*listed(document.get("nouns", "")),), seen
        self._whole, self._stems = defaultdict[str, int](int), defaultdict[str, int](int, harmful)
        self._phrases = defaultdict[str, defaultdict[str, defaultdict[str, int]]](
            lambda: defaultdict(lambda: defaultdict(int))
        )
        """By the first word and how the second begins: what follows the first, and the flags."""
        self._gaps = defaultdict[str, defaultdict[str, int]](lambda: defaultdict(int))
        """By the first word: what follows in some distance, and the flags."""
        for role in BIT.keys() & document.keys():
            self._put(document[role], BIT[role])
        self._put(document["words"], _KNOWN)
        for kind in KINDS:
            words = document[kind]
            self._put(words["verbs"], BIT[f"v:{kind}"])
            self._put(words["things"], BIT[f"t:{kind}"])
            self._put(words.get("done", ""), BIT[f"done:{kind}"] | BIT["passive"])
            irregular = dict(pair.split() for pair in listed(words.get("irregular", "")))
            for verb in listed(words["verbs"]) if english is None else ():
                self._put(_forms(verb, irregular), BIT[f"done:{kind}"])
        if english is not None and not self.spaceless:
            for mine, theirs in ((self._whole, english._whole), (self._stems, english._stems)):
                for word in mine:
                    theirs[word] |= _STRANGE
        self._longest = {stem[0]: len(stem) for stem in sorted(self._stems, key=len)}

    def _put(self, entries: str, flags: int) -> None:
        begins = _PHRASE | BIT["orders"] * bool(flags & (VERB | DONE)) | BIT["leads"] * bool(flags & _ORDERS)
        plural = not self.english and flags & (THING | _CODE | BIT["outside"])
        for entry in listed(entries):
            exact = not self.english or flags & (_KNOWN | BIT["own"]) or entry.endswith("$") or len(entry) <= _SHORT
            for form in (entry,) if self.spaceless else {entry.strip("$"), entry.strip("$").replace("-", " ")}:
                first, rest = (form, "") if self.spaceless else (*form.split(" ", 1), "")[:2]
                if rest.startswith(_ANY):
                    self._gaps[first][rest.split()[-1]] |= flags
                elif rest:
                    for ending in ("",) if self.english else (" ", "s "):
                        self._phrases[first][f"{rest}{ending}".split()[0][:_KEY]][rest + ending] |= flags
                table = self._whole if (exact or rest) and not self.spaceless else self._stems
                for word in _plurals(first) if plural and not rest else (first,):
                    table[word] |= begins if rest else flags

    def _flags(self, token: str) -> int:
        """Return the flags of a token; ``self.flags`` remembers them."""
        word = word_of(token)
        parts = _WORD.findall(word)
        if token[0] == "@" or not parts:
            # Who is addressed stands before an order: "@ops restart the mail server".
            return BIT["lead" if parts else "breaks"] | _KNOWN
        flags = self._of(word)
        if parts[0] != word and not flags & ~_PHRASE:
            # A compound such as "drop-down" orders nothing, nor does a name.
            orders = -1 if self.english and token[0].isalpha() else ~ACTS
            flags |= reduce(or_, map(self._of, parts)) & orders & ~_PHRASE
        if token[0] in _QUOTES and len(parts) > _MAX_NAME:
            flags = flags & (BIT["program"] | -1 << SEEN) | BIT["number"]
        if not (word == token and word.isalpha()):
            seen = reduce(or_, (bits for bits, pattern in self._seen if pattern.search(token[:_MAX_TOKEN])), 0)
            # What a file is called says nothing of what is in it.
            flags = (flags & -1 << SEEN if seen & 1 << SEEN else flags) | seen
        return flags | (_KNOWN if flags & (1 << SEEN) - 1 & ~_STRANGE else 0)

    def _of(self, word: str) -> int:
        flags = self._whole.get(word, 0)
        for end in range(1, len(word) + 1):
            flags |= self._stems.get(word[:end], 0)
        flags &= ~VERB if word.endswith(self._nouns) else -1
        flags |= BIT["number"] if word[-1].isdigit() else 0
        if self.english is not None:
            loaned = _LOANED if not flags and len(word) >= _SHORT else 0
            flags |= self.english._of(word) & (loaned | _KNOWN | BIT["program"] | -1 << SEEN)
        return flags

    def merge(self, words: list[str], flags: list[int]) -> Sequence[int]:
        """Make phrases of words, in place, and return where those begin that are left."""
        gone, done = set[int](), 0
        for at in [at for at, flag in enumerate(flags[:-1]) if flag & _PHRASE]:
            phrases = self._phrases[words[at]].get(words[at + 1][:_KEY]) if at >= done else None
            if phrases:
                follows = f"{' '.join(words[at + 1 : at + _MAX_PHRASE])} "
                if rest := max(filter(follows.startswith, phrases), key=len, default=""):
                    flag, done = phrases[rest], at + 1 + len(rest.split())
                    words[at] = f"{words[at]} {rest.rstrip()}"
                    flags[at] = flag | reduce(or_, flags[at:done]) & ~_hidden(flag) | _KNOWN
                    gone.update(range(at + 1, done))
            if words[at] in self._gaps:
                for flag in filter(None, map(self._gaps[words[at]].get, words[at + 1 : at + 1 + _MAX_PHRASE])):
                    # "Get it out" is an order, though "get" alone only leads to one.
                    flags[at] = (flags[at] & ~(ACTS ^ VERB | BIT["lead"]) if flag & VERB else flags[at]) | flag
        return [at for at in range(len(words)) if at not in gone] if gone else range(len(words))

    def parts(self, text: str) -> dict[str, int]:
        """Return the words in a text without spaces, and their flags."""
        longest = [self._longest.get(letter, 0) for letter in text]
        parts = (text[at : at + 1 + more] for at, most in enumerate(longest) for more in range(most))
        return {part: self._stems[part] for part in parts if part in self._stems}


class Harm(NamedTuple):
    """Something criminal that a sentence may ask for, or that may be meant so."""

    refuse: bool
    """Whether it is refused; a person is asked about others."""
    bits: int
    """The flags that each of the lists has some of."""
    lists: Sequence[Sequence[str]]
    without: Sequence[str]

    def asked(self, text: str) -> bool:
        """Return whether a text asks for it, of which each word stands behind a blank."""
        within = text.__contains__
        return all(any(map(within, entries)) for entries in self.lists) and not any(map(within, self.without))


def spaced(text: str) -> str:
    """Return the words of a folded text, each behind a blank."""
    return f" {' '.join(_WORD.findall(text))}"


class Lexicon(NamedTuple):
    """All that is known of words."""

    languages: Mapping[str, Language]
    latin: Sequence[Language]
    """Those in Latin letters, which are told by their commonest words; English is the first."""
    sets: Mapping[str, frozenset[str]]
    """Of ``[commands]``, ``open`` and ``vague``."""
    patterns: Mapping[str, re.Pattern[str]]
    """Of ``[lines]`` and ``[scripts]``, the letters of a language."""
    scripts: Sequence[str]
    harms: Mapping[int, Harm]
    """By the bit without which it is not asked for; what is refused comes first."""
    keys: int
    """All these bits."""
    seen: Mapping[str, int]
    """The bits of expressions by name."""


def data() -> dict[str, Any]:
    """Return the lexicon as it is written."""
    return toml_data("claudomator_py.risk", "lexicon.toml")


@cache
def lexicon() -> Lexicon:
    """Return the words that come with Claudomator."""
    document = data()
    sets = {name: frozenset(listed(text)) for name, text in document["commands"].items() if isinstance(text, str)}
    sets |= {
        name: frozenset(listed(document[table][key]))
        for name, table, key in (("open", "wrapped", "open"), ("vague", "vague", "words"))
    }
    seen, expressions = dict[str, int](), list[tuple[int, re.Pattern[str]]]()
    for number, (named, entry) in enumerate(document["seen"].items(), SEEN):
        name, _, kind = named.partition(":")
        seen[name] = 1 << number
        expressions.append((1 << number | BIT.get(f"t:{kind}", 0), re.compile(entry)))
    harms, stems = dict[int, Harm](), defaultdict[str, int](int)
    lists = {f"${name}": text for name, text in document["harm_words"].items()}
    common, bit = {*_WORD.findall(fold(f"{document['vague']['words']} {document[ENGLISH]}"))}, 1 << SEEN + len(seen)
    for harm in sorted(document["harm"], key=lambda harm: not harm.get("refuse", True)):
        bits, needs = 0, list[list[str]]()
        for text in (harm["key"], *harm["with"], harm.get("without", "$none")):
            entries = [*map(spaced, listed(", ".join(lists.get(entry.strip(), entry) for entry in text.split(","))))]
            # A word begins with an entry; in a text without blanks, it is anywhere.
            needs.append([entry[entry[1:] > _SPACELESS_FROM :] for entry in entries])
            for words in map(str.split, entries):
                stems[max(words, key=lambda word: (len(word) > 2 and word not in common, len(word)))] |= bit
            bits, bit = bits | bit, bit << 1
        harms[bits & -bits] = Harm(harm.get("refuse", True), bits ^ bit >> 1, needs[:-1], needs[-1])
    programs = ", ".join(re.split("[-.]", name)[0] for name in sets["programs"])
    english = Language(ENGLISH, document[ENGLISH] | {"program": programs}, None, stems, expressions)
    languages = {ENGLISH: english} | {
        name: Language(name, document[name], english, stems if name in SPACELESS else {}, expressions)
        for name in document
        if "reads" in document[name] and name != ENGLISH
    }
    patterns = {name: re.compile(pattern) for key in ("lines", "scripts") for name, pattern in document[key].items()}
    latin = [language for name, language in languages.items() if name not in patterns]
    return Lexicon(languages, latin, sets, patterns, [*document["scripts"]], harms, sum(harms), seen)


def listed(text: str) -> list[str]:
    """Return the entries of a list, folded, which commas separate."""
    return [entry for part in fold(text).split(",") if (entry := " ".join(part.split()))]


def _hidden(flag: int) -> int:
    """What the single words of a phrase are not, as they are a part of it."""
    hidden = THING | _CODE if flag & _CODE else _CODE if flag & THING else 0
    return BIT["breaks"] | _PHRASE | hidden | (_ORDERS | _CODE | BIT["test"] | BIT["stops"] if flag & _ORDERS else 0)


def _plurals(word: str) -> tuple[str, ...]:
    return word, f"{word}{'es' if word.endswith(('s', 'x', 'ch', 'sh')) else 's'}", re.sub("y$", "ies", word)


def _forms(verb: str, irregular: Mapping[str, str]) -> str:
    """Other forms of an English verb, as a list: what was done with it, and doing it."""
    word, _, rest = verb.partition(" ")
    stem = word.removesuffix("e")
    doubles = word[-2:-1] in "aeiou" and (word[-1] == "l" or (len(word) <= 4 and word[-1] in "bdgmnprt"))
    stems = (stem, *((word + word[-1],) if doubles else ()))
    done = f"{word[:-1]}ied" if word.endswith("y") and word[-2:-1] not in "aeo" else f"{stem}ed"
    forms = {irregular.get(word, done), *(f"{stem}ed" for stem in stems[1:]), *(f"{stem}ing" for stem in stems)}
    return ", ".join(f"{form} {rest}" for form in sorted(forms))
