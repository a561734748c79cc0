"""What a text orders: verbs and things of which classes, where, and in what form, as bits that are weighed.

A text is read in pieces, sentences and lines. Each word is looked up once, as flags; a clause is what its words flag
together. Most sentences have no verb that acts on others, and are left at that.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

from claudomator_py.acts.prose import commands_in
from claudomator_py.risk.lexicon import (
    ACTS,
    BIT,
    DONE,
    KINDS,
    SEEN,
    THING,
    TOKEN,
    VERB,
    Harm,
    Language,
    cleaned,
    fold,
    lexicon,
    spaced,
    tokens,
    word_of,
)
from claudomator_py.values import regex

_MAX_PASSIVE: Final = 6
"""Words behind "has to be" among which is what has to be done."""


def _bits(names: str) -> int:
    return sum(BIT[name] for name in names.split())


_KNOWN, _CODE, _LEAD, _BREAKS, _PROGRAM = (BIT[name] for name in ("known", "code", "lead", "breaks", "program"))
_PASSIVE, _STOP, _WHEN, _STRONG, _BUILDS = (BIT[name] for name in ("passive", "stops", "when", "strong", "builds"))
_BEFORE_VERB: Final = _bits("lead number")
_MAY_BEGIN: Final = VERB | _bits("orders leads")
_MAY_ORDER: Final = _MAY_BEGIN | DONE
_SMALL: Final = VERB | _BEFORE_VERB | _BREAKS | BIT["back"]
"""Words of which an order may be that names no thing, as "Deploy." and "Ship it!"."""
_PHRASE, _DET, _ALONE, _BARE, _MATCH, _THING = (
    BIT[name] for name in ("phrase", "det", "alone", "bare", "match", "thing")
)
_NAMES: Final = _DET | BIT["number"]
_THING_AT: Final = 2 * len(KINDS)


ZONES: Final = {
    "verb": "strong reads builds passive det bare alone phrase command sole",
    "before": "match thing outside code",
    "object": "match thing outside code",
    "given": "match thing outside code",
    "every": "test dry prod many own not fails",
    "foreign": "known match thing reads builds code when own not fails",
}
"""The parts of a clause, and the flags that are weighed in each: its verb, what stands before it, its object, what
follows a preposition, all of it (with what is ``seen``), and all of one in another language."""
_EXPRESSIONS: Final = (1 << 8) - 1 << SEEN
SHIFT: Final = SEEN + 8
"""Bits of a zone: those of words, and of up to eight expressions."""
_VERB, _BEFORE, _OBJECT, _GIVEN, _EVERY, _ELSE = map(_bits, ZONES.values())


def zoned(verb: int = 0, before: int = 0, thing: int = 0, given: int = 0, every: int = 0, foreign: int = 0) -> int:
    """Return the flags of the zones as one number."""
    parts = verb & _VERB | (before & _BEFORE) << SHIFT | (thing & _OBJECT) << 2 * SHIFT | (given & _GIVEN) << 3 * SHIFT
    return parts | (every & (_EVERY | _EXPRESSIONS)) << 4 * SHIFT | (foreign & _ELSE) << 5 * SHIFT


class Order(NamedTuple):
    """A clause that orders something, or a command."""

    flags: int
    """Those of its zones that are weighed, each zone behind the other."""
    verb: int
    things: int
    """The classes of its verb and its things, as flags."""
    sentence: str
    nouns: Sequence[str] = ()
    """The things in it, by which weights are known."""
    tokens: tuple[int, int] | None = None
    """Where it begins and ends among the tokens of its sentence; None: it is all of it."""

    @property
    def text(self) -> str:
        """It as it is written."""
        spans = [token.span() for token in TOKEN.finditer(self.sentence)] if self.tokens else []
        return self.sentence[spans[self.tokens[0]][0] : spans[self.tokens[1] - 1][1]] if self.tokens else self.sentence

    @property
    def kind(self) -> str:
        """The class of what it orders, as far as the words go; ``command`` where only one stands in it."""
        both = self.verb & self.things >> _THING_AT or self.verb
        return KINDS[((both & -both).bit_length() - (VERB & -VERB).bit_length())] if both else "command"


class Sentence(NamedTuple):
    """A sentence, or a line."""

    text: str
    pasted: bool
    """Whether somebody only shows it, in a text of his own."""
    language: Language
    tokens: Sequence[str]
    flags: Sequence[int]
    bits: int
    """All of its flags."""
    known: int
    """How much of it is known: words, or characters where there are no blanks."""

    @property
    def harm(self) -> Harm | None:
        """What it asks for that is criminal, or may be meant so."""
        keys, text = self.bits & lexicon().keys, ""
        while keys:
            harm, keys = lexicon().harms[keys & -keys], keys & keys - 1
            if self.bits & harm.bits == harm.bits:
                text = text or spaced(fold(self.text))
                if harm.asked(text):
                    return harm
        return None

    def orders(self) -> Iterator[Order]:
        """Return what it orders where it stands."""
        if self.bits & _PROGRAM and _has_command(self.text):
            yield Order(zoned(verb=BIT["command"], every=self.bits), 0, 0, self.text)
        if self.language.english is not None:
            if self.bits & (VERB | BIT["orders"]):
                yield from _foreign(self)
        elif self.bits & _MAY_ORDER and _may_order(self.flags):
            yield from _english(self)


def sentences(text: str) -> Iterator[Sentence]:
    """Return them in order; if all of a text is pasted, nothing is. What stands there again is read once, and so are
    lines of a log that differ by their numbers."""
    # Who writes all of it in quotation marks quotes nobody.
    pieces = dict.fromkeys(_pieces(_IN_MARKS.sub(r"\1", text)))
    every = all(pasted for _, pasted in pieces)
    for piece, pasted in pieces:
        yield _sentence(piece, pasted and not every, BIT["sole"] if len(pieces) == 1 else 0)


# --- pieces -----------------------------------------------------------------------------------------------------------

_MAX_PIECE: Final = 600
"""Characters of a piece; a longer sentence is read in such."""
_MAX_WORDS: Final = 90
_STEP: Final = 60
"""Words after which the next piece of a long sentence begins, so that an order stands whole in one."""
_LISTED: Final = regex(r"(?:\d+[.)]|[-*\u2022])\s")
_END: Final = regex(r"[.!?\u3002\uff01\uff1f\uff1b](?:\s+|(?<![.!?]))")
_GOES_ON: Final = regex(r"[a-z0-9`(\"'/]|--?\w")
_OPEN: Final = ",)\"'`_"
"""Marks with which a line may end that goes on."""
_MAX_OPENING: Final = 40
"""Characters of a line among which its order begins."""
_ASIDE: Final = regex(r"\([^()]{1,120}\)")
_IN_MARKS: Final = regex('^\\s*["\u201c\u201e\u00ab]([^"\u201c\u201d\u201e\u00ab\u00bb]{4,})["\u201c\u201d\u00bb]\\s*$')
_MARK: Final = regex('["\u201c\u201d\u201e\u00ab\u00bb]')
_ZEROES: Final = str.maketrans("123456789", "000000000")


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Return them in order, each with whether it is pasted, such as logs and code."""
    programs = lexicon().sets["programs"]
    for line, pasted in _lines(text):
        if pasted:
            yield line.translate(_ZEROES), True
            continue
        # What stands in brackets parts no verb from its place: "Run the scan (ZAP, full policy) on production".
        line = _ASIDE.sub(lambda aside: aside[0].replace(",", ""), line) if "(" in line else line
        line = _MARK.sub(" , ", line) if line[0] in "{[" else line
        for sentence in (line,) if line.split(None, 1)[0] in programs else _END.split(line):
            if len(sentence) > _MAX_PIECE:
                words = sentence.split()
                for begin in range(0, len(words), _STEP):
                    yield " ".join(words[begin : begin + _MAX_WORDS]), False
            elif sentence:
                yield sentence, False


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Return lines, and what goes on over some of them in one."""
    fenced = steps = False
    is_pasted, is_reported = (lexicon().patterns[name].match for name in ("pasted", "reported"))
    before = ""
    for line in (*map(cleaned, text.splitlines()), ""):
        bare = line.strip()
        fence = bare.startswith(("```", "~~~"))
        steps = bool(bare and (is_reported(bare) or (steps and _LISTED.match(bare))))
        pasted = fenced or fence or steps or is_pasted(line)
        if before and (pasted or not bare or not _goes_on(before, bare)):
            yield before, False
            before = ""
        if fence:
            fenced = not fenced
        elif bare and pasted:
            yield bare, True
        elif bare:
            before = f"{before} {bare}".lstrip()


def _goes_on(before: str, line: str) -> bool:
    """Whether a line goes on in the next: not if that begins with an order or a command."""
    if before[-1].isalpha() and fold(before.rsplit(None, 1)[-1]) in lexicon().sets["open"]:
        return True
    if not _GOES_ON.match(line) or not (before[-1].isalnum() or before[-1] in _OPEN):
        return False
    flags = map(lexicon().latin[0].flags, TOKEN.findall(line[:_MAX_OPENING]))
    return not next((flag for flag in flags if not flag & _BEFORE_VERB), 0) & (ACTS | _PROGRAM)


# --- words ------------------------------------------------------------------------------------------------------------


def _sentence(text: str, pasted: bool, around: int) -> Sentence:
    known, words = lexicon(), tokens(text)
    language = known.latin[0]
    flags = [*map(language.flags, words)]
    bits, share = reduce(or_, flags, around), sum(map(_KNOWN.__and__, flags))
    script = () if text.isascii() else [name for name in known.scripts if known.patterns[name].search(text)]
    if script:
        language = known.languages[script[0]]
    # Where English knows most words, no other language has to be asked.
    elif bits & BIT["strange"] and share * 10 < len(words) * 7 and not pasted:
        language = _language(words)
    if language.spaceless:
        parts = language.parts(fold(text))
        words, bits, share = [*text], reduce(or_, parts.values(), bits), sum(map(len, parts))
    elif language.english:
        flags = [*map(language.flags, words)]
        bits, share = reduce(or_, flags, bits & (-1 << SEEN)), sum(map(_KNOWN.__and__, flags))
    return Sentence(text, pasted, language, words, flags, bits, share)


def _language(words: Sequence[str]) -> Language:
    """The language of a sentence in Latin letters: that of which most words are common, or else known."""
    latin, present = lexicon().latin, {*map(word_of, words)}
    if len(present & latin[0].common) * 3 >= max(len(words), 9):
        return latin[0]
    shares = [len(present & language.common) for language in latin]
    best = [language for language, share in zip(latin, shares, strict=True) if share == max(shares)]
    known = [sum(map(_KNOWN.__and__, map(language.flags, words))) for language in best[1:] and best]
    return best[known.index(max(known)) if known else 0]


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _may_order(flags: Sequence[int]) -> bool:
    """Whether a clause may begin with a verb, or say what has to be done."""
    begins, asked = True, 0
    for flag in flags:
        if flag & _MAY_ORDER and ((begins and flag & _MAY_BEGIN) or (asked and flag & (DONE | BIT["orders"]))):
            return True
        begins = bool(flag & _BREAKS or (begins and flag & _BEFORE_VERB))
        asked = _MAX_PASSIVE if flag & (_PASSIVE | BIT["leads"]) else asked and asked - 1
    return False


def _english(sentence: Sentence) -> Iterator[Order]:
    words, flags = [*map(word_of, sentence.tokens)], [*sentence.flags]
    places = sentence.language.merge(words, flags)
    left, begin = [flags[at] for at in places], 0
    sole = sentence.bits & BIT["sole"] and sentence.bits & _STRONG and all(flag & _SMALL for flag in left)
    for end in (*(number for number, flag in enumerate(left) if flag & _BREAKS), len(left)):
        # What follows a preposition is of the same clause: "locally and on origin".
        if end + 1 < len(left) and left[end + 1] & (_STOP | _LEAD | _WHEN) == _STOP:
            continue
        clause = left[begin:end]
        at, verb = _verb(clause)
        if verb & VERB:
            verb_at, last = places[begin + at], places[end] if end < len(left) else len(words)
            verb |= (_PHRASE if " " in words[verb_at] else 0) | (BIT["sole"] if sole else 0)
            things = {words[place] for place, flag in zip(places[begin:end], clause, strict=True) if flag & THING}
            nouns = [*things - {words[verb_at]}]
            yield Order(*_weighed(clause, at, verb), sentence.text, nouns, (places[begin], last))
        begin = end + 1


def _verb(flags: Sequence[int]) -> tuple[int, int]:
    """Return where the verb of a clause is, with which it begins or that says what is to be done; and its flags."""
    for at, flag in enumerate(flags):
        if not flag & _BEFORE_VERB:
            if flag & ACTS:
                return at, flag & ACTS
            break
    for place in [at for at, flag in enumerate(flags) if flag & _PASSIVE]:
        for at in range(place, min(len(flags), place + _MAX_PASSIVE)):
            if flags[at] & DONE:
                return at, flags[at] >> len(KINDS) & VERB | _PASSIVE
    return 0, 0


def _weighed(flags: Sequence[int], place: int, verb: int) -> tuple[int, int, int]:
    """Return the flags of a clause in which that verb is an order, and the classes of the verb and the things."""
    given = next((at for at in range(place + 1, len(flags)) if flags[at] & _STOP), len(flags))
    follows = flags[place + 1] if place + 1 < len(flags) else 0
    form = 0 if verb & _PASSIVE else _DET if follows & _NAMES else _ALONE if place + 1 == len(flags) else _BARE
    before, thing, then = (
        _matched(reduce(or_, part, 0), verb) for part in (flags[:place], flags[place + 1 : given], flags[given:])
    )
    verb = verb & ~_BUILDS if flags[place] & _STRONG else verb
    verb |= flags[place] & _STRONG | form
    every = before | thing | then | flags[place]
    return zoned(verb, before, thing, then, every), verb & VERB, (before | thing | then) & THING


def _matched(bits: int, verb: int) -> int:
    """Add to flags whether there is a thing, and one that the verb acts on."""
    return bits | (_MATCH if bits >> _THING_AT & verb & VERB else 0) | (_THING if bits & THING else 0)


# --- other languages: an order is a verb and a thing in one part of a sentence ----------------------------------------


def _foreign(sentence: Sentence) -> Iterator[Order]:
    """A part begins with a verb behind a mark or an "and", and ends with "when" and its like; if it names no thing, it
    means that of the part before."""
    if sentence.language.spaceless:
        left = [sentence.bits & ~_WHEN]
    else:
        words, flags = [*map(word_of, sentence.tokens)], [*sentence.flags]
        left = [flags[at] for at in sentence.language.merge(words, flags)]
    parts, is_aside = [0], False
    for flag, follows in zip(left, (*left[1:], 0), strict=True):
        if flag & _BREAKS:
            is_aside = False
            if follows & ACTS:
                parts.append(0)
        is_aside = is_aside or bool(flag & _WHEN and parts[-1] & VERB)
        parts[-1] |= 0 if is_aside else flag
    before = 0
    for part in parts:
        part, before = part | (0 if part & THING else before & THING), part
        if part & VERB:
            weighed = zoned(every=part | sentence.bits & -1 << SEEN, foreign=_matched(part, part) | _KNOWN)
            yield Order(weighed, part & VERB, part & THING, sentence.text)


# --- commands ---------------------------------------------------------------------------------------------------------

_CLAUSE: Final = regex(r"[,:(]\s|@[\w-]+\s|\s(?:and|then|und|et|y|e|i|en|dann)\s")
_WORD: Final = regex(r"[\w:']+")
_QUOTES_PROSE: Final = regex(r"(?<!\")[\w:]\s+[\"\u201c\u201e\u00ab][^\"\u201d\u00bb]*$")
"""Behind words, and not behind a key of JSON."""
_TELLS_ON: Final = regex(r"^([^'\"]*?),\s.*")
_QUOTED: Final = regex(r"'[^']*'|\"[^\"]*\"")


@lru_cache(maxsize=500)
def _has_command(text: str) -> bool:
    """Whether a command is ordered there that acts on others."""
    known = lexicon().sets
    begins = text.split(None, 1)[0]
    is_line = begins in known["programs"] and (begins not in known["plain"] or " -" in text)
    for command in commands_in(_TELLS_ON.sub(r"\1", f"$ {text}") if is_line else text):
        if " " in command.text and any(act.kind in known["risky"] for act in command.acts):
            behind = text[command.end :] if command.in_code and not is_line else command.text
            return _ordered("" if is_line else text[: command.start], behind)
    return False


def _ordered(before: str, then: str) -> bool:
    """Whether a command is to be run that stands behind and before these."""
    known = lexicon().sets
    if len(_MARK.findall(before)) % 2 and _QUOTES_PROSE.search(before):
        return False
    earlier = _WORD.findall(fold(_CLAUSE.split(before)[-1]))
    if earlier[:1] in (["a"], ["the"], ["to"]) or not known["leads"].union(known["runs"], known["in"]).issuperset(
        earlier[:1]
    ):
        return False
    if earlier:
        return earlier[-1] in known["runs"] or known["leads"].issuperset(earlier)
    return known["states"].isdisjoint(_WORD.findall(_QUOTED.sub("", then.lower())))
