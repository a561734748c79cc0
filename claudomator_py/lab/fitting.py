"""Fitting what scores mean for an encoder on labelled tasks, and how well that does on tasks it was not fitted on.

Each parameter is moved alone, from what holds so far, and only where clearly more tasks go right; the thresholds are
where most do. What a set cannot tell stays: it says nothing of how specialists have done, or how lately.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from claudomator_py.domain.card import Card
from claudomator_py.domain.encoder import Encoder
from claudomator_py.domain.vectors import Vector
from claudomator_py.lab.evaluation import Evaluation, Words, space_of
from claudomator_py.lab.labelled_set import Case
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.lessons import NO_PERFORMANCE, keyword_in
from claudomator_py.routing.ranking import DIGITS
from claudomator_py.values import dataclass

MIN_TASKS: int = 40
"""Labelled tasks, below which figures are chance."""
_MIN_OF_A_SORT = 10
"""Tasks for somebody, and tasks for nobody, below which no threshold between them is to be had."""
FOLDS = 5
_ROUNDS = 2
_CLEARLY = 0.5
"""Times the root of the number of tasks: how many more have to go right for a parameter to move. That is the standard
error of how many do, at its largest; the rule of one standard error is that of Breiman and others (1984)."""
_BATCH_SIZE = 256
"""Tasks that are encoded in one call."""
_THRESHOLD_DIGITS = 4

Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]


class Fit(BaseModel):
    """What was fitted, and what is to be expected of it. No times are told."""

    model_config = ConfigDict(frozen=True)

    calibration: Calibration
    kept: tuple[str, ...]
    """Thresholds that the set cannot tell, and that stay as they were."""
    before: Evaluation
    """With what held before, on all labelled tasks."""
    in_sample: Evaluation
    """On the tasks that it was fitted on: better than what is to be expected."""
    expected: Evaluation
    """On tasks that it was not fitted on: each fifth of them, fitted on the others."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Labelled tasks, each compared with each card once; scores follow from this for any parameters."""

    own: Vector
    """How alike a task is to what each card says as a whole: tasks x cards."""
    card: Vector
    """The same of all its skills together; of its own text for a card without any."""
    skill: Vector
    """The same of the card's best skill."""
    words: Vector
    """How alike words alone are: tasks x cards; 0 where they are not compared."""
    keyword: Flags
    """Whether one of the card's keywords is in the task: tasks x cards."""
    right: Flags
    """Whether the card is a right one."""
    floors: Scores
    """Threshold of the card's own; NaN: none."""
    leads: Scores
    """Lead of each card, in shares of the threshold."""

    @property
    def inside(self) -> Flags:
        """Whether the task is for somebody."""
        inside: Flags = np.any(self.right, axis=1)
        return inside

    def of(self, which: Flags) -> "_Sample":
        """These tasks alone."""
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
    """To whom each task of a sample goes."""

    best: Scores
    """The best score."""
    floor: Scores
    """Threshold of the best card's own; NaN: none."""
    top: Flags
    """Whether the best card is a right one."""
    chosen: Flags
    """Whether the one that is chosen is, if anybody is."""


def fit(
    cards: Sequence[Card],
    cases: Sequence[Case],
    encoder: Encoder,
    start: Calibration,
    words: Encoder | None = None,
) -> Fit:
    """Return what fits the labelled tasks best, from ``start``. words: by which words may be compared beside. Raises
    ValueError for a set that tells nothing."""
    labelled = [case for case in cases if case.expected is not None]
    if not cards:
        raise ValueError("there are no cards to compare tasks with")
    if len(labelled) < MIN_TASKS:
        raise ValueError(f"it has {len(labelled)} labelled tasks, and {MIN_TASKS} are the least that tell anything")
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
    """A fold for each task: always the same, and with as much of each label in one as in another."""
    by_label = defaultdict(list)
    for at, case in enumerate(cases):
        by_label[tuple(sorted(case.expected or ()))].append(at)
    folds, turn = np.zeros(len(cases), dtype=np.intp), 0
    for label in sorted(by_label):
        for at in sorted(by_label[label], key=lambda one: hashlib.sha256(cases[one].id.encode()).digest()):
            folds[at], turn = turn % FOLDS, turn + 1
    return folds


_SEARCH: Sequence[tuple[Callable[[Calibration, float], Calibration], Sequence[float]]] = (
    (lambda one, value: one.model_copy(update={"own_share": value}), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
    (lambda one, value: one.model_copy(update={"card_share": value}), (0.0, 0.1, 0.2, 0.3, 0.4)),
    (lambda one, value: _with(one, words=value), (0.0, 0.2, 0.3, 0.4, 0.5, 0.6)),
    (lambda one, value: _with(one, keyword=value), (0.0, 0.05, 0.1, 0.15)),
    (lambda one, value: one.model_copy(update={"margin": value}), (0.0, 0.005, 0.01, 0.02, 0.03)),
)
"""What is tried, in this order: parameters, and the values of each."""


def _with(one: Calibration, **changed: float) -> Calibration:
    """With these weights, and the rest of them all for ``semantic``."""
    weights = one.weights.model_copy(update=changed)
    rest = round(1 - weights.words - weights.keyword - weights.performance - weights.recency, DIGITS)
    return one.model_copy(update={"weights": weights.model_copy(update={"semantic": max(0.0, rest)})})


def _fitted(sample: _Sample, start: Calibration) -> tuple[Calibration, tuple[str, ...]]:
    """With the name of the threshold, if that stays as it was."""
    found, right = start, _reach(sample, start)
    for _ in range(_ROUNDS):
        for changed, values in _SEARCH:
            reached = [(_reach(sample, option), option) for option in (changed(found, value) for value in values)]
            most, option = max(reached, key=lambda one: one[0])  # of equal ones the first
            if most - right > _CLEARLY * len(sample.right) ** 0.5:
                found, right = option, most
    return _with_threshold(sample, found)


def _reach(sample: _Sample, calibration: Calibration) -> int:
    """How many tasks go right, with the thresholds that suit them."""
    return _threshold(sample, _outcome(sample, calibration))[1]


def _with_threshold(sample: _Sample, calibration: Calibration) -> tuple[Calibration, tuple[str, ...]]:
    outcome, inside = _outcome(sample, calibration), np.count_nonzero(sample.inside)
    if min(inside, len(sample.inside) - inside) < _MIN_OF_A_SORT:
        return calibration.model_copy(update={"guessed": False}), ("threshold",)
    found = {"threshold": _threshold(sample, outcome)[0], "guessed": False}
    return calibration.model_copy(update=found), ()


def _threshold(sample: _Sample, outcome: _Outcome) -> tuple[float, int]:
    """The threshold with which most tasks go right, and how many. Of equally good ones, that which is furthest from any
    score: it stands between two of them, and the next task is near either."""
    free = np.isnan(outcome.floor)
    over = outcome.best >= outcome.floor
    settled = np.count_nonzero(~free & np.where(over, outcome.chosen, ~sample.inside))
    order = np.argsort(outcome.best[free], kind="stable")
    scores = outcome.best[free][order].clip(0.0, 1.0)
    gone = np.concatenate(([0], np.cumsum(~sample.inside[free][order])))  # right below the threshold
    kept = np.concatenate(([0], np.cumsum(outcome.chosen[free][order][::-1])))[::-1]  # right from it on
    edges = np.concatenate(([0.0], scores, [1.0]))
    right = np.where(np.diff(edges) > 0, gone + kept, -1)  # no threshold tells equal scores apart
    at = int(max(range(len(right)), key=lambda one: (right[one], edges[one + 1] - edges[one])))
    return round(float(edges[at] + edges[at + 1]) / 2, _THRESHOLD_DIGITS), int(right[at]) + int(settled)


def _scores(sample: _Sample, calibration: Calibration) -> Scores:
    """As ``ranking.rank`` makes them of the same parameters, of specialists of whom nothing is known."""
    own, card, weights = calibration.own_share, calibration.card_share, calibration.weights
    alike = own * sample.own.astype(np.float64) + card * sample.card + (1 - own - card) * sample.skill
    rest = round(weights.performance * NO_PERFORMANCE, DIGITS) + weights.keyword * sample.keyword
    beside = np.round(weights.words * sample.words.astype(np.float64), DIGITS)
    scores: Scores = np.round(np.round(weights.semantic * alike, DIGITS) + beside + rest, DIGITS)
    return scores


def _outcome(sample: _Sample, calibration: Calibration, least: Scores | None = None) -> _Outcome:
    """least: of each card for each task, below which it is not chosen though it is near the best; None: any is."""
    scores = _scores(sample, calibration)
    tasks, first = np.arange(len(scores)), np.argmax(scores, axis=1)
    best = scores[tasks, first]
    if sample.leads.any() and scores.shape[1] > 1:
        second = np.partition(scores, -2, axis=1)[:, -2]
        # What is not clearly the best card's goes to nobody in particular.
        best = np.where(best - second < sample.leads[first] * calibration.threshold, -1.0, best)
    near = scores[tasks, first][:, np.newaxis] - scores <= calibration.margin
    if least is not None:
        near &= scores >= least
    near[tasks, first] = True
    told = np.where(near, scores + calibration.tie_break.keyword * sample.keyword, -np.inf)
    chosen = np.argmax(np.round(told, DIGITS), axis=1)
    return _Outcome(best, sample.floors[first], sample.right[tasks, first], sample.right[tasks, chosen])


def _decided(sample: _Sample, calibration: Calibration) -> Flags:
    """Of each task: whether the best card is right, whether it goes to somebody, and whether that one is right."""
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
