"""What a text orders: verbs and things of which classes, where, and in what form, as bits that are weighed.

A text is read in pieces, sentences and lines. What stands between blanks is looked up once and tells bits; a clause is
what its words tell together. Most sentences begin with no verb that acts on others, and are left at that, so that
length and company hide nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial, reduce
from itertools import chain
from operator import itemgetter, or_
from typing import Final, NamedTuple

from claudomator_py.acts.reading import acts
from claudomator_py.risk.lexicon import (
    ACTS,
    BIT,
    DONE,
    DONE_AT,
    ENGLISH,
    KINDS,
    SEEN,
    SPACELESS,
    THING,
    THING_AT,
    VERB,
    Harm,
    Language,
    fold,
    joined,
    lexicon,
    words_in,
)
from claudomator_py.values import regex

_MAX_MEMO: Final = 20_000
_MAX_CHUNK: Final = 200
"""Characters that are looked at of what stands between blanks."""
_MAX_PASSIVE: Final = 6
"""Words behind "has to be" among which is what has to be done."""
_ASIDE: Final = regex(r"\([^()]{1,120}\)")
_PROGRAM: Final = regex(r"(?<![\w./-])(?:[\w.~-]*/)*([\w.-]+)")
_SAID: Final = regex(r"[\w:]+")
_QUOTES: Final = frozenset('"\u201c\u201e\u00ab')
_ZEROES: Final = str.maketrans("123456789", "000000000")


def _bits(names: str) -> int:
    return sum(BIT[name] for name in names.split())


_CODE, _LEAD, _BREAKS, _KNOWN, _HARM = (BIT[name] for name in ("code", "lead", "breaks", "known", "harm"))
_PASSIVE, _DET, _BACK, _STOP, _PROD, _SOLE = (BIT[name] for name in ("passive", "det", "back", "stops", "prod", "sole"))
_BEFORE_VERB: Final = _bits("lead number")
_RUNS: Final = _bits("program plain")
_MAY_ORDER: Final = VERB | _BEFORE_VERB | BIT["orders"]
_SMALL: Final = VERB | _BEFORE_VERB | _BREAKS | _BACK
"""Words of which an order may be that names no thing, as "Deploy." and "Ship it!"."""
_LETTERS: Final = -1 << SEEN
_AROUND: Final = _LETTERS | _bits("test prod many own not fails")
_OF_COMMANDS: Final = _bits("test prod") | THING | _LETTERS
_FOREIGN: Final = VERB | THING | _AROUND | _bits("code when reads builds")
_AFTER: Final = ((VERB, "after.order"), (BIT["reads"], "after.read"), (BIT["builds"], "after.build"))


class Order(NamedTuple):
    """A clause that orders something, or in which a command stands."""

    tells: int
    written: Callable[[], str]
    """Returns it as it is written."""
    words: Sequence[str] = ()
    """Its verb and its things, by which weights are known."""

    @property
    def kind(self) -> str:
        """The class of what it orders, as far as the words go; ``command`` where only one stands in it."""
        both = self.tells & VERB & self.tells >> THING_AT or self.tells & VERB
        return KINDS[(both & -both).bit_length() - 1] if both else "command"


class Sentence(NamedTuple):
    """A sentence, or a line."""

    text: str
    language: Language
    words: Sequence[str]
    tells: Sequence[int]
    """What each of them does, in that language."""
    parts: Mapping[str, int]
    """Words in it and what they tell, where there are no blanks between them."""
    told: int
    """What all of it tells."""
    around: int
    """What is told of its orders by where it stands."""

    @property
    def pasted(self) -> bool:
        """Whether somebody only shows it, in a text of his own."""
        return bool(self.around & BIT["pasted"])

    @property
    def share_known(self) -> tuple[int, int]:
        """How much of it is known, and how much there is: words, or characters where there are no blanks."""
        if self.parts:
            return sum(map(len, self.parts)), sum(map(len, self.words))
        return len([one for one in self.tells if one & _KNOWN]), len(self.words)

    @property
    def harm(self) -> Harm | None:
        """What it asks for that is criminal, or may be meant so."""
        if not self.told & _HARM:
            return None
        keys = [word for word, one in zip(self.words, self.tells, strict=True) if one & _HARM]
        return lexicon().harms.of(fold(self.text), [*keys, *self.parts], self.words)

    def orders(self) -> Iterator[Order]:
        """Return what it orders where it stands."""
        yield from (_english if self.language.name == ENGLISH else _foreign)(self)


def sentences(text: str) -> Iterator[Sentence]:
    """Return them in order; if all of a text is pasted, nothing is. What stands there again is read once, and so are
    lines of a log that differ by their numbers."""
    pieces = list(_pieces(joined(text)))
    every = all(pasted for _, pasted in pieces)
    around, read = BIT["sole"] if len(pieces) == 1 else 0, set[tuple[str, int]]()
    for piece, copied in pieces:
        here = around | (BIT["pasted"] if copied and not every else 0)
        same = (piece.translate(_ZEROES) if copied else piece, here)
        if same in read:
            continue
        read.add(same)
        sentence = _sentence(piece, here)
        yield sentence
        if sentence.told & _PROD and not sentence.pasted:
            around |= BIT["prod.before"]


# --- pieces -----------------------------------------------------------------------------------------------------------

_MAX_PIECE: Final = 600
"""Characters of a piece; a longer sentence is read in such."""
_MAX_WORDS: Final = 90
_STEP: Final = 60
"""Words after which the next piece of a long sentence begins, so that an order stands whole in one."""
_LISTED: Final = regex(r"(?:\d+[.)]|[-*\u2022])\s")
_END: Final = regex(r"[.!?;\u3002\uff01\uff1f\uff1b](?:\s+|(?<![.!?;]))")
_GOES_ON: Final = regex(r"[a-z0-9`(\"'/]|--?\w")
_OPEN: Final = ",)\"'`_"
"""Marks with which a line may end that goes on."""
_MAX_LEAD: Final = 4
"""Words of a line among which its order begins."""


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Return them in order, each with whether it is pasted, such as logs and code."""
    split = _END.split
    for line, pasted in _lines(text):
        for sentence in split(line):
            if len(sentence) > _MAX_PIECE:
                words = sentence.split()
                for begin in range(0, len(words), _STEP):
                    yield " ".join(words[begin : begin + _MAX_WORDS]), pasted
            elif sentence:
                yield sentence, pasted


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Return lines, and what goes on over some of them in one."""
    fenced = steps = False
    is_pasted, is_reported = (lexicon().lines[name].match for name in ("pasted", "reported"))
    before: list[str] = []
    for line in (*text.splitlines(), ""):
        bare = line.strip()
        fence = bare.startswith(("```", "~~~"))
        steps = bool(bare and (is_reported(bare) or (steps and _LISTED.match(bare))))
        pasted = fenced or fence or steps or is_pasted(line)
        if before and (pasted or not bare or not _goes_on(before[-1], bare)):
            yield " ".join(before), False
            before = []
        if fence:
            fenced = not fenced
        elif bare and pasted:
            yield bare, True
        elif bare:
            before.append(bare)


def _goes_on(before: str, line: str) -> bool:
    """Whether a line goes on in the next: not if that begins with an order or a command."""
    if before[-1].isalpha() and fold(before.rsplit(None, 1)[-1]) in lexicon().sets["open"]:
        return True
    if not _GOES_ON.match(line) or not (before[-1].isalnum() or before[-1] in _OPEN):
        return False
    english = lexicon().languages[ENGLISH]
    for word in line.split(None, _MAX_LEAD)[:_MAX_LEAD]:
        tells = english.tells(fold(word).strip("`,:") or word)
        if not tells & _BEFORE_VERB:
            return not tells & (ACTS | _RUNS)
    return True


# --- words ------------------------------------------------------------------------------------------------------------


def _sentence(text: str, around: int) -> Sentence:
    known = lexicon()
    # What stands in brackets parts no verb from its place: "Run the scan (ZAP, full policy) on production".
    text = _ASIDE.sub(lambda aside: aside[0].replace(",", ""), text) if "(" in text else text
    chunks = [*map(_chunk, text.split())]
    words, tells = ([*chain.from_iterable(map(itemgetter(part), chunks))] for part in (0, 1))
    told, parts, language = reduce(or_, tells, 0), dict[str, int](), known.languages[ENGLISH]
    if told & BIT["script"]:
        named = (name for name, one in known.scripts.items() if any(map(one.search, words)))
        language = known.languages[next(named, ENGLISH)]
    elif told & BIT["strange"]:
        language = _told_by(words)
    if language.name in SPACELESS:
        parts = language.parts(fold(text))
        told = reduce(or_, parts.values(), told)
    elif language.name != ENGLISH:
        seen = reduce(or_, (bits for bits, _ in known.seen.values() if bits & told & _LETTERS), 0)
        tells = [*map(language.tells, words)]
        told = reduce(or_, language.phrased(words, tells)[1], seen)
    return Sentence(text, language, words, tells, parts, told, around)


@lru_cache(_MAX_MEMO)
def _chunk(chunk: str) -> tuple[Sequence[str], Sequence[int]]:
    """Words and marks of what stands between blanks, and what each tells in English."""
    known, words = lexicon(), words_in(chunk)
    tells = [*map(known.languages[ENGLISH].tells, words)]
    if words:
        letters = (bits for bits, one in known.seen.values() if one.search(chunk[:_MAX_CHUNK]))
        tells[0] = reduce(or_, letters, tells[0])
        script = any(one.search(word) for one in known.scripts.values() for word in words)
        unknown = [word for word, tell in zip(words, tells, strict=True) if not tell & _KNOWN and word.isalpha()]
        strange = any(one.tells(word) & _KNOWN for word in unknown for one in known.latin[1:])
        tells[0] |= (BIT["script"] if script else 0) | (BIT["strange"] if strange else 0)
    return words, tells


def _told_by(words: Sequence[str]) -> Language:
    """The language of a sentence in Latin letters: of which most words are common, or else known."""
    english, said = lexicon().latin[0], {*words}
    if len(said & english.common) * 3 >= max(len(words), 9):
        return english
    shares = [len(said & one.common) for one in lexicon().latin]
    most = max(shares)
    letters = [english.tells(word) & _KNOWN for word in words if word.isalpha()]
    if not most and sum(map(bool, letters)) * 2 > len(letters):
        return english
    best = [one for share, one in zip(shares, lexicon().latin, strict=True) if share == most]
    return max(best, key=lambda one: sum(one.tells(word) & _KNOWN for word in words)) if best[1:] else best[0]


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _english(sentence: Sentence) -> Iterator[Order]:
    words, tells, told = sentence.words, sentence.tells, sentence.told
    begins = [tells[at] for at in (0, *[at for at, one in enumerate(tells[:-1], 1) if one & _BREAKS])] if tells else []
    if not (reduce(or_, begins, 0) & _MAY_ORDER or told & _RUNS or (told & DONE and told & (_PASSIVE | BIT["orders"]))):
        return
    words, tells = sentence.language.phrased(words, tells)
    told, begin, before = reduce(or_, tells), 0, 0
    around = sentence.around & ~_SOLE
    beside = around | (BIT["prod.beside"] if told & _PROD else BIT["test.beside"] if told & BIT["test"] else 0)
    beside |= BIT["not.beside"] if told & BIT["not"] else 0
    beside |= sentence.around & _SOLE if told & BIT["strong"] and all(one & _SMALL for one in tells) else 0
    # Else it is an order only where its first words are.
    within = bool(told & DONE and told & _PASSIVE)
    for end in (*[at for at, one in enumerate(tells) if one & _BREAKS], len(words)):
        after, before = before, 0
        if begin < end and (within or told & _RUNS or tells[begin] & (ACTS | _BEFORE_VERB)):
            place, verb = _verb(tells, begin, end, within=within)
            before = verb if end < len(words) and words[end].isalpha() else 0
            written = partial(_written, sentence.text, words, begin, end)
            command = _command(written()) if told & _RUNS and _runs(sentence.text, words, tells, begin, end) else 0
            if verb & VERB:
                clause = command | _clause(tells, begin, end, place, verb) | beside
                clause |= sum(BIT[name] for what, name in _AFTER if after & what) if after else 0
                clause |= BIT["heading"] if words[end : end + 1] == [":"] else 0
                if begin and words[begin - 1] in _QUOTES and (end - begin) * 2 < len(words):
                    clause |= BIT["quoted"]
                things = {words[at].removesuffix("s") for at in range(begin, end) if tells[at] & THING and at != place}
                yield Order(clause, written, (f"verb {words[place]}", *(f"noun {thing}" for thing in things)))
            elif command:
                yield Order(command | around | reduce(or_, tells[begin:end]) & _OF_COMMANDS, written)
        begin = end + 1


def _runs(text: str, words: Sequence[str], tells: Sequence[int], begin: int, end: int) -> bool:
    """Whether a program is named there; one that is a word of prose too only in code, or if somebody is to run it."""
    programs = reduce(or_, tells[begin:end]) & _RUNS
    return bool(
        programs & BIT["program"]
        or (programs and ("`" in text or not lexicon().sets["runs"].isdisjoint(words[begin:end])))
    )


def _verb(tells: Sequence[int], begin: int, end: int, *, within: bool) -> tuple[int, int]:
    """Where the verb of a clause is, and what it tells: one with which it begins, or that says what is to be done."""
    for place in range(begin, end):
        if not tells[place] & _LEAD and tells[place] & ACTS:
            return place, tells[place] & ACTS
        if not tells[place] & _BEFORE_VERB:
            break
    for place in range(begin, end) if within else ():
        if tells[place] & _PASSIVE:
            for there in range(place + 1, min(end, place + _MAX_PASSIVE)):
                if tells[there] & DONE:
                    return there, tells[there] >> DONE_AT & VERB
    return begin, 0


def _clause(tells: Sequence[int], begin: int, end: int, place: int, verb: int) -> int:
    """What a clause tells in which that verb is an order."""
    after = reduce(or_, tells[place + 1 : end], 0)
    rest = reduce(or_, tells[begin:place], after)
    stop = next((there for there in range(place + 1, end) if tells[there] & _STOP), end)
    last = tells[stop - 1] if stop > place + 1 else 0
    found = BIT["order"] | verb | tells[place] & BIT["strong"] | (rest | tells[place]) & _AROUND | rest & THING
    if not tells[place] & ACTS & verb:
        found |= _PASSIVE
    elif place + 1 == end:
        found |= BIT["alone"]
    else:
        found |= _DET if tells[place + 1] & (_DET | BIT["number"]) else BIT["bare"]
    if not rest & THING:
        found |= BIT["nothing"] | (_BACK if place + 1 == end or after & _BACK else 0)
    if last & THING:
        found |= BIT["thing.last"]
    if rest & _CODE:
        in_object = reduce(or_, tells[place + 1 : stop], 0) & _CODE
        found |= BIT["code.last" if last & _CODE else "code.object" if in_object else "code.else"]
    return found


def _written(text: str, words: Sequence[str], begin: int, end: int) -> str:
    """What stands between blanks of which these words are."""
    chunks = text.split()
    places = [place for place, chunk in enumerate(chunks) for _ in _chunk(chunk)[0]]
    first, stop = (sum(1 + word.count(" ") for word in words[:at]) for at in (begin, end))
    return " ".join(chunks[places[first] : places[stop - 1] + 1]).strip(" .,;!?")


# --- other languages: an order is a verb and a thing in one sentence --------------------------------------------------


def _foreign(sentence: Sentence) -> Iterator[Order]:
    told, written = sentence.told, partial(str.strip, sentence.text, " .,;!?")
    command = _command(sentence.text) if told & _RUNS else 0
    if command | told & VERB:
        pair = "f.pair" if told & VERB & told >> THING_AT else "f.cross" if told & THING else "nothing"
        order = BIT["order"] | BIT[pair] if told & VERB else 0
        yield Order(BIT["foreign"] | told & _FOREIGN | command | order | sentence.around & ~_SOLE, written)


# --- commands ---------------------------------------------------------------------------------------------------------


def _command(raw: str) -> int:
    """Whether a command stands there that acts on others, and whether it is ordered or only spoken of."""
    known = lexicon().sets
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
    return " " in command and any(act.kind in lexicon().sets["risky"] for act in acts(command))
