"""The words of ``lexicon.toml`` as values that find them in a text, read once."""

import pkgutil
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import fold

ENGLISH: Final = "en"
SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages whose words are parts of the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
MAX_GAP: Final = 5
"""Words that may stand within a phrase that has a gap."""
SHORT: Final = 3
"""Letters of an entry that is a whole word in any language."""
_MAX_MEMO: Final = 20_000
_ROLES: Final = (
    *("words", "lead", "passive", "reads", "builds", "code", "test", "prod", "many", "own", "not", "states", "det"),
    *("back", "when", "fails", "strong"),
)

_GROUPS: Final = {
    **dict.fromkeys(("verb", "done", "doing", "read", "build", "lead"), "acts"),
    "thing": "things",
    "code": "code",
    "test": "tests",
}
_TAKES: Final = {"acts": ("acts", "tests", "code"), "things": ("code",), "code": ("things", "code")}
"""What a phrase of a group keeps its single words from being."""


class Mark(NamedTuple):
    """What a word is, such as ``verb`` or ``code``; of a verb or thing, of which class; and how many words it takes."""

    role: str
    kind: str = ""
    length: int = 1


class _Phrase(NamedTuple):
    rest: tuple[str, ...]
    mark: Mark


@dataclass(slots=True)
class Language:
    """The words of one language."""

    name: str
    words: frozenset[str]
    """The commonest, by which it is told."""
    exact: dict[str, tuple[Mark, ...]] = field(default_factory=dict)
    stems: dict[str, tuple[Mark, ...]] = field(default_factory=dict)
    phrases: dict[str, list[_Phrase]] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    memo: dict[str, tuple[Mark, ...]] = field(default_factory=dict)

    def of(self, word: str) -> tuple[Mark, ...]:
        """Return what the word is."""
        known = self.memo.get(word)
        if known is None:
            if len(self.memo) >= _MAX_MEMO:
                self.memo.clear()
            found = list(self.exact.get(word, ()))
            for length in self.lengths:
                if length > len(word):
                    break
                found += self.stems.get(word[:length], ())
            known = self.memo[word] = tuple(found)
        return known

    def marks(self, words: Sequence[str]) -> list[tuple[int, Mark]]:
        """Return what is found in a clause, each with the number of its first word; of phrases the longest counts."""
        found: list[tuple[int, Mark]] = []
        taken: dict[str, int] = {}
        for place, word in enumerate(words):
            if word in self.phrases:
                self._phrases(words, place, found, taken)
            marks = self.memo.get(word)
            marks = self.of(word) if marks is None else marks
            free = marks if not taken else [one for one in marks if place >= taken.get(_GROUPS.get(one.role, ""), 0)]
            found += [(place, mark) for mark in free]
        return found

    def _phrases(self, words: Sequence[str], place: int, found: list[tuple[int, Mark]], taken: dict[str, int]) -> None:
        """Add the phrases that begin there. taken: behind which word single ones count again, by what they are."""
        for phrase in self.phrases[words[place]]:
            length = _spans(phrase, words, place, whole=self.name == ENGLISH)
            if length:
                gap = "_" in phrase.rest
                found.append((place, phrase.mark._replace(length=1 if gap else length)))
                for group in () if gap else _TAKES.get(_GROUPS.get(phrase.mark.role, ""), ()):
                    taken[group] = max(taken.get(group, 0), place + length)

    def parts(self, text: str) -> list[tuple[int, Mark]]:
        """Return what is found in a text without spaces, each with the number of its first character."""
        found: list[tuple[int, Mark]] = []
        for place in range(len(text)):
            if text[place] <= "\x7f" and place and text[place - 1] <= "\x7f":
                continue
            for length in self.lengths:
                marks = self.stems.get(text[place : place + length], ())
                found += [(place, mark._replace(length=length)) for mark in marks]
        return found


def _spans(phrase: _Phrase, words: Sequence[str], place: int, *, whole: bool) -> int:
    """How many words the phrase takes from that place on; 0: it does not stand there."""
    at, last = place + 1, len(phrase.rest) - 1
    for number, word in enumerate(phrase.rest):
        if word == "_":
            continue
        reach = MAX_GAP + 1 if number and phrase.rest[number - 1] == "_" else 1
        for there in range(at, min(len(words), at + reach)):
            said = words[there]
            if said == word or (number == last and (said == f"{word}s" if whole else said.startswith(word))):
                at = there + 1
                break
        else:
            return 0
    return at - place


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All that is known of words."""

    languages: Mapping[str, Language]
    sets: Mapping[str, frozenset[str]]
    """Of ``[commands]``, with ``begin`` for words with which names of programs begin, and ``stops`` and ``states``."""
    patterns: Mapping[str, re.Pattern[str]]
    """How lines begin that were ``logged`` or ``reported``."""
    scripts: Mapping[str, re.Pattern[str]]
    seen: Mapping[str, re.Pattern[str]]
    leads: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]
    """The words of each phrase of English with which an order begins, and of each that says that it is wanted."""


def data() -> dict[str, Any]:
    """Return the lexicon as it is written."""
    return tomllib.loads((pkgutil.get_data("claudomator_py.risk", "lexicon.toml") or b"").decode())


def listed(text: str) -> list[str]:
    """Return the entries of a list."""
    return [entry for one in fold(text).split(",") if (entry := " ".join(one.split()))]


@cache
def lexicon() -> Lexicon:
    """Return the words that come with Claudomator."""
    said = data()
    languages = {name: _language(name, entry) for name, entry in said.items() if "reads" in entry}
    lists = {name: said["commands"][name] for name in ("programs", "plain", "risky", "runs", "leads")}
    lists |= {name: said[ENGLISH][name] for name in ("stops", "states")}
    sets = {name: frozenset(listed(text)) for name, text in lists.items()}
    sets["begin"] = frozenset(re.split("[-.]", name)[0] for name in sets["programs"])
    lines = {"logged": rf"\s*(?:{'|'.join(said['lines']['logged'])})"}
    lines["reported"] = rf"(?i)[\W_]*(?:{'|'.join(said['lines']['reported'].split())})\b[^:.]{{0,30}}:?"
    compiled = (
        {name: re.compile(text) for name, text in one.items()} for one in (lines, said["scripts"], said["seen"])
    )
    leads = ([one.replace("-", " ").split() for one in listed(said[ENGLISH][name])] for name in ("lead", "passive"))
    return Lexicon(languages, sets, next(compiled), next(compiled), next(compiled), (next(leads), next(leads)))


def _language(name: str, said: Mapping[str, Any]) -> Language:
    language = Language(name, frozenset(listed(said["words"])))
    for role in _ROLES:
        mark = Mark(role.removesuffix("s") if role in ("reads", "builds", "words") else role)
        for entry in listed(said.get(role, "")):
            _put(language, entry, mark, whole=role in ("words", "own"))
    for kind in KINDS:
        irregular = dict(pair.split() for pair in listed(said[kind].get("irregular", "")))
        for entry in listed(said[kind]["verbs"]):
            _put(language, entry, Mark("verb", kind))
            for form, spelt in _forms(entry, irregular) if name == ENGLISH else ():
                _put(language, spelt, Mark(form, kind))
        for entry in listed(said[kind]["things"]):
            _put(language, entry, Mark("thing", kind))
    language.lengths = tuple(sorted({len(stem) for stem in language.stems}))
    return language


def _put(language: Language, entry: str, mark: Mark, *, whole: bool = False) -> None:
    if language.name in SPACELESS:
        language.stems[entry] = (*language.stems.get(entry, ()), mark)
        return
    first, *rest = entry.removesuffix("$").replace("-", " ").split()
    whole |= entry.endswith("$") or len(first) <= SHORT
    if rest:
        language.phrases.setdefault(first, []).append(_Phrase(tuple(rest), mark))
        return
    table = language.exact if whole or language.name == ENGLISH else language.stems
    for form in _plurals(first) if language.name == ENGLISH and mark.role in ("thing", "code") else (first,):
        if mark not in table.get(form, ()):
            table[form] = (*table.get(form, ()), mark)


def _plurals(word: str) -> Iterable[str]:
    yield word
    yield f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
    if word.endswith("y"):
        yield f"{word[:-1]}ies"


def _forms(verb: str, irregular: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Other forms of an English verb: what was done with it (``done``), and doing it (``doing``)."""
    word, *rest = verb.split(" ")
    stem = word.removesuffix("e")
    doubled = word + word[-1] if len(word) <= 4 and word[-1] in "bdgmnprt" and word[-2:-1] in "aiou" else stem
    done = irregular.get(word) or (
        f"{word[:-1]}ied" if word.endswith("y") and word[-2:-1] not in "aeo" else f"{doubled}ed"
    )
    after = "".join(f" {one}" for one in rest if one != "_")
    yield "done", done + after
    yield "doing", f"{doubled}ing" + after
