"""How risky a clause is by its words: the sum of the weights of its features, which were fitted to labelled texts."""

import json
import pkgutil
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import repeat
from typing import Final

from claudomator_py.risk.lexicon import BIT, KINDS, SEEN, THING, VERB, lexicon
from claudomator_py.risk.reading import Order

WEIGHTS: Final = "weights.json"
_SURE: Final = BIT["cmd.order"] | BIT["sole"]
_ONLY_SHOWN: Final = BIT["pasted"] | BIT["quoted"] | BIT["heading"] | BIT["test"] | BIT["not"]
"""Of a command: it is not meant to be run, or where it harms nobody."""
_ROUNDED: Final = 1e-6
"""Weights have three decimals: what is nearer to none than that comes of adding them in another order."""
_APART: Final = frozenset({"reads", "builds", "code", "own", "not", "fails", "when", "strong"})
"""What means something else in other languages, where it may be said of any word of a sentence."""


def is_risky(order: Order) -> bool:
    """Return whether the weights of its flags are more than none. A command that is ordered needs no other words,
    and neither does a verb that acts on others whatever the thing, where no more is said."""
    if order.flags & _SURE and not order.flags & _ONLY_SHOWN:
        return True
    return _sum(order.flags) + sum(map(weights().get, order.words, repeat(0.0))) >= -_ROUNDED


def features(order: Order) -> frozenset[str]:
    """Return the names of all its flags, by which weights are known."""
    return _names(order.flags).union(order.words)


@lru_cache(maxsize=20_000)
def _sum(flags: int) -> float:
    return sum(weights().get(name, 0.0) for name in _names(flags)) + weights()["bias"]


def _names(flags: int) -> frozenset[str]:
    # A verb that acts on this very thing is no verb of another class.
    matched = flags & VERB & flags >> 2 * len(KINDS)
    others = flags & ~(VERB | THING) if matched else flags
    named = {name for name, bit in BIT.items() if others & bit}
    named |= {name for name, (bits, _) in lexicon().seen.items() if flags & bits & -1 << SEEN}
    apart = {f"f.{name}" if flags & BIT["foreign"] else f"e.{name}" for name in named & _APART}
    return frozenset(named - _APART | apart | {f"match:{kind}" for kind in KINDS if matched & BIT[f"v:{kind}"]})


@cache
def weights() -> Mapping[str, float]:
    """Return the weights that come with Claudomator."""
    return dict[str, float](json.loads(pkgutil.get_data("claudomator_py.risk", WEIGHTS) or b"{}"))
