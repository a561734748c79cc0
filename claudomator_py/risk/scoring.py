"""How risky a clause is by its words: the sum of the weights of its features, which were fitted to labelled texts."""

import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Final, NamedTuple

from claudomator_py.risk.folding import joined
from claudomator_py.risk.lexicon import KINDS, ROLE, lexicon
from claudomator_py.risk.pieces import TextPart, pieces
from claudomator_py.risk.reading import BIT, Order, Sentence, read

WEIGHTS: Final = "weights.json"
_ZEROES: Final = str.maketrans("123456789", "000000000")
"""So that lines of a log, which differ by their numbers, are read once."""
_ALONE: Final = BIT["alone"] | BIT["back"]
"""Of an order: it names no thing, as "Deploy." and "Ship it!"."""
_COMMAND: Final = BIT["cmd.order"] | BIT["sole"]
_ONLY_SHOWN: Final = BIT["pasted"] | BIT["quoted"] | BIT["heading"] | ROLE["test"] | ROLE["not"]
"""Of a command: it is not meant to be run, or where it harms nobody."""
_PROD: Final = ROLE["prod"] | BIT["prod.beside"] | BIT["prod.before"]
_ROUNDED: Final = 1e-6
"""Weights have three decimals: what is nearer to none than that comes of adding them in another order."""
_NAMED: Final = {**BIT, **{name: ROLE[name] for name in ("test", "prod", "many")}}
_FOREIGN: Final = {f"f.{name}": ROLE[name] for name in ("reads", "builds", "code", "own", "not", "fails", "when")}
_ENGLISH: Final = {name: ROLE[name] for name in ("strong", "own", "not", "fails")} | {
    "also.read": ROLE["reads"],
    "also.build": ROLE["builds"],
}


class Read(NamedTuple):
    """A sentence of a text, and what it orders, each as it is in the text."""

    piece: TextPart
    sentence: Sentence
    orders: Sequence[Order]


def sentences(text: str, enough: Callable[[], bool] = lambda: False) -> Iterator[Read]:
    """Return them in order. enough: from when on a sentence is read for harm only."""
    found = list(pieces(joined(text)))
    known: dict[str, Sentence] = {}
    in_use = 0
    for piece in found:
        said = piece.text.translate(_ZEROES) if piece.logged else piece.text
        sentence = known.get(said)
        if sentence is None:
            sentence = known[said] = read(said, for_harm=enough())
        orders = sentence.orders
        if orders:
            pasted = BIT["pasted"] if piece.pasted else 0
            orders = [one._replace(tells=one.tells | in_use | pasted) for one in orders]
            if len(found) == 1:
                orders = [one._replace(tells=one.tells | _sole(one, piece.text)) for one in orders]
        yield Read(piece, sentence, orders)
        if sentence.in_use and not piece.pasted:
            in_use = BIT["prod.before"]


def _sole(order: Order, text: str) -> int:
    """Whether it is all that is said: a verb that acts on others whatever the thing, with none, as in "Deploy."."""
    if not (order.tells & ROLE["strong"] and order.tells & _ALONE):
        return 0
    return BIT["sole"] if order.tells & BIT["after.order"] or len(order.text) * 2 > len(text) else 0


def is_risky(order: Order) -> bool:
    """Return whether the weights of what it tells are more than none. A command that is ordered needs no other words,
    and neither does a verb that acts on others whatever the thing, where no more is said."""
    if order.tells & _COMMAND and not order.tells & _ONLY_SHOWN:
        return True
    return _sum(order.tells) + sum(weights().get(name, 0.0) for name in _words(order)) >= -_ROUNDED


def features(order: Order) -> frozenset[str]:
    """Return the names of all that it tells, by which weights are known."""
    return _names(order.tells).union(_words(order))


def _words(order: Order) -> Iterator[str]:
    if order.verb:
        yield f"verb {order.verb}"
    for noun in order.nouns:
        yield f"noun {noun}"


@lru_cache(maxsize=20_000)
def _sum(tells: int) -> float:
    return sum(weights().get(name, 0.0) for name in _names(tells)) + weights()["bias"]


def _names(tells: int) -> frozenset[str]:
    for name in lexicon().seen:
        what, _, kind = name.partition(":")
        tells |= 1 << 18 + KINDS.index(kind) if kind and tells & BIT[what] else 0
    found = {name for name, bit in _NAMED.items() if tells & bit}
    verbs, things = ([kind for number, kind in enumerate(KINDS) if tells >> place + number & 1] for place in (0, 18))
    found |= {f"v:{one}" for one in verbs} | {f"t:{one}" for one in things}
    found |= {f"v:{verb}&t:{thing}" for verb, thing in product(verbs, things)}
    found |= {f"v:{one}&prod" for one in verbs if tells & _PROD}
    if tells & BIT["foreign"] and tells & BIT["nothing"]:
        found.add("f.nothing")
    also = _FOREIGN if tells & BIT["foreign"] else _ENGLISH
    return frozenset(found).union(name for name, bit in also.items() if tells & bit)


@cache
def weights() -> Mapping[str, float]:
    """Return the weights that come with Claudomator."""
    found: Mapping[str, float] = json.loads(pkgutil.get_data("claudomator_py.risk", WEIGHTS) or b"{}")
    return found
