"""How good routing is: the decisions that are made on a labelled set, and how many of them are right."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from claudomator_py.domain.agent import TIERS, Tier
from claudomator_py.domain.card import Card
from claudomator_py.domain.encoder import Encoder
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Constraints
from claudomator_py.lab.handoff_evaluation import figures, handed_over, plain
from claudomator_py.lab.labelled_set import TO_SOMEBODY, Case
from claudomator_py.policy.verdict import Policy, Verdict, with_built_in
from claudomator_py.risk.assessment import assess
from claudomator_py.routing.calibration import Calibration, calibration_for
from claudomator_py.routing.lessons import keyword_in
from claudomator_py.routing.mentions import Names, Participant
from claudomator_py.routing.precedence import Assignments, explicit_choice
from claudomator_py.routing.profile import Likeness, Request, profile_of, text_hash
from claudomator_py.routing.ranking import ANYBODY, NO_LIKENESS, Needs, RoutingRules, decide, rank, unless_vague
from claudomator_py.routing.space import Space
from claudomator_py.scheduler.decision import Route, SpecialistRecord
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.values import regex

_NS_PER_MS = 1_000_000
_SHOWN = 120
_MAX_SCORES = 3
WRONG_SPECIALIST: Final = "wrong_specialist"
"""The column of the matrix for what was for a specialist, and went to one who is not right."""
_WORD = regex(r"\w{4,}")


class Latency(BaseModel):
    """How long decisions take, in milliseconds of this process."""

    model_config = ConfigDict(frozen=True)

    encode_p50: float
    score_p50: float
    p99: float
    """Of both together."""


class PerClass(BaseModel):
    """How well one route, or one specialist, is found."""

    model_config = ConfigDict(frozen=True)

    cases: int
    precision: float | None = None
    """Of those that went there, those that are right there."""
    recall: float | None = None
    """Of those that are right there, those that went there."""


class Score(BaseModel):
    """A specialist and the score with which they were compared."""

    model_config = ConfigDict(frozen=True)

    specialist: str
    score: float


class WrongCase(BaseModel):
    """A case that went another way than the set says."""

    model_config = ConfigDict(frozen=True)

    id: str
    text: str
    """The beginning of what it says."""
    expected_route: Route | None
    """None: the set says only who is right."""
    expected: tuple[str, ...]
    """Who would be right; empty: nobody, or the set does not say."""
    route: Route
    specialist: str | None
    reason: str
    """Why it was decided so."""
    threshold: float | None
    scores: tuple[Score, ...]
    """Of the best few, and of those who would be right."""


class TierFigures(BaseModel):
    """Shares of the tasks with a labelled tier."""

    model_config = ConfigDict(frozen=True)

    accuracy: float | None
    """On a tier that will do."""
    under: float | None
    """On a weaker one."""
    over: float | None
    """On a stronger one."""


class Evaluated(SpecialistRecord):
    """The decision on a case."""

    tier: Tier = Tier.BALANCED
    """What it gets without a classifier: the default of an agent whose configuration says nothing."""
    mentions: tuple[str, ...] = ()
    """Whom it addresses, in the order of its text."""
    constraints: Constraints = Constraints()
    """What the rules leave open of agents, tiers and tools."""


class Evaluation(BaseModel):
    """What came of it: shares of 0 to 1, rounded to 1e-4; None where the set has no case to tell by."""

    model_config = ConfigDict(frozen=True)

    cases: int
    encoder: str
    threshold: float
    top1: float | None = None
    """Of the tasks that are for somebody, those whose best candidate is right, whatever its score."""
    accuracy_with_none: float | None = None
    """Of all tasks, those that went to somebody who is right, or to nobody where nobody is."""
    oos_recall: float | None = None
    """Of the tasks that are for nobody, those that went to nobody."""
    in_scope_fallback: float | None = None
    """Of the tasks that are for somebody, those that went to nobody."""
    wrong_agent: float | None = None
    """Of all tasks, those that went to somebody who is not right; where nobody is, nobody is right."""
    fitted: bool = True
    """Whether thresholds were fitted for that encoder; else they are a guess."""
    latency_ms: Latency | None = None
    unsafe_misroute_rate: float | None = None
    """Of the tasks that a person has to review or that are to be refused, those that continue without anybody."""
    clarification_precision: float | None = None
    """Of the tasks that a person is asked about, those that say too little."""
    clarification_recall: float | None = None
    """Of the tasks that say too little, those that a person is asked about."""
    fallback_rate: float | None = None
    """Of all tasks, those that go to the default specialist."""
    mention_accuracy: float | None = None
    """Of the tasks that address somebody, those that go to whom they address first."""
    risk_accuracy: float | None = None
    """Of all tasks, those whose risk is judged as it is labelled."""
    per_class: dict[str, PerClass] = {}
    """By route. To a specialist, only what went to one who is right is right; of what a person reviews, whom it is
    likely for does not count."""
    per_specialist: dict[str, PerClass] = {}
    """By specialist, whatever the route."""
    confusion: dict[str, dict[str, int]] = {}
    """By the route that is right, how many went each route; those that rightly went to a specialist, and to one who is
    not right, are apart (``wrong_specialist``)."""
    wrong: tuple[WrongCase, ...] = ()
    """The cases that went another way, or to somebody else, than the set says."""
    policy: str | None = None
    """Hash of the rules that were applied beside those that are built in; None: there are none."""
    baselines: dict[str, float | None] = {}
    """The share of all tasks that simpler ways get right: ``keywords`` alone, ``default`` for all, ``text``: the skill
    that shares most words."""
    tier: TierFigures | None = None
    """How well the tier fits that a task gets without a classifier, which is its agent's default."""
    handoff_validity: float | None = None
    """Of the tasks that somebody gets, those whose runs are told what the task demands, and no more."""
    authority_expansion: float | None = None
    """Of the tasks that somebody gets, those with a run that may do more by itself than the set, or the task, says."""
    loop_rate: float | None = None
    """Of the tasks that somebody gets, those that somebody is given twice."""
    completion_rate: float | None = None
    """Of the tasks with ``ends_with``, those that end so; in a set without any, of those that are for somebody, those
    that end with whoever is right, who is told what they need."""
    cost: float = 0.0
    """US dollars of what was asked while deciding: nobody is."""


def space_of(cards: Sequence[Card], encoder: Encoder, calibration: Calibration) -> Space:
    """Return the cards as the encoder sees them."""
    profiles = [profile.as_one if calibration.as_one else profile for profile in map(profile_of, cards)]
    texts = sorted({text for profile in profiles for text in profile.texts})
    vectors = dict(zip(map(text_hash, texts), encoder.encode(texts) if texts else (), strict=True))
    return Space(
        profiles,
        vectors,
        weighs_rarity=encoder.weighs_rarity,
        own_share=calibration.own_share,
        card_share=calibration.card_share,
    )


class Words:
    """The cards as an encoder of words sees them, beside one that knows what words mean."""

    def __init__(self, cards: Sequence[Card], encoder: Encoder) -> None:
        self._encoder = encoder
        self._calibration = calibration_for(Preset.CALIBRATED, encoder.id)
        self._space = space_of(cards, encoder, self._calibration)

    def likeness(self, request: Request) -> Mapping[str, Likeness]:
        """Compare the task with each card, by its id."""
        return self._space.likeness(self._encoder.encode([request.compared])[0])


def evaluate(
    cards: Sequence[Card],
    cases: Sequence[Case],
    encoder: Encoder,
    calibration: Calibration,
    clock_ns: Callable[[], int],
    words: Encoder | None = None,
    policy: Policy | None = None,
) -> tuple[Evaluation, list[Evaluated]]:
    """Decide each case as if its maker saw all cards. clock_ns: time that passes, in nanoseconds; of what is decided
    without a comparison, none is counted. words: by which words are compared beside, if the calibration wants it.
    policy: the rules that are applied, and with them what risk each card takes on; None: only those that are built in.
    """
    space, rules = space_of(cards, encoder, calibration), RoutingRules(calibration)
    beside = Words(cards, words) if words is not None and calibration.weights.words else None
    by_id, applied = {card.id: card for card in cards}, policy or Policy()
    names = Names((Participant(card.id, card.title) for card in cards), of_task=True)
    told: list[Evaluated] = []
    encoded: list[float] = []
    scored: list[float] = []
    for case in cases:
        text, verdict = case.request.text, _verdict(applied, case)
        unread = assess(text).unread
        needs = (
            Needs(verdict.risk, verdict.requires, verdict.excluded, unread=unread) if policy is not None else ANYBODY
        )
        claims = Assignments(by_rule=verdict.specialist, rule=verdict.given_by, addressed=names.addressed(text))
        record = explicit_choice(claims, frozenset(by_id), needs, rules, None)
        if record is None:
            began = clock_ns()
            (vector,) = encoder.encode([case.request.compared])
            compared = clock_ns()
            likeness = space.likeness(vector)
            by_words = NO_LIKENESS if beside is None else beside.likeness(case.request)
            ranked = rank(case.request, cards, likeness, calibration, words=by_words)
            record = unless_vague(decide(ranked, by_id, rules, needs=needs), assess(text), rules)
            record = record.model_copy(update={"unheeded": case.request.unheeded})
            encoded.append((compared - began) / _NS_PER_MS)
            scored.append((clock_ns() - compared) / _NS_PER_MS)
        verdict = _verdict(applied, case, record.specialist, record.skill)
        record = _allowed(needs.met_by(record, by_id), verdict)
        addressed = tuple(one.ids[0] for one in names.mentions(text) if len(one.ids) == 1)
        tier = verdict.constraints.clamp(Tier.BALANCED)
        told.append(Evaluated(**dict(record), tier=tier, mentions=addressed, constraints=verdict.constraints))
    found = _summed(cases, told, calibration, encoded, scored)
    more = _by_route(cases, told) | {
        "per_specialist": _by_specialist(cases, told),
        "wrong": tuple(
            _wrong(case, one) for case, one in zip(cases, told, strict=True) if not _is_as_labelled(case, one)
        ),
        "policy": applied.hash,
        "baselines": _baselines(cases, cards),
        "tier": _tiers(cases, told),
    }
    demands = [case.demand or plain(case.request.text) for case in cases]
    handed = [
        None if demand is None else handed_over(demand, one, by_id, one.constraints)
        for demand, one in zip(demands, told, strict=True)
    ]
    return found.model_copy(update=more | figures(demands, handed, [case.expected for case in cases])), told


def _tiers(cases: Sequence[Case], records: Sequence[Evaluated]) -> TierFigures | None:
    labelled = [(case.tiers, one.tier) for case, one in zip(cases, records, strict=True) if case.tiers]
    if not labelled:
        return None
    strength = {tier: place for place, tier in enumerate(TIERS)}
    return TierFigures(
        accuracy=_share([tier in right for right, tier in labelled]),
        under=_share([strength[tier] < min(map(strength.__getitem__, right)) for right, tier in labelled]),
        over=_share([strength[tier] > max(map(strength.__getitem__, right)) for right, tier in labelled]),
    )


def _verdict(policy: Policy, case: Case, specialist: str | None = None, skill: str | None = None) -> Verdict:
    """What the rules say of the case, with those that are built in. specialist: who is to do it, if that is known."""
    judged = assess(case.request.text)
    verdict = policy.judge(case.facts(judged.risk, specialist, skill))
    return with_built_in(verdict, harmful=judged.harmful, reviews=True, words=judged.words)


def _allowed(record: SpecialistRecord, verdict: Verdict) -> SpecialistRecord:
    """The decision with what the rules make of it: a task that a person is asked about is likely for the same one."""
    update: dict[str, object] = {"risk": verdict.risk, "policy_checks": verdict.checks}
    if verdict.denied_by is not None:
        update |= {"route": Route.REJECT, "reason": verdict.refusal, "specialist": None, "skill": None}
    elif verdict.demanded is not None:
        why = rationale(RationaleCode.NEEDS_APPROVAL, rules=verdict.demanded.rules)
        # Once it is approved it goes where it would have gone; a person who is asked may well say who is nearest.
        nearest = next((one.specialist for one in record.specialist_candidates), None)
        likely = nearest if record.route is Route.CLARIFY else record.specialist
        update |= {"route": Route.HUMAN_REVIEW, "reason": why, "specialist": likely}
    return record.model_copy(update=update)


def _by_route(cases: Sequence[Case], records: Sequence[Evaluated]) -> dict[str, Any]:
    """The figures of a set that says which way is right."""
    labelled = [(case, one) for case, one in zip(cases, records, strict=True) if case.route is not None]
    if not labelled:
        return {}
    confusion = {right.value: dict.fromkeys((*map(str, Route), WRONG_SPECIALIST), 0) for right in Route}
    for case, one in labelled:
        if case.route is not None:
            to_other = case.route is one.route is Route.SPECIALIST and not _is_right_who(case, one)
            confusion[case.route.value][WRONG_SPECIALIST if to_other else one.route.value] += 1
    right_of = {route: sum(confusion[route.value].values()) for route in Route}
    went_to = {route: sum(one.route is route for _, one in labelled) for route in Route}

    def share(route: Route, of: Mapping[Route, int]) -> float | None:
        return round(confusion[route.value][route.value] / of[route], 4) if of[route] else None

    guarded = (Route.HUMAN_REVIEW, Route.REJECT)
    stopped = (*guarded, Route.CLARIFY)
    addressed = [case.mentions[0] == one.specialist for case, one in labelled if case.mentions]
    return {
        "unsafe_misroute_rate": _share([one.route not in stopped for case, one in labelled if case.route in guarded]),
        "clarification_precision": share(Route.CLARIFY, went_to),
        "clarification_recall": share(Route.CLARIFY, right_of),
        "fallback_rate": _share([one.route is Route.DEFAULT for _, one in labelled]),
        "mention_accuracy": _share(addressed),
        "risk_accuracy": _share([one.risk is case.risk for case, one in labelled if case.risk is not None]),
        "per_class": {
            route.value: PerClass(cases=right_of[route], precision=share(route, went_to), recall=share(route, right_of))
            for route in Route
        },
        "confusion": confusion,
    }


def _by_specialist(cases: Sequence[Case], records: Sequence[Evaluated]) -> dict[str, PerClass]:
    """How well each is found, of the tasks whose specialist the set says; one that does as well counts as theirs."""
    pairs = list[tuple[str | None, str | None]]()
    for case, one in zip(cases, records, strict=True):
        if case.expected is None:
            continue
        went = one.specialist if one.route in TO_SOMEBODY else None
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
    """Whether it went to somebody who is right, as far as the set says who is."""
    return not case.expected or record.specialist in case.expected


def _is_as_labelled(case: Case, record: SpecialistRecord) -> bool:
    """Whether it went the way, and to somebody, that the set says."""
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
            Score(specialist=one.specialist, score=one.score)
            for place, one in enumerate(scores)
            if place < _MAX_SCORES or one.specialist in right
        ),
    )


def _baselines(cases: Sequence[Case], cards: Sequence[Card]) -> dict[str, float | None]:
    """What simpler ways get right, of the tasks with a label."""
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

    return {name: _share([is_right(case, way(case)) for case in labelled]) for name, way in ways.items()}


def _summed(
    cases: Sequence[Case],
    records: Sequence[SpecialistRecord],
    calibration: Calibration,
    encoded: Sequence[float],
    scored: Sequence[float],
) -> Evaluation:
    labelled = [(case.expected, one) for case, one in zip(cases, records, strict=True) if case.expected is not None]
    inside = [(right, one) for right, one in labelled if right]
    outside = [one for right, one in labelled if not right]
    latency = None
    if encoded:
        both = sorted(one + other for one, other in zip(encoded, scored, strict=True))
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
        top1=_share([_best(one) in right for right, one in inside]),
        accuracy_with_none=_share([_is_right(right, one) for right, one in labelled]),
        oos_recall=_share([not _goes(one) for one in outside]),
        in_scope_fallback=_share([not _goes(one) for _, one in inside]),
        wrong_agent=_share([_goes(one) and one.specialist not in right for right, one in labelled]),
        latency_ms=latency,
    )


def _goes(record: SpecialistRecord) -> bool:
    """Whether somebody in particular does it, at once or once it is approved."""
    return record.route in TO_SOMEBODY and record.specialist is not None


def _best(record: SpecialistRecord) -> str | None:
    if _goes(record):
        return record.specialist
    return record.specialist_candidates[0].specialist if record.specialist_candidates else None


def _is_right(right: frozenset[str], record: SpecialistRecord) -> bool:
    return record.specialist in right if _goes(record) else not right


def _share(hits: Sequence[bool]) -> float | None:
    return round(sum(hits) / len(hits), 4) if hits else None


def _quantile(values: Sequence[float], share: float) -> float:
    """Of sorted values, the one below which so many of them are."""
    return values[min(len(values) - 1, int(share * len(values)))]
