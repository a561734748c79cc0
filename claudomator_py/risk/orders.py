"""What a sentence orders, and how risky that is: the sum of the weights of its features, fitted to labelled texts."""

import json
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from claudomator_py.risk.commands import has_command
from claudomator_py.risk.lexicon import ACTS, KINDS, NONE, Names, Word
from claudomator_py.risk.reading import Sentence

WEIGHTS: Final = "weights.json"
CONTEXT: Final = frozenset({"code", "outside", "test", "dry", "prod", "many", "own", "not", "fails", "when"})
"""What the words of a clause say of it, wherever they stand."""
_STRONG: Final = frozenset({"strong"})
_SURE: Final = frozenset({"command", "sole"})
_SHOWN: Final = frozenset({"test", "not"})
"""What makes a command harmless: it is not to be run, or where nobody is harmed."""
_BEFORE_VERB: Final = frozenset({"lead", "number"})
_NAMES: Final = frozenset({"det", "number"})
_SMALL: Final = frozenset({"lead", "number", "breaks", "back"})
_MAX_PASSIVE: Final = 6
"""Words behind "has to be" within which is what has to be done."""
_ROUNDED: Final = 1e-6
"""Weights have three decimals: what is nearer to nothing than that comes of adding them in another order."""


class Order(NamedTuple):
    """A clause that orders something, or a command."""

    text: str
    features: Names
    verbs: Names = NONE
    things: Names = NONE
    """The classes of its verb, and of what it names."""

    @property
    def kind(self) -> str:
        """The class of what it orders; ``command`` for a command."""
        return next((kind for kind in KINDS if kind in (self.verbs & self.things or self.verbs)), "command")

    @property
    def is_risky(self) -> bool:
        """Whether it is sure to be, or the weights of its features add up to more than nothing."""
        known = weights()
        adds = sum([known[name] for name in self.features if name in known]) + known["bias"]
        return adds >= -_ROUNDED or not _SURE.isdisjoint(self.features)


@cache
def weights() -> Mapping[str, float]:
    """Return the weights that come with Claudomator, by feature."""
    return dict[str, float](json.loads(pkgutil.get_data("claudomator_py.risk", WEIGHTS) or b"{}"))


def orders(sentence: Sentence) -> Iterator[Order]:
    """Yield what a sentence orders."""
    if not [word for word in sentence.words if word.acts]:
        return
    words, begin = sentence.language.joined(sentence.words), 0
    tags = NONE.union(*[word.tags for word in words])
    if "program" in tags and tags.isdisjoint(_SHOWN) and has_command(sentence.text):
        yield Order(sentence.text, frozenset({"command"}))
    # "Deploy." and "Ship it!" name no thing, and yet are orders if nothing else is said.
    sole = sentence.sole and "strong" in tags and all(word.verbs or word.tags & _SMALL for word in words)
    is_english = sentence.language.is_english
    for end in [at for at, word in enumerate(words) if "breaks" in word.tags] + [len(words)]:
        if end + 1 < len(words) and not _begins_clause(words[end + 1], is_english):
            continue
        clause, begin = words[begin:end], end + 1
        if order := _english(clause) if is_english else _foreign(clause):
            # As it is written: without blanks around its marks, and between words of languages that have none.
            text = order.text if order.text in sentence.text else sentence.text
            yield order._replace(text=text, features=order.features | {"sole"} if sole else order.features)


def _begins_clause(word: Word, is_english: bool) -> bool:
    """Whether a clause begins with a word behind a mark or an "and": not, in English, with a preposition ("locally and
    on origin"), and in other languages only with a verb."""
    acts = bool(word.verbs or word.tags & ACTS)
    return acts or (is_english and ("stops" not in word.tags or not word.tags.isdisjoint({"lead", "when"})))


def _english(clause: Sequence[Word]) -> Order | None:
    """An English order begins with its verb, or says what has to be done."""
    at = 0
    while at < len(clause) and not clause[at].tags.isdisjoint(_BEFORE_VERB):
        at += 1
    if at < len(clause) and clause[at].verbs:
        form = "alone" if at + 1 == len(clause) else "bare" if clause[at + 1].tags.isdisjoint(_NAMES) else "det"
        manner = clause[at].tags & (_STRONG if "strong" in clause[at].tags else ACTS)
        return _order(clause, at, clause[at].verbs, manner | {form, "phrase" if " " in clause[at].folded else form})
    for begin in [begin for begin, word in enumerate(clause) if "passive" in word.tags]:
        for at in range(begin, min(len(clause), begin + _MAX_PASSIVE)):
            if clause[at].done:
                return _order(clause, at, clause[at].done, NONE | {"passive"})
    return None


def _foreign(clause: Sequence[Word]) -> Order | None:
    """In other languages the verb may be anywhere."""
    verbs = NONE.union(*[word.verbs for word in clause])
    manner = NONE.union(*[word.tags for word in clause]) & ACTS
    return _order(clause, None, verbs, manner | {"foreign"}) if verbs else None


def _order(clause: Sequence[Word], at: int | None, verbs: Names, features: Names) -> Order:
    """Return the order of a clause. at: where the verb is, if that is no more than a verb."""
    others = clause if at is None else [*clause[:at], *clause[at + 1 :]]
    things = NONE.union(*[word.things for word in others])
    features = features | NONE.union(*[word.tags for word in others]) & CONTEXT
    if things:
        features |= {"thing", *[f"noun {word.folded.removesuffix('s')}" for word in others if word.things]}
    text = " ".join([word.text for word in clause])
    return Order(text, features if verbs.isdisjoint(things) else features | {"match"}, verbs, things)
