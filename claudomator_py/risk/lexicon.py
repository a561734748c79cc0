"""The words of ``lexicon.toml``, by language, each with what it tells as bits of a number; read once."""

import pkgutil
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import listed
from claudomator_py.risk.harm import Harms

ENGLISH: Final = "en"
SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages whose words are parts of the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
_MAX_GAP: Final = 6
"""Words among which the second part of a phrase with a gap begins."""
_SHORT: Final = 3
"""Letters of an entry that is a whole word in any language."""
_KEY: Final = 4
"""Letters of the second word of a phrase by which it is found."""
_MAX_MEMO: Final = 50_000

# What a word is. Of these three, a bit for each kind: a verb, in its other forms, and what it is done to.
VERB, DONE, THING = (0b111111 << place for place in (0, 6, 12))
_ROLES: Final = "reads builds code test prod many own not fails when strong lead passive det back stops breaks"
ROLE: Final = {name: 1 << 18 + number for number, name in enumerate(_ROLES.split())}
"""The bit of each list of the lexicon."""
PHRASE, GAP, ORDERS, KNOWN, NUMBER, PROGRAM, HARM, SCRIPT, FOREIGN = (1 << at for at in range(35, 44))
"""``PHRASE``: one may begin with it; ``ORDERS``: one that orders, or leads to an order. ``SCRIPT``: it is in letters of
a language of their own. ``FOREIGN``: it may be a word of another language."""
SEEN: Final = 44
"""From this bit on: what is seen in letters, in the order of the lexicon."""
LEAD, CODE, TEST, BREAKS = (ROLE[name] for name in ("lead", "code", "test", "breaks"))
ACTS: Final = VERB | ROLE["reads"] | ROLE["builds"]
_LEADS: Final = LEAD | ROLE["reads"] | ROLE["builds"]
_ORDERS: Final = ACTS | DONE | LEAD | ROLE["passive"]
_LOANED: Final = VERB | THING | CODE | TEST | ROLE["prod"] | KNOWN | PROGRAM
"""What English words are in other languages."""


class Words(dict[str, int]):
    """What each word of a language tells, found out once."""

    def __init__(self, name: str, said: Mapping[str, Any], english: "Words | None", harmful: Iterable[str]) -> None:
        self.name, self.english, self.common = name, english, frozenset(listed(said["words"]))
        self.whole, self.stems = dict[str, int](), dict[str, int]()
        self.phrases: dict[str, dict[str, dict[tuple[str, ...], int]]] = {}
        """By their first word and how the second begins; those with a gap under ``_``, by what is behind it."""
        for word in self.common:
            self._put(word, KNOWN, whole=True)
        for role, bit in ROLE.items():
            for entry in listed(said.get(role, "")):
                self._put(entry, bit, whole=role == "own", plural=role == "code")
        for number, kind in enumerate(KINDS):
            irregular = dict(pair.split() for pair in listed(said[kind].get("irregular", "")))
            for entry in listed(said[kind]["verbs"]):
                self._put(entry, 1 << number)
                for form in _forms(entry, irregular) if english is None else ():
                    self._put(form, 1 << number + 6)
            for entry in listed(said[kind]["things"]):
                self._put(entry, 1 << number + 12, plural=True)
        add(self.stems, harmful if english is None or name in SPACELESS else (), HARM)
        self.lengths = sorted({len(stem) for stem in self.stems})
        self.starts = {stem[0]: length for length in self.lengths for stem in self.stems if len(stem) == length}
        """How long the longest stem is with each first letter."""

    def __missing__(self, word: str) -> int:
        if len(self) > _MAX_MEMO:
            self.clear()
        # Whoever is addressed stands before an order: "@ops restart the mail server".
        tells = LEAD if word[0] == "@" else self.whole.get(word, 0 if word[0].isalnum() else BREAKS)
        for length in self.lengths:
            tells |= self.stems.get(word[:length], 0) if length <= len(word) else 0
        tells |= NUMBER if word[-1].isdigit() else 0
        tells = tells & ~FOREIGN | KNOWN if tells & ~(HARM | FOREIGN) else tells
        if self.english is not None:
            # English words are said in other languages too, where they are none of theirs.
            tells |= self.english[word] & (_LOANED if not tells and len(word) >= _SHORT else KNOWN | PROGRAM)
        self[word] = tells
        return tells

    def _put(self, entry: str, tells: int, *, whole: bool = False, plural: bool = False) -> None:
        first, *rest = (entry,) if self.name in SPACELESS else entry.removesuffix("$").replace("-", " ").split()
        if rest:
            key, end = ("_", (rest[-1],)) if "_" in rest else (rest[0][:_KEY], (*rest,))
            add(self.phrases.setdefault(first, {}).setdefault(key, {}), (end,), tells)
            tells = PHRASE | (GAP if key == "_" else 0) | (ORDERS if tells & _ORDERS else 0)
        exact = rest or whole or self.english is None or entry.endswith("$") or len(first) <= _SHORT
        forms = _plurals(first) if plural and self.english is None and not rest else (first,)
        add(self.whole if exact and self.name not in SPACELESS else self.stems, forms, tells)

    def read(self, words: list[str], tells: list[int]) -> tuple[list[str], list[int]]:
        """Return words and what each tells, with those of a phrase as one."""
        said, told, done = list[str](), list[int](), 0
        for place in [at for at, one in enumerate(tells[:-1]) if one & PHRASE]:
            known, told_here, length = self.phrases[words[place]], tells[place], 0
            here = known.get(words[place + 1][:_KEY])
            if place < done or (here is None and not told_here & GAP):
                continue
            for rest, tell in here.items() if here else ():
                end = place + 1 + len(rest)
                if (
                    length < len(rest)
                    and (*words[place + 1 : end - 1],) == rest[:-1]
                    and self._ends(words[end - 1 : end], rest[-1])
                ):
                    length = len(rest)
                    told_here = tell | reduce(or_, tells[place:end]) & ~_hidden(tell) | KNOWN
            for (last,), tell in known["_"].items() if tells[place] & GAP else ():
                if last in words[place + 1 : place + 1 + _MAX_GAP]:
                    # "Get it out" is an order, though "get" alone only leads to one.
                    told_here = (told_here & ~_LEADS if tell & VERB else told_here) | tell
            if told_here != tells[place]:
                said += [*words[done:place], " ".join(words[place : place + 1 + length])]
                told += [*tells[done:place], told_here]
                done = place + 1 + length
        return ([*said, *words[done:]], [*told, *tells[done:]]) if done else (words, tells)

    def _ends(self, words: Sequence[str], last: str) -> bool:
        if self.english is None:
            return last in words or f"{last}s" in words
        return any(word.startswith(last) for word in words)

    def parts(self, text: str) -> Iterator[tuple[str, int]]:
        """Return the words in a text without spaces, and what they tell."""
        for place, letter in enumerate(text):
            if letter > "\x7f" or not place or text[place - 1] > "\x7f":
                for end in range(place + 1, place + 1 + self.starts.get(letter, 0)):
                    if (tells := self.stems.get(text[place:end])) is not None:
                        yield text[place:end], tells


class Lexicon(NamedTuple):
    """All that is known of words."""

    languages: Mapping[str, Words]
    sets: Mapping[str, frozenset[str]]
    """Of ``[commands]``, and ``open``."""
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
    sets["open"] = frozenset(listed(said["wrapped"]["open"]))
    harms = Harms(said)
    english = Words(ENGLISH, said[ENGLISH], None, harms.stems)
    add(english.whole, {re.split("[-.]", name)[0] for name in sets["programs"]}, PROGRAM)
    names = [name for name, one in said.items() if "reads" in one and name != ENGLISH]
    others = {name: Words(name, said[name], english, harms.stems) for name in names}
    for one in others.values():
        add(english.whole, one.common - english.whole.keys(), FOREIGN)
        for mine, theirs in ((english.whole, one.whole), (english.stems, one.stems)):
            add(mine, [word for word, tells in theirs.items() if tells & (VERB | ORDERS)], FOREIGN)
    english.lengths = sorted({len(stem) for stem in english.stems})
    seen = {}
    for number, (name, one) in enumerate(said["seen"].items()):
        what, _, kind = name.partition(":")
        seen[what] = (1 << SEEN + number | (1 << KINDS.index(kind) + 12 if kind else 0), re.compile(one))
    lines, scripts = ({name: re.compile(one) for name, one in said[key].items()} for key in ("lines", "scripts"))
    return Lexicon({ENGLISH: english} | others, sets, lines, harms, scripts, seen)


def add(table: dict[Any, int], words: Iterable[object], tells: int) -> None:
    """Have words of a table tell that too."""
    for word in words:
        table[word] = table.get(word, 0) | tells


def _hidden(tell: int) -> int:
    """What the single words of a phrase are not, as they are a part of it."""
    hidden = THING | CODE if tell & CODE else CODE if tell & THING else 0
    return BREAKS | hidden | (ACTS | DONE | LEAD | CODE | TEST if tell & (ACTS | DONE | LEAD) else 0)


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
