"""Ending a task or beginning it again, inside one transaction: cancel, restart, and revive its dependents."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain import lifecycle
from claudomator_py.domain.errors import Conflict, Invalid, Problem, refuse
from claudomator_py.domain.lifecycle import (
    ENDED,
    UNSUCCESSFUL,
    Failed,
    Phase,
    Queued,
    Renewed,
    Waiting,
    WaitReason,
    rank,
)
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.run import ResumedConversation
from claudomator_py.domain.task import AgentHint, TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.prompts.conversations import ResumePolicy, columns_of, requested
from claudomator_py.schema.validation import validate
from claudomator_py.store import dependency_rows, inbox_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.feasibility import placement_problems, placement_warnings, unknown_agent
from claudomator_py.tasks.readiness import (
    become_ready,
    propagate_rank,
    readiness_of,
    ready_dependents,
    refuse_after_failed,
)
from claudomator_py.tasks.specialists import task_problems


def request_cancel(connection: Connection, task: Task, now_ms: int) -> Task:
    """Have the run of a RUNNING task end, and discard what was to follow it: a restart, and content that arrived
    meanwhile.

    Restarting the cancelled task runs the discarded content; so does its file, when saved or dropped again.
    """
    discarded = task.next_revision
    if task.cancel_requested_ms is not None and discarded is None:
        return task
    data = {} if discarded is None else {"discarded_revision": discarded}
    record(connection, now_ms, "cancel_requested", task_id=task.id, run_id=task.last_run_id, data=data)
    if discarded is not None:
        inbox_rows.expect_again(connection, task.id)
    return _stopping(connection, task, now_ms, cancel_requested_ms=now_ms, restart_requested=None, next_revision=None)


def _stopping(connection: Connection, task: Task, now_ms: int, **changes: Any) -> Task:
    """Write these columns of a RUNNING task whose run is to end."""
    if task.phase == Phase.STOPPING.value:
        return task_rows.change(connection, task, now_ms, **changes)
    event = lifecycle.PhaseReached(Phase.STOPPING)
    return task_rows.advance(connection, task, event, now_ms, run_id=task.last_run_id, **changes)


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
    """Begin the task again with this content. new_generation: a new generation; else the current one, of which nothing
    has run. place: see ``NewTask``. resumption: the conversation to continue; None: a fresh one.

    Dependents that failed because of this task are revived, and theirs in turn; those that were ready because this task
    had completed wait for it again.
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
            # Inheriting a rank may have changed the row since it was listed.
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
    dependency_rows.replace(connection, task.id, spec.prerequisites)
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
    if not spec.prerequisites:
        readiness = readiness_of(connection, task, spec, None, now_ms)
        into = readiness if isinstance(readiness, Queued | Waiting) else into
    task = task_rows.advance(connection, task, Renewed(into), now_ms, data=data, **changes)
    task = become_ready(connection, task, spec, now_ms)
    propagate_rank(connection, task, now_ms)
    return task


def _revivable(connection: Connection, dependent: Task) -> bool:
    """Whether the task failed because of a dependency, and none of its dependencies is unsuccessful any more."""
    if task_rows.state_of(dependent) != Failed(Reason.DEPENDENCY_FAILED):
        return False
    states = dependency_rows.states(connection, dependent.id)
    return not any(dependency.state in UNSUCCESSFUL for dependency in states)


def cancel_now(connection: Connection, task: Task, now_ms: int, *, data: Mapping[str, Any] | None = None) -> Task:
    """Cancel a task that has no live run."""
    task = task_rows.advance(connection, task, lifecycle.Cancelling(), now_ms, data=data, cancel_requested_ms=None)
    ready_dependents(connection, task, now_ms)
    return task


def restart(
    connection: Connection,
    task: Task,
    request: RestartRequest,
    by: Principal,
    now_ms: int,
    *,
    registry: AgentRegistry,
    workdirs: Workdirs,
    resuming: ResumePolicy,
) -> None:
    """Begin a new generation of the task; a running task is cancelled first. by: the caller. workdirs: the allowed
    directories. Raises Conflict if the task is queued and the request pins nothing, if it is running and not forced,
    or if a dependency did not complete; Invalid."""
    if task.state == "QUEUED" and not request.pins:
        remedy = "It starts by itself; `claudomator why` says when. Name a specialist or an agent to change that."
        raise Conflict(f"{task.name} is QUEUED already.", remedy=remedy)
    if task.state == "RUNNING" and not request.force:
        remedy = "Cancel it first, or restart it with `force`, which cancels the run."
        raise Conflict(f"{task.name} is RUNNING.", remedy=remedy)
    refuse_after_failed(connection, task)
    earlier = resuming.last_run(connection, task, request) if request.resume else None
    revision = _revision(connection, task, request, earlier, by, now_ms, registry, workdirs)
    if earlier is not None:
        resuming.check(connection, task, earlier, revision)
    data = {"revision": revision, **request.model_dump(mode="json", exclude_none=True)}
    record(connection, now_ms, "restart_requested", task_id=task.id, data=data)
    if task.state == "RUNNING":
        # Which conversation to resume is only certain once the run has ended.
        _stopping(connection, task, now_ms, restart_requested=data, cancel_requested_ms=None)
    else:
        resumption = None if earlier is None else requested(task, earlier, request.reason)
        renew(connection, task, now_ms, revision=revision, data={"restart": data}, resumption=resumption)


def _revision(
    connection: Connection,
    task: Task,
    request: RestartRequest,
    earlier: Run | None,
    by: Principal,
    now_ms: int,
    registry: AgentRegistry,
    workdirs: Workdirs,
) -> int:
    """The revision to begin again with: the newest one given, or a new one derived from it with what the request pins.
    earlier: the run whose conversation continues; a requested model is one of its agent's."""
    if earlier is not None and request.agent is None and request.model is not None:
        request = request.model_copy(update={"agent": earlier.agent})
    number = task_rows.newest_submitted_revision(connection, task.id)
    if not request.pins:
        return number
    content = task_rows.revision_of(connection, task.id, number)
    spec = TaskSpec.model_validate(content.spec)
    limits = {} if request.budget is None else request.budget.model_dump(exclude_none=True)
    budget = spec.budget.model_copy(update=limits)
    changes: dict[str, object] = {"agent": _hint(spec.agent, request), "budget": budget}
    if request.specialist is not None:
        same = request.specialist == spec.specialist
        changes |= {"specialist": request.specialist, "skill": spec.skill if same else None}
    changed = spec.model_copy(update=changes)
    problems = placement_problems(changed, registry, workdirs)
    problems += task_problems(connection, changed, by)
    # A caller who names an agent now can correct it, so what is otherwise a warning is refused.
    if request.agent is not None and placement_warnings(changed, registry):
        problems.append(unknown_agent(request.agent, registry))
    refuse(problems)
    revision = task_rows.newest_revision(connection, task.id) + 1
    task_rows.add_content(connection, task.id, revision, changed, content.dir_key, now_ms, derived_from=number)
    return revision


def _hint(hint: AgentHint, request: RestartRequest) -> AgentHint:
    """The request overrides the hint; a model pinned for another agent is dropped. A tier and a model both say how
    strong the model should be, so requesting one replaces a pinned other."""
    agent = hint.type if request.agent is None else request.agent
    same_agent = agent == hint.type
    model = request.model or (hint.model if same_agent and request.tier is None else None)
    tier = request.tier or (hint.tier if request.model is None else None)
    if model is not None and agent is None:
        refuse([Problem(field="model", message="requires an agent", remedy="also give `agent`")])
    pinned = {"type": agent, "tier": tier, "model": model, "strict": hint.strict and same_agent}
    changed = validate(AgentHint, pinned, {}, ("agent",))
    if not isinstance(changed, AgentHint):
        raise Invalid.of(changed)
    return changed
