"""The handoff document, and what a task demands of it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from claudomator_py.domain.handoff import Authority, Defect, Evidence, HandedOn, Handoff, PermissionScope, validity
from claudomator_py.domain.task import PermissionMode

DEADLINE = datetime(2026, 11, 23, 12, tzinfo=UTC)


def document(**fields: Any) -> Handoff:
    return Handoff(**{"version": 1, "task": "t", "revision": 1, "run": "r", "deadline": DEADLINE, **fields})


def test_it_reads_what_it_writes_and_writes_no_defaults() -> None:
    whole = document(intent="fix it", permissions=PermissionScope(allowed_tools=("Edit",)))
    assert Handoff.model_validate_json(whole.text) == whole
    assert "skill" not in whole.text


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 2},
        {"history": "all of it"},
        {"deadline": None},
        {"intent": "x" * 201},
        {"permissions": {"allowed_tools": ["Bash"], "forbidden_tools": ["Bash"]}},
        {"evidence": Evidence(runs=("r",))},
        {"handoffs": 3, "max_handoffs": 2, "before": HandedOn(run="b")},
    ],
)
def test_what_does_not_hold_together_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        document(**fields)


def test_it_is_measured_against_what_a_task_demands() -> None:
    edits = document(permissions=PermissionScope(mode=PermissionMode.ACCEPT_EDITS), max_handoffs=2, intent="x")
    assert validity(edits, ["intent", "evidence.runs"], ["deadline"], Authority.DRAFT, 1) == (
        (Defect.LACKS, "evidence.runs"),
        (Defect.TELLS, "deadline"),
        (Defect.AUTHORITY_EXPANDED, "permissions.mode"),
        (Defect.TOO_MANY_HANDOFFS, "max_handoffs"),
    )
    assert validity(edits, ["intent", "max_handoffs"], ["before.done"], Authority.WRITE_AFTER_APPROVAL, 2) == ()
    assert validity(edits, ["evidence", "permissions"]) == ((Defect.LACKS, "evidence"),), "of defaults it says nothing"
    with pytest.raises(ValueError, match="no field"):
        validity(edits, ["colour"])


@pytest.mark.parametrize(("handoffs", "before"), [(2, HandedOn(run="b")), (3, None)])
def test_as_many_handoffs_as_are_allowed_hold_and_an_old_number_where_none_comes_before(
    handoffs: int, before: HandedOn | None
) -> None:
    assert document(handoffs=handoffs, max_handoffs=2, before=before).handoffs == handoffs


@pytest.mark.parametrize("mode", PermissionMode)
def test_no_mode_is_freer_than_its_authority_says(mode: PermissionMode) -> None:
    made = document(permissions=PermissionScope(mode=mode))
    assert (made.authority is Authority.WRITE) == (mode is PermissionMode.BYPASS)
    assert (validity(made, max_authority=Authority.READ) == ()) == (mode is PermissionMode.PLAN)
