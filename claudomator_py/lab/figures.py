"""The figures of an evaluation of routing: how many decisions are as labelled."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from claudomator_py.domain.agent import TIERS, Tier
from claudomator_py.domain.card import Card
from claudomator_py.domain.routing import Constraints
from claudomator_py.lab.handoff_evaluation import figures, handed_over, plain, share_of
from claudomator_py.lab.labelled_set import TO_SOMEBODY, Case
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.lessons import keyword_in
from claudomator_py.routing.profile import profile_of
from claudomator_py.scheduler.records import Route, SpecialistRecord
from claudomator_py.values import regex

_SHOWN = 120
_MAX_SCORES = 3
WRONG_SPECIALIST: Final = "wrong_specialist"
"""The column of the confusion matrix for tasks that rightly went to a specialist, but to a wrong one."""
_WORD = regex(r"\w{4,}")


class Latency(BaseModel, frozen=True):
    """How long decisions take in this process, in milliseconds."""

    encode_p50: float
    score_p50: float
    p99: float
    """The 99th percentile of encoding plus scoring."""


class PerClass(BaseModel, frozen=True):
    """Precision and recall for one route or specialist."""

    cases: int
    precision: float | None = None
    """The share of the tasks sent there that belong there."""
    recall: float | None = None
    """The share of the tasks that belong there that were sent there."""


class Score(BaseModel, frozen=True):
    """A candidate's score."""

    specialist: str
    score: float


class WrongCase(BaseModel, frozen=True):
    """A case whose decision differs from its label."""

    id: str
    text: str
    """The beginning of its text."""
    expected_route: Route | None
    """None: only specialists are labelled."""
    expected: tuple[str, ...]
    """The right specialists. Empty: nobody, or not labelled."""
    route: Route
    specialist: str | None
    reason: str
    """The decision's reason in words."""
    threshold: float | None
    scores: tuple[Score, ...]
    """The scores of the best few candidates and of the right specialists."""


class TierFigures(BaseModel, frozen=True):
    """Shares of the tasks with a labelled tier that ..."""

    accuracy: float | None
    """... get an acceptable tier."""
    under: float | None
    """... get a tier weaker than any acceptable one."""
    over: float | None
    """... get a tier stronger than any acceptable one."""


class Evaluated(SpecialistRecord):
    """The decision on a case."""

    tier: Tier = Tier.BALANCED
    """The tier without a classifier: an agent's default, within the policy's constraints."""
    mentions: tuple[str, ...] = ()
    """The specialists that the text addresses, in its order."""
    constraints: Constraints = Constraints()
    """The policy's constraints on agents, tiers and tools."""


class Evaluation(BaseModel, frozen=True):
    """The figures of an evaluation: shares from 0 to 1, rounded to 1e-4. None if the set has no case to measure by."""

    cases: int
    encoder: str
    threshold: float
    top1: float | None = None
    """Of the in-scope tasks, those whose best candidate is right, whatever its score."""
    accuracy_with_none: float | None = None
    """Of all labelled tasks, those that went to a right specialist, or to nobody if they are out of scope."""
    oos_recall: float | None = None
    """Of the out-of-scope tasks, those that went to nobody."""
    in_scope_fallback: float | None = None
    """Of the in-scope tasks, those that went to nobody."""
    wrong_agent: float | None = None
    """Of all labelled tasks, those that went to a wrong specialist, which any is for an out-of-scope task."""
    fitted: bool = True
    """Whether thresholds were fitted for this encoder; otherwise they are a guess."""
    latency_ms: Latency | None = None
    unsafe_misroute_rate: float | None = None
    """Of the tasks to be reviewed or refused, those that would start without a person."""
    clarification_precision: float | None = None
    """Of the tasks routed to clarification, those that are too vague."""
    clarification_recall: float | None = None
    """Of the tasks that are too vague, those routed to clarification."""
    fallback_rate: float | None = None
    """Of all tasks with a labelled route, those that go to the default."""
    mention_accuracy: float | None = None
    """Of the tasks that address specialists, those that go to the first one they address."""
    risk_accuracy: float | None = None
    """Of the tasks with a labelled risk, those whose risk is assessed as labelled."""
    per_class: dict[str, PerClass] = {}
    """Figures by route. The route to a specialist counts as right only if the specialist is; for a human review, the
    likely specialist does not matter."""
    per_specialist: dict[str, PerClass] = {}
    """Figures by specialist, whatever the route."""
    confusion: dict[str, dict[str, int]] = {}
    """The number of tasks by right route, then by decided route. Tasks that rightly went to a specialist, but to a
    wrong one, are counted as ``wrong_specialist``."""
    wrong: tuple[WrongCase, ...] = ()
    """The cases whose route or specialist differs from the label."""
    policy: str | None = None
    """The hash of the rules applied in addition to the built-in ones. None: there were none."""
    baselines: dict[str, float | None] = {}
    """The share of labelled tasks that simpler methods get right: ``keywords`` alone; ``default`` for all; ``text``,
    the card that shares most words."""
    tier: TierFigures | None = None
    """How well the tier without a classifier fits."""
    handoff_validity: float | None = None
    """Of the tasks that would run, those whose runs get exactly the information that the task demands."""
    authority_expansion: float | None = None
    """Of the tasks that would run, those with a run whose authority exceeds what the set, or the task, allows."""
    loop_rate: float | None = None
    """Of the tasks that would run, those that return to a former owner."""
    completion_rate: float | None = None
    """Of the tasks with ``ends_with``, those that end there. In a set without any: of the in-scope tasks, those that
    end with a right specialist who gets the information it needs."""
    cost: float = 0.0
    """US dollars spent on deciding, always 0: no model is asked."""


def measured(
    cases: Sequence[Case],
    evaluated: Sequence[Evaluated],
    cards: Sequence[Card],
    calibration: Calibration,
    encoded: Sequence[float],
    scored: Sequence[float],
) -> Evaluation:
    """Return the figures of these decisions on the cases. encoded, scored: milliseconds per comparison."""
    labelled = [
        (case.expected, score) for case, score in zip(cases, evaluated, strict=True) if case.expected is not None
    ]
    inside = [(right, score) for right, score in labelled if right]
    outside = [score for right, score in labelled if not right]
    latency = None
    if encoded:
        both = sorted(first + other for first, other in zip(encoded, scored, strict=True))
        latency = Latency(
            encode_p50=round(_quantile(sorted(encoded), 0.5), 4),
            score_p50=round(_quantile(sorted(scored), 0.5), 4),
            p99=round(_quantile(both, 0.99), 4),
        )
    return Evaluation(
        cases=len(cases),
        encoder=calibration.encoder,
        fitted=not calibration.guessed,
        threshold=calibration.threshold,
        top1=share_of([_best(score) in right for right, score in inside]),
        accuracy_with_none=share_of([_is_right(right, score) for right, score in labelled]),
        oos_recall=share_of([not _is_assigned(score) for score in outside]),
        in_scope_fallback=share_of([not _is_assigned(score) for _, score in inside]),
        wrong_agent=share_of([_is_assigned(score) and score.specialist not in right for right, score in labelled]),
        latency_ms=latency,
        **_compared(cases, evaluated, cards),
    )


def _compared(cases: Sequence[Case], evaluated: Sequence[Evaluated], cards: Sequence[Card]) -> dict[str, Any]:
    """Return the figures that compare the decisions with the labels."""
    by_id = {card.id: card for card in cards}
    more = _by_route(cases, evaluated) | {
        "per_specialist": _by_specialist(cases, evaluated),
        "wrong": tuple(
            _wrong(case, result)
            for case, result in zip(cases, evaluated, strict=True)
            if not _is_as_labelled(case, result)
        ),
        "baselines": _baselines(cases, cards),
        "tier": _tiers(cases, evaluated),
    }
    demands = [case.demand or plain(case.request.text) for case in cases]
    handed = [
        None if demand is None else handed_over(demand, result, by_id, result.constraints)
        for demand, result in zip(demands, evaluated, strict=True)
    ]
    return more | figures(demands, handed, [case.expected for case in cases])


def _tiers(cases: Sequence[Case], records: Sequence[Evaluated]) -> TierFigures | None:
    labelled = [(case.tiers, record.tier) for case, record in zip(cases, records, strict=True) if case.tiers]
    if not labelled:
        return None
    strength = {tier: place for place, tier in enumerate(TIERS)}
    return TierFigures(
        accuracy=share_of([tier in right for right, tier in labelled]),
        under=share_of([strength[tier] < min(map(strength.__getitem__, right)) for right, tier in labelled]),
        over=share_of([strength[tier] > max(map(strength.__getitem__, right)) for right, tier in labelled]),
    )


def _by_route(cases: Sequence[Case], records: Sequence[Evaluated]) -> dict[str, Any]:
    """Return the figures that need labelled routes."""
    labelled = [(case, record) for case, record in zip(cases, records, strict=True) if case.route is not None]
    if not labelled:
        return {}
    confusion = {right.value: dict.fromkeys((*map(str, Route), WRONG_SPECIALIST), 0) for right in Route}
    for case, record in labelled:
        if case.route is not None:
            to_other = case.route is record.route is Route.SPECIALIST and not _is_right_who(case, record)
            confusion[case.route.value][WRONG_SPECIALIST if to_other else record.route.value] += 1
    right_of = {route: sum(confusion[route.value].values()) for route in Route}
    went_to = {route: sum(record.route is route for _, record in labelled) for route in Route}

    def share(route: Route, of: Mapping[Route, int]) -> float | None:
        return round(confusion[route.value][route.value] / of[route], 4) if of[route] else None

    guarded = (Route.HUMAN_REVIEW, Route.REJECT)
    stopped = (*guarded, Route.CLARIFY)
    addressed = [case.mentions[0] == record.specialist for case, record in labelled if case.mentions]
    return {
        "unsafe_misroute_rate": share_of(
            [record.route not in stopped for case, record in labelled if case.route in guarded]
        ),
        "clarification_precision": share(Route.CLARIFY, went_to),
        "clarification_recall": share(Route.CLARIFY, right_of),
        "fallback_rate": share_of([record.route is Route.DEFAULT for _, record in labelled]),
        "mention_accuracy": share_of(addressed),
        "risk_accuracy": share_of([record.risk is case.risk for case, record in labelled if case.risk is not None]),
        "per_class": {
            route.value: PerClass(cases=right_of[route], precision=share(route, went_to), recall=share(route, right_of))
            for route in Route
        },
        "confusion": confusion,
    }


def _by_specialist(cases: Sequence[Case], records: Sequence[Evaluated]) -> dict[str, PerClass]:
    """Return precision and recall by specialist. An acceptable specialist who gets the task counts as the right one."""
    pairs = list[tuple[str | None, str | None]]()
    for case, record in zip(cases, records, strict=True):
        if case.expected is None:
            continue
        went = record.specialist if record.route in TO_SOMEBODY else None
        first = case.specialist or next(iter(sorted(case.expected)), None)
        pairs.append((went if went in case.expected else first, went))
    right_of, went_to = Counter(right for right, _ in pairs), Counter(went for _, went in pairs)
    hits = Counter(right for right, went in pairs if right == went)
    return {
        name: PerClass(
            cases=right_of[name],
            precision=round(hits[name] / went_to[name], 4) if went_to[name] else None,
            recall=round(hits[name] / right_of[name], 4) if right_of[name] else None,
        )
        for name in sorted({name for name in (*right_of, *went_to) if name is not None})
    }


def _is_right_who(case: Case, record: SpecialistRecord) -> bool:
    """Return whether a right specialist got it, or none is labelled."""
    return not case.expected or record.specialist in case.expected


def _is_as_labelled(case: Case, record: SpecialistRecord) -> bool:
    """Return whether route and specialist are as labelled."""
    if case.route is not None:
        return record.route is case.route and (case.route not in TO_SOMEBODY or _is_right_who(case, record))
    return case.expected is None or _is_right(case.expected, record)


def _wrong(case: Case, record: Evaluated) -> WrongCase:
    right = case.expected or frozenset()
    scores = record.specialist_candidates
    return WrongCase(
        id=case.id,
        text=" ".join(case.request.text.split())[:_SHOWN],
        expected_route=case.route,
        expected=tuple(sorted(right, key=lambda name: (name != case.specialist, name))),
        route=record.route,
        specialist=record.specialist,
        reason=record.reason.text,
        threshold=record.threshold,
        scores=tuple(
            Score(specialist=score.specialist, score=score.score)
            for place, score in enumerate(scores)
            if place < _MAX_SCORES or score.specialist in right
        ),
    )


def _baselines(cases: Sequence[Case], cards: Sequence[Card]) -> dict[str, float | None]:
    """Return the share of labelled tasks that simpler methods get right."""
    words = {card.id: set(_WORD.findall(" ".join(profile_of(card).texts).lower())) for card in cards}

    def by_keyword(case: Case) -> str | None:
        text = case.request.compared
        return next((card.id for card in cards if keyword_in(text, card.keywords) is not None), None)

    def by_text(case: Case) -> str | None:
        own = set(_WORD.findall(case.request.text.lower()))
        return max(words, key=lambda name: (len(own & words[name]), name), default=None)

    ways: dict[str, Callable[[Case], str | None]] = {"keywords": by_keyword, "default": lambda _: None, "text": by_text}
    labelled = [case for case in cases if case.expected is not None]

    def is_right(case: Case, who: str | None) -> bool:
        return who in (case.expected or ()) if who is not None else not case.expected

    return {name: share_of([is_right(case, way(case)) for case in labelled]) for name, way in ways.items()}


def _is_assigned(record: SpecialistRecord) -> bool:
    """Return whether a specialist gets it, at once or after approval."""
    return record.route in TO_SOMEBODY and record.specialist is not None


def _best(record: SpecialistRecord) -> str | None:
    if _is_assigned(record):
        return record.specialist
    return record.specialist_candidates[0].specialist if record.specialist_candidates else None


def _is_right(right: frozenset[str], record: SpecialistRecord) -> bool:
    return record.specialist in right if _is_assigned(record) else not right


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))]
