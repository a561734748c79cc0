"""Shows which specialist does a task, or would do it, and shows, resets and freezes what routing has learned."""

from collections.abc import Callable, Iterable, Sequence, Set

from sqlalchemy import Connection

from claudomator_py.dispatch.deciding import Decided
from claudomator_py.domain.errors import Conflict, ended
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.rationale import SAID_BY_THE_TASK, Rationale, RationaleCode, rationale
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.verdict import PolicyCheckView, VerdictView, consequences
from claudomator_py.policy.rule import BUILT_IN, MODEL_RISK, NOT_READ
from claudomator_py.ports import Clock
from claudomator_py.resources.concealment import SOMEBODY
from claudomator_py.resources.routing import (
    ForgetRequest,
    LabelledTasksView,
    LearnedView,
    RouteCandidateView,
    RouteRequest,
    RouteView,
    RoutingCalls,
    RoutingStatsView,
    TriedRouteView,
    stats,
)
from claudomator_py.resources.session import Service, reading, writing
from claudomator_py.routing.profile import Request
from claudomator_py.scheduler.records import (
    DecisionKind,
    HandoffRecord,
    PolicyRecord,
    Record,
    Route,
    SpecialistCandidate,
    SpecialistRecord,
    record_of,
)
from claudomator_py.store import hold_rows, specialist_rows
from claudomator_py.store.database import or_unavailable
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Decision, Task
from claudomator_py.surface import answers
from claudomator_py.tasks import learning
from claudomator_py.tasks.specialists import unknown
from claudomator_py.values import dataclass

LABELS = frozenset(route.value for route in Route)
"""Routes that a card may name instead of a specialist; no specialist has such an id."""
_DIGITS = 6
"""Decimal places of stored scores."""
_NAMED_CANDIDATES = 3
"""Number of specialists that are named although they were not chosen: the best ones."""


def known_to(connection: Connection, decisions: Iterable[Decision], by: Principal) -> frozenset[str]:
    """Return the specialists that the principal can see, and those named in the decisions that do not exist: naming
    them reveals nothing."""
    named: set[str] = set()
    for decision in decisions:
        record = record_of(decision.kind, decision.data)
        named |= record.reason.named
        if decision.specialist is not None:
            named.add(decision.specialist)
        if isinstance(record, HandoffRecord):
            named.add(record.asked.to)
    seen = specialist_rows.ids_seen(connection, by)
    return frozenset((*seen, *(named - specialist_rows.hidden(connection, named, by))))


def specialist_sentences(name: str, record: SpecialistRecord, seen: Set[str], *, tried: bool = False) -> list[str]:
    """Return which specialist does the task of that name, why, and what would have changed that. seen: specialists
    visible to the caller. tried: whether this is about a hypothetical task, below which all candidates are listed."""
    fell = record.reason.code is RationaleCode.FAILED_TWICE
    if record.route is Route.DEFAULT and not record.specialist_candidates and not fell:
        return []  # there are no specialists
    went, would_have_gone = ("would go", "would go") if tried else ("went", "would have gone")
    whom = {Route.CLARIFY: "the operator, who chooses the specialist", Route.REJECT: "nobody"}
    to = _visible_specialist(record, seen)
    skill = f" (skill {record.skill})" if record.skill and record.specialist in seen else ""
    hidden = SOMEBODY if record.specialist is not None else "no specialist"
    target = whom.get(record.route) or to or hidden
    sentences = [ended(f"{name} {went} to {target}{skill}: {reason_for(record.reason, seen).text}")]
    open_ = [
        candidate for candidate in record.specialist_candidates if candidate.specialist in seen and not candidate.barred
    ]
    best = open_[0] if open_ and record.threshold is not None else None
    if best is not None and record.threshold is not None:
        compared = " (comparing words only, as the encoder failed)" if record.degraded else ""
        score, threshold = apart(best.score, record.threshold)
        sentences.append(f"{best.specialist} scored {score}, with a threshold of {threshold}{compared}.")
        if record.unheeded:
            pieces = "; ".join(f"\u201c{part}\u201d" for part in record.unheeded)
            sentences.append(f"Parts of its text that name who should do it, or how, were not compared: {pieces}")
    rejected = [
        candidate
        for candidate in record.specialist_candidates
        if candidate.specialist in seen and candidate.rejected is not None
    ]
    others = [candidate for candidate in rejected if candidate is not best][:_NAMED_CANDIDATES]
    listed = "; ".join(
        f"{other.specialist} {other.score:.2f}, {other.rejected.text}" for other in others if other.rejected
    )
    if listed and not tried:
        sentences.append(f"Others: {listed}." if best is not None else f"Left out: {listed}.")
    if best is None or record.threshold is None:
        return sentences
    score, _ = apart(best.score, record.threshold)
    if record.route is Route.DEFAULT and best.score < record.threshold and best.specialist != to:
        sentences.append(f"With a threshold of {score} or less it {would_have_gone} to {best.specialist}.")
    elif len(open_) > 1 and record.route is Route.SPECIALIST and to == best.specialist:
        lead = f"{best.score - open_[1].score:.2f}"
        if float(lead):  # otherwise they are equal, and the reason says what decided
            sentences.append(f"It {would_have_gone} to {open_[1].specialist} with {lead} more.")
    return sentences


def _visible_specialist(record: SpecialistRecord, seen: Set[str]) -> str | None:
    """Return the specialist if it is visible to the caller. One that the task itself names is not concealed."""
    named = record.reason.code is RationaleCode.NAMED
    return record.specialist if named or record.specialist in seen else None


def apart(score: float, threshold: float) -> tuple[str, str]:
    """Return both with as many digits as are needed to tell them apart."""
    for digits in range(2, _DIGITS):
        shown = f"{score:.{digits}f}", f"{threshold:.{digits}f}"
        if shown[0] != shown[1] or score == threshold:
            return shown
    return f"{score:.{_DIGITS}f}", f"{threshold:.{_DIGITS}f}"


def reason_for(reason: Rationale, seen: Set[str]) -> Rationale:
    """Return the reason without the names of hidden specialists, except one that the task itself names."""
    if reason.code in SAID_BY_THE_TASK:
        return reason
    return reason.naming(lambda name: name if name in seen or name in LABELS else SOMEBODY)


def reason_of(record: Record, seen: Set[str]) -> Rationale:
    """Return the reason of a decision without the names of hidden specialists. A handoff to a hidden specialist reads
    like a handoff to one that does not exist."""
    if isinstance(record, HandoffRecord) and record.names_nobody and record.asked.to not in seen:
        return rationale(RationaleCode.NO_SPECIALIST, specialist=record.asked.to)
    return reason_for(record.reason, seen)


def route_view(name: str, record: SpecialistRecord, seen: Set[str], *, tried: bool = False) -> RouteView:
    """Return the view of the decision on the task of that name. seen, tried: as for ``specialist_sentences``."""
    candidates = candidate_views(record, seen)
    # The best score could reveal a hidden candidate.
    all_seen = len(candidates) == len(record.specialist_candidates)
    reason = reason_for(record.reason, seen)
    return RouteView.of(
        record,
        route=record.route.value,
        specialist=record.specialist if record.specialist in seen else None,
        skill=record.skill if record.specialist in seen else None,
        confidence=record.confidence if all_seen else None,
        reason=reason.text,
        rationale=reason,
        candidates=candidates,
        sentences=tuple(specialist_sentences(name, record, seen, tried=tried)),
        topic=record.topic if all_seen else None,
    )


def routing_of(task: Task, decisions: Sequence[Decision], seen: Set[str]) -> RouteView | None:
    """Return the latest decision on the route of the task in its current generation, by specialist or policy; None if
    there is none. decisions: all on the task, oldest first."""
    own = [decision for decision in decisions if decision.generation == task.generation]
    choice = next((decision for decision in reversed(own) if decision.kind == DecisionKind.SPECIALIST), None)
    rules = next((decision for decision in reversed(own) if decision.kind == DecisionKind.POLICY), None)
    policy = None
    if rules is not None and (choice is None or choice.at_ms <= rules.at_ms):
        policy = readable(PolicyRecord, rules.data)
    if policy is not None and (policy.route is not None or (choice is None and _applied(policy))):
        return RouteView(
            route=(policy.route or Route.DEFAULT).value,
            risk=policy.risk,
            reason=policy.reason.text,
            rationale=policy.reason,
            sentences=tuple(_applied(policy)),
            policy_checks=tuple(PolicyCheckView.of(check) for check in policy.policy_checks),
        )
    if choice is None:
        return None
    record = readable(SpecialistRecord, choice.data)
    if record is None:
        return None
    view = route_view(task.name, record, seen)
    return view.model_copy(update={"sentences": (*view.sentences, *_applied(record))})


def routed_before(placement: Decision, decisions: Sequence[Decision], seen: Set[str]) -> dict[str, object]:
    """Return the fields of ``DecisionView`` that come from the choice of specialist before the placement. decisions: as
    for ``routing_of``."""
    same = (placement.generation, placement.specialist)
    kinds = (DecisionKind.SPECIALIST, DecisionKind.HANDOFF)
    own = [
        decision
        for decision in decisions
        if decision.kind in kinds
        and (decision.generation, decision.specialist) == same
        and decision.at_ms <= placement.at_ms
    ]
    if not own:
        return {}
    record = record_of(own[-1].kind, own[-1].data)
    return {
        "route": record.route.value if isinstance(record, SpecialistRecord | HandoffRecord) else None,
        "risk": record.risk,
        "intent": record.intent,
        "topic": record.topic
        if all(candidate.specialist in seen for candidate in record.specialist_candidates)
        else None,
        "required_capabilities": record.required_capabilities if isinstance(record, SpecialistRecord) else (),
        "policy_checks": tuple(PolicyCheckView.of(check) for check in record.policy_checks),
    }


def _applied(record: Record) -> list[str]:
    """Return sentences on the rules that applied, and on the risk unless it is low."""
    applied = [check for check in record.policy_checks if check.matched is not False]
    rules = ", ".join(
        check.rule
        + (f" ({check.effect})" if check.effect else "")
        + (f": {check.detail}" if check.matched is None or check.rule in (MODEL_RISK, NOT_READ) else "")
        for check in applied
    )
    sentences = [f"Rules of the policy that applied: {rules}."] if rules else []
    if any(check.effect == "approve" and check.rule in BUILT_IN for check in applied):
        sentences.append("The rule is built in; one of yours with `allow: true` exempts tasks from it.")
    return [*sentences, f"Its risk is {record.risk}."] if record.risk not in (None, Risk.LOW) else sentences


def tried_view(name: str, record: SpecialistRecord, verdict: VerdictView | None, seen: Set[str]) -> TriedRouteView:
    """Return the route that a task of that name would take. verdict: the policy's; None if it was not judged."""
    verdict = None if verdict is None else verdict_view(verdict, seen)
    route = route_view(name, record, seen, tried=True)
    sentences = (*_verdict_sentences(verdict), *route.sentences)
    return TriedRouteView.model_validate({**dict(route), "sentences": sentences, "policy": verdict})


def verdict_view(verdict: VerdictView, seen: Set[str]) -> VerdictView:
    """Return the verdict without hidden specialists. seen: those visible to the caller."""
    specialist = verdict.specialist if verdict.specialist in seen else None
    excluded = tuple(specialist for specialist in verdict.excluded_specialists if specialist in seen)
    return verdict.model_copy(update={"specialist": specialist, "excluded_specialists": excluded})


def _verdict_sentences(verdict: VerdictView | None) -> list[str]:
    """Return what the policy does to the task; nothing if it only allows it."""
    if verdict is None or (verdict.verdict == "allowed" and not verdict.rules and not consequences(verdict)):
        return []
    return [*verdict.sentences]


def candidate_views(record: Record, seen: Set[str]) -> tuple[RouteCandidateView, ...]:
    """Return the visible candidates, best first."""
    candidates = [candidate for candidate in record.specialist_candidates if candidate.specialist in seen]
    to_beat = _to_beat(record, candidates)
    return tuple(_candidate_view(candidate, to_beat) for candidate in candidates)


def _to_beat(record: Record, candidates: list[SpecialistCandidate]) -> float | None:
    """Return the score that would have equalled the best candidate and reached the threshold."""
    if record.threshold is None:
        return None
    return max((record.threshold, *(candidate.score for candidate in candidates if not candidate.barred)))


def _candidate_view(candidate: SpecialistCandidate, to_beat: float | None) -> RouteCandidateView:
    helps = candidate.rejected is not None and to_beat is not None and not candidate.barred
    return RouteCandidateView.of(
        candidate,
        rejected=None if candidate.rejected is None else candidate.rejected.text,
        rationale=candidate.rejected,
        needs=round(to_beat - candidate.score, 6) if helps and to_beat is not None else None,
    )


Router = Callable[[Request, Principal, tuple[str, ...]], Decided | None]
"""Returns the decision on such a task if the principal submitted it now, with required capabilities; None if nothing is
routed. Raises StoreUnavailable."""


@dataclass(eq=False, repr=False)
class Routing(Service):
    """The operations on routing, for a principal."""

    clock: Clock
    default: Callable[[], str | None]
    """Returns the configured default specialist, if any."""
    router: Router = lambda *_: None

    @answers(RoutingCalls.route)
    def route(self, request: RouteRequest) -> TriedRouteView:
        """Return the route and the policy's verdict on such a task if the caller submitted it now. Raises Conflict if
        nothing is routed."""
        with or_unavailable():
            decided = self.router(
                Request(request.instructions, request.name or "", request.tags), self._by, request.requires
            )
        if decided is None or decided.record is None:
            remedy = "Set another `routing.preset` than `none`."
            raise Conflict("Nothing is routed: the configuration says so.", remedy=remedy)
        seen = self._read(lambda connection: frozenset(specialist_rows.ids_seen(connection, self._by)))
        name = request.name or "Such a task"
        verdict = decided.judged.verdict.shown(name)
        return tried_view(name, decided.record, verdict, seen)

    @reading(RoutingCalls.routing_stats)
    def stats(self, connection: Connection, days: int = 30) -> RoutingStatsView:
        """Return figures on routing in the last days."""
        return stats.stats(connection, self._by, days, self.clock())

    @answers(RoutingCalls.learned)
    def all(self) -> LearnedView:
        """Return what routing has learned so far."""
        return self._read(self._all)

    @reading(RoutingCalls.labels)
    def labelled(self, connection: Connection, limit: int = 1_000) -> LabelledTasksView:
        """Return tasks whose right specialist is known, newest first."""
        return stats.labelled(connection, self._by, limit, self.default())

    @writing(RoutingCalls.reset_learned)
    def forget(self, connection: Connection, request: ForgetRequest) -> LearnedView:
        """Reset what was learned, including what ended tasks would still teach. Raises NotFound."""
        name = request.specialist
        if name is not None and specialist_rows.find(connection, name, self._by) is None:
            raise unknown(connection, name, self._by)
        learning.reset(connection, self._by.organisation, name, self.clock())
        data = {} if name is None else {"specialist": name}
        record(connection, self.clock(), "learning_reset", data=data)
        return self._all(connection)

    @writing(RoutingCalls.freeze_learning)
    def freeze(self, connection: Connection) -> LearnedView:
        """Stop learning. What happens while it is frozen is never learned from. Harmless when repeated."""
        if hold_rows.turn_on(connection, learning.FROZEN, None, self.clock()):
            record(connection, self.clock(), "learning_frozen")
        return self._all(connection)

    @writing(RoutingCalls.unfreeze_learning)
    def unfreeze(self, connection: Connection) -> LearnedView:
        """Resume learning. Harmless when repeated."""
        if hold_rows.find_switch(connection, learning.FROZEN) is not None:
            while learning.has_more(connection):
                learning.learn(connection, 0.0, self.clock())  # skip what ended while it was frozen
            hold_rows.turn_off(connection, learning.FROZEN)
            record(connection, self.clock(), "learning_unfrozen")
        return self._all(connection)

    def _all(self, connection: Connection) -> LearnedView:
        return stats.learned(connection, self._by)
