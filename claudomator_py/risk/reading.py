"""What a sentence orders: verbs and things of which classes, where, and in what form, as bits that are weighed.

What stands between blanks is looked up once and tells bits; a clause is what its words tell together. Most sentences
tell no verb that acts on others, and are left at that, so that length and company hide nothing.
"""

import re
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

from claudomator_py.acts.reading import acts
from claudomator_py.risk.folding import fold
from claudomator_py.risk.harm import Harm
from claudomator_py.risk.lexicon import (
    ASKED,
    BREAKS,
    BUILD,
    CODE,
    DOING,
    DONE,
    ENGLISH,
    FOREIGN,
    HARM,
    KINDS,
    KNOWN,
    LEAD,
    NUMBER,
    ORDERS,
    PHRASE,
    PROGRAM,
    READ,
    ROLE,
    SCRIPT,
    SPACELESS,
    TEST,
    THING,
    VERB,
    Words,
    lexicon,
)
from claudomator_py.values import regex

_TOKEN: Final = regex(
    r"(?<!\w)@[\w-]+|[^\W_]+(?:['\u2019][^\W_]+)*|[,:](?!\S)|[()\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*&]"
    r"|(?<!\S)-+(?!\S)|-->"
)
_MAX_MEMO: Final = 50_000
_ASIDE: Final = regex(r"\s*\(([^()]{1,120})\)(?=[\s.,;:!?]|$)")
_PROGRAM: Final = regex(r"(?<![\w./-])(?:[\w.~-]*/)*([\w.-]+)")
_SAID: Final = regex(r"[\w:]+")
_QUOTES: Final = frozenset('"\u201c\u201e\u00ab')
_PROD, _MANY, _OWN, _NOT, _FAILS, _WHEN, _STRONG, _PASSIVE, _STATES, _DET, _BACK, _STOP = (
    ROLE[name]
    for name in ("prod", "many", "own", "not", "fails", "when", "strong", "passive", "states", "det", "back", "stops")
)
_AROUND: Final = TEST | _PROD | _MANY | _OWN | _NOT | _FAILS
_BEGINS: Final = VERB | READ | BUILD | LEAD | NUMBER
_FOREIGN: Final = READ | BUILD | CODE | _OWN | _NOT | _WHEN | _FAILS

# What a clause tells, in bits: the verb's kinds in those of verbs; in those of things what it names; in those of verbs
# in other forms what "it" is; roles in their own; and these.
_MORE: Final = (
    *("order", "form.done", "form.asked", "form.doing", "alone", "det", "bare", "stated", "code.last", "code.object"),
    *("code.else", "thing.last", "nothing", "back", "after.read", "after.build", "after.order", "heading", "quoted"),
    *("test.beside", "prod.beside", "host.beside", "not.beside", "prod.before", "pasted", "sole", "foreign", "f.pair"),
    *("f.cross", "cmd.order", "cmd.named", "states", "identifier", "host", "sum", "domain", "version", "only.read"),
    "only.build",
)
BIT: Final = {name: 1 << 60 + number for number, name in enumerate(_MORE)}
_ALONE, _DETERMINED, _BARE = BIT["alone"], BIT["det"], BIT["bare"]
_SHIFT: Final = {"form.done": 6, "form.doing": 12}
_JOINS: Final = frozenset({"and", "or", "then", "&"})
_AFTER: Final = {READ: BIT["after.read"], BUILD: BIT["after.build"], VERB: BIT["after.order"]}

# Read while this module is imported, which one thread does: two that were read at a time would not know each other's
# languages.
_LEXICON: Final = lexicon()
_ENGLISH: Final = _LEXICON.languages[ENGLISH]
_LATIN: Final = [one for name, one in _LEXICON.languages.items() if name not in _LEXICON.scripts]
"""Languages that are told by their commonest words; English is the first."""
_COUNT: Final = 12
"""Bits of a count of words."""
_MAX_COUNT: Final = (1 << _COUNT) - 1
_KNOWN: Final = 1 << _COUNT
_COMMON: Final = {
    word: sum(1 << _COUNT * (2 + number) for number, language in enumerate(_LATIN) if word in language.common)
    for word in {word for language in _LATIN for word in language.common}
}
"""Of which languages a word is a common one: a one in the bits of each, so that the sum over words counts."""
_SEEN: Final = [(BIT[name.partition(":")[0]], pattern) for name, pattern in _LEXICON.seen.items()]
_LETTERS: Final = sum(bit for bit, _ in _SEEN)


class Order(NamedTuple):
    """A clause that orders something, or in which a command stands."""

    part: str
    """Of which sentence, or aside in it, it is a clause."""
    tells: int
    words: Sequence[str] = ()
    """Those of that sentence; those of a phrase are one."""
    begin: int = 0
    end: int = 0
    verb: str = ""
    nouns: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The clause as it is written."""
        return _written(self.part, self.words, self.begin, self.end)

    @property
    def kind(self) -> str:
        """The class of what it orders, as far as the words go; ``command`` where only one stands in it."""
        both = self.tells & VERB & self.tells >> 18 or self.tells & VERB
        return KINDS[(both & -both).bit_length() - 1] if both else "command"


class Sentence(NamedTuple):
    """A sentence as it is read: what it orders, and asks of harm."""

    orders: Sequence[Order] = ()
    harm: Harm | None = None
    in_use: bool = False
    """Whether it speaks of what people use."""
    known: int = 0
    words: int = 0


class _Chunk(NamedTuple):
    """What stands between blanks."""

    words: list[str]
    """Words and marks."""
    tells: list[int]
    """What each is in English."""
    told: int
    """What they are together."""
    counts: int
    """Counts of words, of those that are known in English, and of the common ones of each language of ``_LATIN``."""


class _Chunks(dict[str, _Chunk]):
    """What stands between blanks, found out once."""

    def __init__(self, language: Words) -> None:
        self.language = language

    def __missing__(self, chunk: str) -> _Chunk:
        if len(self) > _MAX_MEMO:
            self.clear()
        words = _TOKEN.findall(fold(chunk))
        tells = [self.language[word] for word in words]
        counts = sum(_COMMON.get(word, 0) for word in words)
        counts += sum((not one & BREAKS) + (_KNOWN if one & KNOWN else 0) for one in tells)
        if words:
            tells[0] |= reduce(or_, (bit for bit, pattern in _SEEN if pattern.search(chunk)), 0)
            if not chunk.isascii():
                scripts = _LEXICON.scripts.values()
                tells[0] |= SCRIPT if any(one.search(word) for one in scripts for word in words) else 0
        found = self[chunk] = _Chunk(words, tells, reduce(or_, tells, 0), counts)
        return found


_CHUNKS: Final = {name: _Chunks(language) for name, language in _LEXICON.languages.items()}


def read(sentence: str, *, for_harm: bool = False) -> Sentence:
    """Return what a sentence says. for_harm: only what it asks for of harm."""
    words, tells, told, counts = _said(sentence)
    language, parts = _ENGLISH, list[tuple[str, int]]()
    known, count, common = counts >> _COUNT & _MAX_COUNT, counts & _MAX_COUNT, counts >> 2 * _COUNT & _MAX_COUNT
    if told & SCRIPT:
        folded = fold(sentence)
        language = next(_LEXICON.languages[name] for name, one in _LEXICON.scripts.items() if one.search(folded))
        parts = list(language.parts(folded)) if language.name in SPACELESS else []
        told |= reduce(or_, (one & HARM for _, one in parts), 0)
    elif (told & FOREIGN and (common < 3 or common * 3 < count)) or known * 2 < count:
        language = _told_by(words, counts)
    harm = None
    if told & HARM:
        may = [word for word, one in zip(words, tells, strict=True) if one & HARM]
        may += [word for word, one in parts if one & HARM]
        harm = _LEXICON.harms.of(fold(sentence), may)
    if for_harm:
        return Sentence(harm=harm)
    if language is not _ENGLISH:
        return _foreign(sentence, parts, harm, language)
    orders = list[Order]()
    if told & (VERB | DONE | DOING | PROGRAM | ORDERS):
        words, tells, told = _with_phrases(words, tells, told)
        if told & (VERB | DONE | DOING | PROGRAM):
            orders = [*_english(sentence, words, tells, told)]
    return Sentence(orders, harm, bool(told & _PROD), known, count)


def _said(text: str, language: str = ENGLISH) -> tuple[list[str], list[int], int, int]:
    """Return its words, what each tells in that language and what all do, and counts."""
    words, tells, told, counts = list[str](), list[int](), 0, 0
    chunks = _CHUNKS[language]
    for chunk in text.split():
        some, their, together, count = chunks[chunk]
        words += some
        tells += their
        told |= together
        counts += count
    return words, tells, told, counts


def _with_phrases(words: list[str], tells: list[int], told: int) -> tuple[list[str], list[int], int]:
    if told & PHRASE:
        words, tells = _ENGLISH.read(words, tells)
        for one in tells:
            told |= one
    return words, tells, told


def _told_by(words: Sequence[str], counts: int) -> Words:
    """Return the language of a sentence in Latin letters: of which most words are common, or else known."""
    shares = [counts >> place & _MAX_COUNT for place in range(2 * _COUNT, (2 + len(_LATIN)) * _COUNT, _COUNT)]
    most = max(shares)
    best = [one for share, one in zip(shares, _LATIN, strict=True) if share == most]
    return best[0] if len(best) == 1 else max(best, key=lambda one: sum(bool(one[word] & KNOWN) for word in words))


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _english(sentence: str, words: list[str], tells: list[int], told: int) -> list[Order]:
    beside = BIT["not.beside"] if told & _NOT else 0
    beside |= BIT["prod.beside"] if told & _PROD else BIT["test.beside"] if told & TEST else 0
    asides = _ASIDE.findall(sentence) if "(" in sentence else ()
    if not asides:
        return _clauses(sentence, words, tells, told, beside)
    # What stands in brackets parts no verb from its thing or place: "Run the scan (full policy) on production".
    parts = (_ASIDE.sub("", sentence), *asides)
    return [order for part in parts for order in _clauses(part, *_with_phrases(*_said(part)[:3]), beside)]


def _clauses(part: str, words: list[str], tells: list[int], told: int, beside: int) -> list[Order]:
    # Else it is an order only where its first words are.
    within = (told & DONE and told & _PASSIVE) or told & ASKED or (told & DOING and ("by" in words or "needs" in words))
    begins = -1 if within or told & PROGRAM else _BEGINS
    found, begin, before = list[Order](), 0, 0
    for end in [*[at for at, one in enumerate(tells) if one & BREAKS], len(words)] if told & BREAKS else [len(words)]:
        mood = 0
        if begin < end and tells[begin] & begins:
            here, mood, place = _clause(part, words, tells, begin, end, within=bool(within))
            if here:
                here |= beside | (_AFTER.get(before, 0) if place >= 0 else 0)
                if place >= 0 and end < len(words) and words[end] == ":":
                    here |= BIT["heading"]
                if place >= 0 and begin and words[begin - 1] in _QUOTES and (end - begin) * 2 < len(words):
                    here |= BIT["quoted"]
                nouns = [words[at].removesuffix("s") for at in range(place + 1, end) if tells[at] & THING]
                verb = words[place] if place >= 0 else ""
                found.append(Order(part, here, words, begin, end, verb, tuple({*nouns}) if verb else ()))
        before = mood if end < len(words) and words[end] in _JOINS else 0
        begin = end + 1
    return found


def _clause(
    part: str, words: list[str], tells: list[int], begin: int, end: int, *, within: bool
) -> tuple[int, int, int]:
    """What a clause tells that orders something, or has a command in it; its mood; and where its verb is."""
    told = mood = verb = 0
    for one in tells[begin:end]:
        told |= one
    place, form = -1, ""
    if told & (VERB | DONE | DOING) and (within or tells[begin] & _BEGINS):
        place, form = _verb(words, tells, begin, end)
    if place >= 0:
        verb = (
            tells[place] >> (6 if form == "form.done" else 12) & VERB
            if form in ("form.done", "form.doing")
            else tells[place]
        )
        mood = VERB if verb & VERB else READ if verb & READ else BUILD
    command = _command(_written(part, words, begin, end)) if told & PROGRAM else 0
    if mood != VERB:
        about = BIT["only.read"] if mood == READ else BIT["only.build"] if mood else 0
        return command and command | about | told & (TEST | _PROD | THING | _LETTERS), mood, -1
    after = 0
    for one in tells[place + 1 : end]:
        after |= one
    found = BIT["order"] | command | verb & (VERB | READ | BUILD) | tells[place] & _STRONG
    found |= told & (_AROUND | _LETTERS) | (told if form == "form.done" else after) & THING
    if not found & THING:
        found |= BIT["nothing"] | (BIT["back"] if place + 1 == end or after & _BACK else 0)
    if form:
        found |= BIT[form]
    elif place + 1 == end:
        found |= _ALONE
    elif tells[place + 1] & (_DET | NUMBER):
        found |= _DETERMINED
    else:
        found |= _BARE
        if after & _STATES and any(one & _STATES for one in tells[place + 1 : min(end, place + 8)]):
            found |= BIT["stated"]
    if told & (CODE | THING):
        first = place + 1 if not form else begin
        stop = next((there for there in range(first, end) if tells[there] & _STOP), end)
        last = tells[stop - 1] if stop > first else 0
        found |= BIT["thing.last"] if last & THING else 0
        if last & CODE:
            found |= BIT["code.last"]
        elif told & CODE:
            found |= BIT["code.object" if reduce(or_, tells[first:stop], 0) & CODE else "code.else"]
    return found, VERB, place


def _verb(words: Sequence[str], tells: Sequence[int], begin: int, end: int) -> tuple[int, str]:
    """Where the order's verb is, and in which form: at the beginning, or as the name of a bit says."""
    for place in range(begin, end):
        one = tells[place]
        if one & (VERB | READ | BUILD) and not one & LEAD:
            return place, ""
        if not one & (LEAD | NUMBER):
            break
    for place in range(begin, end):
        one = tells[place]
        if one & _PASSIVE:
            for there in range(place + 1, min(end, place + (3 if " " in words[place] else 6))):
                if tells[there] & DONE:
                    return there, "form.done"
                if tells[there] & DOING and words[place] == "needs":
                    return there, "form.doing"
        if one & ASKED and begin < place < end - 1 and tells[place + 1] & (VERB | READ | BUILD):
            return place + 1, "form.asked"
        if words[place] == "by" and place < end - 1 and tells[place + 1] & DOING:
            return place + 1, "form.doing"
    return -1, ""


def _written(part: str, words: Sequence[str], begin: int, end: int) -> str:
    """What stands between blanks of which some of these words are."""
    if not words:
        return part.strip()
    said, place = list[str](), 0
    first = begin + sum(word.count(" ") for word in words[:begin])
    stop = first + end - begin + sum(word.count(" ") for word in words[begin:end])
    for chunk in part.split():
        after = place + len(_CHUNKS[ENGLISH][chunk].words)
        if after > first and place < stop:
            said.append(chunk)
        place = after
    return " ".join(said).strip(" .,;!?")


def _command(raw: str) -> int:
    """Whether a command stands there that acts on others, and whether it is ordered or only spoken of."""
    known = _LEXICON.sets
    for match in _PROGRAM.finditer(raw):
        name, begins = match[1].lower(), raw[: match.start()]
        if match[1][0].isupper() or not (name in known["programs"] or match[0].startswith("./")):
            continue
        said, in_code = _SAID.findall(begins.lower()), begins.endswith("`")
        end = raw.find("`", match.start()) if in_code else -1
        run = bool(said) and said[-1] in known["runs"]
        ordered = run or known["leads"].issuperset(said)
        if end > 0 and not said:
            behind = _SAID.match(raw[end + 1 :].strip().lower())
            ordered = behind is None or behind[0] not in known["states"]
        if name in known["plain"] and not (in_code or run):
            continue
        if _risky(raw[match.start() : end if end > 0 else len(raw)].strip(" `'\".;")):
            return BIT["cmd.order" if ordered else "cmd.named"]
    return 0


@lru_cache(maxsize=500)
def _risky(command: str) -> bool:
    """Whether it does what can be much harm; a program alone is only named."""
    return " " in command and any(act.kind in _LEXICON.sets["risky"] for act in acts(command))


# --- other languages: an order is a verb and a thing in one sentence --------------------------------------------------


def _foreign(sentence: str, parts: list[tuple[str, int]], harm: Harm | None, language: Words) -> Sentence:
    words, tells, told, counts = _said(sentence, language.name)
    known, count = counts >> _COUNT & _MAX_COUNT, counts & _MAX_COUNT
    if language.name in SPACELESS:
        told |= reduce(or_, (one for _, one in parts), 0)
        known, count = sum(len(word) for word, _ in parts), len(re.findall(r"[^\W\d_a-z]", fold(sentence))) or 1
    elif told & PHRASE:
        told |= reduce(or_, language.read(words, tells)[1], 0)
    command = _command(sentence) if told & PROGRAM else 0
    found = BIT["foreign"] | command | told & (VERB | THING | TEST | _PROD | _MANY | _FOREIGN | _LETTERS)
    if told & VERB:
        pair = told & VERB & told >> 18
        found |= BIT["order"] | BIT["f.pair" if pair else "f.cross" if told & THING else "nothing"]
    orders = (Order(sentence, found | (0 if told & VERB else BIT["states"])),) if command or told & VERB else ()
    return Sentence(orders, harm, bool(told & _PROD), known, count)
