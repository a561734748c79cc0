"""What a sentence orders: verbs and things of which classes, where, and in what form, as bits that are weighed.

A word is looked up once and tells bits; a clause is what its words tell together. Most sentences tell no verb that acts
on others, and are left at that, so that length and company hide nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache, reduce
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
    COMMON,
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
    SECOND,
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
_SHARE_BITS: Final = 16
_SHARE: Final = (1 << _SHARE_BITS) - 1
_QUOTES: Final = frozenset('"\u201c\u201e\u00ab')
_PROD, _MANY, _OWN, _NOT, _FAILS, _WHEN, _STRONG, _PASSIVE, _STATES, _DET, _BACK, _STOP = (
    ROLE[name]
    for name in ("prod", "many", "own", "not", "fails", "when", "strong", "passive", "states", "det", "back", "stops")
)
_AROUND: Final = TEST | _PROD | _MANY | _OWN | _NOT | _FAILS
_MAY_ORDER: Final = VERB | DONE | DOING | PROGRAM | ORDERS
"""Words without any of which nothing is ordered that acts on others."""
_BEGINS: Final = VERB | READ | BUILD | LEAD | NUMBER
_FOREIGN: Final = READ | BUILD | CODE | _OWN | _NOT | _WHEN | _FAILS
_SHARED: Final = VERB | THING | CODE | TEST | _PROD
"""What English words are in other languages."""

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
_AFTER: Final = {READ: BIT["after.read"], BUILD: BIT["after.build"], VERB: BIT["after.order"]}
COMMAND: Final = BIT["cmd.order"] | BIT["cmd.named"]


# Read while this module is imported, which one thread does: two that were read at a time would not know each other's
# languages.
_LEXICON: Final = lexicon()


class Order(NamedTuple):
    """A clause that orders something, or in which a command stands."""

    part: str
    """Of which sentence, or aside in it, it is a clause."""
    tells: int
    words: tuple[int, int] = (0, 0)
    """Its first of those and the one behind its last; none: it is all of it."""
    verb: str = ""
    nouns: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The clause as it is written; folded, where that changes its length."""
        return _written(self.part, *self.words) if self.words[1] else self.part.strip()

    @property
    def kind(self) -> str:
        """The class of what it orders, as far as the words go; ``command`` where only one stands in it."""
        both = self.tells & VERB & self.tells >> 18 or self.tells & VERB
        return KINDS[(both & -both).bit_length() - 1] if both else "command"


class Sentence(NamedTuple):
    """A sentence as it is read: what it orders, asks of harm, and speaks of."""

    orders: tuple[Order, ...] = ()
    harm: Harm | None = None
    speaks: int = 0
    """Of which classes what it speaks of is, in the bits of things."""
    in_use: bool = False
    """Whether it speaks of what people use."""
    known: int = 0
    words: int = 0


def read(sentence: str, *, for_harm: bool = False) -> Sentence:
    """Return what a sentence says. for_harm: only what it asks for of harm."""
    folded, english = fold(sentence), _LEXICON.languages[ENGLISH]
    words, tells = _said(folded)
    told = reduce(or_, tells, 0)
    foreign = not folded.isascii()
    harm = None
    if foreign or told & HARM:
        may = [word for word, one in zip(words, tells, strict=True) if one & HARM]
        harm = _LEXICON.harms.of(folded, may, foreign=foreign)
    if for_harm:
        return Sentence(harm=harm)
    language: Words | None = english
    known, count = len([1 for one in tells if one & KNOWN]), len(tells) - tells.count(BREAKS)
    if foreign or (told & FOREIGN and not _surely(tells)) or known * 2 < count:
        language = told_by(folded, words, tells)
        if language is not english:
            return _foreign(sentence, folded, words, harm, language)
    orders: tuple[Order, ...] = ()
    said = words
    if told & PHRASE and told & _MAY_ORDER:
        said, tells = english.read(words, tells)
        told |= reduce(or_, tells, 0)
    if told & _MAY_ORDER:
        orders = tuple(_english(sentence, folded, said, tells, told))
    return Sentence(orders, harm, told & THING, bool(told & _PROD), known, count)


class _Chunks(dict[str, tuple[str, ...]]):
    """What stands between blanks, in words and marks, found out once."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(self) > _MAX_MEMO:
            self.clear()
        found = self[chunk] = tuple(_TOKEN.findall(chunk))
        return found


_CHUNKS: Final = _Chunks()


def tokens(folded: str) -> list[str]:
    """Return the words of a folded sentence, and the marks between its clauses."""
    return [word for chunk in folded.split() for word in _CHUNKS[chunk]]


def _said(folded: str) -> tuple[list[str], list[int]]:
    """Return its words, and what each tells in English."""
    words = tokens(folded)
    return words, list(map(_LEXICON.languages[ENGLISH].__getitem__, words))


def _surely(tells: Sequence[int]) -> bool:
    common = len([1 for one in tells if one & COMMON])
    return common >= 3 and common * 3 >= len(tells)


def told_by(folded: str, words: Sequence[str], tells: Sequence[int]) -> Words | None:
    """Return the language of a folded sentence of those words; None: its letters are none of those that are known."""
    known = _LEXICON.languages
    if not folded.isascii():
        for name, script in _LEXICON.scripts.items():
            if script.search(folded):
                return known[name]
        if not re.search("[a-z]", folded):
            return None if re.search(r"[^\W\d_]", folded) else known[ENGLISH]
    if _surely(tells):
        return known[ENGLISH]
    said = set(words)
    packed = sum(filter(None, map(_shares().get, said)))
    shared = [packed >> place & _SHARE for place in range(0, _SHARE_BITS * len(_latin()), _SHARE_BITS)]
    most = max(shared)
    best = [one for count, one in zip(shared, _latin(), strict=True) if count == most]
    return best[0] if len(best) == 1 else max(best, key=lambda one: sum(bool(one[word] & KNOWN) for word in said))


@cache
def _latin() -> tuple[Words, ...]:
    return tuple(one for name, one in _LEXICON.languages.items() if name not in _LEXICON.scripts)


@cache
def _shares() -> Mapping[str, int]:
    """Of which languages a word is a common one: a one in the bits of each, so that the sum over words counts."""
    found: dict[str, int] = {}
    for number, language in enumerate(_latin()):
        for word in language.common:
            found[word] = found.get(word, 0) + (1 << number * _SHARE_BITS)
    return found


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _english(sentence: str, folded: str, words: list[str], tells: list[int], told: int) -> Iterator[Order]:
    beside = BIT["not.beside"] if told & _NOT else 0
    beside |= BIT["prod.beside"] if told & _PROD else BIT["test.beside"] if told & TEST else 0
    asides = _ASIDE.findall(folded) if "(" in folded else ()
    if not asides:
        yield from _clauses(sentence, words, tells, beside)
        return
    # What stands in brackets parts no verb from its thing or place: "Run the scan (full policy) on production".
    for part in (_ASIDE.sub("", sentence), *asides):
        yield from _clauses(part, *_LEXICON.languages[ENGLISH].read(*_said(fold(part))), beside)


def _clauses(part: str, words: list[str], tells: list[int], beside: int) -> Iterator[Order]:
    told = reduce(or_, tells, 0)
    # Else it is an order only where its first words are.
    within = (told & DONE and told & _PASSIVE) or told & ASKED or (told & DOING and ("by" in words or "needs" in words))
    programs = told & PROGRAM
    ends = [at for at, one in enumerate(tells) if one & BREAKS]
    begin = before = mood = 0
    for end in (*ends, len(words)):
        found = place = mood = command = 0
        # Most clauses are left at a look at their first word, or at what all of their words tell together.
        told = reduce(or_, tells[begin:end], 0) if within or programs or (begin < end and tells[begin] & _BEGINS) else 0
        if told & _MAY_ORDER:
            if told & (VERB | DONE | DOING) and (within or tells[begin] & _BEGINS):
                found, place, mood = _order(words, tells, begin, end, told)
            if told & PROGRAM:
                command = _command(_written(part, *_span(words, begin, end)))
        mark = words[end] if end < len(words) else ""
        if found:
            here = found | command | beside | (_AFTER.get(before, 0))
            own = here & THING
            if own:
                here &= ~BIT["back"]
            else:
                here |= BIT["nothing"]
                here |= (reduce(or_, tells[:begin], 0) & THING) >> 12 if here & BIT["back"] else 0
            here |= BIT["heading"] if mark == ":" else 0
            quoted = begin and words[begin - 1] in _QUOTES and (end - begin) * 2 < len(words)
            here |= BIT["quoted"] if quoted else 0
            nouns = {
                word.removesuffix("s")
                for word, one in zip(words[place + 1 : end], tells[place + 1 : end], strict=True)
                if one & THING
            }
            yield Order(part, here, _span(words, begin, end), words[place], frozenset(nouns))
        if command and not found:
            command |= BIT["only.read"] if mood == READ else BIT["only.build"] if mood else 0
            about = told & (TEST | _PROD | THING)
            yield Order(part, command | about | beside, _span(words, begin, end))
        before = mood if mark in ("and", "or", "then", "&") else 0
        begin = end + 1


def _span(words: Sequence[str], begin: int, end: int) -> tuple[int, int]:
    """Which words these are, if those of phrases are counted singly."""
    first = " ".join(words[:begin]).count(" ") + 1 if begin else 0
    return first, first + (" ".join(words[begin:end]).count(" ") + 1 if begin < end else 0)


def _written(part: str, begin: int, end: int) -> str:
    text, places = _places(part)
    return text[places[begin - 1][1] if begin else 0 : places[end][0] if end < len(places) else None].strip(" .;!?")


@lru_cache(maxsize=50)
def _places(part: str) -> tuple[str, list[tuple[int, int]]]:
    """The text of which words are counted, and where each of them is."""
    folded = fold(part)
    return part if len(folded) == len(part) else folded, [found.span() for found in _TOKEN.finditer(folded)]


def _order(words: Sequence[str], tells: Sequence[int], begin: int, end: int, told: int) -> tuple[int, int, int]:
    """What a clause's order tells, where its verb is, and the clause's mood."""
    place, form = _verb(words, tells, begin, end)
    if place < 0:
        return 0, 0, 0
    verb = tells[place] if form in ("", "form.asked") else tells[place] >> (6 if form == "form.done" else 12) & VERB
    if not verb & VERB:
        return 0, place, READ if verb & READ else BUILD
    after = reduce(or_, tells[place + 1 : end], 0)
    found = BIT["order"] | verb & (VERB | READ | BUILD) | tells[place] & _STRONG | told & _AROUND
    found |= (told if form == "form.done" else after) & THING
    found |= BIT["back"] if place + 1 == end or after & _BACK else 0
    if form:
        found |= BIT[form]
    elif place + 1 == end:
        found |= BIT["alone"]
    elif tells[place + 1] & (_DET | NUMBER):
        found |= BIT["det"]
    else:
        stated = any(one & _STATES for one in tells[place + 1 : min(end, place + 8)])
        found |= BIT["bare"] | (BIT["stated"] if stated else 0)
    if told & (CODE | THING):
        first = place + 1 if not form else begin
        stop = next((there for there in range(first, end) if tells[there] & _STOP), end)
        last = tells[stop - 1] if stop > first else 0
        object_ = reduce(or_, tells[first:stop], 0)
        found |= BIT["code.last"] if last & CODE else 0
        found |= BIT["thing.last"] if last & THING else 0
        found |= BIT["code.object"] if object_ & CODE and not last & CODE else 0
        found |= BIT["code.else"] if told & CODE and not object_ & CODE else 0
    return found, place, VERB


def _verb(words: Sequence[str], tells: Sequence[int], begin: int, end: int) -> tuple[int, str]:
    """Where the order's verb is, and in which form: at the beginning, or as the name of a bit says."""
    for place in range(begin, end):
        one = tells[place]
        if one & (VERB | READ | BUILD) and not one & LEAD:
            return place, ""
        if not one & (LEAD | NUMBER):
            break
    for place in range(begin, end):
        one, several = tells[place], " " in words[place]
        if one & _PASSIVE:
            for there in range(place + 1, min(end, place + (3 if several else 6))):
                if tells[there] & DONE:
                    return there, "form.done"
                if tells[there] & DOING and words[place] == "needs":
                    return there, "form.doing"
        if one & ASKED and begin < place < end - 1 and tells[place + 1] & (VERB | READ | BUILD):
            return place + 1, "form.asked"
        if words[place] == "by" and place < end - 1 and tells[place + 1] & DOING:
            return place + 1, "form.doing"
    return -1, ""


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


def _foreign(sentence: str, folded: str, words: list[str], harm: Harm | None, language: Words | None) -> Sentence:
    if language is None:
        return Sentence((), harm, words=len(words))
    english = _LEXICON.languages[ENGLISH]
    if language.name in SPACELESS:
        parts = list(language.parts(folded))
        told = reduce(or_, (one for _, one in parts), 0)
        known, count = sum(len(word) for word, _ in parts), len(re.findall(r"[^\W\d_a-z]", folded)) or 1
        others = re.findall(r"[a-z][a-z0-9]+", folded)
    else:
        said, tells = language.read(words, list(map(language.__getitem__, words)))
        told = reduce(or_, tells, 0)
        known = sum(bool((language[word] | english[word]) & KNOWN) for word in words)
        others = [word for word, one in zip(said, tells, strict=True) if not one & ~SECOND and len(word) > 2]
        count = len(words)
    told |= reduce(or_, (english[word] & _SHARED for word in others), 0)
    command = _command(sentence) if any(english[word] & PROGRAM for word in words) else 0
    found = BIT["foreign"] | command | told & (VERB | THING | TEST | _PROD | _MANY | _FOREIGN)
    if not told & VERB:
        orders = (Order(sentence.strip(), found | BIT["states"]),) if command else ()
    else:
        pair = told & VERB & told >> 18
        found |= BIT["order"] | BIT["f.pair" if pair else "f.cross" if told & THING else "nothing"]
        orders = (Order(sentence.strip(), found),)
    return Sentence(orders, harm, told & THING, bool(told & _PROD), known, count)
