"""Splits a text into sentences, of which some are only shown (logs, code, steps of a bug report), and finds what the
others order, and how risky that is: the sum of the weights of its features, fitted to labelled texts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise, repeat
from typing import Final, NamedTuple

from claudomator_py.acts.prose import commands_in
from claudomator_py.risk.harm import triggers
from claudomator_py.risk.lexicon import (
    ACTS,
    KINDS,
    MAX_MEMO,
    NONE,
    Language,
    Names,
    Word,
    data,
    entries,
    pattern,
    stems_of,
)
from claudomator_py.texts import fold, visible
from claudomator_py.values import regex, toml_data

_MARKS: Final = '"\u201c\u201d\u201e\u00ab\u00bb'
_ALL_QUOTED: Final = regex(rf"^\s*[{_MARKS}]([^{_MARKS}]{{4,}})[{_MARKS}]\s*$")
_QUOTED_PART: Final = regex(rf"(?<=[\s:])[{_MARKS}']([^{_MARKS}'\n]{{4,}})[{_MARKS}'](?!\w)")
_MAX_LEAD: Final = 60
"""Characters before a quotation that may order to do what it says."""
_SPACED: Final = regex(r"[ ._*-][^\W\d_](?:[ ._*-][^\W\d_]){2,}\b")
"""A word such as ``d e l e t e``."""
_END: Final = regex(r"[.!?\u3002\uff01\uff1f\uff1b](?:\s+|(?<![.!?]))")
_CONTINUES: Final = regex(r"[\w,)\"'`]\n(?:[a-z0-9`(\"'/]|--?\w)")
"""What may end a line that goes on in the next, and with what that begins."""
_MAX_FRAME: Final = 300
"""Characters of the line before a list that are looked at."""
_DIGITS: Final = str.maketrans("123456789", "000000000")
_MIN_SHARE, _MIN_COMMON = 0.7, 3
"""The share of known words by which a sentence is English, or its common words, if every third word is one."""


class Sentence(NamedTuple):
    """A sentence, or a line."""

    text: str
    pasted: bool
    """Whether the text only shows it."""
    sole: bool
    """Whether it is all of the text."""
    language: Language
    words: Sequence[Word]
    known: int
    """How many of its words the language knows."""
    where: Names = NONE
    """Where it takes place according to the line before its list."""


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences in order, each once, and so are lines of a log that differ by their numbers. If all of a text
    is pasted or quoted, nothing is."""
    lines = [*_lines(_QUOTED_PART.sub(_unquoted_order, _ALL_QUOTED.sub(r"\1", text)))]
    cut = [
        ([line.translate(_DIGITS)] if pasted else _END.split(line), pasted, where)
        for line, pasted, where in _framed(lines)
    ]
    pieces = dict.fromkeys([(piece, pasted, where) for pieces, pasted, where in cut for piece in pieces if piece])
    every = all(pasted for _, pasted, _ in pieces)
    for piece, pasted, where in pieces:
        yield Sentence(piece, pasted and not every, len(pieces) == 1, *_read(piece, pasted and not every), where)


def _unquoted_order(quotation: re.Match[str]) -> str:
    """Return a quotation without its marks if somebody is to do what it says, as in ``Run "drop the table"``."""
    lead = quotation.string[max(0, quotation.start() - _MAX_LEAD) : quotation.start()]
    return f": {quotation[1]}" if pattern("lines", "ordered").search(fold(lead)) else quotation[0]


def _framed(lines: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, bool, Names]]:
    """Yield lines as they are meant: the entries of a list that a text is to have are only shown, unless somebody is to
    do what they say; those of another take place where the line before it says."""
    item, before, shown, where, carried = pattern("lines", "item").match, "", False, NONE, list[bool]()
    for line, pasted in lines:
        if not item(line):
            is_heading = line[-1] in ":\uff1a" or (line[0] in "#*" and _is_reproduced(line))
            before, shown, where = line if is_heading and not pasted else "", False, NONE
        elif before:
            shown, where, before = _is_reproduced(before) or _is_frame(before), _place(before), ""
            if shown and not carried:
                is_carried = pattern("lines", "carried").search
                carried.append(any(is_carried(fold(one)) for one, pasted in lines if not pasted and not item(one)))
        yield line, pasted or (shown and not carried[0]), where


def _is_reproduced(line: str) -> bool:
    """Whether what follows the line is how a bug shows itself."""
    return pattern("lines", "reproduced").search(fold(_END.split(line[-_MAX_FRAME:])[-1])) is not None


def _is_frame(before: str) -> bool:
    """Whether the list behind that line is what a text is to say: the line orders to write or read one, no more."""
    last = _END.split(before[-_MAX_FRAME:])[-1]
    frame = pattern("lines", "frames").search(fold(last))
    if not frame or "prod" in _place(before):
        return False
    found = orders(Sentence(last, False, False, *_read(last, pasted=False)))
    others = found[1:] if frame.start() == 0 else found
    return not any(is_risky(order.features) for order in found) and all(order.features & ACTS for order in others)


def _place(before: str) -> Names:
    """Return whether a line speaks of where people are, or where nobody is harmed."""
    return NONE.union(*[word.tags for word in _read(before, pasted=False)[1]]) & _PLACES


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield lines; those over which a sentence continues are one. A block that is to be run is not only shown."""
    fenced, before, is_pasted, plain = False, "", pattern("lines", "pasted").match, list[str]()
    is_run = is_reproduced = False
    spaced = _SPACED.sub(lambda word: f" {word[0][1::2]}", f" {visible(text)}")[1:]
    for line in (*spaced.splitlines(), ""):
        bare = line.strip()
        is_fence = bare.startswith(("```", "~~~"))
        pasted = fenced or is_fence or is_pasted(line)
        if before and (pasted or not bare or not _continues(before, bare)):
            yield before, False
            before = ""
        fenced ^= is_fence
        if pasted and plain:
            is_reproduced = is_reproduced or any(map(_is_reproduced, plain))
            is_run, plain = not is_reproduced and _is_run(plain), []
        if bare and not is_fence and pasted:
            yield bare, not is_run
        elif bare and not pasted:
            before = f"{before} {bare}".lstrip()
            plain.append(bare)


def _is_run(lines: Sequence[str]) -> bool:
    """Whether these lines order to do what the block behind them says: not if a text is to have it."""
    return pattern("lines", "ordered").search(fold(lines[-1][-_MAX_LEAD:])) is not None and not any(
        _is_frame(line) for line in lines[:-1] if line[-1] in ":\uff1a"
    )


def _continues(before: str, line: str) -> bool:
    """Whether a line continues the one before: not if it begins with an order or a command."""
    if before[-1].isalpha() and fold(before.rsplit(None, 1)[-1]) in entries("wrapped", "open"):
        return True
    if not _CONTINUES.match(f"{before[-1]}\n{line}"):
        return False
    words = languages()["en"].read(line)[1]
    first = next((word for word in words if word.tags.isdisjoint({"lead", "number"})), None)
    return not first or not (first.verbs or first.tags & (ACTS | {"program"}))


@cache
def languages() -> Mapping[str, Language]:
    """Return the languages of the lexicon; English is the first."""
    keys = stems_of(triggers())
    return {name: Language(name, keys) for name, table in data().items() if "reads" in table}


def _read(sentence: str, pasted: bool) -> tuple[Language, Sequence[Word], int]:
    """Return the language of a sentence, its words, and how many are known: by its letters, else that of most of its
    common words. What is pasted orders nothing, and keys of harm are of no language."""
    if not sentence.isascii():
        folded = fold(sentence)
        for name in data()["scripts"]:
            if pattern("scripts", name).search(folded):
                return languages()[name].read(sentence)
    english, words, known = read = languages()["en"].read(sentence)
    if pasted or known >= _MIN_SHARE * len(words):
        return read
    present, (others, common) = {word.stem for word in words}, _others()
    share, elsewhere = len(present & english.common), present & common
    if share >= max(_MIN_COMMON, len(words) / 3) or len(elsewhere) < share:
        return read
    if not (elsewhere or any(_is_foreign(word.text) for word in words if not word.tags)):
        return read
    shares = [share, *[len(elsewhere & of.common) for of in others]]
    reads = [of.read(sentence) for of, known in zip((english, *others), shares, strict=True) if known == max(shares)]
    return max(reads, key=lambda of: of[2])


@cache
def _others() -> tuple[Sequence[Language], Names]:
    """Return the other languages in Latin letters, and what is common in any of them."""
    of_letters = [language for name, language in languages().items() if name not in {"en", *data()["scripts"]}]
    return of_letters, NONE.union(*[language.common for language in of_letters])


@lru_cache(MAX_MEMO)
def _is_foreign(word: str) -> bool:
    """Whether a language other than English knows a word."""
    return any(language.tags(fold(word)) for language in languages().values() if not language.is_english)


WEIGHTS: Final = "weights.toml"
_SURE: Final = frozenset({"command", "sole"})
_SHOWN: Final = frozenset({"test", "not"})
"""What makes a command harmless: it is not to be run, or where nobody is harmed."""
MANNER: Final = ACTS | {"strong"}
_PLACES: Final = frozenset({"prod", "test"})
_BEFORE_VERB: Final = frozenset({"lead", "number"})
_NAMES: Final = frozenset({"det", "number"})
_SMALL: Final = frozenset({"lead", "number", "breaks", "back"})
_CLAUSE: Final = regex(r"[,:(]\s|@[\w-]+\s|\s(?:and|then|und|et|y|e|i|en|dann)\s")
"""What parts a command from the clause before."""
_TELLS_ON: Final = regex(r"^([^'\"]*?),\s.*")
_QUOTED: Final = regex(r"'[^']*'|\"[^\"]*\"")
_WORD: Final = regex(r"[\w:']+")
_DETERMINES: Final = regex(r".*(?:\d|['\u2019]s)$").match
"""What else says which things are meant, as an article does: a number, a name with one, or whose they are."""


class Order(NamedTuple):
    """A clause that orders something, or a sentence with a command."""

    text: str
    features: Names
    verbs: Names = NONE
    things: Names = NONE
    """The classes of its verb, and of what it names."""

    @property
    def kind(self) -> str:
        """The class of what it orders; ``command`` for a command."""
        kinds = self.verbs & self.things or self.verbs
        return next((kind for kind in KINDS if kind in kinds), "command")


@lru_cache(MAX_MEMO)
def is_risky(features: Names) -> bool:
    """Return whether an order with them is sure to be risky, or their weights add up to more than nothing."""
    known = toml_data("claudomator_py.risk", WEIGHTS)
    adds: float = sum(map(known.get, features, repeat(0.0)), start=known["bias"])
    return round(adds, 3) >= 0 or not _SURE.isdisjoint(features)


def orders(sentence: Sentence) -> Sequence[Order]:
    """Return what a sentence orders."""
    acting = [word for word in sentence.words if word.acts]
    if not acting:
        return ()
    words = sentence.language.joined(sentence.words)
    # Behind a mark or an "and", a clause begins with a verb, or with what may stand before it.
    marks = [at for at, word in enumerate(words[1:]) if word.begins and "breaks" in words[at].tags]
    clauses = [words[begin + 1 : end] for begin, end in pairwise([-1, *marks, len(words)])] if marks else [words]
    orders = [order for clause in clauses if (order := _order(sentence, clause))]
    may_command = [word for word in acting if "program" in word.tags] and not any(word.tags & _SHOWN for word in words)
    if may_command and _has_command(sentence.text):
        orders.append(Order(sentence.text, frozenset({"command"})))
    # "Deploy." and "Ship it!" name no thing, and yet are orders if nothing else is said.
    is_strong = sentence.sole and any("strong" in word.tags for word in words)
    if is_strong and all(word.verbs or word.tags & _SMALL for word in words):
        return [order._replace(features=order.features | {"sole"}) for order in orders]
    return orders


def _order(sentence: Sentence, clause: Sequence[Word]) -> Order | None:
    """Return what a clause orders.

    In English it begins with its verb, or says what has to be done, and is read from there: "the servers have to be
    stopped" as "have to be stopped, the servers". Elsewhere the verb may be anywhere, and in a noun ("Mailserver").
    """
    passive = [at for at, word in enumerate(clause) if word.begins and "passive" in word.tags]
    if passive:
        clause = [*clause[passive[0] :], *clause[: passive[0]]]
    begin, is_english = 0, sentence.language.is_english
    while is_english and begin < len(clause) and not clause[begin].tags.isdisjoint(_BEFORE_VERB):
        begin += 1
    acting = clause[begin : begin + 1] if is_english else clause
    verbs = NONE.union(*[word.done if passive else word.verbs for word in acting])
    if not verbs:
        return None
    telling = [
        word
        for at, word in enumerate(clause)
        if word.features
        and (at != begin or not is_english)
        # "before 2024" says which things are meant, not when to act.
        and not ("when" in word.features and any(one.text[0].isdigit() for one in clause[at + 1 : at + 2]))
    ]
    things = NONE.union(*[word.things for word in telling])
    manner = NONE.union(*[word.tags for word in acting]) & MANNER
    form = "passive" if passive else "foreign" if not is_english else "bare"
    if form == "bare" and len(clause) > begin + 1:
        first = clause[begin + 1]
        form = "bare" if first.tags.isdisjoint(_NAMES) and not _DETERMINES(first.text) else "det"
    features = manner.union({form} if verbs.isdisjoint(things) else {form, "match"}, *[one.features for one in telling])
    features |= sentence.where
    # Shown if it is risky. As it is written, it may have no blanks around its marks or between its words.
    text = " ".join([word.text for word in clause]) if is_risky(features) else sentence.text
    return Order(text if text in sentence.text else sentence.text, features, verbs, things)


@lru_cache(maxsize=500)
def _has_command(text: str) -> bool:
    """Whether a sentence has a command run that acts on others."""
    begins = text.split(None, 1)[0]
    is_line = begins in entries("commands", "programs") and (begins not in entries("commands", "plain") or " -" in text)
    for command in commands_in(_TELLS_ON.sub(r"\1", f"$ {text}") if is_line else text):
        if " " in command.text and any(act.kind in entries("commands", "risky") for act in command.acts):
            before = "" if is_line else _CLAUSE.split(text[: command.start])[-1]
            if words := _WORD.findall(fold(before)):
                leads = entries("commands", "leads")
                return words[0] in leads | entries("commands", "in") and words[-1] in leads
            # What only speaks of a command has a verb behind it: "`npm publish` prints a warning".
            then = text[command.end :] if command.in_code and not is_line else command.text
            return entries("commands", "states").isdisjoint(_WORD.findall(_QUOTED.sub("", then.lower())))
    return False
