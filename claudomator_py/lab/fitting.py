"""Fitting of an encoder's calibration to labelled tasks, with cross-validation.

The search is coordinate-wise: each parameter in turn moves only if clearly more tasks go right, and the threshold is
set where most do. The weights of performance and recency stay, as a labelled set has no history.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from claudomator_py.domain.card import Card
from claudomator_py.lab.evaluation import Words, space_of
from claudomator_py.lab.figures import Evaluation
from claudomator_py.lab.labelled_set import Case
from claudomator_py.ports import Encoder
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.lessons import NO_PERFORMANCE, keyword_in
from claudomator_py.routing.ranking import DIGITS
from claudomator_py.routing.space import Vector
from claudomator_py.values import dataclass

MIN_TASKS: int = 40
"""The minimum of labelled tasks: below it figures are chance."""
_MIN_OF_A_SORT = 10
"""The minimum of in-scope and of out-of-scope tasks for fitting a threshold between them."""
FOLDS = 5
_ROUNDS = 2
_CLEARLY = 0.5
"""Multiplied by the root of the number of tasks: how many more tasks must go right for a parameter to move. This is
the largest standard error of that number, for the one-standard-error rule of Breiman et al. (1984)."""
_BATCH_SIZE = 256
"""Tasks encoded in one call."""
_THRESHOLD_DIGITS = 4

Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]


class Fit(BaseModel, frozen=True):
    """A fitted calibration and its figures, without latencies."""

    calibration: Calibration
    kept: tuple[str, ...]
    """Thresholds that the set cannot determine, and that are unchanged."""
    before: Evaluation
    """The former calibration on all labelled tasks."""
    in_sample: Evaluation
    """The new calibration on the tasks it was fitted to, which is optimistic."""
    expected: Evaluation
    """The cross-validated figures: each fifth of the tasks, fitted to the others."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Labelled tasks compared with all cards once, from which scores follow for any parameters."""

    own: Vector
    """Likeness of task and card as a whole: tasks x cards."""
    card: Vector
    """Likeness to all the card's skills together, or to its own text if it has none: tasks x cards."""
    skill: Vector
    """Likeness to the card's best skill: tasks x cards."""
    words: Vector
    """Likeness by the encoder of words: tasks x cards; 0 if it is not used."""
    keyword: Flags
    """Whether the task contains one of the card's keywords: tasks x cards."""
    right: Flags
    """Whether the card is a right one: tasks x cards."""
    floors: Scores
    """The cards' own thresholds: cards; NaN: none."""
    leads: Scores
    """The cards' required leads, as shares of the threshold: cards."""

    @property
    def inside(self) -> Flags:
        """Whether the task is in scope: tasks."""
        inside: Flags = np.any(self.right, axis=1)
        return inside

    def of(self, which: Flags) -> "_Sample":
        """Return the sample restricted to these tasks."""
        return replace(
            self,
            own=self.own[which],
            card=self.card[which],
            words=self.words[which],
            skill=self.skill[which],
            keyword=self.keyword[which],
            right=self.right[which],
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The choice for each task of a sample, before any threshold."""

    best: Scores
    """The best score, or -1 if its lead is too small."""
    floor: Scores
    """The best card's own threshold; NaN: none."""
    top: Flags
    """Whether the best card is a right one."""
    chosen: Flags
    """Whether the card chosen after tie-breaking is a right one."""


def fit(
    cards: Sequence[Card], cases: Sequence[Case], encoder: Encoder, start: Calibration, words: Encoder | None = None
) -> Fit:
    """Return the calibration that fits the labelled tasks best, searching from ``start``. words: an encoder of words
    to be used in addition. Raises ValueError if there are no cards or too few labelled tasks."""
    labelled = [case for case in cases if case.expected is not None]
    if not cards:
        raise ValueError("there are no cards to compare tasks with")
    if len(labelled) < MIN_TASKS:
        raise ValueError(f"the set has {len(labelled)} labelled tasks; at least {MIN_TASKS} are needed")
    sample = _sampled(sorted(cards, key=lambda card: card.id), labelled, encoder, start, words)
    fitted, kept = _fitted(sample, start)
    folds, held_out = _folds(labelled), np.zeros((len(labelled), 3), dtype=bool)
    for fold in range(FOLDS):
        away = folds == fold
        held_out[away] = _decided(sample.of(away), _fitted(sample.of(~away), start)[0])
    return Fit(
        calibration=fitted,
        kept=kept,
        before=_figures(sample, _decided(sample, start), start),
        in_sample=_figures(sample, _decided(sample, fitted), fitted),
        expected=_figures(sample, held_out, fitted),
    )


def _sampled(
    cards: Sequence[Card], cases: Sequence[Case], encoder: Encoder, start: Calibration, words: Encoder | None
) -> _Sample:
    space = space_of(cards, encoder, start)
    own, card, skill = np.zeros((3, len(cases), len(cards)), dtype=np.float32)
    for first in range(0, len(cases), _BATCH_SIZE):
        some = cases[first : first + _BATCH_SIZE]
        for at, vector in enumerate(encoder.encode([case.request.compared for case in some]), first):
            own[at], card[at], skill[at] = space.compared(vector)
    texts = [case.request.compared for case in cases]
    return _Sample(
        own=own,
        card=card,
        skill=skill,
        words=_by_words(cards, cases, None if words is None or words.id == encoder.id else words),
        keyword=_flags([[keyword_in(text, card.keywords) is not None for card in cards] for text in texts]),
        right=_flags([[card.id in (case.expected or ()) for card in cards] for case in cases]),
        floors=np.array([np.nan if card.threshold is None else card.threshold for card in cards], dtype=np.float64),
        leads=np.array([card.lead for card in cards], dtype=np.float64),
    )


def _by_words(cards: Sequence[Card], cases: Sequence[Case], encoder: Encoder | None) -> Vector:
    rows = np.zeros((len(cases), len(cards)), dtype=np.float32)
    if encoder is not None:
        words = Words(cards, encoder)
        for row, case in zip(rows, cases, strict=True):
            alike = words.likeness(case.request)
            row[:] = [alike[card.id].semantic for card in cards]
    return rows


def _flags(values: Sequence[object]) -> Flags:
    return np.array(values, dtype=bool)


def _folds(cases: Sequence[Case]) -> npt.NDArray[np.intp]:
    """Assign each task to a fold, deterministically and stratified by label."""
    by_label = defaultdict(list)
    for at, case in enumerate(cases):
        by_label[tuple(sorted(case.expected or ()))].append(at)
    folds, turn = np.zeros(len(cases), dtype=np.intp), 0
    for label in sorted(by_label):
        for at in sorted(by_label[label], key=lambda index: hashlib.sha256(cases[index].id.encode()).digest()):
            folds[at], turn = turn % FOLDS, turn + 1
    return folds


_SEARCH: Sequence[tuple[Callable[[Calibration, float], Calibration], Sequence[float]]] = (
    (lambda fitted, value: fitted.model_copy(update={"own_share": value}), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
    (lambda fitted, value: fitted.model_copy(update={"card_share": value}), (0.0, 0.1, 0.2, 0.3, 0.4)),
    (lambda fitted, value: _with(fitted, words=value), (0.0, 0.2, 0.3, 0.4, 0.5, 0.6)),
    (lambda fitted, value: _with(fitted, keyword=value), (0.0, 0.05, 0.1, 0.15)),
    (lambda fitted, value: fitted.model_copy(update={"margin": value}), (0.0, 0.005, 0.01, 0.02, 0.03)),
)
"""The parameters in the order of the search, each with the values that are tried."""


def _with(calibration: Calibration, **changed: float) -> Calibration:
    """Return the calibration with these weights; ``semantic`` takes the remainder."""
    weights = calibration.weights.model_copy(update=changed)
    rest = round(1 - weights.words - weights.keyword - weights.performance - weights.recency, DIGITS)
    return calibration.model_copy(update={"weights": weights.model_copy(update={"semantic": max(0.0, rest)})})


def _fitted(sample: _Sample, start: Calibration) -> tuple[Calibration, tuple[str, ...]]:
    """Return the fitted calibration, and the names of thresholds that could not be fitted."""
    best, right = start, _reach(sample, start)
    for _ in range(_ROUNDS):
        for changed, values in _SEARCH:
            reached = [(_reach(sample, option), option) for option in (changed(best, value) for value in values)]
            most, option = max(reached, key=lambda pair: pair[0])  # the first among equals
            if most - right > _CLEARLY * len(sample.right) ** 0.5:
                best, right = option, most
    return _with_threshold(sample, best)


def _reach(sample: _Sample, calibration: Calibration) -> int:
    """Return how many tasks go right with the best threshold."""
    return _threshold(sample, _outcome(sample, calibration))[1]


def _with_threshold(sample: _Sample, calibration: Calibration) -> tuple[Calibration, tuple[str, ...]]:
    outcome, inside = _outcome(sample, calibration), np.count_nonzero(sample.inside)
    if min(inside, len(sample.inside) - inside) < _MIN_OF_A_SORT:
        return calibration.model_copy(update={"guessed": False}), ("threshold",)
    changes = {"threshold": _threshold(sample, outcome)[0], "guessed": False}
    return calibration.model_copy(update=changes), ()


def _threshold(sample: _Sample, outcome: _Outcome) -> tuple[float, int]:
    """Return the threshold with which most tasks go right, and how many do. Among equally good ones it is the middle
    of the widest gap between scores, which generalises best."""
    free = np.isnan(outcome.floor)
    over = outcome.best >= outcome.floor
    settled_count = np.count_nonzero(~free & np.where(over, outcome.chosen, ~sample.inside))
    order = np.argsort(outcome.best[free], kind="stable")
    scores = outcome.best[free][order].clip(0.0, 1.0)
    gone = np.concatenate(([0], np.cumsum(~sample.inside[free][order])))  # right below the threshold
    kept = np.concatenate(([0], np.cumsum(outcome.chosen[free][order][::-1])))[::-1]  # right from it on
    edges = np.concatenate(([0.0], scores, [1.0]))
    right = np.where(np.diff(edges) > 0, gone + kept, -1)  # no threshold tells equal scores apart
    at = int(max(range(len(right)), key=lambda index: (right[index], edges[index + 1] - edges[index])))
    return round(float(edges[at] + edges[at + 1]) / 2, _THRESHOLD_DIGITS), int(right[at]) + int(settled_count)


def _scores(sample: _Sample, calibration: Calibration) -> Scores:
    """Return the scores that ``ranking.rank`` would compute for specialists without a history: tasks x cards."""
    own, card, weights = calibration.own_share, calibration.card_share, calibration.weights
    alike = own * sample.own.astype(np.float64) + card * sample.card + (1 - own - card) * sample.skill
    rest = round(weights.performance * NO_PERFORMANCE, DIGITS) + weights.keyword * sample.keyword
    beside = np.round(weights.words * sample.words.astype(np.float64), DIGITS)
    scores: Scores = np.round(np.round(weights.semantic * alike, DIGITS) + beside + rest, DIGITS)
    return scores


def _outcome(sample: _Sample, calibration: Calibration, least: Scores | None = None) -> _Outcome:
    """Choose a card for each task. least: minimum scores for being chosen over a near best card; None: no minimum."""
    scores = _scores(sample, calibration)
    tasks, first = np.arange(len(scores)), np.argmax(scores, axis=1)
    best = scores[tasks, first]
    if sample.leads.any() and scores.shape[1] > 1:
        second = np.partition(scores, -2, axis=1)[:, -2]
        # Without its required lead, the best card does not get the task.
        best = np.where(best - second < sample.leads[first] * calibration.threshold, -1.0, best)
    near = scores[tasks, first][:, np.newaxis] - scores <= calibration.margin
    if least is not None:
        near &= scores >= least
    near[tasks, first] = True
    tied = np.where(near, scores + calibration.tie_break.keyword * sample.keyword, -np.inf)
    chosen = np.argmax(np.round(tied, DIGITS), axis=1)
    return _Outcome(best, sample.floors[first], sample.right[tasks, first], sample.right[tasks, chosen])


def _decided(sample: _Sample, calibration: Calibration) -> Flags:
    """Return flags, tasks x 3: the best card is right, a specialist gets the task, that specialist is right."""
    least = np.where(np.isnan(sample.floors), calibration.threshold, sample.floors)[np.newaxis]
    outcome = _outcome(sample, calibration, least)
    goes = outcome.best >= np.where(np.isnan(outcome.floor), calibration.threshold, outcome.floor)
    return np.stack((np.where(goes, outcome.chosen, outcome.top), goes, outcome.chosen), axis=1)


def _figures(sample: _Sample, decided: Flags, calibration: Calibration) -> Evaluation:
    top, goes, chosen = decided.T
    inside = sample.inside
    return Evaluation(
        cases=len(inside),
        encoder=calibration.encoder,
        threshold=calibration.threshold,
        top1=_share(top[inside]),
        accuracy_with_none=_share(np.where(goes, chosen, ~inside)),
        oos_recall=_share(~goes[~inside]),
        in_scope_fallback=_share(~goes[inside]),
        wrong_agent=_share(goes & ~chosen),
    )


def _share(hits: Flags) -> float | None:
    return round(float(np.mean(hits)), 4) if len(hits) else None
