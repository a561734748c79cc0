"""The labels that decisions are stored and shown with: none is ever renamed or removed, and none loses a field."""

from enum import StrEnum

import pytest
from pydantic import BaseModel

from claudomator_py.domain.channel import SkipReason, TriageReason
from claudomator_py.domain.decision import Fallback
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.routing import Risk
from claudomator_py.resources.decisions import (
    ChosenView,
    DecidedHandoffView,
    DecidedShadowView,
    DecidedTriageView,
    DecidedVerdictView,
    DecisionView,
    PlacementView,
    SelectionView,
)
from claudomator_py.scheduler.classification import Cause
from claudomator_py.scheduler.records import DecisionKind, PolicyVerdict, Route

# A new label, parameter or field is added here; nothing is ever taken out.
LABELS: dict[type[StrEnum], str] = {
    DecisionKind: "placement tier specialist policy handoff triage shadow",
    Route: "specialist default clarify human_review reject",
    PolicyVerdict: "allowed denied held approved",
    Risk: "low medium high",
    Fallback: "all_limited",
    Cause: (
        "off nothing_to_choose timeout unreachable limited refused server_error not_configured garbage disallowed "
        "breaker_open interrupted "
    ),
    TriageReason: "direct_mention reply_to_agent primary_agent no_trigger",
    SkipReason: "muted cooling rate_limited loop gone refused",
}
RATIONALES = {
    "least_active": "",
    "required": "agent",
    "preferred": "agent",
    "resumed": "conversation",
    "answered": "text",
    "unanswered": "text",
    "named": "specialist",
    "mentioned": "specialist",
    "continued": "specialist",
    "nobody": "",
    "would_wait": "",
    "by_hand": "specialist",
    "best_match": "specialist",
    "corrected": "specialist",
    "tie_break": "specialist chosen",
    "picked": "specialists specialist",
    "no_match": "specialist",
    "none_may": "",
    "vague": "text",
    "ambiguous": "specialists",
    "handed_on": "by specialist",
    "failed_twice": "by specialist",
    "gone": "specialist",
    "handoff_limit": "most",
    "handoff_loop": "specialist",
    "no_specialist": "specialist",
    "not_admitted": "specialist",
    "less_alike": "",
    "as_good": "",
    "below_threshold": "",
    "too_risky": "ceiling risk",
    "lacks": "lacking",
    "excluded": "specialist",
    "message_mentions": "specialists",
    "message_answers": "specialist",
    "for_primary": "specialist",
    "for_nobody": "",
    "message_refused": "",
    "given_by_rule": "rule specialist",
    "permitted": "rule",
    "refused": "rule text",
    "needs_approval": "rules",
    "approved": "principal rules text",
    "text": "text",
}
FIELDS: dict[type[BaseModel], str] = {
    DecisionView: (
        "id kind at input_ref task_id task_name task_state generation run_id by supersedes superseded_by "
        "overridden snapshot route specialist skill agent tier model intent topic risk confidence threshold reason "
        "rationale required_capabilities policy_checks versions latency_ms cost_usd run "
        "specialists agents classification constraints placement selection verdict handoff triage shadow"
    ),
    PlacementView: "effort fallback fallback_code stands_in overridden_hint overridden_model unfenced given told",
    SelectionView: "margin degraded unheeded owner expected_output max_handoffs escalation",
    DecidedVerdictView: "verdict rules approved approved_by said",
    DecidedHandoffView: "accepted by to hop max_handoffs reason done left files",
    DecidedTriageView: "rule agents skipped hops",
    DecidedShadowView: "about beside actual differs",
    ChosenView: "route specialist skill verdict agent tier model",
}


@pytest.mark.parametrize("kind", LABELS, ids=lambda kind: kind.__name__)
def test_a_label_stays(kind: type[StrEnum]) -> None:
    assert set(LABELS[kind].split()) <= {entry.value for entry in kind}


_REASONS = {rationale_code.value: rationale_code for rationale_code in RationaleCode}


@pytest.mark.parametrize("code", RATIONALES)
def test_a_reason_keeps_its_parameters(code: str) -> None:
    assert set(RATIONALES[code].split()) <= set(_REASONS[code].parameters)


@pytest.mark.parametrize("shape", FIELDS, ids=lambda shape: shape.__name__)
def test_a_field_stays(shape: type[BaseModel]) -> None:
    assert set(FIELDS[shape].split()) <= set(shape.model_fields)
