"""How risky a clause is by its words: the sum of the weights of its features, which were fitted to labelled texts."""

import json
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from claudomator_py.risk.folding import joined
from claudomator_py.risk.pieces import TextPart, pieces
from claudomator_py.risk.reading import Clause, Sentence, read, spoken_of

WEIGHTS: Final = "weights.json"
_ZEROES: Final = str.maketrans("123456789", "000000000")
"""So that lines of a log, which differ by their numbers, are read once."""

_MAX_BEFORE: Final = 5
"""Sentences before in which is looked for what "it" is."""
_IN_USE: Final = frozenset({"prod", "prod.beside"})
_ONLY_SHOWN: Final = frozenset({"pasted", "quoted", "test", "not", "heading"})
"""Of a command: it is not meant to be run, or where it harms nobody."""
_NO_MORE: Final = frozenset({"alone", "back"})
"""Of an order: it names no thing, as "Deploy." and "Ship it!"."""


class Read(NamedTuple):
    """A sentence of a text, and its clauses that order something, each with its features in the text."""

    piece: TextPart
    sentence: Sentence
    orders: list[tuple[Clause, frozenset[str]]]


def sentences(text: str) -> Iterator[Read]:
    """Return them in order. "It" stands for what the sentence before spoke of."""
    found = list(pieces(joined(text)))
    before, in_use = list[str](), False
    for piece in found:
        sentence = read(piece.text.translate(_ZEROES) if piece.logged else piece.text)
        orders = []
        for clause in sentence.clauses:
            more = {"pasted"} if piece.pasted else set()
            follows = "after.order" in clause.features or len(clause.text) * 2 > len(piece.text)
            if len(found) == 1 and follows and "strong" in clause.features and _NO_MORE & clause.features:
                more.add("sole")
            if in_use:
                more.add("prod.before")
            if in_use or not _IN_USE.isdisjoint(clause.features):
                more |= {f"{name}&prod" for name in clause.features if name[:2] == "v:" and "&" not in name}
            if "nothing" in clause.features and "back" in clause.features:
                it = next(filter(None, map(spoken_of, reversed(before))), frozenset[str]())
                more |= {f"i:{kind}" for kind in it}
                more |= {f"v:{kind}&i" for kind in it if f"v:{kind}" in clause.features}
            orders.append((clause, clause.features | more))
        yield Read(piece, sentence, orders)
        if not piece.pasted:
            before = [*before[1 - _MAX_BEFORE :], piece.text] if sentence.speaks else before
            in_use = in_use or sentence.in_use


def score(features: frozenset[str]) -> float:
    """Return the sum of their weights; from 0 on a clause is risky. A command that is ordered needs no other words, and
    neither does a verb that acts on others whatever the thing, where no more is said."""
    known = weights()
    if ("cmd.order" in features or "sole" in features) and features.isdisjoint(_ONLY_SHOWN):
        return 1.0
    return sum(known.get(name, 0.0) for name in features) + known["bias"]


@cache
def weights() -> Mapping[str, float]:
    """Return the weights that come with Claudomator."""
    found: Mapping[str, float] = json.loads(pkgutil.get_data("claudomator_py.risk", WEIGHTS) or b"{}")
    return found
