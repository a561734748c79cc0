"""The words of ``lexicon.toml``, by language, each with what it tells as bits of a number; read once.

They are compared as a reader sees them: without case, accents and width, and with look-alikes undone.
"""

import pkgutil
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial, reduce
from operator import or_
from typing import Any, Final, NamedTuple, TypeAlias

from claudomator_py.values import regex

_INVISIBLE: Final = regex(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_KEPT: Final = frozenset("\u3099\u309a")
"""Marks that make another letter of kana."""
_LIKE: Final = str.maketrans("авекмнорстухіјѕԁԛԝһӏԍьαβεικνορτυχϲ", "abekmhopctyxijsdqwhlgbabeikvoptuxc")
"""Letters of Cyrillic and Greek that look like Latin ones."""
_PLAIN: Final = str.maketrans({"ß": "ss", "ł": "l", "\u0131": "i", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"})
_OTHER: Final = regex("[\u0370-\u052f]")
_MIXED: Final = regex(r"\w*(?:[a-z]\w*[\u0370-\u052f]|[\u0370-\u052f]\w*[a-z])\w*")
_SPACED: Final = regex(r"[ ._*-][^\W\d_][ ._*-][^\W\d_][ ._*-][^\W\d_](?![^\W_])")
_ALSO_SPACED: Final = regex(r"(?<![^\W_])[^\W_](?:[ ._*-][^\W_])+(?![^\W_])")
_TOKEN: Final = regex(
    r"(?<!\w)@[\w-]+|[^\W_]+(?:'[^\W_]+)*|[,:](?!\S)|[\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*&]"
    r"|(?<!\S)-+(?!\S)|-->"
)


class _Letters(dict[int, str]):
    """What each letter is folded to, found out once."""

    def __missing__(self, code: int) -> str:
        apart = unicodedata.normalize("NFKD", chr(code)).casefold()
        bare = "".join(one for one in apart if not unicodedata.combining(one) or one in _KEPT)
        self[code] = unicodedata.normalize("NFKC", bare).translate(_PLAIN).casefold()
        return self[code]


_LETTERS: Final = _Letters()


def fold(text: str) -> str:
    """Return the text without case, accents, width and what cannot be seen; a word that mixes alphabets is Latin."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_LETTERS)
    return _MIXED.sub(lambda word: word[0].translate(_LIKE), folded) if _OTHER.search(folded) else folded


def joined(text: str) -> str:
    """Return the text with words in one that are spelt with a space or a mark after each letter: ``d e l e t e``."""
    return _ALSO_SPACED.sub(lambda word: word[0][::2], text) if _SPACED.search(text) else text


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded, and the marks that part them, in order."""
    return _TOKEN.findall(fold(text).replace("\u2019", "'"))


ENGLISH: Final = "en"
SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages whose words are parts of the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
_ROLES: Final = "reads builds code test prod many own not fails when strong lead passive det back stops breaks"
_PROGRAMS: Final = "program plain"
_FINDS: Final = "phrase orders known number harm script strange"
_CLAUSES: Final = (
    "order alone bare nothing thing.last code.last code.object code.else heading quoted sole foreign f.pair f.cross "
    "test.beside prod.beside not.beside prod.before after.order after.read after.build pasted cmd.order cmd.named"
)
_NAMES: Final = (
    *(f"{part}:{kind}" for part in ("v", "done", "t") for kind in KINDS),
    *f"{_ROLES} {_PROGRAMS} {_FINDS} {_CLAUSES}".split(),
)
BIT: Final = {name: 1 << place for place, name in enumerate(_NAMES)}
"""What a word or a clause can tell. Of each class: that it is its verb (``v``), another form of that (``done``), or
what it is done to (``t``). Then lists of the lexicon: a language's, and programs, of which ``plain`` ones are words of
prose too. ``phrase``: one may begin with it; ``orders``: one that orders, or leads to an order; ``script``: it is in
letters of a language of their own; ``strange``: it is a word of another language. Last, what only a clause tells."""
SEEN: Final = len(_NAMES)
"""From this bit on: what is seen in letters, in the order of the lexicon."""
VERB, DONE, THING = (sum(BIT[f"{part}:{kind}"] for kind in KINDS) for part in ("v", "done", "t"))
DONE_AT, THING_AT = len(KINDS), 2 * len(KINDS)
"""How far their bits are from those of verbs."""
ACTS: Final = VERB | BIT["reads"] | BIT["builds"]
_LEADS: Final = BIT["lead"] | BIT["reads"] | BIT["builds"]
_ORDERS: Final = ACTS | DONE | BIT["lead"] | BIT["passive"]
_KNOWN, _PHRASE = BIT["known"], BIT["phrase"]
_PASSED_ON: Final = _KNOWN | BIT["program"] | BIT["plain"] | BIT["harm"]
_LOANED: Final = _PASSED_ON | VERB | THING | BIT["code"] | BIT["test"] | BIT["prod"]
"""What English words are in other languages, where they are none of theirs."""
_SHORT: Final = 3
"""Letters of an entry that is a whole word in any language."""
_KEY: Final = 4
"""Letters of the second word of a phrase by which it is found."""
_ANY: Final = "_"
_MAX_GAP: Final = 6
"""Words among which the second part of a phrase with a gap begins."""
_MAX_MEMO: Final = 20_000
_MAX_STEM: Final = 30
_WITHOUT: Final = -1
_Phrases: TypeAlias = dict[str, dict[tuple[str, ...], int]]
_SPACELESS: Final = regex("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Language:
    """The words of a language."""

    def __init__(self, name: str, said: Mapping[str, Any], english: "Language | None", harmful: Iterable[str]) -> None:
        self.name, self.english, self.common = name, english, frozenset(listed(said["words"]))
        self.tells = lru_cache(_MAX_MEMO)(self._tells)
        self._whole, self._stems = dict[str, int](), dict[str, int]()
        self._phrases = dict[str, _Phrases]()
        """By their first word and how the second begins; those with a gap by what is behind it."""
        for word in self.common:
            self._put(word, _KNOWN, whole=True)
        for role in f"{_ROLES} {_PROGRAMS}".split():
            for entry in listed(said.get(role, "")):
                self._put(entry, BIT[role], whole=role == "own", plural=role == "code")
        for kind in KINDS:
            irregular = dict(pair.split() for pair in listed(said[kind].get("irregular", "")))
            for entry in listed(said[kind]["verbs"]):
                self._put(entry, BIT[f"v:{kind}"])
                for form in _forms(entry, irregular) if english is None else ():
                    self._put(form, BIT[f"done:{kind}"])
            for entry in listed(said[kind]["things"]):
                self._put(entry, BIT[f"t:{kind}"], plural=True)
        add(self._stems, harmful, BIT["harm"])
        self._lengths = sorted({len(stem) for stem in self._stems})
        self._longest = {stem[0]: len(stem) for stem in sorted(self._stems, key=len)}

    def _put(self, entry: str, tells: int, *, whole: bool = False, plural: bool = False) -> None:
        spaceless = self.name in SPACELESS
        first, *rest = (entry,) if spaceless else entry.removesuffix("$").replace("-", " ").split()
        if rest:
            key, end = (_ANY, rest[-1:]) if _ANY in rest else (rest[0][:_KEY], rest)
            add(self._phrases.setdefault(first, {}).setdefault(key, {}), [(*end,)], tells)
            tells = _PHRASE | (BIT["orders"] if tells & _ORDERS else 0)
        exact = rest or whole or self.english is None or entry.endswith("$") or len(first) <= _SHORT
        forms = _plurals(first) if plural and self.english is None and not rest else (first,)
        add(self._whole if exact and not spaceless else self._stems, forms, tells)

    def _tells(self, word: str) -> int:
        """What a word tells; ``self.tells`` remembers it."""
        # Whoever is addressed stands before an order: "@ops restart the mail server".
        breaks = 0 if word[0].isalnum() else BIT["breaks"]
        tells = BIT["lead"] if word[0] == "@" else self._whole.get(word, breaks)
        for length in self._lengths:
            if length > len(word):
                break
            tells |= self._stems.get(word[:length], 0)
        tells |= BIT["number"] if word[-1].isdigit() else 0
        tells |= _KNOWN if tells & ~BIT["harm"] else 0
        if self.english is not None:
            tells |= self.english.tells(word) & (_LOANED if not tells and len(word) >= _SHORT else _PASSED_ON)
        return tells

    def phrased(self, words: Sequence[str], tells: Sequence[int]) -> tuple[Sequence[str], Sequence[int]]:
        """Return words and what each tells, with those of a phrase as one."""
        said, told, done = list[str](), list[int](), 0
        for place in [at for at, one in enumerate(tells[:-1]) if one & _PHRASE]:
            known = self._phrases[words[place]]
            if place >= done and (_ANY in known or words[place + 1][:_KEY] in known):
                length, here = self._phrase(known, words, tells, place)
                # One that tells no more than its first word is left in words.
                if here != tells[place]:
                    said += [*words[done:place], " ".join(words[place : place + length])]
                    told += [*tells[done:place], here]
                    done = place + length
        return ([*said, *words[done:]], [*told, *tells[done:]]) if done else (words, tells)

    def _phrase(self, known: _Phrases, words: Sequence[str], tells: Sequence[int], place: int) -> tuple[int, int]:
        """How many words the longest of these phrases has that is there, and what it tells."""
        length, told = 1, tells[place]
        for rest, tell in known.get(words[place + 1][:_KEY], {}).items():
            end = place + len(rest)
            if length <= len(rest) and (*words[place + 1 : end],) == rest[:-1] and self._ends(words[end:], rest[-1]):
                length, told = len(rest) + 1, tell | reduce(or_, tells[place : end + 1]) & ~_hidden(tell) | _KNOWN
        for (last,), tell in known.get(_ANY, {}).items():
            if last in words[place + 1 : place + 1 + _MAX_GAP]:
                # "Get it out" is an order, though "get" alone only leads to one.
                told = (told & ~_LEADS if tell & VERB else told) | tell
        return length, told

    def _ends(self, words: Sequence[str], last: str) -> bool:
        """Whether these words begin with the last one of a phrase."""
        if self.english is None:
            return words[:1] in ([last], [f"{last}s"])
        return bool(words) and words[0].startswith(last)

    def parts(self, text: str) -> dict[str, int]:
        """Return the words in a text without spaces, and what they tell."""
        found = dict[str, int]()
        for place, letter in enumerate(text):
            if letter > "\x7f" or not place or text[place - 1] > "\x7f":
                for end in range(place + 1, place + 1 + self._longest.get(letter, 0)):
                    if (part := text[place:end]) in self._stems:
                        found[part] = self._stems[part]
        return found


class Harm(NamedTuple):
    """Something criminal that a sentence may ask for, or that may be meant so."""

    refuse: bool
    """Whether it is refused; a person is asked about others."""
    needs: frozenset[int]
    """Numbers of the lists of which the sentence has to have an entry each."""


class Harms:
    """All of them, with what is refused first; found by words that must stand together."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        named = {f"${name}": listed(text) for name, text in said["harm_words"].items()}
        common = {*words_in(f"{said['vague']['words']} {said[ENGLISH]}")}
        self.all = list[Harm]()
        self.stems, self.keys = dict[str, list[str]](), dict[str, list[str]]()
        """Entries by their rarest word, with which words of texts begin; and those of the first lists."""
        self._lists = dict[str, set[tuple[int, int]]]()
        """By entry: which harm it is told of, and in which list."""
        self._keys, self._stems = (lru_cache(_MAX_MEMO)(partial(_begun, table)) for table in (self.keys, self.stems))
        for number, one in enumerate(sorted(said["harm"], key=lambda one: not one.get("refuse", True))):
            lists = dict(enumerate((one["key"], *one["with"]))) | {_WITHOUT: one.get("without", "")}
            self.all.append(Harm(one.get("refuse", True), frozenset(lists) - {_WITHOUT}))
            for part, text in lists.items():
                for entry in (entry for one in listed(text) for entry in named.get(one, [one])):
                    words = re.findall(r"[^\W_]+", entry) or [entry]
                    rarest = max(words, key=lambda word: (len(word) > 2 and word not in common, len(word)))
                    self.stems.setdefault(rarest, []).append(entry)
                    if part == 0:
                        self.keys.setdefault(rarest, []).append(entry)
                    self._lists.setdefault(entry, set()).add((number, part))

    def of(self, folded: str, keys: Iterable[str], words: Iterable[str]) -> Harm | None:
        """Return what a folded sentence asks for; None: nothing of these. words: of it; keys: such as are of a key."""
        if not any(entry in folded for key in keys for entry in self._keys(key)):
            return None
        found = dict[int, set[int]]()
        for entry in {entry for word in (*keys, *words) for entry in self._stems(word)}:
            if entry in folded and _stands(entry).search(folded):
                for number, part in self._lists[entry]:
                    found.setdefault(number, set()).add(part)
        asked = [number for number, parts in found.items() if parts == self.all[number].needs]
        return self.all[min(asked)] if asked else None


def _begun(stems: Mapping[str, Sequence[str]], word: str) -> Sequence[str]:
    """What stands in the table under beginnings of a word."""
    return [one for end in range(1, min(len(word), _MAX_STEM) + 1) for one in stems.get(word[:end], ())]


@cache
def _stands(entry: str) -> re.Pattern[str]:
    """Where a word begins with that, or anywhere in a text without spaces."""
    return re.compile(re.escape(entry) if _SPACELESS.search(entry) else rf"(?<!\w){re.escape(entry)}")


class Lexicon(NamedTuple):
    """All that is known of words."""

    languages: Mapping[str, Language]
    latin: Sequence[Language]
    """Those in Latin letters, which are told by their commonest words; English is the first."""
    sets: Mapping[str, frozenset[str]]
    """Of ``[commands]``, ``open`` and ``vague``."""
    lines: Mapping[str, re.Pattern[str]]
    """How lines begin that are ``pasted``, or behind which somebody tells what was ``reported``."""
    harms: Harms
    scripts: Mapping[str, re.Pattern[str]]
    seen: Mapping[str, tuple[int, re.Pattern[str]]]
    """Expressions, each with the bits of what has it."""


def data() -> dict[str, Any]:
    """Return the lexicon as it is written."""
    return tomllib.loads((pkgutil.get_data("claudomator_py.risk", "lexicon.toml") or b"").decode())


@cache
def lexicon() -> Lexicon:
    """Return the words that come with Claudomator."""
    said = data()
    sets = {name: frozenset(listed(text)) for name, text in said["commands"].items() if isinstance(text, str)}
    sets |= {"open": frozenset(listed(said["wrapped"]["open"])), "vague": frozenset(listed(said["vague"]["words"]))}
    harms = Harms(said)
    programs = ", ".join(re.split("[-.]", name)[0] for name in sets["programs"] - sets["plain"])
    named = {"program": programs, "plain": said["commands"]["plain"]}
    english = Language(ENGLISH, said[ENGLISH] | named, None, harms.keys)
    languages = {ENGLISH: english} | {
        name: Language(name, one, english, harms.stems if name in SPACELESS else ())
        for name, one in said.items()
        if "reads" in one and name != ENGLISH
    }
    seen = {}
    for number, (name, one) in enumerate(said["seen"].items()):
        what, _, kind = name.partition(":")
        seen[what] = (1 << SEEN + number | (BIT[f"t:{kind}"] if kind else 0), re.compile(one))
    lines, scripts = ({name: re.compile(one) for name, one in said[key].items()} for key in ("lines", "scripts"))
    latin = [one for name, one in languages.items() if name not in scripts]
    return Lexicon(languages, latin, sets, lines, harms, scripts, seen)


def listed(text: str) -> list[str]:
    """Return the entries of a list, folded, which commas separate."""
    return [entry for one in fold(text).split(",") if (entry := " ".join(one.split()))]


def add(table: dict[Any, int], words: Iterable[object], tells: int) -> None:
    """Have words of a table tell that too."""
    for word in words:
        table[word] = table.get(word, 0) | tells


def _hidden(tell: int) -> int:
    """What the single words of a phrase are not, as they are a part of it."""
    code, order = BIT["code"], ACTS | DONE | BIT["lead"]
    hidden = THING | code if tell & code else code if tell & THING else 0
    return BIT["breaks"] | hidden | (order | code | BIT["test"] if tell & order else 0)


def _plurals(word: str) -> Iterator[str]:
    yield word
    yield f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
    if word.endswith("y"):
        yield f"{word[:-1]}ies"


def _forms(verb: str, irregular: Mapping[str, str]) -> Iterator[str]:
    """Other forms of an English verb: what was done with it, and doing it."""
    word, *rest = verb.split(" ")
    stem = word.removesuffix("e")
    doubled = word + word[-1] if len(word) <= 4 and word[-1] in "bdgmnprt" and word[-2:-1] in "aiou" else stem
    done = f"{word[:-1]}ied" if word.endswith("y") and word[-2:-1] not in "aeo" else f"{doubled}ed"
    yield from (" ".join((form, *rest)) for form in (irregular.get(word, done), f"{doubled}ing"))
