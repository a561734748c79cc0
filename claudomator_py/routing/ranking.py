"""From a task and the cards to a decision on who does it: each candidate's score with its parts, and what follows."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType
from typing import Final

from claudomator_py.domain.card import Card
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.rationale import Rationale, RationaleCode, rationale
from claudomator_py.domain.routing import HARM, Assessment, Risk, Sign
from claudomator_py.routing.calibration import Calibration, Weights
from claudomator_py.routing.lessons import Standings, Votes, keyword_in, recency, standing_of
from claudomator_py.routing.profile import Likeness, Request
from claudomator_py.scheduler.records import Route, SpecialistCandidate, SpecialistRecord
from claudomator_py.schema.routing_settings import OnAmbiguity, OnVague
from claudomator_py.values import dataclass

DIGITS = 6
"""Decimal places to which scores are rounded before anything is decided, so that all machines decide alike."""
MAX_CANDIDATES = 50
"""Maximum number of candidates in a record: the best, plus any that were close to being chosen."""
MAX_NAMED: Final = 3
"""Maximum number of candidates that a reason names."""
LEARNED: Final = "learned"
"""Name of the score part contributed by earlier tasks."""
NO_STANDINGS: Final[Standings] = MappingProxyType({})
NO_VOTES: Final = Votes()
NO_LIKENESS: Final[Mapping[str, Likeness]] = MappingProxyType({})
_CHOSEN_DIRECTLY: Final = (RationaleCode.BY_HAND, RationaleCode.GIVEN_BY_RULE)
"""Reasons meaning that a person or a policy rule has chosen, regardless of what the card accepts."""
_NAMED: Final = (RationaleCode.NAMED, RationaleCode.MENTIONED, RationaleCode.CONTINUED)
"""Reasons meaning that it was given to somebody before it was approved."""
NOT_ALIKE: Final = Likeness(0.0, None)


@dataclass(frozen=True, slots=True)
class Needs:
    """A task's requirements on the specialist that does it."""

    risk: Risk | None = None
    """Risk that the specialist must accept; None if it was not assessed."""
    capabilities: tuple[str, ...] = ()
    """Capabilities that the specialist must have."""
    excluded: frozenset[str] = frozenset()
    """Specialists that a rule excludes."""
    away: frozenset[str] = frozenset()
    """Specialists whose agent is not connected and cannot be woken."""
    approved: bool = False
    """True if a person has seen and approved the task."""
    permitted: bool = False
    """True if a rule of the policy allows the task, whatever its risk."""
    unread: bool = False
    """True if the risk is medium only because the text cannot be read, which does not rule out anybody."""

    @property
    def of_anybody(self) -> bool:
        """True if anybody may do it, even without a specialist."""
        return self._harmless and not self.capabilities

    @property
    def may_be_anybody(self) -> bool:
        """True if it may go to the default specialist for lack of a better one; a task with risk does so only after
        approval, or where a rule allows it."""
        return self.approved or self.permitted or self._harmless

    @property
    def _harmless(self) -> bool:
        return self.risk in (None, Risk.LOW) or (self.unread and self.risk is Risk.MEDIUM)

    def unmet_by(self, card: Card) -> Rationale | None:
        """Return why that specialist may not do it; None if it may."""
        if card.id in self.excluded:
            return rationale(RationaleCode.EXCLUDED)
        if card.id in self.away:
            return rationale(RationaleCode.AWAY)
        if self.risk is not None and HARM[self.risk] > HARM[card.risk_ceiling]:
            return rationale(RationaleCode.TOO_RISKY, risk=self.risk, ceiling=card.risk_ceiling)
        lacking = tuple(capability for capability in self.capabilities if capability not in card.capabilities)
        return rationale(RationaleCode.LACKS, lacking=lacking) if lacking else None

    def met_by(self, record: SpecialistRecord, cards: Mapping[str, Card]) -> SpecialistRecord:
        """Return the decision, or a question to a person if the chosen specialist may not do the task. cards: by id."""
        if (why := self._unmet(record, cards)) is None:
            return record
        asking = {"reason": why, "route": Route.CLARIFY, "specialist": None, "skill": None}
        return record.model_copy(update=asking)

    def _unmet(self, record: SpecialistRecord, cards: Mapping[str, Card]) -> Rationale | None:
        """Why the chosen specialist may not do it; None if it may, or a person or a policy rule has chosen it."""
        if self.of_anybody or record.reason.code in _CHOSEN_DIRECTLY or record.route is Route.CLARIFY:
            return None
        name = record.specialist
        if name is None or (record.route is Route.DEFAULT and not self.may_be_anybody):
            return rationale(RationaleCode.NO_MATCH)
        why = self.unmet_by(cards[name]) if name in cards else None
        # Whoever approved it saw to whom it was given, and that this one takes on less risk.
        covered = self.approved and record.reason.code in _NAMED
        if why is None or (covered and why.code is RationaleCode.TOO_RISKY):
            return None
        return why.having(specialist=name)


ANYBODY: Final = Needs()


@dataclass(frozen=True, slots=True)
class RoutingRules:
    """The configuration that routing depends on."""

    calibration: Calibration
    default: str | None = None
    """The specialist for tasks that fit nobody; None if there is none."""
    on_ambiguity: OnAmbiguity = OnAmbiguity.DEFAULT
    on_vague: OnVague = OnVague.DEFAULT
    versions: Versions = field(default_factory=Versions)


def rank(
    request: Request,
    cards: Sequence[Card],
    likeness: Mapping[str, Likeness],
    calibration: Calibration,
    *,
    words: Mapping[str, Likeness] = NO_LIKENESS,
    standings: Standings = NO_STANDINGS,
    votes: Votes = NO_VOTES,
    topic: str | None = None,
    now_ms: int = 0,
) -> list[SpecialistCandidate]:
    """Return the cards with their scores, best first; equal scores in order of id. No candidate is rejected yet.

    likeness: similarity of the task to each card, by id; 0 if missing. words: the same, based on words alone. votes: of
    earlier tasks, see ``lessons.Lessons``. topic: see ``topic_of``.
    """
    weights, extra = _counting(calibration.weights), _counting(calibration.tie_break)
    text, candidates = request.compared, []
    for card in cards:
        alike = likeness.get(card.id, NOT_ALIKE)
        standing = standing_of(standings, card.id, topic)
        signals = {
            "semantic": alike.semantic,
            "words": words.get(card.id, NOT_ALIKE).semantic,
            "performance": standing.performance,
            "keyword": 1.0 if keyword_in(text, card.keywords) is not None else 0.0,
            "recency": recency(standing.last_success_ms, now_ms),
        }
        parts = {name: round(weight * signals[name], DIGITS) for name, weight in weights}
        more = sum([round(weight * signals[name], DIGITS) for name, weight in extra])
        if calibration.learned and (vote := votes.shares.get(card.id)):
            parts[LEARNED] = round(calibration.learned * vote, DIGITS)
        candidate = SpecialistCandidate(
            specialist=card.id,
            skill=alike.skill,
            score=round(sum(parts.values()), DIGITS),
            parts=parts,
            tie_break=round(more, DIGITS),
        )
        candidates.append(candidate)
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.specialist))


def topic_of(cards: Iterable[Card], likeness: Mapping[str, Likeness]) -> str | None:
    """Return what a task is about: the most similar skill of any of these cards; None if there are no skills."""
    alike = [(-likeness[card.id].semantic, card.id) for card in cards if card.id in likeness]
    return likeness[min(alike)[1]].skill if alike else None


def decide(
    ranked: Sequence[SpecialistCandidate],
    cards: Mapping[str, Card],
    rules: RoutingRules,
    *,
    needs: Needs = ANYBODY,
    topic: str | None = None,
    votes: Votes = NO_VOTES,
    degraded: bool = False,
) -> SpecialistRecord:
    """Return who does it, of those who may. Below the threshold a low-risk task goes to the default specialist, and a
    riskier one to a person; so does a task that needs capabilities which the default specialist lacks.

    topic: see ``topic_of``. votes: those included in the scores. degraded: True if the scores are based on words alone.
    """
    calibration = rules.calibration
    barred = {candidate.specialist: why for candidate in ranked if (why := needs.unmet_by(cards[candidate.specialist]))}
    open_ = [candidate for candidate in ranked if candidate.specialist not in barred]
    best = open_[0] if open_ else None
    least = calibration.threshold if best is None else _least(cards[best.specialist], calibration)
    recorded = partial(_record, ranked, barred, rules, least, needs, topic=topic, degraded=degraded)
    if best is None or best.score < least:
        if best is None and barred:
            why = rationale(RationaleCode.NONE_MAY)
        else:
            closest = None if best is None or best.specialist == rules.default else best.specialist
            why = rationale(RationaleCode.NO_MATCH, specialist=closest)
        may = needs.of_anybody or (rules.default not in (None, *barred) and needs.may_be_anybody)
        route = Route.DEFAULT if may else Route.CLARIFY
        return recorded(route, None, why)
    near = [candidate for candidate in open_ if best.score - candidate.score <= calibration.margin]
    close = [candidate for candidate in near if candidate.score >= _least(cards[candidate.specialist], calibration)]
    chosen, why = best, rationale(_match(open_, least, votes), specialist=best.specialist)
    # A task with risk goes to a matching specialist rather than to the default.
    if rules.on_ambiguity is OnAmbiguity.DEFAULT and needs.may_be_anybody and not needs.capabilities:
        lead = cards[best.specialist].lead * least
        rivals = [
            candidate
            for candidate in open_
            if best.score - candidate.score < lead and candidate.specialist != rules.default
        ]
        if len(rivals) > 1 and best in rivals:
            names = tuple(rival.specialist for rival in rivals[:MAX_NAMED])
            why = rationale(RationaleCode.AMBIGUOUS, specialists=names)
            return recorded(Route.DEFAULT, None, why, set(names))
    if len(close) > 1 and rules.on_ambiguity is OnAmbiguity.CLARIFY:
        names = tuple(candidate.specialist for candidate in close)
        why = rationale(RationaleCode.AMBIGUOUS, specialists=names)
        return recorded(Route.CLARIFY, None, why, set(names))
    if rules.on_ambiguity is not OnAmbiguity.BEST:
        chosen = min(
            close,
            key=lambda candidate: (-round(candidate.score + candidate.tie_break, DIGITS), candidate.specialist),
        )
        if chosen is not best:
            why = rationale(RationaleCode.TIE_BREAK, specialist=chosen.specialist, chosen=best.specialist)
    return recorded(Route.SPECIALIST, chosen, why, {candidate.specialist for candidate in close})


def _match(open_: Sequence[SpecialistCandidate], least: float, votes: Votes) -> RationaleCode:
    """Why the first one is best: because of similarity, or only because of what was learned."""
    best = open_[0]
    without = {
        candidate.specialist: round(candidate.score - candidate.parts.get(LEARNED, 0.0), DIGITS) for candidate in open_
    }
    score = without[best.specialist]
    likest = score >= least and all(score >= other for other in without.values())
    if likest or LEARNED not in best.parts:
        return RationaleCode.BEST_MATCH
    return RationaleCode.CORRECTED if best.specialist in votes.corrected else RationaleCode.GONE_WELL


def unless_vague(record: SpecialistRecord, assessment: Assessment, rules: RoutingRules) -> SpecialistRecord:
    """Return the decision; or the default specialist, or a question to a person, if the task says nothing and is not
    very similar to what anybody does."""
    if record.route not in (Route.DEFAULT, Route.SPECIALIST) or not assessment.vague:
        return record
    if record.route is Route.SPECIALIST and (record.confidence or 0.0) >= rules.calibration.sure:
        return record
    why, asks = rationale(RationaleCode.VAGUE, text=assessment.seen(Sign.VAGUE)), rules.on_vague is OnVague.ASK
    route, who = (Route.CLARIFY, None) if asks else (Route.DEFAULT, rules.default)
    return record.model_copy(update={"route": route, "reason": why, "specialist": who, "skill": None})


def to(code: RationaleCode, specialist: str, versions: Versions, skill: str | None = None) -> SpecialistRecord:
    """Return a decision for a specialist that was not compared with others. code: the reason, which names the
    specialist."""
    why = rationale(code, specialist=specialist)
    return SpecialistRecord(reason=why, route=Route.SPECIALIST, specialist=specialist, skill=skill, versions=versions)


def close_of(record: SpecialistRecord) -> tuple[str, ...]:
    """Return the candidates as good as the best by score, best first; fewer than two if there is nothing to choose."""
    if record.route is not Route.SPECIALIST:
        return ()
    return tuple(
        candidate.specialist
        for candidate in record.specialist_candidates
        if candidate.rejected is None or candidate.rejected.code is RationaleCode.AS_GOOD
    )


def picked(record: SpecialistRecord, specialist: str, model: str) -> SpecialistRecord:
    """Return the decision changed to another of the close candidates, picked by the model of that name."""
    why = rationale(RationaleCode.PICKED, specialists=close_of(record), specialist=specialist)
    candidates = []
    for candidate in record.specialist_candidates:
        as_good = rationale(RationaleCode.AS_GOOD) if candidate.rejected is None else candidate.rejected
        candidates.append(replace(candidate, rejected=None if candidate.specialist == specialist else as_good))
    chosen = next(candidate for candidate in candidates if candidate.specialist == specialist)
    return record.model_copy(
        update={
            "reason": why,
            "specialist": specialist,
            "skill": chosen.skill,
            "confidence": min(1.0, max(0.0, chosen.score)),
            "specialist_candidates": tuple(candidates),
            "versions": record.versions.model_copy(update={"classifier": model}),
        }
    )


def _least(card: Card, calibration: Calibration) -> float:
    """The card's threshold: its own, otherwise the fitted one."""
    return calibration.threshold if card.threshold is None else card.threshold


def _counting(weights: Weights) -> list[tuple[str, float]]:
    """The signals with a weight, and their weights."""
    return [(name, weight) for name, weight in weights if weight]


def _record(
    ranked: Sequence[SpecialistCandidate],
    barred: Mapping[str, Rationale],
    rules: RoutingRules,
    least: float,
    needs: Needs,
    route: Route,
    chosen: SpecialistCandidate | None,
    why: Rationale,
    close: Set[str] = frozenset(),
    *,
    topic: str | None,
    degraded: bool,
) -> SpecialistRecord:
    """Build the record. close: the specialists that count as equally good."""
    best = next((candidate for candidate in ranked if candidate.specialist not in barred), None)
    default = rules.default if route is Route.DEFAULT and rules.default not in barred else None
    named = close | {candidate.specialist for candidate in (chosen, best) if candidate is not None}
    candidates = tuple(
        candidate
        if chosen is not None and candidate.specialist == chosen.specialist
        else SpecialistCandidate(
            specialist=candidate.specialist,
            skill=candidate.skill,
            score=candidate.score,
            parts=candidate.parts,
            tie_break=candidate.tie_break,
            rejected=barred.get(candidate.specialist) or _less(candidate, least, close, route),
        )
        for at, candidate in enumerate(ranked)
        if at < MAX_CANDIDATES or candidate.specialist in named
    )
    return SpecialistRecord(
        reason=why,
        route=route,
        specialist=chosen.specialist if chosen is not None else default,
        skill=None if chosen is None else chosen.skill,
        confidence=None if best is None else min(1.0, max(0.0, (chosen or best).score)),
        threshold=least,
        margin=rules.calibration.margin,
        required_capabilities=needs.capabilities,
        risk=needs.risk,
        topic=topic,
        degraded=degraded,
        specialist_candidates=candidates,
        versions=rules.versions,
    )


def _less(candidate: SpecialistCandidate, least: float, close: Set[str], route: Route) -> Rationale:
    if candidate.score < least:
        return rationale(RationaleCode.BELOW_THRESHOLD)
    if route is Route.DEFAULT:
        return rationale(RationaleCode.NOT_AHEAD)
    return rationale(RationaleCode.AS_GOOD if candidate.specialist in close else RationaleCode.LESS_ALIKE)
