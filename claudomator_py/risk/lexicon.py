"""The words of ``lexicon.toml``, by language, each with flags as bits of a number; read once.

They are compared as a reader sees them: without case, accents and width, and with look-alikes undone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, reduce
from operator import or_
from typing import Any, Final, NamedTuple

from claudomator_py.risk.folding import fold
from claudomator_py.values import regex, toml_data

_TOKEN: Final = regex(
    r"(?<!\w)@[\w-]+|[^\W_]+(?:'[^\W_]+)*|[,:;](?!\S)|[\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*&]"
    r"|(?<!\S)-+(?!\S)|-->"
)


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded, and the marks that part them, in order."""
    return _TOKEN.findall(fold(text).replace("\u2019", "'"))


ENGLISH: Final = "en"
SPACELESS: Final = frozenset({"zh", "ja", "ko"})
"""Languages whose words are parts of the text."""
KINDS: Final = ("irreversible", "live", "published", "money", "mass_mail", "access")
_ROLES: Final = (
    "known reads builds code test dry prod many own not fails when strong lead passive det back stops breaks sub "
    "asks outside"
)
_FINDS: Final = "number program phrase orders leads script strange"
_CLAUSES: Final = (
    "order alone bare nothing code.last code.object code.else code.given code.aside in.object in.place builds.pair "
    "out.object out.place heading quoted sole pasted foreign f.pair f.cross cmd.order cmd.named"
)
_NAMES: Final = (
    *(f"{part}:{kind}" for part in ("v", "done", "t") for kind in KINDS),
    *f"{_ROLES} {_FINDS} {_CLAUSES}".split(),
)
BIT: Final = {name: 1 << place for place, name in enumerate(_NAMES)}
"""The flags of a word or a clause. For each class: that the word is its verb (``v``), another form of it (``done``),
or what it acts on (``t``). Then the lists of a language, what is found in a word (``phrase``: a phrase
may begin with it; ``orders``: such a phrase orders, or leads to an order; ``script``: its letters are those of one
language; ``strange``: another language has it), and those of clauses only."""
SEEN: Final = len(_NAMES)
"""The first bit for expressions (``seen``) and harm (``harm``), in the order of the lexicon."""
VERB, DONE, THING = (sum(BIT[f"{part}:{kind}"] for kind in KINDS) for part in ("v", "done", "t"))
ACTS: Final = VERB | BIT["reads"] | BIT["builds"]
_LEADS: Final = ACTS | BIT["lead"] | BIT["passive"]
_KNOWN, _PHRASE, _STRANGE = BIT["known"], BIT["phrase"], BIT["strange"]
_LOANED: Final = VERB | THING | BIT["code"] | BIT["test"] | BIT["prod"]
"""What English words mean in other languages that do not have them."""
_SHORT: Final = 3
"""An entry with so few letters is a whole word in any language."""
_KEY: Final = 4
"""Letters of the second word of a phrase that it is found by."""
_ANY: Final = "_"
_MAX_GAP: Final = 6
"""Words among which the second part of a phrase with a gap begins."""
_MAX_MEMO: Final = 20_000
_MISSPELT: Final = VERB | THING | BIT["prod"] | BIT["many"]
_MIN_MISSPELT: Final = 5
"""Letters of a word that may be misspelt; of fewer, another word is meant too often."""


class Language:
    """The words of a language."""

    def __init__(
        self,
        name: str,
        document: Mapping[str, Any],
        english: "Language | None",
        harmful: Mapping[str, int],
        right: frozenset[str] = frozenset(),
    ) -> None:
        self.name, self.english, self.spaceless = name, english, name in SPACELESS
        self.common = frozenset(listed(document["words"]))
        self.flags = lru_cache(_MAX_MEMO)(self._flags)
        self._whole, self._stems = dict[str, int](), dict(harmful)
        self._phrases = dict[str, dict[str, dict[tuple[str, ...], int]]]()
        """By the first word and how the second begins; those with a gap by ``_``, with what follows the gap."""
        self._nouns = (*listed(document.get("nouns", "")),)
        for role, text in document.items():
            for entry in listed(text) if role in BIT or role == "words" else ():
                bits = BIT["known" if role == "words" else role]
                self._put(entry, bits, whole=role in ("words", "own"), plural=role in ("code", "outside"))
        for kind in KINDS:
            irregular = dict(pair.split() for pair in listed(document[kind].get("irregular", "")))
            for entry in listed(document[kind]["verbs"]):
                self._put(entry, BIT[f"v:{kind}"])
                for form in _forms(entry, irregular) if english is None else ():
                    self._put(form, BIT[f"done:{kind}"])
            for entry in listed(document[kind].get("done", "")):
                self._put(entry, BIT[f"done:{kind}"] | BIT["passive"])
            for entry in listed(document[kind]["things"]):
                self._put(entry, BIT[f"t:{kind}"], plural=True)
        self._longest = {stem[0]: len(stem) for stem in sorted(self._stems, key=len)}
        self._right = right
        self._misspelt = dict[str, str]()
        for word in [
            candidate
            for candidate in self._whole
            if self._whole[candidate] & _MISSPELT and len(candidate) > _MIN_MISSPELT
        ]:
            self._misspelt |= dict.fromkeys(_shorter(word), word)

    def _put(self, entry: str, flags: int, *, whole: bool = False, plural: bool = False) -> None:
        first, *rest = (entry,) if self.spaceless else entry.removesuffix("$").replace("-", " ").split()
        if rest:
            key, end = (_ANY, rest[-1:]) if _ANY in rest else (rest[0][:_KEY], rest)
            add(self._phrases.setdefault(first, {}).setdefault(key, {}), [(*end,)], flags)
            flags = _PHRASE | (BIT["orders"] if flags & (VERB | DONE) else BIT["leads"] if flags & _LEADS else 0)
        exact = rest or whole or self.english is None or entry.endswith("$") or len(first) <= _SHORT
        forms = _plurals(first) if plural and self.english is None and not rest else (first,)
        add(self._whole if exact and not self.spaceless else self._stems, forms, flags)

    def meet(self, other: "Language") -> None:
        """Treat the words of another language as strange."""
        add(self._whole, other._whole, _STRANGE)
        add(self._stems, other._stems, _STRANGE)
        self._longest = {stem[0]: len(stem) for stem in sorted(self._stems, key=len)}

    def _flags(self, word: str) -> int:
        """Return the flags of a word; ``self.flags`` remembers them."""
        # A person who is addressed stands before an order: "@ops restart the mail server".
        flags = BIT["lead"] if word[0] == "@" else self._whole.get(word, 0 if word[0].isalnum() else BIT["breaks"])
        if not flags and len(word) >= _MIN_MISSPELT and self.english is None and word not in self._right:
            meant = (self._misspelt.get(form) for form in (word, *_shorter(word)))
            flags = next(
                (self._whole[candidate] & ~_PHRASE for candidate in meant if candidate and _is_slip(word, candidate)), 0
            )
        for end in range(1, min(len(word), self._longest.get(word[0], 0)) + 1):
            flags |= self._stems.get(word[:end], 0)
        flags &= ~VERB if word.endswith(self._nouns) else -1
        flags |= BIT["number"] if word[-1].isdigit() else 0
        flags |= _KNOWN if flags & (1 << SEEN) - 1 & ~_STRANGE else 0
        flags &= ~_STRANGE if flags & _KNOWN else -1
        if self.english is not None:
            loaned = _LOANED if not flags and len(word) >= _SHORT else 0
            flags |= self.english.flags(word) & (loaned | _KNOWN | BIT["program"] | -1 << SEEN)
        return flags

    def begins_phrase(self, word: str, follows: str = "") -> bool:
        """Return whether a phrase may begin with these two words."""
        phrases = self._phrases.get(word, {})
        return follows[:_KEY] in phrases or _ANY in phrases

    def phrased(self, words: Sequence[str], flags: Sequence[int]) -> tuple[Sequence[str], list[int]]:
        """Return words, with those of a phrase as one, and the flags of each."""
        known, bits, done = list[str](), list[int](), 0
        for at in [at for at, flag in enumerate(flags[:-1]) if flag & _PHRASE]:
            follows = self._phrases[words[at]]
            if at >= done and (words[at + 1][:_KEY] in follows or _ANY in follows):
                length, here, gap = self._phrase(words, flags, at)
                if here != flags[at]:
                    known += [*words[done:at], " ".join(words[at : at + length]) + gap]
                    bits += [*flags[done:at], here]
                    done = at + length
        return [*known, *words[done:]], [*bits, *flags[done:]]

    def _phrase(self, words: Sequence[str], flags: Sequence[int], at: int) -> tuple[int, int, str]:
        """Return how many words the longest phrase there has, its flags, and how it ends if it has a gap; no more than
        its first word: none."""
        known, length, bits, gap = self._phrases[words[at]], 1, flags[at], ""
        for rest, flag in known.get(words[at + 1][:_KEY], {}).items():
            end = at + len(rest)
            if length <= len(rest) and (*words[at + 1 : end],) == rest[:-1] and self._ends(words[end:], rest[-1]):
                length, bits = len(rest) + 1, flag | reduce(or_, flags[at : end + 1]) & ~_hidden(flag) | _KNOWN
        for (last,), flag in known.get(_ANY, {}).items():
            if last in words[at + 1 : at + 1 + _MAX_GAP]:
                # "Get it out" is an order, though "get" alone only leads to one.
                bits, gap = (bits & ~(ACTS ^ VERB | BIT["lead"]) if flag & VERB else bits) | flag, f"_{last}"
        return length, bits, gap

    def _ends(self, words: Sequence[str], last: str) -> bool:
        """Whether these words begin with the last one of a phrase."""
        return bool(words) and (words[0].startswith(last) if self.english else words[0] in (last, f"{last}s"))

    def parts(self, text: str) -> dict[str, int]:
        """Return the words in a text without spaces, and their flags."""
        counts = dict[str, int]()
        for at, letter in enumerate(text):
            if letter > "\x7f" or not at or text[at - 1] > "\x7f":
                for end in range(at + 1, at + 1 + self._longest.get(letter, 0)):
                    if (part := text[at:end]) in self._stems:
                        counts[part] = self._stems[part]
        return counts


class Harm(NamedTuple):
    """Something criminal that a sentence may ask for, or that may be meant so."""

    refuse: bool
    """Whether it is refused; a person is asked about others."""
    bits: int
    """The flags that each of the lists has some of."""
    needs: Sequence[tuple[Sequence[str], re.Pattern[str]]]
    without: re.Pattern[str]

    def asked(self, folded: str) -> bool:
        """Return whether a folded sentence asks for it."""
        # To look for each entry is ten times as fast as the expression, which says whether a word begins with it.
        begun = all(any(map(folded.__contains__, part)) and begins.search(folded) for part, begins in self.needs)
        return begun and not self.without.search(folded)


class Lexicon(NamedTuple):
    """All that is known of words."""

    languages: Mapping[str, Language]
    latin: Sequence[Language]
    """Those in Latin letters, which are told by their commonest words; English is the first."""
    sets: Mapping[str, frozenset[str]]
    """Of ``[commands]``, ``open`` and ``vague``."""
    lines: Mapping[str, re.Pattern[str]]
    """How lines begin that are ``pasted``, or behind which somebody tells what was ``reported``."""
    harms: Mapping[int, Harm]
    """By the bit without which it is not asked for; what is refused comes first."""
    keys: int
    """All these bits."""
    scripts: Mapping[str, re.Pattern[str]]
    seen: Mapping[str, tuple[int, re.Pattern[str]]]
    """Expressions, each with the bits of what has it."""


def data() -> dict[str, Any]:
    """Return the lexicon as it is written."""
    return toml_data("claudomator_py.risk", "lexicon.toml")


@cache
def lexicon() -> Lexicon:
    """Return the words that come with Claudomator."""
    document = data()
    sets = {name: frozenset(listed(text)) for name, text in document["commands"].items() if isinstance(text, str)}
    sets |= {
        "open": frozenset(listed(document["wrapped"]["open"])),
        "vague": frozenset(listed(document["vague"]["words"])),
    }
    programs = ", ".join(re.split("[-.]", name)[0] for name in sets["programs"])
    harms, stems = dict[int, Harm](), dict[str, int]()
    seen = {
        name.partition(":")[0]: (1 << number | BIT.get(f"t:{name.partition(':')[2]}", 0), re.compile(entry))
        for number, (name, entry) in enumerate(document["seen"].items(), SEEN)
    }
    named = {f"${name}": text for name, text in document["harm_words"].items()}
    common, bit = {*words_in(f"{document['vague']['words']} {document[ENGLISH]}")}, 1 << SEEN + len(seen)
    for harm in sorted(document["harm"], key=lambda harm: not harm.get("refuse", True)):
        bits, needs = 0, list[tuple[list[str], re.Pattern[str]]]()
        for text in (harm["key"], *harm["with"], harm.get("without", "$none")):
            entries = listed(", ".join(named.get(entry.strip(), entry) for entry in text.split(",")))
            add(stems, (_rarest(entry, common) for entry in entries), bit)
            needs.append((entries, _beginnings(entries)))
            bits, bit = bits | bit, bit << 1
        harms[bits & -bits] = Harm(harm.get("refuse", True), bits ^ bit >> 1, needs[:-1], needs[-1][1])
    english = Language(ENGLISH, document[ENGLISH] | {"program": programs}, None, stems, sets["vague"])
    languages = {ENGLISH: english} | {
        name: Language(name, document[name], english, stems if name in SPACELESS else {})
        for name in document
        if "reads" in document[name] and name != ENGLISH
    }
    lines, scripts = (
        {name: re.compile(pattern) for name, pattern in document[key].items()} for key in ("lines", "scripts")
    )
    latin = [language for name, language in languages.items() if name not in scripts]
    for language in latin[1:]:
        english.meet(language)
    return Lexicon(languages, latin, sets, lines, harms, sum(harms), scripts, seen)


def _rarest(entry: str, common: set[str]) -> str:
    """The word of an entry by which it is found, as it is in few texts."""
    words: list[str] = re.findall(r"[^\W_]+", entry) or [entry]
    return max(words, key=lambda word: (len(word) > 2 and word not in common, len(word)))


def _beginnings(entries: Iterable[str]) -> re.Pattern[str]:
    """Where words begin with one of the entries; in a text without blanks, where one is."""
    return re.compile(rf"(?<![a-z0-9_\u0370-\u052f])(?:{'|'.join(map(re.escape, entries))})")


def listed(text: str) -> list[str]:
    """Return the entries of a list, folded, which commas separate."""
    return [entry for part in fold(text).split(",") if (entry := " ".join(part.split()))]


def add(table: dict[Any, int], words: Iterable[object], flags: int) -> None:
    """Add flags to the words of a table."""
    for word in words:
        table[word] = table.get(word, 0) | flags


def _hidden(flag: int) -> int:
    """What the single words of a phrase are not, as they are a part of it."""
    code, order = BIT["code"], ACTS | DONE | BIT["lead"]
    hidden = THING | code if flag & code else code if flag & THING else 0
    return BIT["breaks"] | hidden | (order | code | BIT["test"] if flag & order else 0)


def _shorter(word: str) -> set[str]:
    """The word without one of its letters."""
    return {word[:at] + word[at + 1 :] for at in range(1, len(word))}


def _is_slip(word: str, meant: str) -> bool:
    """Whether a word is another with a letter more or less, or with two that are swapped."""
    if len(word) != len(meant):
        return abs(len(word) - len(meant)) == 1
    at = next(at for at, letter in enumerate(word) if letter != meant[at])
    return word[at : at + 2] == meant[at : at + 2][::-1] and word[at + 2 :] == meant[at + 2 :]


def _plurals(word: str) -> tuple[str, ...]:
    return word, f"{word}{'es' if word.endswith(('s', 'x', 'ch', 'sh')) else 's'}", re.sub("y$", "ies", word)


def _forms(verb: str, irregular: Mapping[str, str]) -> Iterator[str]:
    """Other forms of an English verb: what was done with it, and doing it."""
    word, *rest = verb.split(" ")
    stem = word.removesuffix("e")
    doubles = word[-2:-1] in "aeiou" and (word[-1] == "l" or (len(word) <= 4 and word[-1] in "bdgmnprt"))
    stems = (stem, *((word + word[-1],) if doubles else ()))
    done = f"{word[:-1]}ied" if word.endswith("y") and word[-2:-1] not in "aeo" else f"{stem}ed"
    forms = {irregular.get(word, done), *(f"{stem}ed" for stem in stems[1:]), *(f"{stem}ing" for stem in stems)}
    yield from (" ".join((form, *rest)) for form in sorted(forms))
