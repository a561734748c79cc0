"""Whether a sentence can order anything at all, by one look at each of its words: most of a long text cannot.

What is screened out has no order, no command and no harm in it, so length and company hide nothing.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, reduce
from itertools import takewhile
from operator import or_
from typing import Any, Final, NamedTuple

from claudomator_py.risk.harm import harms
from claudomator_py.risk.lexicon import ENGLISH, lexicon

_TOKEN: Final = re.compile(
    r"[^\W_]+(?:['\u2019][^\W_]+)*|[,:](?!\S)|[()\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*&]|(?<=\s)-+(?=\s)|-->"
)
_MAX_MEMO: Final = 50_000
_FAR: Final = 6
"""Words between "needs" and what is needed."""


# What a word may do in a sentence, as bits.
DOES: Final = 1  # an order's verb, at the beginning of a clause
DONE: Final = 2  # an order's verb in another form: "needs to be deleted", "by deleting"
LEADS: Final = 4  # before the verb of an order, as "please"
ASKS: Final = 8  # something is to be done, as it says: "needs", "get"
BREAKS: Final = 16  # another clause begins behind it
PROGRAM: Final = 32
FOREIGN: Final = 64  # a verb of another language
KNOWN: Final = 128  # known in English
COMMON: Final = 256  # one of the commonest there
HARM: Final = 512  # a word, or the first of several, by which harm is told
ABOUT: Final = 1_024  # something that can be done harm to
IN_USE: Final = 2_048  # it says that people use something
FIRST: Final = 4_096  # the first of several words which tell something together


class _Words(dict[str, int]):
    """What each word tells, found out once."""

    def __missing__(self, word: str) -> int:
        if len(self) > _MAX_MEMO:
            self.clear()
        known, plain = _known(), word.replace("\u2019", "'")
        told = known.exact.get(plain, 0 if plain[0].isalnum() else BREAKS)
        for length in known.lengths:
            if length > len(plain):
                break
            told |= known.prefixes.get(plain[:length], 0)
        self[word] = told | KNOWN if plain[0].isdigit() else told
        return self[word]


_WORDS: Final = _Words()


def tokens(folded: str) -> list[str]:
    """Return the words of a folded sentence, and the marks between its clauses."""
    return _TOKEN.findall(folded)


def tells(said: Sequence[str]) -> int:
    """Return what all of these tell together."""
    told = reduce(or_, map(_WORDS.__getitem__, said), 0)
    if told & FIRST:
        phrases = _known().phrases
        for place, word in enumerate(said[:-1]):
            if _WORDS[word] & FIRST:
                for *between, last, flags in phrases[word]:
                    end = place + 1 + len(between)
                    if end < len(said) and said[end].startswith(last) and said[place + 1 : end] == between:
                        told |= flags
    return told


def are_known(said: Sequence[str]) -> tuple[int, int]:
    """Return how many of the words are known in English or numbers, and how many words there are."""
    told = [_WORDS[word] for word in said if word[0].isalnum()]
    return sum(bool(one & KNOWN) for one in told), len(told)


def may_order(said: Sequence[str], all_of_it: int) -> bool:
    """Whether one of the clauses may be an order. all_of_it: what its words tell."""
    if all_of_it & (FOREIGN | DOES) and not is_english(said):
        return True
    if not all_of_it & (DOES | DONE):
        return False
    begins, left, before, earlier = True, 0, "", ""
    asking = _known().asking
    for word in said:
        told = _WORDS[word]
        if told & BREAKS:
            begins, left = True, 0
        elif begins:
            if told & DOES:
                return True
            begins = bool(told & LEADS) or word[-1].isdigit()
        if told & DONE and (left or before == "by"):
            return True
        if told & DOES and (earlier, before) in asking:
            return True
        left = _FAR if told & ASKS else max(0, left - 1)
        earlier, before = before, word.replace("\u2019", "'")
    return False


def is_english(said: Sequence[str]) -> bool:
    """Whether so many words are common ones of English that no other language is thought of."""
    words = {word for word in said if word[0].isalnum()}
    common = sum(bool(_WORDS[word] & COMMON) for word in words)
    return common >= 3 and common * 3 >= len(words)


class _Vocabulary(NamedTuple):
    """What words and beginnings of words tell, of all languages that are spelt in letters of Latin."""

    exact: dict[str, int]
    prefixes: dict[str, int]
    lengths: list[int]
    phrases: dict[str, list[Any]]
    """By first word: the words behind it, of which the last may go on, and what they tell together."""
    asking: frozenset[tuple[str, str]]
    """The last two words of what asks for something in the middle of a clause: "you need to"."""


@cache
def _known() -> _Vocabulary:
    exact, prefixes, (lead, ask) = Counter[str](), Counter[str](), lexicon().leads
    phrases: dict[str, list[Any]] = {}

    def put(word: str, flags: int, *rest: str) -> None:
        exact[word] |= flags & (DOES | DONE | FOREIGN) if rest else flags
        if rest and flags & (ABOUT | IN_USE | HARM):
            exact[word] |= FIRST
            phrases.setdefault(word, []).append((*takewhile("_".__ne__, rest), flags & (ABOUT | IN_USE | HARM)))

    for key in harms().keys:
        if len(key) > 1:
            put(key[0], HARM, *key[1:])
        else:
            prefixes[key[0]] |= HARM
    for name, language in lexicon().languages.items():
        roles, of_all = (_ROLES, KNOWN) if name == ENGLISH else (_FOREIGN, 0)
        if name not in lexicon().scripts:
            for word, marks in language.exact.items():
                put(word, reduce(or_, (roles.get(mark.role, 0) for mark in marks), of_all))
            for stem, marks in language.stems.items():
                prefixes[stem] |= reduce(or_, (roles.get(mark.role, 0) for mark in marks), 0)
            for first, found in language.phrases.items():
                for one in found:
                    put(first, roles.get(one.mark.role, 0), *one.rest)
    for flag, words in (
        (COMMON | KNOWN, lexicon().languages[ENGLISH].words),
        (LEADS, {word for one in lead for word in one}),
        (ASKS, {one[-1] for one in ask}),
        (BREAKS, ("and", "then", "but", "or", "so")),
        (PROGRAM, lexicon().sets["begin"]),
    ):
        for word in words:
            put(word, flag)
    asking = frozenset((one[-2], one[-1]) for one in lead if len(one) > 1)
    return _Vocabulary(exact, prefixes, sorted({len(one) for one in prefixes}), phrases, asking)


_ROLES: Final = {"verb": DOES, "done": DONE, "doing": DONE, "thing": ABOUT, "prod": IN_USE}
_FOREIGN: Final = {"verb": FOREIGN, "thing": ABOUT, "prod": IN_USE}
