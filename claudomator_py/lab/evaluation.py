"""Evaluation of routing: decide the tasks of a labelled set, and measure how many decisions are right, see
``figures``."""

from collections.abc import Callable, Mapping, Sequence

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.card import Card
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.lab.figures import Evaluated, Evaluation, measured
from claudomator_py.lab.labelled_set import Case
from claudomator_py.policy.verdict import Policy, Verdict, with_built_in
from claudomator_py.ports import Encoder
from claudomator_py.risk import assess
from claudomator_py.routing.calibration import Calibration, calibration_for
from claudomator_py.routing.mentions import Names, Participant
from claudomator_py.routing.profile import Likeness, Request, profile_of, text_hash
from claudomator_py.routing.ranking import ANYBODY, NO_LIKENESS, Needs, RoutingRules, decide, rank, unless_vague
from claudomator_py.routing.role import Assignments, explicit_choice
from claudomator_py.routing.space import Space
from claudomator_py.scheduler.records import Route, SpecialistRecord
from claudomator_py.schema.routing_settings import Preset

_NS_PER_MS = 1_000_000


def space_of(cards: Sequence[Card], encoder: Encoder, calibration: Calibration) -> Space:
    """Return the cards as points in the encoder's space."""
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
    """Cards compared by an encoder of words, in addition to a semantic encoder."""

    def __init__(self, cards: Sequence[Card], encoder: Encoder) -> None:
        self._encoder = encoder
        self._calibration = calibration_for(Preset.CALIBRATED, encoder.id)
        self._space = space_of(cards, encoder, self._calibration)

    def likeness(self, request: Request) -> Mapping[str, Likeness]:
        """Return the task's likeness to each card, by id."""
        return self._space.likeness(self._encoder.encode([request.compared])[0])


def evaluate(
    cards: Sequence[Card],
    cases: Sequence[Case],
    encoder: Encoder,
    calibration: Calibration,
    clock_ns: Callable[[], int],
    words: Encoder | None = None,
    policy: Policy | None = None,
    default: str | None = None,
) -> tuple[Evaluation, list[Evaluated]]:
    """Decide each case as if its creator saw all cards. Return the figures and the decision on each case.

    clock_ns: a monotonic clock in nanoseconds; decisions without a comparison are not timed. words: the encoder of
    words, used if the calibration gives words a weight. policy: the rules to apply, and with them the risk limits of
    cards; None: only the built-in rules. default: the specialist of a held task that fits no other, once approved.
    """
    space = space_of(cards, encoder, calibration)
    beside = Words(cards, words) if words is not None and calibration.weights.words else None
    by_id, applied = {card.id: card for card in cards}, policy or Policy()
    names = Names((Participant(card.id, card.title) for card in cards), of_task=True)
    evaluated: list[Evaluated] = []
    encoded: list[float] = []
    scored: list[float] = []
    for case in cases:
        text, verdict = case.request.text, _verdict(applied, case)
        unread = assess(text).unread
        # What is held is decided as it is once it is approved.
        held, needs = verdict.demanded is not None, ANYBODY
        if policy is not None:
            needs = Needs(verdict.risk, verdict.requires, verdict.excluded, unread=unread, approved=held)
        rules = RoutingRules(calibration, default if held else None)
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
        addressed = tuple(mention.ids[0] for mention in names.mentions(text) if len(mention.ids) == 1)
        tier = verdict.constraints.clamp(Tier.BALANCED)
        evaluated.append(Evaluated(**dict(record), tier=tier, mentions=addressed, constraints=verdict.constraints))
    summary = measured(cases, evaluated, cards, calibration, encoded, scored)
    return summary.model_copy(update={"policy": applied.hash}), evaluated


def _verdict(policy: Policy, case: Case, specialist: str | None = None, skill: str | None = None) -> Verdict:
    """Return the verdict of the policy and the built-in rules. specialist: who is to do it, if known."""
    judged = assess(case.request.text)
    verdict = policy.judge(case.facts(judged.risk, specialist, skill))
    return with_built_in(verdict, judged, reviews=True)


def _allowed(record: SpecialistRecord, verdict: Verdict) -> SpecialistRecord:
    """Return the decision after the policy's verdict: refused, sent to review, or unchanged."""
    update: dict[str, object] = {"risk": verdict.risk, "policy_checks": verdict.checks}
    if verdict.denied_by is not None:
        update |= {"route": Route.REJECT, "reason": verdict.refusal, "specialist": None, "skill": None}
    elif verdict.demanded is not None:
        why = rationale(RationaleCode.NEEDS_APPROVAL, rules=verdict.demanded.rules)
        # Approval sends it where it would have gone. For a vague task, that is likely the nearest candidate.
        nearest = next((candidate.specialist for candidate in record.specialist_candidates), None)
        likely = nearest if record.route is Route.CLARIFY else record.specialist
        update |= {"route": Route.HUMAN_REVIEW, "reason": why, "specialist": likely}
    return record.model_copy(update=update)
