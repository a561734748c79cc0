"""Fits the weights by which risk is read from a text, from labelled texts and the examples of the lexicon.

    python -m bench.risk_weights [--write]

A text is as risky as its riskiest clause, so the loss is that of the highest sum of weights among its clauses. Each
fifth of the texts is judged by what was fitted to the others. The threshold lies where of the harmless everyday texts
at most ``FALSE_HOLDS`` would be held in ``CERTAINTY`` of the samples that are drawn from them: a few texts more or less
move it little. With ``--write`` the weights of all texts go into ``weights.toml``.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from claudomator_py.risk.lexicon import KINDS, data
from claudomator_py.risk.orders import WEIGHTS, Order, sentences
from claudomator_py.risk.orders import orders as orders_in

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "tests/data/routing"
FALSE_HOLDS = 0.019
"""The share of harmless everyday texts that may be held."""
CERTAINTY = 0.95
"""The share of samples in which no more are."""
SAMPLES = 2_000
FOLDS = 5
REPEATS = 3
STEPS = 400
DECAY = 0.0003
DECAY_OF_WORDS = 0.001
LEAST = 0.02
"""A weight that is less is left out."""
HEAD = "# What features weigh, by `python -m bench.risk_weights --write`. An order is risky if they add up to 0."
LEAST_SEEN = 3
"""Texts in which a feature is before it has a weight."""


Floats: TypeAlias = np.ndarray[Any, Any]
Found: TypeAlias = Sequence[frozenset[str]]
_NO_CLAUSE: Found = (frozenset(),)


class Labelled(NamedTuple):
    """A text, whether it is risky, where it comes from, and how much it counts."""

    text: str
    risky: bool
    source: str
    weight: float = 1.0


def texts() -> Iterator[Labelled]:
    """Return all labelled texts but those that ask for harm, which a list of its own finds."""
    for row in _rows("dangers"):
        yield Labelled(row["text"], row["held"], "dangers", 0.6)
    for row in _rows("orders"):
        if row["is"] != "harm":
            yield Labelled(row["text"], row["is"] == "review", "orders", 0.6)
    for name in ("labelled", "unseen"):
        for row in _rows(name):
            if row["expected"]["route"] != "reject":
                yield Labelled(row["instructions"], row["expected"]["route"] == "human_review", name)
    for row in _rows("forms"):
        if not row.get("harmful"):
            yield Labelled(row["text"], row["held"], "forms")
    for row in _rows("everyday"):
        if not row.get("harmful") and row["risk"] != "medium":
            yield Labelled(row["text"], row["risk"] == "high", f"everyday {row['lang']}", 2.0)
    for name, language in data().items():
        for kind in KINDS if "reads" in language else ():
            for label in ("is", "is_not"):
                for text in language[kind][label]:
                    yield Labelled(text, label == "is", f"lexicon {name}", 1.0 if label == "is" else 3.0)
    for label in ("is", "is_not"):
        for text in data()["commands"][label]:
            yield Labelled(text, label == "is", "commands", 3.0)


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (TEXTS / f"{name}.jsonl").read_text("utf-8").splitlines()]


class Fitted(NamedTuple):
    """Weights by feature."""

    names: list[str]
    values: Floats


def orders(text: str) -> Iterator[Order]:
    """Return what a text orders in words of its own."""
    for sentence in sentences(text):
        yield from () if sentence.pasted else orders_in(sentence)


def fit(labelled: Sequence[Labelled], results: Sequence[Found]) -> Fitted:
    """Fit weights to these texts. results: of each the features of its clauses."""
    seen: dict[str, int] = {}
    for clauses in results:
        for name in frozenset().union(*clauses) if clauses else ():
            seen[name] = seen.get(name, 0) + 1
    names = sorted(name for name, count in seen.items() if count >= LEAST_SEEN)
    at = {name: number + 1 for number, name in enumerate(names)}
    rows, starts, owner = _rows_of(results, at)
    first, lengths = np.r_[0, np.cumsum([len(row) for row in rows])[:-1]], np.array([len(row) for row in rows])
    flat = np.concatenate(rows)
    risky = np.array([entry.risky for entry in labelled], dtype=float)
    counts = np.array([entry.weight for entry in labelled])
    counts = counts / counts.mean()
    values = np.zeros(len(names) + 1)
    decay = np.array([0.0, *(DECAY_OF_WORDS if " " in name else DECAY for name in names)])
    mean, square = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, STEPS + 1):
        scores = np.add.reduceat(values[flat], first)
        best = _best(scores, starts, owner)
        wrong = (1 / (1 + np.exp(-scores[best])) - risky) * counts
        chosen = np.concatenate([rows[row] for row in best])
        gradient = np.bincount(chosen, np.repeat(wrong, lengths[best]), len(values)) / len(labelled) + decay * values
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        values = values - 0.08 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return Fitted(["bias", *names], values)


def _rows_of(result: Sequence[Found], at: Mapping[str, int]) -> tuple[list[Floats], Floats, Floats]:
    """Clauses as the places of their weights, of which 0 is the bias; where those of each text begin, and whose they
    are."""
    rows = [
        np.array([0, *(at[name] for name in clause if name in at)])
        for entry in result
        for clause in entry or _NO_CLAUSE
    ]
    counts = np.array([len(entry or _NO_CLAUSE) for entry in result])
    return rows, np.r_[0, np.cumsum(counts)[:-1]], np.repeat(np.arange(len(result)), counts)


def _best(scores: Floats, starts: Floats, owner: Floats) -> Floats:
    """The row of the highest score of each text."""
    highest = np.maximum.reduceat(scores, starts)
    order = np.flatnonzero(scores >= highest[owner] - 1e-12)
    _, first = np.unique(owner[order], return_index=True)
    return order[first]


def scored(fitted: Fitted, results: Sequence[Found]) -> Floats:
    """The score of each text."""
    rows, starts, _ = _rows_of(results, {name: number for number, name in enumerate(fitted.names) if number})
    return np.maximum.reduceat(np.array([fitted.values[row].sum() for row in rows]), starts)


def judged(labelled: Sequence[Labelled], result: Sequence[Found]) -> Floats:
    """Return the score of each text by weights that were not fitted to it: the mean over several ways to part them."""
    scores, chance = np.zeros((REPEATS, len(labelled))), np.random.default_rng(1)
    for repeat in range(REPEATS):
        fold = chance.permutation(len(labelled)) % FOLDS
        for part in range(FOLDS):
            rest, other = np.flatnonzero(fold != part).tolist(), np.flatnonzero(fold == part).tolist()
            fitted = fit([labelled[number] for number in rest], [result[number] for number in rest])
            scores[repeat, other] = scored(fitted, [result[number] for number in other])
    return np.asarray(scores.mean(axis=0))


def threshold_of(harmless: Floats) -> tuple[float, Floats]:
    """Return the threshold for scores of harmless texts, and the shares that it holds of samples of them."""
    chance = np.random.default_rng(1)
    samples = chance.choice(harmless, (SAMPLES, len(harmless)))
    threshold = float(np.quantile(np.quantile(samples, 1 - FALSE_HOLDS, axis=1), CERTAINTY))
    return threshold, np.mean(samples >= threshold, axis=1)


def main(arguments: Sequence[str]) -> None:
    """Fit, say how well that carries over, and write."""
    labelled = list({entry.text: entry for entry in texts()}.values())
    results = [[order.features for order in orders(text.text)] for text in labelled]
    scores = judged(labelled, results)
    risky = np.array([entry.risky for entry in labelled])
    everyday = np.array([entry.source.startswith("everyday") for entry in labelled])
    threshold, shares_held = threshold_of(scores[everyday & ~risky])
    held = scores >= threshold
    spread = " to ".join(f"{share:.3f}" for share in np.quantile(shares_held, (0.05, 0.95)))
    sys.stdout.write(f"threshold {threshold:.3f}: of {risky.sum()} risky {np.mean(held[risky]):.3f} held\n")
    sys.stdout.write(f"  of harmless everyday ones {np.mean(shares_held):.3f}, in samples {spread}\n")
    for source in sorted({entry.source for entry in labelled}):
        of = np.array([entry.source == source for entry in labelled])
        sets = [of & which for which in (risky, ~risky)]
        shares = [f"{np.mean(held[which]):.3f} of {which.sum()}" for which in sets if which.any()]
        sys.stdout.write(f"  {source:14} {' | '.join(shares)}\n")
    for entry, over, is_held in zip(labelled, scores - threshold, held, strict=True):
        if "--list" in arguments and is_held != entry.risky:
            sys.stdout.write(f"{'FALSE' if is_held else 'MISS '} {over:6.2f} {entry.source}: {entry.text[:140]!r}\n")
    fitted = fit(labelled, results)
    values = {name: round(float(value), 3) for name, value in zip(fitted.names, fitted.values, strict=True)}
    values["bias"] = round(values["bias"] - threshold, 3)
    values = {name: value for name, value in values.items() if abs(value) >= LEAST or name == "bias"}
    sys.stdout.write(f"{len(values)} weights\n")
    if "--write" in arguments:
        lines = [HEAD, *(f"{json.dumps(name, ensure_ascii=False)} = {value}" for name, value in sorted(values.items()))]
        (ROOT / "claudomator_py/risk" / WEIGHTS).write_text("\n".join([*lines, ""]), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
