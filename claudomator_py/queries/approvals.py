"""Approvals: which tasks wait for one, and what became of others."""

from collections.abc import Mapping
from typing import Literal

from sqlalchemy import JSON, Connection, and_, or_, select, type_coerce

from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.views import TaskFilter
from claudomator_py.domain.views.policy import ApprovalsView, HeldTaskView, SettledApprovalView
from claudomator_py.store import events, reads
from claudomator_py.store.tables import EVENT, TASK, Task
from claudomator_py.store.visibility import tasks_seen
from claudomator_py.tasks.inputs import asked_before, asked_of, may_approve

MOST = 200
"""Tasks that are looked at, of those that need input: the newest."""
_SAMPLE = 20_000
"""Events that are looked at: the newest."""
_SHOWN = 50
_OUTCOMES: Mapping[str, Literal["given", "refused", "expired"]] = {
    "approved": "given",
    "rejected": "refused",
    "state": "expired",
}


def view(connection: Connection, by: Principal) -> ApprovalsView:
    """Those of tasks that exist for that principal."""
    asking = reads.page(connection, TaskFilter(state="NEEDS_INPUT"), None, MOST, by)
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
    expired = type_coerce(EVENT.c.data, JSON)["reason"].as_string() == Reason.EXPIRED.value
    query = (
        select(EVENT.c.kind, EVENT.c.by, EVENT.c.data, EVENT.c.at_ms, EVENT.c.task_id, TASK.c.name, TASK.c.asks)
        .join(TASK, TASK.c.id == EVENT.c.task_id)
        .where(
            EVENT.c.id > events.last_id(connection) - _SAMPLE,
            EVENT.c.run_id.is_(None),
            or_(EVENT.c.kind.in_(("approved", "rejected")), and_(EVENT.c.kind == "state", expired)),
            tasks_seen(by),
        )
        .order_by(EVENT.c.id.desc())
        .limit(_SHOWN)
    )
    return tuple(
        SettledApprovalView(
            task_id=task_id,
            task_name=name,
            outcome=_OUTCOMES[kind],
            by=None if kind == "state" else principal,
            why=data.get("why") if kind == "approved" else data.get("reason") if kind == "rejected" else None,
            rules=tuple(data.get("rules") or (asks or {}).get("rules") or ()),
            at=at_ms,
        )
        for kind, principal, data, at_ms, task_id, name, asks in connection.execute(query)
        if kind != "state" or (asks or {}).get("kind") == InputKind.APPROVAL.value
    )
