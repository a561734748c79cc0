"""What a sentence orders: verbs and things of which classes, where, and in what form, as bits that are weighed.

What stands between blanks is looked up once and tells bits; a clause is what its words tell together. Most sentences
begin with no verb that acts on others, and are left at that, so that length and company hide nothing.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

from claudomator_py.acts.reading import acts
from claudomator_py.risk.folding import fold
from claudomator_py.risk.harm import Harm
from claudomator_py.risk.lexicon import (
    ACTS,
    BREAKS,
    CODE,
    DONE,
    ENGLISH,
    FOREIGN,
    HARM,
    KINDS,
    KNOWN,
    LEAD,
    NUMBER,
    ORDERS,
    PROGRAM,
    ROLE,
    SCRIPT,
    SEEN,
    SPACELESS,
    TEST,
    THING,
    VERB,
    Said,
    Words,
    lexicon,
)
from claudomator_py.values import regex

_TOKEN: Final = regex(
    r"(?<!\w)@[\w-]+|[^\W_]+(?:'[^\W_]+)*|[,:](?!\S)|[()\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*&]"
    r"|(?<!\S)-+(?!\S)|-->"
)
_MAX_MEMO: Final = 50_000
_MAX_CHUNK: Final = 200
"""Characters that are looked at of what stands between blanks."""
_MAX_PART: Final = 8
"""Letters of a word, or its beginning, in a text without spaces."""
_ASIDE: Final = regex(r"\s*\(([^()]{1,120})\)(?=[\s.,;:!?]|$)")
_PROGRAM: Final = regex(r"(?<![\w./-])(?:[\w.~-]*/)*([\w.-]+)")
_SAID: Final = regex(r"[\w:]+")
_QUOTES: Final = frozenset('"\u201c\u201e\u00ab')
_PASSIVE, _STRONG, _DET, _BACK, _STOP, _PROD, _BUILD = (
    ROLE[name] for name in ("passive", "strong", "det", "back", "stops", "prod", "builds")
)
_MAX_PASSIVE: Final = 6
"""Words behind "has to be" among which is what has to be done."""
_SMALL: Final = VERB | LEAD | NUMBER | BREAKS | _BACK
"""Words of which an order may be that names no thing, as "Deploy." and "Ship it!"."""

# Read while this module is imported, which one thread does: two that were read at a time would not know each other's
# languages.
_LEXICON: Final = lexicon()
_ENGLISH: Final = _LEXICON.languages[ENGLISH]
_LATIN: Final = [one for name, one in _LEXICON.languages.items() if name not in _LEXICON.scripts]
"""Languages that are told by their commonest words; English is the first."""

_TOLD: Final = (
    *("foreign", "order", "passive", "det", "bare", "alone", "code.last", "code.object", "code.else", "thing.last", "nothing", "back"),
    *("heading", "quoted", "test.beside", "prod.beside", "pasted", "f.pair", "f.cross", "cmd.order", "cmd.named"),
    *("sole", "not.beside", "prod.before", "after.order", "after.read", "after.build"),
)
BIT: Final = {name: bits & ~THING for name, (bits, _) in _LEXICON.seen.items()}
"""What a clause tells besides what its words do."""
BIT |= {name: 1 << SEEN + len(_LEXICON.seen) + number for number, name in enumerate(_TOLD)}
_AFTER: Final = {"after.order": VERB, "after.read": ROLE["reads"], "after.build": _BUILD}
_COMMANDS: Final = BIT["cmd.order"] | BIT["cmd.named"]
_LETTERS: Final = reduce(or_, (BIT[name] for name in _LEXICON.seen))
_AROUND: Final = _LETTERS | TEST | _PROD | reduce(or_, (ROLE[name] for name in ("many", "own", "not", "fails")))


class Order(NamedTuple):
    """A clause that orders something, or in which a command stands."""

    tells: int
    part: str
    """Of which sentence, or aside in it, it is a clause."""
    words: Sequence[str]
    """Those of that sentence; those of a phrase are one. None: it is a clause in all."""
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
        both = self.tells & VERB & self.tells >> 12 or self.tells & VERB
        return KINDS[(both & -both).bit_length() - 1] if both else "command"


class Sentence(NamedTuple):
    """A sentence as it is read: what it orders, and asks of harm."""

    orders: Sequence[Order] = ()
    harm: Harm | None = None
    in_use: bool = False
    """Whether it speaks of what people use."""
    known: int = 0
    words: int = 0


class _Chunks(dict[str, tuple[list[str], list[int]]]):
    """Words and marks of what stands between blanks, and what each tells, found out once."""

    def __init__(self, language: Words) -> None:
        self.language = language

    def __missing__(self, chunk: str) -> tuple[list[str], list[int]]:
        if len(self) > _MAX_MEMO:
            self.clear()
        begin = chunk[:_MAX_CHUNK]
        words = _TOKEN.findall(fold(chunk).replace("\u2019", "'"))
        tells = [self.language[word] for word in words]
        if words:
            tells[0] |= reduce(or_, (bits for bits, one in _LEXICON.seen.values() if one.search(begin)), 0)
            tells[0] |= SCRIPT if any(one.search(word) for one in _LEXICON.scripts.values() for word in words) else 0
        self[chunk] = words, tells
        return words, tells


_CHUNKS: Final = {name: _Chunks(language) for name, language in _LEXICON.languages.items()}


def _said(text: str, language: Words = _ENGLISH) -> Said:
    found = [*map(_CHUNKS[language.name].__getitem__, text.split())]
    return Said([word for words, _ in found for word in words], [one for _, tells in found for one in tells])


def read(sentence: str, *, for_harm: bool = False, sole: bool = False) -> Sentence:
    """Return what a sentence says. for_harm: only what it asks for of harm. sole: it is all that is said."""
    said = words, tells = _said(sentence)
    told, known, count = reduce(or_, tells, 0), sum(map(KNOWN.__and__, tells)) // KNOWN, len(words)
    language, folded, harm, parts = _ENGLISH, "", None, dict[str, int]()
    if told & SCRIPT:
        folded = fold(sentence)
        language = next(_LEXICON.languages[name] for name, one in _LEXICON.scripts.items() if one.search(folded))
        if language.name in SPACELESS:
            parts = dict(language.parts(folded))
            told |= reduce(or_, parts.values(), 0)
            known, count = sum(map(len, parts)), len(folded)
    elif told & FOREIGN or known * 2 < count:
        language = _told_by(words)
    if told & HARM:
        may = [word for word, one in zip(words, tells, strict=True) if one & HARM]
        harm = _LEXICON.harms.of(folded or fold(sentence), [*may, *parts])
    if for_harm:
        return Sentence(harm=harm)
    if language is _ENGLISH:
        return Sentence([*_english(sentence, said, sole=sole)] if _may_order(tells, told) else (), harm, bool(told & _PROD), known, count)
    if not parts:
        told = reduce(or_, language.read(_said(sentence, language)).tells)
    return Sentence([*_foreign(sentence, told)], harm, bool(told & _PROD), known, count)


def _may_order(tells: Sequence[int], told: int) -> bool:
    """Whether a clause may be an order: by its first word that does not only lead to one, or as to what is said to be
    done; or whether there may be a command."""
    if told & PROGRAM or (told & DONE and told & (_PASSIVE | ORDERS)):
        return True
    begins = True
    for one in tells:
        if one & BREAKS:
            begins = True
        elif begins:
            if one & (VERB | ORDERS):
                return True
            begins = bool(one & (LEAD | NUMBER))
    return False


def _told_by(words: Sequence[str]) -> Words:
    """Return the language of a sentence in Latin letters: of which most words are common, or else known."""
    english = sum(map(_ENGLISH.common.__contains__, words))
    if english * 3 >= max(len(words), 9):
        return _ENGLISH
    shares = [sum(map(one.common.__contains__, words)) for one in _LATIN]
    best = [one for share, one in zip(shares, _LATIN, strict=True) if share == max(shares)]
    return best[0] if len(best) == 1 else max(best, key=lambda one: sum(bool(one[word] & KNOWN) for word in words))


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _english(sentence: str, said: Said, *, sole: bool) -> Iterator[Order]:
    parts = [(sentence, said)]
    if "(" in sentence and (asides := _ASIDE.findall(sentence)):
        # What stands in brackets parts no verb from its thing or place: "Run the scan (full policy) on production".
        parts = [(part, _said(part)) for part in (_ASIDE.sub("", sentence), *asides)]
    for part, one in parts:
        words, tells = _ENGLISH.read(one)
        told = reduce(or_, tells, 0)
        beside = BIT["prod.beside"] if told & _PROD else BIT["test.beside"] if told & TEST else 0
        beside |= BIT["not.beside"] if told & ROLE["not"] else 0
        beside |= BIT["sole"] if sole and all(one & _SMALL for one in tells) else 0
        # Else it is an order only where its first words are.
        within = bool(told & DONE and told & _PASSIVE)
        begin = before = 0
        for end in (*[at for at, one in enumerate(tells) if one & BREAKS], len(words)):
            if begin < end and (within or told & PROGRAM or tells[begin] & (ACTS | LEAD | NUMBER)):
                place, verb = _verb(tells, begin, end, within=within)
                after, before = before, verb if end < len(words) and words[end].isalpha() else 0
                clause = reduce(or_, tells[begin:end])
                if clause & PROGRAM:
                    clause |= _command(_written(part, words, begin, end))
                if verb & VERB:
                    clause = _clause(tells, begin, end, place, verb) | clause & _COMMANDS | beside
                    clause |= sum(BIT[name] for name, what in _AFTER.items() if after & what)
                    if end < len(words) and words[end] == ":":
                        clause |= BIT["heading"]
                    if begin and words[begin - 1] in _QUOTES and (end - begin) * 2 < len(words):
                        clause |= BIT["quoted"]
                    nouns = [words[at].removesuffix("s") for at in range(begin, end) if tells[at] & THING and at != place]
                    yield Order(clause, part, words, begin, end, words[place], tuple({*nouns}))
                elif clause & _COMMANDS:
                    yield Order(clause & (_COMMANDS | TEST | _PROD | THING | _LETTERS), part, words, begin, end)
            else:
                before = 0
            begin = end + 1


def _verb(tells: Sequence[int], begin: int, end: int, *, within: bool) -> tuple[int, int]:
    """Where the verb of a clause is, and what it tells: one with which it begins, or that says what is to be done."""
    for place in range(begin, end):
        if not tells[place] & LEAD and tells[place] & ACTS:
            return place, tells[place] & ACTS
        if not tells[place] & (LEAD | NUMBER):
            break
    for place in range(begin, end) if within else ():
        if tells[place] & _PASSIVE:
            for there in range(place + 1, min(end, place + _MAX_PASSIVE)):
                if tells[there] & DONE:
                    return there, tells[there] >> 6 & VERB
    return begin, 0


def _clause(tells: Sequence[int], begin: int, end: int, place: int, verb: int) -> int:
    """What a clause tells in which that verb is an order."""
    after = reduce(or_, tells[place + 1 : end], 0)
    rest = reduce(or_, tells[begin:place], after)
    found = BIT["order"] | verb | tells[place] & _STRONG | (rest | tells[place]) & _AROUND | rest & THING
    if not tells[place] & ACTS & verb:
        found |= BIT["passive"]
    elif place + 1 == end:
        found |= BIT["alone"]
    else:
        found |= BIT["det" if tells[place + 1] & (_DET | NUMBER) else "bare"]
    if not rest & THING:
        found |= BIT["nothing"] | (BIT["back"] if place + 1 == end or after & _BACK else 0)
    stop = next((there for there in range(place + 1, end) if tells[there] & _STOP), end)
    last = tells[stop - 1] if stop > place + 1 else 0
    found |= BIT["thing.last"] if last & THING else 0
    if rest & CODE:
        object_ = reduce(or_, tells[place + 1 : stop], 0) & CODE
        found |= BIT["code.last" if last & CODE else "code.object" if object_ else "code.else"]
    return found


def _written(part: str, words: Sequence[str], begin: int, end: int) -> str:
    """What stands between blanks of which these words are; of no words: all."""
    chunks = part.split()
    places = [place for place, chunk in enumerate(chunks) for _ in _CHUNKS[ENGLISH][chunk][0]]
    first, stop = (sum(1 + word.count(" ") for word in words[:at]) for at in (begin, end))
    written = chunks[places[first] : places[stop - 1] + 1] if words else chunks
    return " ".join(written).strip(" .,;!?")


def _command(raw: str) -> int:
    """Whether a command stands there that acts on others, and whether it is ordered or only spoken of."""
    known = _LEXICON.sets
    for match in _PROGRAM.finditer(raw):
        if match[1] not in known["programs"] and not match[0].startswith("./"):
            continue
        before, command, behind = raw[: match.start()].lower(), raw[match.start() :], ""
        if in_code := before.endswith("`"):
            command, _, behind = command.partition("`")
        said, then = _SAID.findall(before), _SAID.findall(behind.lower())
        run = said[-1:] != [] and said[-1] in known["runs"]
        if (in_code or run or match[1] not in known["plain"]) and _risky(command.strip(" `'\".;")):
            ordered = run or known["leads"].issuperset(said) and (said or then[:1] == [] or then[0] not in known["states"])
            return BIT["cmd.order" if ordered else "cmd.named"]
    return 0


@lru_cache(maxsize=500)
def _risky(command: str) -> bool:
    """Whether it does what can be much harm; a program alone is only named."""
    return " " in command and any(act.kind in _LEXICON.sets["risky"] for act in acts(command))


# --- other languages: an order is a verb and a thing in one sentence --------------------------------------------------


def _foreign(sentence: str, told: int) -> Iterator[Order]:
    told |= _command(sentence) if told & PROGRAM else 0
    if told & (VERB | _COMMANDS):
        found = BIT["foreign"] | told & (VERB | THING | _AROUND | CODE | ROLE["when"] | ROLE["reads"] | _BUILD | _COMMANDS)
        if told & VERB:
            found |= BIT["order"] | BIT["f.pair" if told & VERB & told >> 12 else "f.cross" if told & THING else "nothing"]
        yield Order(found, sentence, ())
