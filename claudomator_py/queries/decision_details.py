"""What decisions of one kind say beyond what all say, in the shape of the API."""

from collections.abc import Set
from typing import Any

from claudomator_py.domain.views.decisions import (
    ChosenView,
    ClassificationView,
    ConstraintsView,
    DecidedHandoffView,
    DecidedShadowView,
    DecidedTriageView,
    DecidedVerdictView,
    GivenView,
)
from claudomator_py.queries.explain import overridden_text
from claudomator_py.queries.routing import LABELS, candidate_views
from claudomator_py.queries.views import candidate_view
from claudomator_py.scheduler.decision import (
    DecisionRecord,
    HandoffRecord,
    PolicyRecord,
    Record,
    ShadowRecord,
    SpecialistRecord,
    TierRecord,
    TriageRecord,
)


def details_of(record: Record, run_id: str | None, at_ms: int, seen: Set[str]) -> dict[str, Any]:
    """The fields of ``RecordedDecisionView`` that this kind has. run_id: of the run that the decision is on; seen: the
    ids of specialists who exist for whoever asks."""
    match record:
        case DecisionRecord():
            return _placement(record, run_id, at_ms)
        case TierRecord():
            return {"classification": ClassificationView.of(record.classification)}
        case SpecialistRecord():
            return _specialist(record, seen)
        case PolicyRecord():
            return {
                "verdict": DecidedVerdictView.of(record),
                "constraints": ConstraintsView.of(record.constraints),
            }
        case HandoffRecord():
            return {"handoff": _handoff(record, seen)}
        case TriageRecord():
            return {"triage": _triage(record, seen)}
        case ShadowRecord():
            return _shadow(record, at_ms, seen)
    return {}


def _placement(record: DecisionRecord, run_id: str | None, at_ms: int) -> dict[str, Any]:
    hint = record.overridden
    return {
        "effort": record.effort,
        "agents": tuple(candidate_view(one, at_ms) for one in record.candidates),
        "classification": ClassificationView.of(record.classification),
        "constraints": ConstraintsView.of(record.constraints),
        "fallback": None if record.fallback is None else record.fallback.words,
        "fallback_code": record.fallback,
        "stands_in": record.stands_in,
        "overridden_hint": None if hint is None else overridden_text(hint, at_ms),
        "overridden_model": record.overridden_model,
        "unfenced": record.unfenced,
        "given": None if record.given is None else GivenView.of(record.given),
        "told": None if run_id is None else f"/v1/runs/{run_id}/handoff",
    }


def _specialist(record: SpecialistRecord, seen: Set[str]) -> dict[str, Any]:
    known = record.specialist is not None and record.specialist in seen
    return {
        "margin": record.margin,
        "degraded": record.degraded,
        "unheeded": record.unheeded,
        "specialists": candidate_views(record, seen),
        "owner": record.owner if known else None,
        "expected_output": record.expected_output if known else None,
        "max_handoffs": record.max_handoffs,
        "escalation": tuple(one for one in record.escalation if one in seen or one in LABELS) if known else (),
    }


def _handoff(record: HandoffRecord, seen: Set[str]) -> DecidedHandoffView:
    return DecidedHandoffView(
        accepted=record.accepted,
        by=record.by if record.by in seen else None,
        to=record.asked.to if record.asked.to in seen or record.asked.to in LABELS else None,
        hop=record.hop,
        max_handoffs=record.max_handoffs,
        reason=record.asked.reason,
        done=record.asked.done,
        left=record.asked.left,
        files=record.asked.files,
    )


def _triage(record: TriageRecord, seen: Set[str]) -> DecidedTriageView:
    return DecidedTriageView(
        rule=record.rule.value,
        agents=tuple(one for one in record.agents if one in seen),
        skipped={one: why for one, why in record.skipped.items() if one in seen},
        hops=record.hops,
    )


def _shadow(record: ShadowRecord, at_ms: int, seen: Set[str]) -> dict[str, Any]:
    actual, verdict = ChosenView.of(record.actual), record.verdict
    if actual.specialist not in seen:
        actual = actual.model_copy(update={"specialist": None, "skill": None})
    return {
        "shadow": DecidedShadowView(
            about=record.about.value, beside=record.beside, actual=actual, differs=record.differs
        ),
        "verdict": None if verdict is None else DecidedVerdictView(verdict=verdict.value, rules=record.rules),
        "specialists": candidate_views(record, seen),
        "agents": tuple(candidate_view(one, at_ms) for one in record.candidates),
    }
