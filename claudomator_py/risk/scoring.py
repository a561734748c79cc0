"""How risky a clause is by its words: the sum of the weights of its features, which were fitted to labelled texts."""

import json
import pkgutil
from collections.abc import Iterator, Mapping, Sequence, Sized
from functools import cache, lru_cache
from itertools import product
from typing import Final, TypeAlias

from claudomator_py.risk.folding import joined
from claudomator_py.risk.lexicon import KINDS, ROLE
from claudomator_py.risk.pieces import pieces
from claudomator_py.risk.reading import BIT, Order, Sentence, read

WEIGHTS: Final = "weights.json"
_ZEROES: Final = str.maketrans("123456789", "000000000")
"""So that lines of a log, which differ by their numbers, are read once."""
_SURE: Final = BIT["cmd.order"] | BIT["sole"]
_ONLY_SHOWN: Final = BIT["pasted"] | BIT["quoted"] | BIT["heading"] | ROLE["test"] | ROLE["not"]
"""Of a command: it is not meant to be run, or where it harms nobody."""
_PROD: Final = ROLE["prod"] | BIT["prod.beside"] | BIT["prod.before"]
_ROUNDED: Final = 1e-6
"""Weights have three decimals: what is nearer to none than that comes of adding them in another order."""
_BOTH: Final = {**BIT, **{name: ROLE[name] for name in ("test", "prod", "many")}}
_APART: Final = {name: bit for name, bit in ROLE.items() if bit <= ROLE["strong"] and name not in _BOTH}
"""What means something else in other languages, where it may be said of any word of a sentence."""


Read: TypeAlias = tuple[str, bool, Sentence, Sequence[Order]]
"""A sentence, whether it is pasted, what it says, and what it orders where it stands."""


def sentences(text: str, seen: Sized = (), enough: int = 1) -> Iterator[Read]:
    """Return them in order; if all of a text is pasted, nothing is. Once enough is seen, one is read for harm only."""
    found = list(pieces(joined(text)))
    every = all(pasted for _, pasted in found)
    known, before = dict[str, Sentence](), 0
    for said, copied in found:
        key = said.translate(_ZEROES) if copied else said
        sentence = known.get(key)
        if sentence is None:
            sentence = known[key] = read(said, for_harm=len(seen) >= enough, sole=len(found) == 1)
        pasted, orders = copied and not every, sentence.orders
        if orders and (more := before | (BIT["pasted"] if pasted else 0)):
            orders = [one._replace(tells=one.tells | more) for one in orders]
        yield said, pasted, sentence, orders
        if sentence.in_use and not pasted:
            before = BIT["prod.before"]


def is_risky(order: Order) -> bool:
    """Return whether the weights of what it tells are more than none. A command that is ordered needs no other words,
    and neither does a verb that acts on others whatever the thing, where no more is said."""
    if order.tells & _SURE and not order.tells & _ONLY_SHOWN:
        return True
    return _sum(order.tells) + sum(weights().get(name, 0.0) for name in order.words) >= -_ROUNDED


def features(order: Order) -> frozenset[str]:
    """Return the names of all that it tells, by which weights are known."""
    return _names(order.tells).union(order.words)


@lru_cache(maxsize=20_000)
def _sum(tells: int) -> float:
    return sum(weights().get(name, 0.0) for name in _names(tells)) + weights()["bias"]


def _names(tells: int) -> frozenset[str]:
    verbs, things = ([kind for number, kind in enumerate(KINDS) if tells >> place + number & 1] for place in (0, 12))
    found = {name for name, bit in _BOTH.items() if tells & bit}
    found |= {f"{'f' if tells & BIT['foreign'] else 'e'}.{name}" for name, bit in _APART.items() if tells & bit}
    found |= {f"v:{one}" for one in verbs} | {f"t:{one}" for one in things}
    found |= {f"v:{verb}&t:{thing}" for verb, thing in product(verbs, things)}
    return frozenset(found | {f"v:{one}&prod" for one in verbs if tells & _PROD})


@cache
def weights() -> Mapping[str, float]:
    """Return the weights that come with Claudomator."""
    found: Mapping[str, float] = json.loads(pkgutil.get_data("claudomator_py.risk", WEIGHTS) or b"{}")
    return found
