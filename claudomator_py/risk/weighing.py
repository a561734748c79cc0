"""How risky a clause is by its words: the sum of the weights of its features, which were fitted to labelled texts."""

import json
import pkgutil
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

from claudomator_py.risk.lexicon import BIT, lexicon
from claudomator_py.risk.reading import SHIFT, ZONES, Order, zoned

WEIGHTS: Final = "weights.json"
_SURE: Final = zoned(verb=BIT["command"] | BIT["sole"])
_ONLY_SHOWN: Final = zoned(every=BIT["test"] | BIT["not"])
"""Of a command: it is not meant to be run, or where it harms nobody."""
_ROUNDED: Final = 1e-6
"""Weights have three decimals: what is nearer to none than that comes of adding them in another order."""


def is_risky(order: Order) -> bool:
    """Return whether its weights are more than none. A command that is ordered needs no other words, and neither does a
    verb that acts on others whatever the thing, where no more is said."""
    if order.flags & _SURE and not order.flags & _ONLY_SHOWN:
        return True
    return _sum(order.flags) + sum(map(_of_noun, order.nouns)) >= -_ROUNDED


def features(order: Order) -> frozenset[str]:
    """Return the names of what is weighed of it."""
    return frozenset({f"noun {noun.removesuffix('s')}" for noun in order.nouns}.union(_names(order.flags)))


@lru_cache(maxsize=20_000)
def _of_noun(noun: str) -> float:
    return weights().get(f"noun {noun.removesuffix('s')}", 0.0)


@lru_cache(maxsize=20_000)
def _sum(flags: int) -> float:
    return weights()["bias"] + sum(weights().get(name, 0.0) for name in _names(flags))


def _names(flags: int) -> list[str]:
    return [name for name, bit in _features().items() if flags & bit]


@cache
def _features() -> Mapping[str, int]:
    """All features, and their bits."""
    zones = enumerate(ZONES.items())
    named = {f"{zone}.{name}": BIT[name] << at * SHIFT for at, (zone, names) in zones for name in names.split()}
    return named | {name: zoned(every=bit) for name, bit in lexicon().seen.items()}


@cache
def weights() -> Mapping[str, float]:
    """Return the weights that come with Claudomator."""
    return dict[str, float](json.loads(pkgutil.get_data("claudomator_py.risk", WEIGHTS) or b"{}"))
