"""Beginning a task again as somebody asks, inside one transaction: its content, what is pinned, where it continues."""

from sqlalchemy import Connection

from claudomator_py.domain.budget import Budget
from claudomator_py.domain.errors import Conflict, Invalid, Problem, refuse
from claudomator_py.domain.lifecycle import UNSUCCESSFUL
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import Principal
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.task import AgentHint, TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs
from claudomator_py.prompts.conversations import ResumePolicy, conversation_of
from claudomator_py.schema.validation import validate
from claudomator_py.store import dependency_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.feasibility import placement_problems, placement_warnings
from claudomator_py.tasks.readiness import add_content
from claudomator_py.tasks.renewal import renew
from claudomator_py.tasks.specialists import task_problems


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
    """Begin a new generation of the task; one that runs is cancelled first. by: who asks for it. workdirs: what is
    allowed. Raises Conflict when it is queued, or runs and the request does not force it; Invalid.
    """
    if task.state == "QUEUED" and not request.pins:
        remedy = "It starts by itself; `claudomator why` says when. Name a specialist or an agent to change that."
        raise Conflict(f"{task.name} is QUEUED already.", remedy=remedy)
    if task.state == "RUNNING" and not request.force:
        remedy = "Cancel it first, or restart it with `force`, which cancels the run."
        raise Conflict(f"{task.name} is RUNNING.", remedy=remedy)
    failed = [name for name, _, state in dependency_rows.bound(connection, task.id) if state in UNSUCCESSFUL]
    if failed:
        revived = task.state == "FAILED" and task.reason == Reason.DEPENDENCY_FAILED
        then = f"{task.name} is revived with it" if revived else f"then {task.name}"
        remedy = f"Restart {failed[0]} first; {then}."
        raise Conflict(f"{task.name} depends on {', '.join(failed)}, which did not complete.", remedy=remedy)
    earlier = resuming.last_run(connection, task, request) if request.resume else None
    revision = _revision(connection, task, request, earlier, by, now_ms, registry, workdirs)
    if earlier is not None:
        resuming.check(connection, task, earlier, revision)
    data = {"revision": revision, **request.model_dump(mode="json", exclude_none=True)}
    record(connection, now_ms, "restart_requested", task_id=task.id, data=data)
    if task.state == "RUNNING":
        # Which conversation is meant is known for certain when the run has ended.
        task_rows.change(connection, task, now_ms, restart_requested=data, cancel_requested_ms=None)
    else:
        resumption = None if earlier is None else conversation_of(earlier, request.reason, asked=True)
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
    """The content to begin again with: the file's own, or a revision made of it with what the request pins.

    earlier: the run whose conversation continues; a model that is asked for is one of its agent.
    """
    if earlier is not None and request.agent is None and request.model is not None:
        request = request.model_copy(update={"agent": earlier.agent})
    number = task_rows.newest_given_revision(connection, task.id)
    if not request.pins:
        return number
    content = task_rows.revision_of(connection, task.id, number)
    spec = TaskSpec.model_validate(content.spec)
    changes: dict[str, object] = {
        "agent": _hint(spec.agent, request),
        "budget": _budget(spec.budget, request.budget),
    }
    if request.specialist is not None:
        same = request.specialist == spec.specialist
        changes |= {"specialist": request.specialist, "skill": spec.skill if same else None}
    changed = spec.model_copy(update=changes)
    problems = placement_problems(changed, registry, workdirs)
    problems += task_problems(connection, changed, by)
    # Who names an agent now is there to correct it.
    warnings = placement_warnings(changed, registry) if request.agent is not None else []
    refuse([*problems, *warnings])
    revision = task_rows.newest_revision(connection, task.id) + 1
    add_content(connection, task.id, revision, changed, content.dir_key, now_ms, derived_from=number)
    return revision


def _hint(hint: AgentHint, request: RestartRequest) -> AgentHint:
    """What the request says goes first; a model pinned for another agent does not bind this one.

    A tier and a model are two ways to say how strong: one that is asked for replaces the other that was pinned.
    """
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


def _budget(budget: Budget, requested: Budget | None) -> Budget:
    """What is asked for goes first; what it does not name stays."""
    return budget if requested is None else budget.model_copy(update=requested.model_dump(exclude_none=True))
