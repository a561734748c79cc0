"""How risky a clause is by its words: the sum of the weights of its features, which were fitted to labelled texts."""

import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import product
from typing import Final, NamedTuple

from claudomator_py.risk.folding import joined
from claudomator_py.risk.lexicon import KINDS, ROLE, lexicon
from claudomator_py.risk.pieces import TextPart, pieces
from claudomator_py.risk.reading import BIT, Order, Sentence, read
from claudomator_py.values import regex

WEIGHTS: Final = "weights.json"
_ZEROES: Final = str.maketrans("123456789", "000000000")
"""So that lines of a log, which differ by their numbers, are read once."""
_MAX_BEFORE: Final = 5
"""Sentences before in which is looked for what "it" is."""
_ALONE: Final = BIT["alone"] | BIT["back"]
"""Of an order: it names no thing, as "Deploy." and "Ship it!"."""
_COMMAND: Final = BIT["cmd.order"] | BIT["sole"]
_ONLY_SHOWN: Final = BIT["pasted"] | BIT["quoted"] | BIT["heading"] | ROLE["test"] | ROLE["not"]
"""Of a command: it is not meant to be run, or where it harms nobody."""
_PROD: Final = ROLE["prod"] | BIT["prod.beside"] | BIT["prod.before"]
_MAY_BE_SEEN: Final = regex(r"[^\w\s,]|[\d_]|[a-z][A-Z]")
"""Letters and marks without any of which nothing of ``[seen]`` is in a clause."""
_ROUNDED: Final = 1e-6
_NAMED: Final = {**BIT, **{name: ROLE[name] for name in ("test", "prod", "many")}}


class Read(NamedTuple):
    """A sentence of a text, and what it orders, each as it is in the text."""

    piece: TextPart
    sentence: Sentence
    orders: list[Order]


def sentences(text: str, enough: Callable[[], bool] = lambda: False) -> Iterator[Read]:
    """Return them in order. "It" stands for what the sentence before spoke of. enough: from when on a sentence is read
    for harm only."""
    found = list(pieces(joined(text)))
    known: dict[str, Sentence] = {}
    before, in_use = list[int](), 0
    for piece in found:
        said = piece.text.translate(_ZEROES) if piece.logged else piece.text
        sentence = known.get(said)
        if sentence is None:
            sentence = known[said] = read(said, for_harm=enough())
        orders = []
        for order in sentence.orders:
            tells = order.tells | in_use | (BIT["pasted"] if piece.pasted else 0)
            if len(found) == 1 and tells & ROLE["strong"] and tells & _ALONE:
                follows = tells & BIT["after.order"] or len(order.text) * 2 > len(piece.text)
                tells |= BIT["sole"] if follows else 0
            if tells & BIT["nothing"] and tells & BIT["back"]:
                tells |= next(filter(None, reversed(before)), 0) >> 12
            orders.append(order if tells == order.tells else order._replace(tells=tells))
        yield Read(piece, sentence, orders)
        if not piece.pasted:
            before = [*before[1 - _MAX_BEFORE :], sentence.speaks]
            in_use = in_use or (BIT["prod.before"] if sentence.in_use else 0)


def is_risky(order: Order) -> bool:
    """Return whether the weights of what it tells are more than none. A command that is ordered needs no other words,
    and neither does a verb that acts on others whatever the thing, where no more is said."""
    if order.tells & _COMMAND and not order.tells & _ONLY_SHOWN:
        return True
    words = sum(weights().get(name, 0.0) for name in _words(order))
    known = _sum(order.tells) + words
    least, most = bounds(order.tells)
    if known + least > _ROUNDED or known + most < -_ROUNDED:
        return known > 0
    # Weights have three decimals: what is nearer to none than that comes of adding them in another order.
    return _sum(_with_seen(order)) + words >= -_ROUNDED


def features(order: Order) -> frozenset[str]:
    """Return the names of all that it tells, by which weights are known."""
    return _names(_with_seen(order)) | _words(order)


def _words(order: Order) -> frozenset[str]:
    verb = [f"verb {order.verb}"] if order.verb else []
    return frozenset([*verb, *(f"noun {noun}" for noun in order.nouns)])


def _with_seen(order: Order) -> int:
    """What it tells, with what is seen in its letters."""
    tells, text = order.tells, order.text
    if not _MAY_BE_SEEN.search(text):
        return tells
    for name, pattern in lexicon().seen.items():
        if pattern.search(text):
            tells |= _seen(name)
    return tells


@lru_cache(maxsize=20_000)
def _sum(tells: int) -> float:
    known = weights()
    return sum(known.get(name, 0.0) for name in _names(tells)) + known["bias"]


@lru_cache(maxsize=20_000)
def bounds(tells: int) -> tuple[float, float]:
    """Return what the letters of a clause can add to the sum of what it tells, at least and at most."""
    adds = [_sum(tells | _seen(name)) - _sum(tells) for name in lexicon().seen]
    return sum(one for one in adds if one < 0), sum(one for one in adds if one > 0)


@cache
def _seen(name: str) -> int:
    what, _, kind = name.partition(":")
    return BIT[what] | (1 << 18 + KINDS.index(kind) if kind else 0)


def _names(tells: int) -> frozenset[str]:
    found = {name for name, bit in _NAMED.items() if tells & bit}
    verbs, things, its = (
        [kind for number, kind in enumerate(KINDS) if tells >> place + number & 1] for place in (0, 18, 6)
    )
    found |= {f"v:{one}" for one in verbs} | {f"t:{one}" for one in things} | {f"i:{one}" for one in its}
    found |= {f"v:{verb}&t:{thing}" for verb, thing in product(verbs, things)}
    found |= {f"v:{one}&i" for one in verbs if one in its}
    found |= {f"v:{one}&prod" for one in verbs if tells & _PROD}
    found |= {f"v:{one}&sum" for one in verbs if tells & BIT["sum"]}
    if tells & BIT["foreign"]:
        beside = ("reads", "builds", "code", "own", "not", "fails", "when")
        found |= {"f.nothing"} if tells & BIT["nothing"] else set()
        return frozenset(found | {f"f.{name}" for name in beside if tells & ROLE[name]})
    roles = {
        "strong": "strong",
        "own": "own",
        "not": "not",
        "fails": "fails",
        "reads": "also.read",
        "builds": "also.build",
    }
    return frozenset(found | {told for name, told in roles.items() if tells & ROLE[name]})


@cache
def weights() -> Mapping[str, float]:
    """Return the weights that come with Claudomator."""
    found: Mapping[str, float] = json.loads(pkgutil.get_data("claudomator_py.risk", WEIGHTS) or b"{}")
    return found
