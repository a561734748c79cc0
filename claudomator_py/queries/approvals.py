"""Approvals: which tasks wait for one, and what became of others."""

from collections.abc import Mapping
from typing import Literal

from sqlalchemy import Connection

from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.views.policy import ApprovalsView, HeldTaskView, SettledApprovalView
from claudomator_py.store import events, reads
from claudomator_py.store.tables import Task
from claudomator_py.tasks.inputs import asked_before, asked_of, may_approve

MAX_SHOWN = 200
"""Tasks that are looked at, of those that need input: the newest."""
_SAMPLE = 20_000
"""Events that are looked at: the newest."""
_SHOWN = 50
_OUTCOMES: Mapping[str, Literal["given", "refused", "expired"]] = {
    "approved": "given",
    "rejected": "refused",
    "state": "expired",
}
_WHY = {"approved": "why", "rejected": "reason"}
"""Under which key such an event has the person's words."""


def view(connection: Connection, by: Principal) -> ApprovalsView:
    """Those of tasks that exist for that principal."""
    asking = reads.page(connection, TaskFilter(state="NEEDS_INPUT"), None, MAX_SHOWN, by)
    waiting = [held for held in (_held(task, by) for task in asking) if held is not None]
    waiting.sort(key=lambda held: held.since)
    return ApprovalsView(waiting=tuple(waiting), settled=_settled(connection, by))


def _held(task: Task, by: Principal) -> HeldTaskView | None:
    asked = asked_of(task) or asked_before(task)
    if asked.kind is not InputKind.APPROVAL or asked.run_id is not None:
        return None
    return HeldTaskView.of(
        asked,
        task_id=task.id,
        task_name=task.name,
        version=task.version,
        text=asked.words,
        since=asked.since_ms,
        until=asked.until_ms,
        allowed=may_approve(asked, by),
    )


def _settled(connection: Connection, by: Principal) -> tuple[SettledApprovalView, ...]:
    return tuple(
        SettledApprovalView.of(
            one,
            outcome=_OUTCOMES[one.kind],
            by=None if one.kind == "state" else one.by,
            why=one.data.get(_WHY[one.kind]) if one.kind in _WHY else None,
            rules=tuple(one.data.get("rules") or one.asks.get("rules") or ()),
            at=one.at_ms,
        )
        for one in events.settled_inputs(connection, by, sample=_SAMPLE, limit=_SHOWN)
        if one.kind != "state" or one.asks.get("kind") == InputKind.APPROVAL.value
    )
