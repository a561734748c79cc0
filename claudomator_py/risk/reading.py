"""What a sentence orders: verbs and things of which classes, where, and in what form, as bits that are weighed.

What stands between blanks is looked up once and tells bits; a clause is what its words tell together. Most sentences
begin with no verb that acts on others, and are left at that, so that length and company hide nothing.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial, reduce
from operator import or_
from typing import Final, NamedTuple

from claudomator_py.acts.reading import acts
from claudomator_py.risk import lexicon as its
from claudomator_py.risk.folding import fold
from claudomator_py.risk.harm import Harm
from claudomator_py.risk.lexicon import ROLE, Words
from claudomator_py.values import regex

_TOKEN: Final = regex(
    r"(?<!\w)@[\w-]+|[^\W_]+(?:'[^\W_]+)*|[,:](?!\S)|[\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*&]"
    r"|(?<!\S)-+(?!\S)|-->"
)
_MAX_MEMO: Final = 50_000
_MAX_CHUNK: Final = 200
"""Characters that are looked at of what stands between blanks."""
_ASIDE: Final = regex(r"\([^()]{1,120}\)")
_PROGRAM: Final = regex(r"(?<![\w./-])(?:[\w.~-]*/)*([\w.-]+)")
_SAID: Final = regex(r"[\w:]+")
_QUOTES: Final = frozenset('"\u201c\u201e\u00ab')
_PASSIVE, _DET, _BACK, _STOP, _PROD, _STRONG, _READ, _BUILD = (
    ROLE[name] for name in ("passive", "det", "back", "stops", "prod", "strong", "reads", "builds")
)
_MAX_PASSIVE: Final = 6
"""Words behind "has to be" among which is what has to be done."""
_SMALL: Final = its.VERB | its.LEAD | its.NUMBER | its.BREAKS | _BACK
"""Words of which an order may be that names no thing, as "Deploy." and "Ship it!"."""

# Read while this module is imported, which one thread does: two that were read at a time would not know each other's
# languages.
_LEXICON: Final = its.lexicon()
_ENGLISH: Final = _LEXICON.languages[its.ENGLISH]
_LATIN: Final = [one for name, one in _LEXICON.languages.items() if name not in _LEXICON.scripts]
"""Languages that are told by their commonest words; English is the first."""
_TOLD: Final = (
    "foreign order passive det bare alone code.last code.object code.else thing.last nothing back heading quoted "
    "test.beside prod.beside not.beside prod.before after.order after.read after.build pasted f.pair f.cross "
    "cmd.order cmd.named sole"
)
BIT: Final = {name: 1 << its.SEEN + number for number, name in enumerate([*_LEXICON.seen, *_TOLD.split()])}
"""What a clause tells besides what its words do."""
_LETTERS: Final = sum(BIT[name] for name in _LEXICON.seen)
_AROUND: Final = _LETTERS | sum(ROLE[name] for name in ("test", "prod", "many", "own", "not", "fails"))
_FOREIGN: Final = its.VERB | its.THING | _AROUND | sum(ROLE[name] for name in ("code", "when", "reads", "builds"))
_COMMANDS: Final = BIT["cmd.order"] | BIT["cmd.named"]
_ORDER: Final = BIT["order"]
_AFTER: Final = ((its.VERB, "after.order"), (_READ, "after.read"), (_BUILD, "after.build"))


class Order(NamedTuple):
    """A clause that orders something, or in which a command stands."""

    tells: int
    written: partial[str]
    """Returns it as it is written."""
    words: Sequence[str] = ()
    """Its verb and its things, by which weights are known."""

    @property
    def kind(self) -> str:
        """The class of what it orders, as far as the words go; ``command`` where only one stands in it."""
        both = self.tells & its.VERB & self.tells >> 12 or self.tells & its.VERB
        return its.KINDS[(both & -both).bit_length() - 1] if both else "command"


class Sentence(NamedTuple):
    """A sentence as it is read: what it orders, and asks of harm."""

    orders: Sequence[Order]
    harm: Harm | None
    in_use: bool
    """Whether it speaks of what people use."""
    known: int
    words: int


class _Chunks(dict[str, tuple[list[str], list[int]]]):
    """Words and marks of what stands between blanks, and what each tells, found out once."""

    def __init__(self, language: Words) -> None:
        self.language = language

    def __missing__(self, chunk: str) -> tuple[list[str], list[int]]:
        if len(self) > _MAX_MEMO:
            self.clear()
        words, begin = _TOKEN.findall(fold(chunk).replace("\u2019", "'")), chunk[:_MAX_CHUNK]
        tells = [self.language[word] for word in words]
        if words:
            tells[0] |= reduce(or_, (bits for bits, one in _LEXICON.seen.values() if one.search(begin)), 0)
            tells[0] |= its.SCRIPT if any(map(_script, words)) else 0
        self[chunk] = words, tells
        return words, tells


def _script(folded: str) -> str | None:
    return next((name for name, one in _LEXICON.scripts.items() if one.search(folded)), None)


_CHUNKS: Final = {name: _Chunks(language) for name, language in _LEXICON.languages.items()}


def _said(text: str, language: Words = _ENGLISH) -> tuple[list[str], list[int]]:
    found = [*map(_CHUNKS[language.name].__getitem__, text.split())]
    return [word for words, _ in found for word in words], [one for _, tells in found for one in tells]


def read(sentence: str, *, for_harm: bool = False, sole: bool = False) -> Sentence:
    """Return what a sentence says. for_harm: only what it asks for of harm. sole: it is all that is said."""
    # What stands in brackets parts no verb from its place: "Run the scan (ZAP, full policy) on production".
    sentence = _ASIDE.sub(lambda aside: aside[0].replace(",", ""), sentence) if "(" in sentence else sentence
    words, tells = _said(sentence)
    told, known, count = reduce(or_, tells, 0), sum(map(its.KNOWN.__and__, tells)) // its.KNOWN, len(words)
    language, folded, harm, parts = _ENGLISH, "", None, dict[str, int]()
    if told & its.SCRIPT:
        folded = fold(sentence)
        language = _LEXICON.languages[_script(folded) or its.ENGLISH]
        if language.name in its.SPACELESS:
            parts = dict(language.parts(folded))
            known, count, told = sum(map(len, parts)), len(folded), reduce(or_, parts.values(), told)
    elif told & its.FOREIGN or known * 2 < count:
        language = _told_by(words)
    if told & its.HARM:
        may = [word for word, one in zip(words, tells, strict=True) if one & its.HARM]
        harm = _LEXICON.harms.of(folded or fold(sentence), [*may, *parts])
    orders: Iterator[Order] = iter(())
    if for_harm:
        pass
    elif language is not _ENGLISH:
        told = told if parts else reduce(or_, language.read(*_said(sentence, language))[1], 0)
        orders = _foreign(sentence, told)
    elif _may_order(tells, told):
        orders = _english(sentence, *_ENGLISH.read(words, tells), sole=sole)
    return Sentence([*orders], harm, bool(told & _PROD), known, count)


def _told_by(words: Sequence[str]) -> Words:
    """Return the language of a sentence in Latin letters: of which most words are common, or else known."""
    shares = [sum(map(_ENGLISH.common.__contains__, words))]
    if shares[0] * 3 >= max(len(words), 9):
        return _ENGLISH
    shares += [sum(map(one.common.__contains__, words)) for one in _LATIN[1:]]
    best = [one for share, one in zip(shares, _LATIN, strict=True) if share == max(shares)]
    return best[0] if len(best) == 1 else max(best, key=lambda one: sum(one[word] & its.KNOWN for word in words))


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _may_order(tells: Sequence[int], told: int) -> bool:
    """Whether a clause may be an order: by its first word that does not only lead to one, or as to what is said to be
    done; or whether there may be a command."""
    if told & its.PROGRAM or (told & its.DONE and told & (_PASSIVE | its.ORDERS)):
        return True
    begins = True
    for one in tells:
        if one & its.BREAKS:
            begins = True
        elif begins:
            if one & (its.VERB | its.ORDERS):
                return True
            begins = bool(one & (its.LEAD | its.NUMBER))
    return False


def _english(part: str, words: list[str], tells: list[int], *, sole: bool) -> Iterator[Order]:
    told, begin, before = reduce(or_, tells), 0, 0
    beside = BIT["prod.beside"] if told & _PROD else BIT["test.beside"] if told & its.TEST else 0
    beside |= BIT["not.beside"] if told & ROLE["not"] else 0
    beside |= BIT["sole"] if sole and told & _STRONG and all(one & _SMALL for one in tells) else 0
    # Else it is an order only where its first words are.
    within = bool(told & its.DONE and told & _PASSIVE)
    for end in (*[at for at, one in enumerate(tells) if one & its.BREAKS], len(words)):
        after, before = before, 0
        if begin < end and (within or told & its.PROGRAM or tells[begin] & (its.ACTS | its.LEAD | its.NUMBER)):
            place, verb = _verb(tells, begin, end, within=within)
            before = verb if end < len(words) and words[end].isalpha() else 0
            clause, written = reduce(or_, tells[begin:end]), partial(_written, part, words, begin, end)
            command = _command(written()) if clause & its.PROGRAM else 0
            if verb & its.VERB:
                clause = command | _clause(tells, begin, end, place, verb) | beside
                if after:
                    clause |= sum(BIT[name] for what, name in _AFTER if after & what)
                if words[end : end + 1] == [":"]:
                    clause |= BIT["heading"]
                if begin and words[begin - 1] in _QUOTES and (end - begin) * 2 < len(words):
                    clause |= BIT["quoted"]
                things = {
                    words[at].removesuffix("s") for at in range(begin, end) if tells[at] & its.THING and at != place
                }
                yield Order(clause, written, (f"verb {words[place]}", *(f"noun {thing}" for thing in things)))
            elif command:
                yield Order(command | clause & (its.TEST | _PROD | its.THING | _LETTERS), written)
        begin = end + 1


def _verb(tells: Sequence[int], begin: int, end: int, *, within: bool) -> tuple[int, int]:
    """Where the verb of a clause is, and what it tells: one with which it begins, or that says what is to be done."""
    for place in range(begin, end):
        if not tells[place] & its.LEAD and tells[place] & its.ACTS:
            return place, tells[place] & its.ACTS
        if not tells[place] & (its.LEAD | its.NUMBER):
            break
    for place in range(begin, end) if within else ():
        if tells[place] & _PASSIVE:
            for there in range(place + 1, min(end, place + _MAX_PASSIVE)):
                if tells[there] & its.DONE:
                    return there, tells[there] >> 6 & its.VERB
    return begin, 0


def _clause(tells: Sequence[int], begin: int, end: int, place: int, verb: int) -> int:
    """What a clause tells in which that verb is an order."""
    after = reduce(or_, tells[place + 1 : end], 0)
    rest = reduce(or_, tells[begin:place], after)
    stop = next((there for there in range(place + 1, end) if tells[there] & _STOP), end)
    last = tells[stop - 1] if stop > place + 1 else 0
    found = _ORDER | verb | tells[place] & _STRONG | (rest | tells[place]) & _AROUND | rest & its.THING
    if not tells[place] & its.ACTS & verb:
        found |= BIT["passive"]
    elif place + 1 == end:
        found |= BIT["alone"]
    else:
        found |= BIT["det" if tells[place + 1] & (_DET | its.NUMBER) else "bare"]
    if not rest & its.THING:
        found |= BIT["nothing"] | (BIT["back"] if place + 1 == end or after & _BACK else 0)
    if last & its.THING:
        found |= BIT["thing.last"]
    if rest & its.CODE:
        in_object = reduce(or_, tells[place + 1 : stop], 0) & its.CODE
        found |= BIT["code.last" if last & its.CODE else "code.object" if in_object else "code.else"]
    return found


def _written(part: str, words: Sequence[str], begin: int, end: int) -> str:
    """What stands between blanks of which these words are."""
    chunks = part.split()
    places = [place for place, chunk in enumerate(chunks) for _ in _CHUNKS[its.ENGLISH][chunk][0]]
    first, stop = (sum(1 + word.count(" ") for word in words[:at]) for at in (begin, end))
    return " ".join(chunks[places[first] : places[stop - 1] + 1]).strip(" .,;!?")


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
        run = not known["runs"].isdisjoint(said[-1:])
        if (in_code or run or match[1] not in known["plain"]) and _risky(command.strip(" `'\".;")):
            told_of = not said and not known["states"].isdisjoint(then[:1])
            return BIT["cmd.order" if run or (known["leads"].issuperset(said) and not told_of) else "cmd.named"]
    return 0


@lru_cache(maxsize=500)
def _risky(command: str) -> bool:
    """Whether it does what can be much harm; a program alone is only named."""
    return " " in command and any(act.kind in _LEXICON.sets["risky"] for act in acts(command))


# --- other languages: an order is a verb and a thing in one sentence --------------------------------------------------


def _foreign(sentence: str, told: int) -> Iterator[Order]:
    found = BIT["foreign"] | told & _FOREIGN | (_command(sentence) if told & its.PROGRAM else 0)
    if told & its.VERB:
        found |= (
            BIT["order"]
            | BIT["f.pair" if told & told >> 12 & its.VERB else "f.cross" if told & its.THING else "nothing"]
        )
    if found & (its.VERB | _COMMANDS):
        yield Order(found, partial(str.strip, sentence, " .,;!?"))
