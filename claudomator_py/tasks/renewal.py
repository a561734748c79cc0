"""Ending a task and beginning it again, inside one transaction: cancelled, restarted, revived with its dependents."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain import lifecycle
from claudomator_py.domain.conversation import ResumedConversation
from claudomator_py.domain.lifecycle import (
    ENDED,
    UNSUCCESSFUL,
    Failed,
    Queued,
    Renewed,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.readiness import rank
from claudomator_py.domain.task import TaskSpec
from claudomator_py.prompts.conversations import columns_of
from claudomator_py.store import dependency_rows, inbox_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Task
from claudomator_py.tasks.readiness import become_ready, propagate_rank, readiness_of, ready_dependents


def request_cancel(connection: Connection, task: Task, now_ms: int) -> Task:
    """Have the run of a RUNNING task end, and with it what was to follow: a restart, and content that came meanwhile.

    A restart of the cancelled task runs that content; and so does its file, when it is saved or dropped again.
    """
    discarded = task.next_revision
    if task.cancel_requested_ms is not None and discarded is None:
        return task
    data = {} if discarded is None else {"discarded_revision": discarded}
    record(connection, now_ms, "cancel_requested", task_id=task.id, run_id=task.last_run_id, data=data)
    if discarded is not None:
        inbox_rows.expect_again(connection, task.id)
    changes = {"cancel_requested_ms": now_ms, "restart_requested": None, "next_revision": None}
    return task_rows.change(connection, task, now_ms, **changes)


def renew(
    connection: Connection,
    task: Task,
    now_ms: int,
    *,
    revision: int,
    new_generation: bool = True,
    data: Mapping[str, Any] | None = None,
    place: int = 0,
    resumption: ResumedConversation | None = None,
) -> Task:
    """Begin again with this content. new_generation: a new generation; else the present one, of which nothing has run.
    place: see ``NewTask``. resumption: the conversation to continue in; None: a fresh one.

    What failed by this task is revived, and so are its own dependents; what was ready because this task had completed
    waits for it again.
    """
    task = _renew(
        connection,
        task,
        now_ms,
        revision=revision,
        new_generation=new_generation,
        data=data,
        place=place,
        resumption=resumption,
    )
    renewed = deque([task])
    while renewed:
        dependency = renewed.popleft()
        if dependency.state in ENDED:
            ready_dependents(connection, dependency, now_ms)
            continue
        for listed in dependency_rows.dependents(connection, dependency.id):
            # Lending its rank may have changed it since it was listed.
            dependent = task_rows.get(connection, listed.id)
            if _revivable(connection, dependent):
                revived = {"revived_by": dependency.name}
                renewed.append(
                    _renew(
                        connection, dependent, now_ms, revision=dependent.revision, new_generation=True, data=revived
                    )
                )
            elif dependent.state in ("WAITING", "QUEUED"):
                spec = task_rows.spec_of(connection, dependent.id, dependent.revision)
                dependent = become_ready(connection, dependent, spec, now_ms)
                propagate_rank(connection, dependent, now_ms)
                if dependent.state in ENDED:
                    renewed.append(dependent)
    return task_rows.get(connection, task.id)


def _renew(
    connection: Connection,
    task: Task,
    now_ms: int,
    *,
    revision: int,
    new_generation: bool,
    data: Mapping[str, Any] | None,
    place: int = 0,
    resumption: ResumedConversation | None = None,
) -> Task:
    content = task_rows.revision_of(connection, task.id, revision)
    spec = TaskSpec.model_validate(content.spec)
    dependency_rows.replace(connection, task.id, spec.needs)
    new_generation = new_generation or task.seq > 0
    changes: dict[str, Any] = {
        "revision": revision,
        "next_revision": None,
        "generation": task.generation + 1 if new_generation else task.generation,
        "attempt": 0,
        "seq": 0,
        "tier": None if resumption is None else resumption.tier,
        "priority": int(spec.priority),
        "rank_ms": rank(spec.priority, now_ms + place),
        "dir_key": content.dir_key,
        "thread": None,
        "asked_tier": None,
        "failed_on": None,
        "failed_for": None,
        **columns_of(resumption, spec),
        "tags": list(spec.tags),
        "cancel_requested_ms": None,
        "restart_requested": None,
        "asks": None,
        "kept_until_ms": None,
        "approved_ms": None,
        "granted_tools": None,
        "specialist": None,
        "skill": None,
        "risk": None,
        "constraints": None,
    }
    into: Queued | Waiting = Waiting(WaitReason.DEPENDENCY)
    if not spec.needs:
        readiness = readiness_of(connection, task, spec, None, now_ms, approved=False)
        into = readiness if isinstance(readiness, Queued | Waiting) else into
    task = task_rows.advance(connection, task, Renewed(into), now_ms, data=data, **changes)
    task = become_ready(connection, task, spec, now_ms)
    propagate_rank(connection, task, now_ms)
    return task


def _revivable(connection: Connection, dependent: Task) -> bool:
    """Whether it failed by a dependency, and none of them stands in its way any more."""
    if task_rows.state_of(dependent) != Failed(Reason.DEPENDENCY_FAILED):
        return False
    states = dependency_rows.states(connection, dependent.id)
    return not any(dependency.state in UNSUCCESSFUL for dependency in states)


def cancel_now(connection: Connection, task: Task, now_ms: int, *, data: Mapping[str, Any] | None = None) -> Task:
    """Cancel a task of which no run lives."""
    task = task_rows.advance(connection, task, lifecycle.Cancelling(), now_ms, data=data, cancel_requested_ms=None)
    ready_dependents(connection, task, now_ms)
    return task
