"""The words of ``lexicon.toml``, by language, each with what it tells as bits of a number; read once."""

import pkgutil
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import listed
from claudomator_py.risk.harm import Harms, harms

ENGLISH: Final = "en"
SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages whose words are parts of the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
_MAX_GAP: Final = 5
"""Words that may stand within a phrase that has a gap."""
_SHORT: Final = 3
"""Letters of an entry that is a whole word in any language."""
_KEY: Final = 2
"""Letters of the second word of a phrase by which it is found."""
_MAX_MEMO: Final = 50_000

# What a word is. Of these four, a bit for each kind: a verb, in its other forms, and what it is done to.
VERB, DONE, DOING, THING = (0b111111 << place for place in (0, 6, 12, 18))
_ROLES: Final = (
    *("reads", "builds", "code", "test", "prod", "many", "own", "not", "fails", "when", "strong", "lead", "passive"),
    *("states", "det", "back", "stops"),
)
ROLE: Final = {name: 1 << 24 + number for number, name in enumerate(_ROLES)}
"""The bit of each list of the lexicon."""
PHRASE, GAP, ASKED, KNOWN, NUMBER, BREAKS, PROGRAM, HARM, FOREIGN, SCRIPT, ORDERS = (1 << at for at in range(44, 55))
"""``ORDERS``: a phrase that orders begins with it. ``SCRIPT``: it is in letters of a language of their own."""
READ, BUILD, CODE, TEST, LEAD = (ROLE[name] for name in ("reads", "builds", "code", "test", "lead"))
ACTS: Final = VERB | DONE | DOING | READ | BUILD
LOANED: Final = VERB | THING | CODE | TEST | ROLE["prod"] | KNOWN | PROGRAM
"""What English words are in other languages."""


class _Phrase(NamedTuple):
    rest: tuple[str, ...]
    tells: int
    hides: int
    """What its single words are not, as they are a part of it."""


class Words(dict[str, int]):
    """What each word of a language tells, found out once."""

    def __init__(self, name: str, common: Sequence[str]) -> None:
        self.name, self.common = name, frozenset(common)
        self.exact: dict[str, int] = {}
        self.stems: dict[str, int] = {}
        self.pairs: dict[str, dict[str, list[_Phrase]]] = {}
        """Phrases, by their first word and how the second begins; ``_``: those with a gap."""
        self.starts: dict[str, int] = {}
        """Of what single letters there are words, and how long the longest is."""
        self.lengths: tuple[int, ...] = ()
        self.english: Words | None = None

    def __missing__(self, word: str) -> int:
        if len(self) > _MAX_MEMO:
            self.clear()
        plain = word.replace("\u2019", "'")
        # Whoever is addressed stands before an order: "@ops restart the mail server".
        tells = LEAD | KNOWN if plain[0] == "@" else self.exact.get(plain, 0 if plain[0].isalnum() else BREAKS)
        for length in self.lengths:
            if length > len(plain):
                break
            tells |= self.stems.get(plain[:length], 0)
        tells |= KNOWN | NUMBER if plain[-1].isdigit() else 0
        if self.english is not None:
            # English words are said in other languages too, where they are none of theirs.
            tells |= self.english[word] & (LOANED if not tells and len(word) > _SHORT - 1 else KNOWN | PROGRAM)
        self[word] = tells
        return tells

    def put(self, entry: str, tells: int, *, whole: bool = False, plural: bool = False) -> None:
        """Add an entry of a list."""
        english = self.name == ENGLISH
        if self.name in SPACELESS:
            self.stems[entry] = self.stems.get(entry, 0) | tells
            self.starts[entry[0]] = max(self.starts.get(entry[0], 0), len(entry))
            return
        first, *rest = entry.removesuffix("$").replace("-", " ").split()
        if rest:
            hides = ACTS | LEAD | TEST | CODE if tells & (ACTS | LEAD) else CODE if tells & THING else 0
            hides = THING | CODE if tells & CODE else hides
            tells |= ASKED if tells & LEAD else 0
            key = "_" if "_" in rest else rest[0][:_KEY]
            self.pairs.setdefault(first, {}).setdefault(key, []).append(_Phrase(tuple(rest), tells, hides))
            mark = PHRASE | (GAP if "_" in rest else 0) | (ORDERS if tells & (VERB | DONE | DOING) else 0)
            self.exact[first] = self.exact.get(first, 0) | mark
            return
        table = self.exact if english or whole or entry.endswith("$") or len(first) <= _SHORT else self.stems
        for form in _plurals(first) if plural else (first,):
            table[form] = table.get(form, 0) | tells

    def read(self, words: list[str], tells: list[int]) -> tuple[list[str], list[int]]:
        """Return the words and what each tells; those of a phrase are one. tells: of each by itself."""
        said, told, done = list[str](), list[int](), 0
        for place in [at for at, one in enumerate(tells[:-1]) if one & PHRASE]:
            one = tells[place]
            known = self.pairs[words[place].replace("\u2019", "'")]
            if place >= done and (one & GAP or words[place + 1][:_KEY] in known):
                length, one = self._phrase(words, tells, place, known)
                if length or one != tells[place]:
                    said += [*words[done:place], " ".join(words[place : place + (length or 1)])]
                    told += [*tells[done:place], one]
                    done = place + (length or 1)
        return (words, tells) if not done else ([*said, *words[done:]], [*told, *tells[done:]])

    def _phrase(
        self, words: list[str], tells: list[int], place: int, known: Mapping[str, list[_Phrase]]
    ) -> tuple[int, int]:
        """How many words the longest phrase takes that begins there, and what it tells; one with a gap takes none."""
        length, told = 0, tells[place]
        for rest, tell, hides in known.get(words[place + 1][:_KEY], ()):
            end = place + 1 + len(rest)
            if (
                len(rest) < length
                or (*words[place + 1 : end - 1],) != rest[:-1]
                or not self._ends(words[end - 1 : end], rest[-1])
            ):
                continue
            if len(rest) > length:
                inner = reduce(or_, tells[place + 1 : end]) & ~(ACTS | LEAD)
                told = tell | (tells[place] | inner) & ~hides & ~BREAKS
            length, told = len(rest), told | tell
        for rest, tell, _ in known.get("_", ()):
            gap = rest.index("_")
            begin = place + 1 + gap
            if (*words[place + 1 : begin],) == rest[:gap] and self._ends(words[begin : begin + _MAX_GAP + 1], rest[-1]):
                # "Get it out" is an order, though "get" alone only leads to one.
                told = (told & ~LEAD if tell & VERB else told) | tell
        return length and length + 1, told

    def _ends(self, words: Sequence[str], last: str) -> bool:
        """Whether one of the words is the last one of a phrase."""
        if self.name == ENGLISH:
            return last in words or f"{last}s" in words
        return any(word.startswith(last) for word in words)

    def parts(self, text: str) -> Iterator[tuple[str, int]]:
        """Return the words in a text without spaces, and what they tell."""
        for place, letter in enumerate(text):
            longest = self.starts.get(letter, 0)
            if longest and not (letter <= "\x7f" and place and text[place - 1] <= "\x7f"):
                for length in range(1, longest + 1):
                    tells = self.stems.get(text[place : place + length])
                    if tells is not None:
                        yield text[place : place + length], tells


class Lexicon(NamedTuple):
    """All that is known of words."""

    languages: Mapping[str, Words]
    sets: Mapping[str, frozenset[str]]
    """Of ``[commands]``, and ``states`` and ``open``."""
    logged: re.Pattern[str]
    reported: re.Pattern[str]
    harms: Harms
    scripts: Mapping[str, re.Pattern[str]]
    seen: Mapping[str, re.Pattern[str]]


def data() -> dict[str, Any]:
    """Return the lexicon as it is written."""
    return tomllib.loads((pkgutil.get_data("claudomator_py.risk", "lexicon.toml") or b"").decode())


@cache
def lexicon() -> Lexicon:
    """Return the words that come with Claudomator."""
    said = data()
    languages = {name: _language(name, entry) for name, entry in said.items() if "reads" in entry}
    sets = {name: frozenset(listed(text)) for name, text in said["commands"].items() if isinstance(text, str)}
    sets |= {"open": frozenset(listed(said["lines"]["open"])), "states": frozenset(listed(said[ENGLISH]["states"]))}
    english, harm = languages[ENGLISH], harms(said)
    programs = {re.split("[-.]", name)[0] for name in sets["programs"]}
    _mark(english.exact, dict.fromkeys(("and", "then", "but", "or", "so"), BREAKS))
    _mark(english.exact, dict.fromkeys(programs, PROGRAM))
    for name, language in languages.items():
        if name != ENGLISH and name not in said["scripts"]:
            for first, those in language.pairs.items():
                if any(one.tells & VERB for phrases in those.values() for one in phrases):
                    _mark(english.exact, {first: FOREIGN})
            for mine, theirs in ((english.exact, language.exact), (english.stems, language.stems)):
                _mark(mine, {word: FOREIGN for word, tells in theirs.items() if tells & VERB})
    _mark(english.stems, dict.fromkeys(harm.stems, HARM))
    for language in languages.values():
        for stem in harm.stems if language.name in SPACELESS else ():
            if not stem.isascii():
                language.put(stem, HARM)
        language.english = english if language is not english else None
        language.lengths = tuple(sorted({len(stem) for stem in language.stems}))
    logged = re.compile(rf"\s*(?:{'|'.join(said['lines']['logged'])})")
    reported = re.compile(rf"(?i)[\W_]*(?:{'|'.join(said['lines']['reported'].split())})\b[^:.]{{0,30}}:?")
    scripts, seen = ({name: re.compile(one) for name, one in said[key].items()} for key in ("scripts", "seen"))
    return Lexicon(languages, sets, logged, reported, harm, scripts, seen)


def _mark(table: dict[str, int], marks: Mapping[str, int]) -> None:
    for word, tells in marks.items():
        table[word] = table.get(word, 0) | tells


def _language(name: str, said: Mapping[str, Any]) -> Words:
    found = Words(name, listed(said["words"]))
    english = name == ENGLISH
    for word in found.common:
        found.put(word, KNOWN, whole=True)
    for role, bit in ROLE.items():
        for entry in listed(said.get(role, "")):
            found.put(entry, bit | KNOWN, whole=role == "own", plural=english and role == "code")
    for number, kind in enumerate(KINDS):
        irregular = dict(pair.split() for pair in listed(said[kind].get("irregular", "")))
        for entry in listed(said[kind]["verbs"]):
            found.put(entry, 1 << number | KNOWN)
            for place, form in _forms(entry, irregular) if english else ():
                found.put(form, 1 << number + place | KNOWN)
        for entry in listed(said[kind]["things"]):
            found.put(entry, 1 << number + 18 | KNOWN, plural=english)
    return found


def _plurals(word: str) -> Iterator[str]:
    yield word
    yield f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
    if word.endswith("y"):
        yield f"{word[:-1]}ies"


def _forms(verb: str, irregular: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Other forms of an English verb, each with the place of its bits: what was done with it, and doing it."""
    word, *rest = verb.split(" ")
    stem = word.removesuffix("e")
    doubled = word + word[-1] if len(word) <= 4 and word[-1] in "bdgmnprt" and word[-2:-1] in "aiou" else stem
    done = f"{word[:-1]}ied" if word.endswith("y") and word[-2:-1] not in "aeo" else f"{doubled}ed"
    after = "".join(f" {one}" for one in rest if one != "_")
    yield 6, irregular.get(word, done) + after
    yield 12, f"{doubled}ing" + after
