"""What decisions of each kind say beyond what all say: nothing that was recorded is kept back, and nobody is named who
does not exist for whoever asks."""

from collections.abc import Set
from typing import Any

import pytest

from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.decisions.service import view_of
from claudomator_py.scheduler.records import RECORDS, DecisionKind
from claudomator_py.store.decision_log import Recorded
from claudomator_py.store.tables import Decision

AT = 1_790_000_000_000
WHY = {"code": "text", "params": {"text": "because"}}
SEEN = {"max_concurrent": 2, "limited": False}
STORED: dict[DecisionKind, dict[str, Any]] = {
    DecisionKind.PLACEMENT: {
        "agent": "claude",
        "tier": "fast",
        "model": "small",
        "effort": "low",
        "classification": {"source": "kept", "clamped_from": "powerful"},
        "constraints": {"tier_ceiling": "fast", "tools": {"disallowed_tools": ["Bash"]}},
        "fallback": "all_limited",
        "stands_in": {"fallback": "small", "model": "big", "after": "overloaded"},
        "candidates": [
            {"agent": "claude", "active": 0, "eligible": True, **SEEN},
            {"agent": "codex", "active": 2, "eligible": False, "rejected": {"code": "text", "params": {}}, **SEEN},
        ],
        "overridden": {"agent": "codex", "because": []},
        "overridden_model": "huge",
    },
    DecisionKind.TIER: {"tier": "fast", "agent": "claude", "classification": {"source": "classifier"}},
    DecisionKind.SPECIALIST: {
        "route": "specialist",
        "specialist": "known",
        "margin": 0.1,
        "degraded": True,
        "owner": "ann",
        "expected_output": "a patch",
        "max_handoffs": 2,
        "escalation": ["hidden", "other", "human_review"],
        "threshold": 0.3,
        "specialist_candidates": [
            {"specialist": "known", "score": 0.9, "parts": {"semantic": 0.7, "tags": 0.2}},
            {"specialist": "hidden", "score": 0.5, "rejected": {"code": "less_alike"}},
            {"specialist": "other", "score": 0.4, "rejected": {"code": "less_alike"}},
        ],
    },
    DecisionKind.POLICY: {
        "verdict": "approved",
        "rules": ["infra"],
        "approved": ["infra"],
        "approved_by": "ann",
        "said": "seen the plan",
        "constraints": {"excluded_agents": ["codex"]},
    },
    DecisionKind.HANDOFF: {
        "route": "specialist",
        "specialist": "known",
        "by": "hidden",
        "run_id": "r1",
        "asked": {"to": "known", "reason": "sql", "done": "the schema", "left": "the rest", "files": ["a.sql"]},
        "hop": 1,
        "max_handoffs": 2,
    },
    DecisionKind.TRIAGE: {
        "rule": "direct_mention",
        "agents": ["known", "hidden"],
        "skipped": {"hidden": "opted_out", "known": "opted_out"},
        "hops": 3,
    },
    DecisionKind.SHADOW: {
        "about": "specialist",
        "beside": "d1",
        "route": "specialist",
        "specialist": "known",
        "verdict": "allowed",
        "rules": ["infra"],
        "actual": {"route": "specialist", "specialist": "hidden", "skill": "secret", "verdict": "allowed"},
        "differs": True,
        "specialist_candidates": [{"specialist": "known", "score": 0.9}, {"specialist": "hidden", "score": 0.5}],
        "candidates": [{"agent": "claude", "active": 0, "eligible": True, **SEEN}],
    },
}


def view(kind: DecisionKind, stored: dict[str, Any], seen: Set[str]) -> DecisionView:
    """The decision of a run that was stored so."""
    record = RECORDS[kind].model_validate({"reason": WHY, **stored})
    row = Decision(id="d", kind=kind.value, run_id="r1", at_ms=AT, data=record.model_dump(mode="json"))
    return view_of(Recorded(row, None, None, None, overridden=False, route=None, run=None), seen, {})


def shown(kind: DecisionKind) -> dict[str, Any]:
    """The same as JSON, for somebody who does not see everybody."""
    return view(kind, STORED[kind], {"known", "other"}).model_dump(mode="json")


def test_every_kind_is_tried() -> None:
    assert set(STORED) == set(RECORDS) == set(DecisionKind)


def test_a_placement_has_the_agents_with_their_limits_and_all_that_bound_it() -> None:
    result = shown(DecisionKind.PLACEMENT)
    assert [agent["agent"] for agent in result["agents"]] == ["claude", "codex"]
    assert result["agents"][1]["rejected"]["code"] == "text"
    assert result["classification"]["clamped_from"] == "powerful"
    assert result["constraints"]["tools"]["disallowed_tools"] == ["Bash"]
    placement = result["placement"]
    assert (placement["fallback_code"], placement["stands_in"]["model"]) == ("all_limited", "big")
    assert (placement["effort"], placement["overridden_model"]) == ("low", "huge")
    assert placement["overridden_hint"].startswith("codex")
    assert placement["told"] == "/v1/runs/r1/handoff"


def test_a_tier_has_where_it_comes_from() -> None:
    assert shown(DecisionKind.TIER)["classification"]["source"] == "classifier"


def test_a_specialist_has_every_part_of_every_score_that_may_be_seen() -> None:
    results = shown(DecisionKind.SPECIALIST)
    known, other = results["specialists"]
    assert known["parts"] == {"semantic": 0.7, "tags": 0.2}
    assert (other["specialist"], other["rejected"], other["needs"]) == ("other", "a weaker match", 0.5)
    selection = results["selection"]
    assert (selection["margin"], selection["degraded"], selection["owner"]) == (0.1, True, "ann")
    assert (selection["expected_output"], selection["max_handoffs"]) == ("a patch", 2)
    assert selection["escalation"] == ["other", "human_review"]


def test_a_verdict_has_its_rules_and_who_approved() -> None:
    results = shown(DecisionKind.POLICY)
    assert results["verdict"] == {
        "verdict": "approved",
        "rules": ["infra"],
        "approved": ["infra"],
        "approved_by": "ann",
        "said": "seen the plan",
    }
    assert results["constraints"]["excluded_agents"] == ["codex"]


def test_a_handoff_has_how_often_and_what_the_run_left() -> None:
    assert shown(DecisionKind.HANDOFF)["handoff"] == {
        "accepted": True,
        "by": None,
        "to": "known",
        "hop": 1,
        "max_handoffs": 2,
        "reason": "sql",
        "done": "the schema",
        "left": "the rest",
        "files": ["a.sql"],
    }


def test_a_triage_has_who_answers_and_who_is_not_asked() -> None:
    assert shown(DecisionKind.TRIAGE)["triage"] == {
        "rule": "direct_mention",
        "agents": ["known"],
        "skipped": {"known": "opted_out"},
        "hops": 3,
    }


@pytest.mark.parametrize("kind", DecisionKind)
def test_what_an_earlier_version_did_not_store_has_its_default(kind: DecisionKind) -> None:
    optional = {name for name, field in RECORDS[kind].model_fields.items() if not field.is_required()}
    stored = {name: value for name, value in STORED[kind].items() if name not in optional}
    assert view(kind, stored, set()).reason


def test_a_shadow_has_both_choices_and_names_nobody_who_does_not_exist() -> None:
    results = shown(DecisionKind.SHADOW)
    assert (results["shadow"]["about"], results["shadow"]["beside"], results["shadow"]["differs"]) == (
        "specialist",
        "d1",
        True,
    )
    assert results["verdict"]["rules"] == ["infra"]
    assert [specialist["specialist"] for specialist in results["specialists"]] == ["known"]
    assert [agent["agent"] for agent in results["agents"]] == ["claude"]
    actual = results["shadow"]["actual"]
    assert (actual["route"], actual["specialist"], actual["skill"]) == ("specialist", None, None)


@pytest.mark.parametrize("kind", DecisionKind)
def test_a_kind_has_its_own_part_and_no_other(kind: DecisionKind) -> None:
    parts = {
        DecisionKind.PLACEMENT: {"placement", "classification"},
        DecisionKind.TIER: {"classification"},
        DecisionKind.SPECIALIST: {"selection"},
        DecisionKind.POLICY: {"verdict"},
        DecisionKind.HANDOFF: {"handoff"},
        DecisionKind.TRIAGE: {"triage"},
        DecisionKind.SHADOW: {"shadow", "verdict"},
    }
    result = shown(kind)
    assert {part for part in set().union(*parts.values()) if result[part] is not None} == parts[kind]
