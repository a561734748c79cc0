"""Decisions of each kind as people read them."""

from collections.abc import Mapping
from typing import Any

import pytest

from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.resources.decisions.sentences import said_of, sentences_of
from claudomator_py.store.tables import Decision

AT = 1_790_000_000_000


def row(kind: str, **data: Any) -> Decision:
    return Decision(id="d1", kind=kind, task_id="t1", generation=1, at_ms=AT, data=data)


def because(code: RationaleCode, **params: Any) -> Mapping[str, Any]:
    return {"code": code.value, "params": params}


DENIED = row("policy", reason=because(RationaleCode.VAGUE), verdict="denied", rules=["no-production"])
HELD = row(
    "policy",
    reason=because(RationaleCode.VAGUE),
    verdict="held",
    rules=["infra", "late"],
    constraints={"excluded_agents": ["codex"], "tier_ceiling": "fast"},
)
APPROVED = row(
    "policy",
    reason=because(RationaleCode.VAGUE),
    verdict="approved",
    approved=["infra"],
    approved_by="ann",
    said="seen the plan",
)


@pytest.mark.parametrize(
    ("decision", "record"),
    [
        (DENIED, ("The policy refuses the task: ", "Without rule no-production, this verdict would not stand.")),
        (HELD, ("Without the rules infra, late,", "Not on codex.", "Tier from fast to fast.")),
        (APPROVED, ("A person approved the task: ", "ann approved it.", "Approved for this content: infra.")),
    ],
)
def test_a_verdict(decision: Decision, record: tuple[str, ...]) -> None:
    text = " ".join(sentences_of(decision, set()))
    assert [words for words in record if words not in text] == []


def test_what_an_approver_said_stands_apart() -> None:
    assert said_of(APPROVED, set()) == (("Reason for the approval", "seen the plan"),)


def test_a_tier() -> None:
    data: dict[str, Any] = {
        "tier": "fast",
        "agent": "claude",
        "classification": {"source": "classifier", "reason": "short"},
    }
    sentences = sentences_of(row("tier", reason=because(RationaleCode.ANSWERED), **data), set())
    assert sentences[0] == "The task needs a model of tier fast: as the classifier says (short)."
    data |= {"tier": None, "classification": {"source": "default", "cause": "timeout"}}
    sentences = sentences_of(row("tier", reason=because(RationaleCode.UNANSWERED), **data), set())
    assert sentences[0].startswith("No tier was chosen: the agent's default (the classifier did not answer in time")


def test_a_placement_that_had_no_choice() -> None:
    seen = {"max_concurrent": 2, "limited": False}
    data = {
        "agent": "claude",
        "tier": "fast",
        "model": None,
        "classification": {"source": "default"},
        "candidates": [
            {"agent": "claude", "active": 0, "eligible": True, **seen},
            {"agent": "codex", "active": 2, "eligible": False, **seen},
        ],
    }
    sentences = sentences_of(row("placement", reason=because(RationaleCode.LEAST_ACTIVE), **data), set())
    assert sentences[0] == "The run went to claude: least active (0 of 2 slots)."
    assert "Another agent would have been picked only" in sentences[-1]


def test_a_handoff_names_only_who_exists() -> None:
    data = {
        "route": "specialist",
        "specialist": "hidden",
        "by": "known",
        "run_id": "r1",
        "asked": {"to": "hidden", "done": "the schema"},
        "hop": 1,
        "max_handoffs": 2,
        "reason": because(RationaleCode.HANDED_ON, by="known", specialist="hidden"),
    }
    decision = row("handoff", **data)
    record, message = sentences_of(decision, {"known"}), said_of(decision, {"known"})
    assert "hidden" not in " ".join((*record, *(text for _, text in message)))
    assert message == (("Done", "the schema"),)
    assert record[-1] == "It had been handed on 0 of at most 2 times."
    assert "handed on to hidden" in sentences_of(decision, {"known", "hidden"})[0]


def test_triage_names_only_who_exists() -> None:
    data = {"rule": "direct_mention", "agents": ["known", "hidden"], "skipped": {"hidden": "rate_limited"}, "hops": 2}
    code = RationaleCode.NO_MATCH
    sentences = sentences_of(row("triage", reason=because(code), **data), {"known"})
    assert sentences[0].startswith("known, somebody else answer: ")
    assert sentences[1:] == ("somebody else was not asked: rate limited.", "2 agent messages led to it.")
