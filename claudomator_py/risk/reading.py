"""What a text orders: verbs and things of which classes, where, and in what form, as bits that are weighed.

A text is read in pieces, sentences and lines. What stands between blanks is looked up once, as flags; a clause is
what its words flag together. Most sentences have no verb that acts on others, and are left at that.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from itertools import chain, pairwise
from operator import or_
from typing import Final, NamedTuple, TypeAlias

from claudomator_py.acts.prose import commands_in
from claudomator_py.risk.folding import fold, joined
from claudomator_py.risk.lexicon import (
    ACTS,
    BIT,
    DONE,
    KINDS,
    SEEN,
    THING,
    VERB,
    Harm,
    Language,
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
_NAME: Final = regex(r"`|\w+(?:\(\)|-\w)")
"""Begins code, or a compound such as "drop-down", whose first word orders nothing."""
_ZEROES: Final = str.maketrans("123456789", "000000000")


def _bits(names: str) -> int:
    return sum(BIT[name] for name in names.split())


_CODE, _LEAD, _BREAKS, _KNOWN, _PROGRAM_BIT = (BIT[name] for name in ("code", "lead", "breaks", "known", "program"))
_PASSIVE, _DET, _BACK, _STOP, _SOLE = (BIT[name] for name in ("passive", "det", "back", "stops", "sole"))
_ASKS, _WHEN, _STRONG, _SUB, _BUILDS = (BIT[name] for name in ("asks", "when", "strong", "sub", "builds"))
_OUTSIDE, _OUT_OBJECT, _OUT_PLACE, _IN_OBJECT, _IN_PLACE, _ORDER = (
    BIT[name] for name in ("outside", "out.object", "out.place", "in.object", "in.place", "order")
)
_NAMES_IT: Final = _DET | BIT["number"]
_BEFORE_VERB: Final = _bits("lead number")
_MAY_BEGIN: Final = _bits("orders leads")
_MAY_BE_PASSIVE, _MAY_BE_DONE = _PASSIVE | BIT["leads"], DONE | BIT["orders"]
_MAY_ORDER: Final = VERB | DONE | BIT["orders"]
_SMALL: Final = VERB | _BEFORE_VERB | _BREAKS | _BACK
"""Words of which an order may be that names no thing, as "Deploy." and "Ship it!"."""
_AROUND: Final = -1 << SEEN | _bits("test dry prod many own not fails")
_GOES_IN: Final = _bits("lead when")
_EVEN_BEYOND: Final = -1 << SEEN | _bits("prod many")
_MAY_LEAD: Final = ACTS | _BEFORE_VERB | BIT["when"]
_BEFORE_NOUN: Final = THING | _bits("det stops sub passive not lead code number")
"""Behind which a word that may be a verb is a noun."""
_MARKS: Final = frozenset('"\u201c\u201d\u201e\u00ab\u00bb')
_MAX_NAME: Final = 2
"""Words in quotation marks that are only a name."""
_FOREIGN: Final = VERB | THING | _AROUND | _bits("code when reads builds")


_Chunk: TypeAlias = tuple[Sequence[str], Sequence[int], int, int]
"""What stands between blanks: its words and marks, the flags of each in English, all flags, and how many are known."""


class Order(NamedTuple):
    """A clause that orders something, or a command."""

    flags: int
    written: Callable[[], str]
    """Returns it as it is written."""
    words: Sequence[str] = ()
    """Its verb and its things, by which weights are known."""

    @property
    def kind(self) -> str:
        """The class of what it orders, as far as the words go; ``command`` where only one stands in it."""
        both = self.flags & VERB & self.flags >> 2 * len(KINDS) or self.flags & VERB
        return KINDS[(both & -both).bit_length() - 1] if both else "command"


class Sentence(NamedTuple):
    """A sentence, or a line."""

    text: str
    language: Language
    words: Sequence[Sequence[str]]
    """Words and marks of what stands between blanks."""
    flags: Sequence[Sequence[int]]
    """The flags of each in English."""
    all_flags: int
    """The flags of all of it."""
    around: int
    """The flags of its orders that follow from where it stands."""
    share_known: tuple[int, int]
    """How much of it is known, and how much there is: words, or characters where there are no blanks."""

    @property
    def pasted(self) -> bool:
        """Whether somebody only shows it, in a text of his own."""
        return bool(self.around & BIT["pasted"])

    @property
    def harm(self) -> Harm | None:
        """What it asks for that is criminal, or may be meant so."""
        known, keys = lexicon().harms, self.all_flags & lexicon().keys
        while keys:
            harm = known[keys & -keys]
            if self.all_flags & harm.bits == harm.bits and harm.asked(fold(self.text)):
                return harm
            keys &= keys - 1
        return None

    def orders(self) -> Iterator[Order]:
        """Return what it orders where it stands."""
        command = _command(self.text) if self.all_flags & _PROGRAM_BIT else 0
        if command & BIT["cmd.order"]:
            yield Order(command | self.around, partial(str.strip, self.text))
        if self.all_flags & _MAY_ORDER:
            yield from (_english if self.language.english is None else _foreign)(self, command | self.around)


def sentences(text: str) -> Iterator[Sentence]:
    """Return them in order; if all of a text is pasted, nothing is. What stands there again is read once, and so are
    lines of a log that differ by their numbers."""
    pieces = list(_pieces(joined(text)))
    every = all(pasted for _, pasted in pieces)
    read = set[tuple[str, bool]]()
    for piece, copied in pieces:
        pasted = copied and not every
        same = (piece.translate(_ZEROES) if copied else piece, pasted)
        if same not in read:
            read.add(same)
            yield _sentence(piece, BIT["pasted"] if pasted else _SOLE if len(pieces) == 1 else 0)


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
_MAX_LEAD: Final = 4
"""Words of a line among which its order begins."""


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Return them in order, each with whether it is pasted, such as logs and code."""
    known = lexicon().sets
    for line, pasted in _lines(text):
        for sentence in (line,) if line.split(None, 1)[0] in known["programs"] else _END.split(line):
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
    english = lexicon().latin[0]
    for word in line.split(None, _MAX_LEAD)[:_MAX_LEAD]:
        flags = english.flags(fold(word).strip("`,:") or word)
        if not flags & _BEFORE_VERB:
            return not flags & (ACTS | _PROGRAM_BIT)
    return True


# --- words ------------------------------------------------------------------------------------------------------------


def _sentence(text: str, around: int) -> Sentence:
    known = lexicon()
    # What stands in brackets parts no verb from its place: "Run the scan (ZAP, full policy) on production".
    text = _ASIDE.sub(lambda aside: aside[0].replace(",", ""), text) if "(" in text else text
    words, flags, all_bits, counts = zip(*map(_chunk, text.split() or ("",)), strict=True)
    known_bits, language, flat = reduce(or_, all_bits), known.latin[0], list[str]()
    share = (sum(counts), sum(map(len, words)))
    # Where English knows most words, no other language has to be asked.
    if known_bits & BIT["script"] or (known_bits & BIT["strange"] and share[0] * 10 < share[1] * 7):
        flat = [*chain.from_iterable(words)]
        language = _language(flat, known_bits)
    if language.spaceless:
        parts = language.parts(fold(text))
        known_bits = reduce(or_, parts.values(), known_bits)
        share = (sum(map(len, parts)), sum(map(len, words)))
    elif language.english:
        foreign = [*map(language.flags, flat)]
        share = (sum(1 for flag in foreign if flag & _KNOWN), len(flat))
        seen = reduce(or_, (bits for bits, _ in known.seen.values() if bits & known_bits & -1 << SEEN), 0)
        known_bits = reduce(or_, language.phrased(flat, foreign)[1], seen)
    return Sentence(text, language, words, flags, known_bits, around, share)


@lru_cache(_MAX_MEMO)
def _chunk(chunk: str) -> _Chunk:
    known, words = lexicon(), words_in(chunk)
    flags = [*map(known.latin[0].flags, words)]
    if words and not (chunk.isascii() and chunk.isalpha() and chunk[1:].islower()):
        flags[0] &= ~ACTS if _NAME.match(chunk) else -1
        letters = (bits for bits, pattern in known.seen.values() if pattern.search(chunk[:_MAX_CHUNK]))
        flags[0] = reduce(or_, letters, flags[0])
        if not chunk.isascii() and any(script.search(word) for script in known.scripts.values() for word in words):
            flags[0] |= BIT["script"]
    return words, flags, reduce(or_, flags, 0), sum(1 for flag in flags if flag & _KNOWN)


def _language(words: Sequence[str], bits: int) -> Language:
    """The language of a sentence: by its letters, or that of which most words are common, or else known."""
    known, present = lexicon(), {*words}
    if bits & BIT["script"]:
        named = (name for name, pattern in known.scripts.items() if any(map(pattern.search, words)))
        return known.languages[next(named, known.latin[0].name)]
    if len(present & known.latin[0].common) * 3 >= max(len(words), 9):
        return known.latin[0]
    shares = {language.name: len(present & language.common) for language in known.latin}
    best = [language for language in known.latin if shares[language.name] == max(shares.values())]
    return max(best, key=lambda language: sum(1 for word in words if best[1:] and language.flags(word) & _KNOWN))


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _english(sentence: Sentence, around: int) -> Iterator[Order]:
    bits, language = sentence.all_flags, sentence.language
    words: Sequence[str] = [*chain.from_iterable(sentence.words)]
    flags = [*chain.from_iterable(sentence.flags)]
    begins = [0, *(at for at, flag in enumerate(flags[:-1], 1) if flag & _BREAKS)] if bits & _BREAKS else (0,)
    if not (
        bits & _ASKS
        or any(_may_begin(language, words, flags, at) for at in begins)
        or (bits & _WHEN and bits & _STRONG)
        or (bits & _MAY_BE_PASSIVE and bits & _MAY_BE_DONE and _may_be_passive(language, words, flags))
    ):
        return
    words, flags = language.phrased(words, flags)
    if not (bits & _STRONG and all(flag & _SMALL for flag in flags)):
        around &= ~_SOLE
    for places, quoted in _unquoted(words, flags) if bits & _BREAKS else ((range(len(words)), 0),):
        part = flags if len(places) == len(flags) else [flags[at] for at in places]
        bits, follows, begin = reduce(or_, part, 0), [*part[1:], 0], 0
        late = bits & _ASKS or (bits & DONE and bits & _PASSIVE)
        # What follows a preposition is of the same clause: "locally and on origin".
        breaks = [at for at, flag in enumerate(part) if flag & _BREAKS]
        for end in (*(at for at in breaks if not follows[at] & _STOP or follows[at] & _GOES_IN), len(part)):
            if begin < end and (late or part[begin] & _MAY_LEAD):
                clause = part[begin:end]
                at, verb = _verb(clause)
                if verb & VERB:
                    first, last, place = places[begin], places[end - 1], places[begin + at]
                    order, tail = _clause(clause, at, verb, in_two=" " in words[place])
                    # "Refund dialog: keep the amount" orders what stands behind; "Offboard Tom: mail, VPN" does not.
                    if end + 2 not in breaks and end < len(part) and follows[end] & _MAY_LEAD:
                        order |= BIT["heading"] if words[places[end]] == ":" else 0
                    things = (
                        places[begin + offset]
                        for offset, flag in enumerate(clause[:tail])
                        if flag & THING and offset != at
                    )
                    named = {f"noun {words[thing].removesuffix('s')}" for thing in things}
                    written = partial(_written, sentence, words, first, last + 1)
                    yield Order(order | quoted | around, written, (f"verb {words[place]}", *named))
            begin = end + 1


def _may_begin(language: Language, words: Sequence[str], flags: Sequence[int], at: int) -> bool:
    """Whether an order may begin there."""
    while flags[at] & _BEFORE_VERB and at + 1 < len(flags):
        at += 1
    return bool(flags[at] & VERB or (flags[at] & _MAY_BEGIN and language.begins_phrase(*words[at : at + 2])))


def _may_be_passive(language: Language, words: Sequence[str], flags: Sequence[int]) -> bool:
    """Whether something may have to be done."""
    return any(
        (flag & _PASSIVE or language.begins_phrase(*words[at : at + 2]))
        and any(later & _MAY_BE_DONE for later in flags[at : at + 2 * _MAX_PASSIVE])
        for at, flag in enumerate(flags)
        if flag & _MAY_BE_PASSIVE
    )


def _unquoted(words: Sequence[str], flags: list[int]) -> Iterator[tuple[Sequence[int], int]]:
    """Return the places of what stands outside of quotation marks, and in each pair of them. A word or two in them are
    a name, which orders nothing."""
    outside, begin = list[int](), 0
    marks = [at for at, word in enumerate(words) if word in _MARKS]
    for opens, closes in zip(marks[::2], marks[1::2], strict=False):
        if closes - opens <= _MAX_NAME + 1:
            flags[opens], flags[closes] = BIT["number"], 0
            flags[opens + 1 : closes] = [flag & ~ACTS for flag in flags[opens + 1 : closes]]
        else:
            outside += range(begin, opens)
            begin = closes + 1
            # Who writes all of his text in quotation marks quotes nobody.
            shown = any(not flags[at] & _BEFORE_VERB for at in (*range(opens), *range(begin, len(flags))))
            yield range(opens + 1, closes), BIT["quoted"] if shown else 0
    yield (*outside, *range(begin, len(words))), 0


def _written(sentence: Sentence, words: Sequence[str], begin: int, end: int) -> str:
    """What stands between blanks of which these words are."""
    owners = [number for number, chunk in enumerate(sentence.words) for _ in chunk]
    first, stop = (sum(1 + word.count(" ") for word in words[:at]) for at in (begin, end))
    return " ".join(sentence.text.split()[owners[first] : owners[stop - 1] + 1]).strip(" .,;!?")


def _verb(flags: Sequence[int]) -> tuple[int, int]:
    """Return where the verb of a clause is, and its flags: one with which it begins, that says what is to be done, that
    is asked for, or behind a condition, as in "if they pass deploy it"."""
    start = next(
        (at for at, flag in enumerate(flags) if not flag & _BEFORE_VERB or (flag & ACTS and not flag & _LEAD)), 0
    )
    if not flags[start] & _LEAD and flags[start] & ACTS:
        return start, flags[start] & ACTS
    for place in (at for at, flag in enumerate(flags) if flag & _PASSIVE):
        for there in range(place, min(len(flags), place + _MAX_PASSIVE)):
            if flags[there] & DONE:
                return there, flags[there] >> len(KINDS) & VERB
    for at, (before, flag) in enumerate(pairwise(flags), 1):
        behind = flags[start] & _WHEN and at > start + 1 and flag & _STRONG and not before & _BEFORE_NOUN
        if flag & VERB and not flag & _LEAD and (before & _ASKS or behind):
            return at, flag & ACTS
    return 0, 0


def _clause(flags: Sequence[int], place: int, verb: int, *, in_two: bool) -> tuple[int, int]:
    """Return the flags of a clause in which that verb is an order, and where its words of reason or time begin.

    in_two: whether the verb is two words, as "turn off"."""
    thing = given = beyond = last = tail = 0
    for at in range(place + 1, len(flags)):
        flag = flags[at]
        if tail or (flag & _SUB and at > place + 1):
            tail, beyond = tail or at, beyond | flag
        elif given or flag & _STOP:
            given |= flag
        else:
            thing, last = thing | flag, flag
    after = thing | given
    rest = reduce(or_, flags[:place], after) if place else after
    things = rest & THING or beyond & THING
    order = _ORDER | verb | flags[place] & _STRONG | (rest | flags[place]) & _AROUND | beyond & _EVEN_BEYOND | things
    in_object, in_place = thing >> 2 * len(KINDS) & verb, given >> 2 * len(KINDS) & verb
    order |= (_IN_OBJECT if in_object else 0) | (_IN_PLACE if in_place else 0)
    order |= (_OUT_OBJECT if thing & _OUTSIDE else 0) | (_OUT_PLACE if given & _OUTSIDE else 0)
    if order & _BUILDS and (in_object or in_place):
        order ^= _BUILDS | (0 if order & _STRONG else BIT["builds.pair"])
    if not flags[place] & ACTS & verb:
        order |= _PASSIVE
    elif place + 1 == len(flags):
        order |= BIT["alone"]
    else:
        order |= _DET if in_two or flags[place + 1] & _NAMES_IT else BIT["bare"]
    if not things:
        order |= BIT["nothing"] | (_BACK if place + 1 == len(flags) or after & _BACK else 0)
    if rest & _CODE:
        if in_place if thing & _CODE else in_object:
            order |= BIT["code.given" if thing & _CODE else "code.aside"]
        else:
            order |= BIT["code.last" if last & _CODE else "code.object" if thing & _CODE else "code.else"]
    return order, tail or len(flags)


# --- other languages: an order is a verb and a thing in one part of a sentence ----------------------------------------


def _foreign(sentence: Sentence, around: int) -> Iterator[Order]:
    bits = sentence.all_flags
    for part in _parts(sentence) if bits & _BREAKS | bits & BIT["when"] else (bits,):
        if part & VERB:
            pair = "f.pair" if part & VERB & part >> 2 * len(KINDS) else "f.cross" if part & THING else "nothing"
            clause = BIT["order"] | BIT["foreign"] | BIT[pair] | (part | bits & -1 << SEEN) & _FOREIGN | around & ~_SOLE
            yield Order(clause, partial(str.strip, sentence.text, " .,;!?"))


def _parts(sentence: Sentence) -> Iterator[int]:
    """Return the flags of each part of a sentence, without what stands behind "when" and its like. A part begins with a
    verb behind a mark or an "and"; if it names no thing, it means that of the part before."""
    if sentence.language.spaceless:
        return iter((sentence.all_flags,))
    words: Sequence[str] = [*chain.from_iterable(sentence.words)]
    words, flags = sentence.language.phrased(words, [*map(sentence.language.flags, words)])
    parts, is_aside = [0], False
    for word, flag, follows in zip(words, flags, (*flags[1:], 0), strict=True):
        if flag & _BREAKS and word not in _MARKS:
            is_aside = False
            if follows & ACTS:
                parts.append(0)
        is_aside = is_aside or bool(flag & BIT["when"] and parts[-1] & VERB)
        parts[-1] |= 0 if is_aside else flag
    return (part | (0 if part & THING else before & THING) for before, part in zip((0, *parts), parts, strict=False))


# --- commands ---------------------------------------------------------------------------------------------------------

_CLAUSE: Final = regex(r"[,:(]\s|@[\w-]+\s|\s(?:and|then|und|et|y|e|i|en|dann)\s")
_WORD: Final = regex(r"[\w:']+")
_MARK: Final = regex('["\u201c\u201d\u201e\u00ab\u00bb]')
_QUOTES_PROSE: Final = regex(r"(?<!\")[\w:]\s+[\"\u201c\u201e\u00ab][^\"\u201d\u00bb]*$")
"""Behind words, and not behind a key of JSON."""
_TELLS_ON: Final = regex(r"^([^'\"]*?),\s.*")
_QUOTED: Final = regex(r"'[^']*'|\"[^\"]*\"")


@lru_cache(maxsize=500)
def _command(text: str) -> int:
    """Whether a command stands there that acts on others, and whether it is ordered or only spoken of."""
    known = lexicon().sets
    begins = text.split(None, 1)[0]
    is_line = begins in known["programs"] and (begins not in known["plain"] or " -" in text)
    for command in commands_in(_TELLS_ON.sub(r"\1", f"$ {text}") if is_line else text):
        if " " in command.text and any(act.kind in known["risky"] for act in command.acts):
            before = "" if is_line else text[: command.start]
            behind = text[command.end :] if command.in_code and not is_line else command.text
            return BIT["cmd.order" if _ordered(before, behind) else "cmd.named"]
    return 0


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
