"""Continuing a conversation: which one a restart refers to, whether that is possible, and what is stored about it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain.errors import Conflict, Invalid, Problem
from claudomator_py.domain.lifecycle import UNENDED
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.routing import OPEN, Constraints
from claudomator_py.domain.run import Conversations, ResumedConversation, Usage
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import short_id
from claudomator_py.domain.worktree import Isolation
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import resolve
from claudomator_py.ports import RunHost
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.store import dependency_rows, run_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.values import dataclass

GIVEN_UP = "conversation_given_up"
"""The event: ``resumes`` is the run whose conversation it was, ``why`` the reason in words."""
_FRESH = "Restart it without `resume`."


def columns_of(resumption: ResumedConversation | None, spec: TaskSpec) -> dict[str, Any]:
    """Return the columns that store the conversation, including eligibility, which depends on it."""
    return {
        "resume": None if resumption is None else resumption.model_dump(mode="json"),
        **lane_columns(spec, resumption),
    }


def conversation_of(run: Run) -> ResumedConversation | None:
    """Return the conversation of a run that has ended; None if there is none to continue."""
    if run.state != "ended" or run.conversation_id is None:
        return None
    return ResumedConversation(
        run_id=run.id,
        agent=run.agent,
        kind=run.kind,
        tier=run.tier,
        revision=run.revision,
    )


def requested(task: Task, run: Run, words: str | None) -> ResumedConversation | None:
    """Return the conversation of a run that has ended, which an operator requests; None if there is none to continue.
    The operator's answer to that run is kept if no run has heard it yet; what was approved is to be asked for again.
    words: see ``ResumedConversation``."""
    conversation, pending = conversation_of(run), resumption_of(task)
    if conversation is None:
        return None
    changes: dict[str, Any] = {"words": words, "asked": True}
    if pending is not None and pending.answering and pending.run_id == run.id and not pending.heard[-1].allowed:
        changes |= {"heard": pending.heard, "answering": True}
    return conversation.model_copy(update=changes)


def used_by(run: Run) -> Usage:
    """Return what the run's conversation had used by the end of the run."""
    before = Usage() if run.prior is None else Usage.model_validate(run.prior)
    return before.after(None if run.outcome is None else Outcome.model_validate(run.outcome))


def scratch_of(run: Run) -> str:
    """Return the run whose scratch folder this run works in."""
    return run.scratch_of or run.id


def resuming_columns(
    connection: Connection, task: Task, run: Run, *, optional: bool = False, confirms: bool = False
) -> dict[str, Any]:
    """Return the columns with which the next attempt continues the conversation of this run, which has ended.

    optional: unless another agent can start sooner. confirms: see ``ResumedConversation``. If this run itself continued
    a conversation, what was new to that is repeated, as it is unknown whether it was taken in before the run ended. A
    conversation that was explicitly requested is not taken over by another agent.
    """
    resumption = resumption_of(task)
    spec = task_rows.spec_of(connection, task.id, run.revision)
    if resumption is not None and run.resumes is not None:
        optional = resumption.optional or (optional and not resumption.asked)
        confirms = confirms or resumption.confirms
        resumption = resumption.model_copy(update={"run_id": run.id, "optional": optional, "confirms": confirms})
        return columns_of(resumption, spec)
    ended = run_rows.find(connection, run.id)
    before = {} if resumption is None else {"follows": resumption.follows, "heard": resumption.heard}
    resumption = None if ended is None else conversation_of(ended)
    if resumption is not None:
        resumption = resumption.model_copy(update={"optional": optional, "confirms": confirms, **before})
    return columns_of(resumption, spec)


def give_up_conversation(connection: Connection, task: Task, run_id: str, why: str, now_ms: int) -> dict[str, Any]:
    """Record that a fresh conversation starts although one was to be continued; return the task's columns to write.
    run_id: the run that could not, or could no longer, continue it."""
    resumption = resumption_of(task)
    if resumption is None:
        return {}
    record_fresh_start(connection, task, run_id, resumption.run_id, why, now_ms)
    spec = task_rows.spec_of(connection, task.id, task.revision)
    return columns_of(resumption.model_copy(update={"given_up": True}), spec)


def record_fresh_start(
    connection: Connection, task: Task, run_id: str | None, resumes: str, why: str, now_ms: int
) -> None:
    """Record that a conversation does not continue. run_id: the run that could not continue it; resumes: the run whose
    conversation it is."""
    record(connection, now_ms, GIVEN_UP, task_id=task.id, run_id=run_id, data={"resumes": resumes, "why": why})


def forced_conversation(
    connection: Connection, task: Task, run: Run, restart: Mapping[str, Any], revision: int, now_ms: int
) -> ResumedConversation | None:
    """Return the conversation that a forced restart continues, now that the run it cancelled has ended; None for a
    fresh one.

    If that run never started, this is the conversation it was to continue. If the content has changed since the
    request, a fresh conversation starts.
    """
    ended = run_rows.find(connection, run.id) or run
    if ended.state == "revoked" and ended.resumes is not None:
        ended = run_rows.find(connection, ended.resumes) or ended
    if revision != restart["revision"]:
        record_fresh_start(connection, task, None, ended.id, "the content has changed since", now_ms)
        return None
    meant = requested(task, ended, restart.get("reason"))
    if meant is None:
        record_fresh_start(connection, task, None, ended.id, f"{ended.agent} had not begun it", now_ms)
    return meant


class ResumePolicy:
    """Checks whether a restart can continue the last conversation."""

    def __init__(self, registry: AgentRegistry, host: RunHost) -> None:
        self._registry = registry
        self._host = host

    def last_run(self, connection: Connection, task: Task, request: RestartRequest) -> Run:
        """Return the run whose conversation is meant: the last one that was started. Raises Conflict or Invalid."""
        runs = [run for run in run_rows.of_task(connection, task.id) if run.state != "revoked"]
        if not runs:
            raise Conflict(f"No run of {task.name} has begun, so it has no conversation.", remedy=_FRESH)
        run = runs[-1]
        where = f"The last run of {task.name} ({short_id(run.id)})"
        agent = self._registry.find(run.agent)
        if agent is None or agent.kind != run.kind:
            remedy = f"Configure {run.agent} as kind {run.kind} again, or restart it without `resume`."
            raise Conflict(f"{where} was on {run.agent}, which is no longer configured.", remedy=remedy)
        if self._registry.kind_of(agent).conversations is Conversations.NONE:
            raise Conflict(f"{where} was on {run.agent}, a {run.kind}, which holds no conversations.", remedy=_FRESH)
        if request.agent not in (None, agent.name, agent.kind):
            message = f"{request.agent} cannot continue a conversation that {agent.name} has"
            raise Invalid.of([Problem(field="agent", message=message, remedy="leave out `agent`, or `resume`")])
        if not run.live and conversation_of(run) is None:
            raise Conflict(f"{where} left no conversation behind.", remedy=_FRESH)
        return run

    def check(self, connection: Connection, task: Task, run: Run, revision: int) -> None:
        """Check whether the agent can continue with this content, in the same folder. Raises Conflict or Invalid."""
        spec = task_rows.spec_of(connection, task.id, revision)
        before = task_rows.spec_of(connection, task.id, run.revision)
        if spec.continues is not None and stays(spec, before):
            # It works where the task that it continues works, as before.
            spec = spec.model_copy(update={"working_dir": before.working_dir, "isolation": before.isolation})
        if not same_folder(spec, before):
            was, now = (each.working_dir or "a scratch folder" for each in (before, spec))
            detail = f"The conversation belongs to {was}, and {task.name} now works in {now}."
            raise Conflict(detail, remedy=_FRESH)
        if spec.isolation is not before.isolation:
            detail = f"The conversation belongs to another folder: {task.name} has isolation {spec.isolation} by now."
            raise Conflict(detail, remedy=_FRESH)
        if spec.working_dir is None and self._host.scratch(scratch_of(run)) is None:
            raise Conflict(f"The scratch folder of run {short_id(scratch_of(run))} is gone.", remedy=_FRESH)
        agent = self._registry.find(run.agent)
        lacking = [] if agent is None else self._registry.unsupported(spec, agent)
        if lacking:
            remedy = "leave it out, or restart it without `resume`"
            raise Invalid.of([Problem(field="resume", message=sentence, remedy=remedy) for sentence in lacking])

    def obstacle(self, earlier: Run | None, spec: TaskSpec, agent: str, rules: Constraints = OPEN) -> str | None:
        """Return why a run about to start on that agent cannot continue the earlier run's conversation after all, or
        None. rules: of the run's task."""
        if earlier is None or earlier.conversation_id is None:
            return "it is no longer known"
        chosen = self._registry.find(agent)
        if chosen is None or (chosen.name, chosen.kind) != (earlier.agent, earlier.kind):
            return self._elsewhere(earlier.agent, earlier.kind)
        if spec.working_dir is None and self._host.scratch(scratch_of(earlier)) is None:
            return "its scratch folder is gone"
        return self._host.conversation_obstacle(earlier.id, self._registry.hosts(spec, chosen, rules))

    def _elsewhere(self, name: str, kind: str) -> str:
        """Why another agent has started a task whose conversation the named agent has."""
        holder = self._registry.find(name)
        if holder is None or holder.kind != kind:
            return f"{name}, which has it, is no longer configured"
        problem = self._registry.health(name).problem
        if problem is not None:
            return f"{name}, which has it, cannot run: {problem}"
        return f"{name}, which has it, could not take the task"


def same_folder(spec: TaskSpec, other: TaskSpec) -> bool:
    """Return whether both tasks work in the same folder, as far as their content says."""
    return _folder(spec) == _folder(other)


def stays(spec: TaskSpec, assigned: TaskSpec) -> bool:
    """Return whether a task works in the same place as the one it continues, whose content was ``assigned``.

    This includes a task that names the same directory again without asking for isolation: in the repository itself it
    would neither see the other's work in its work tree nor be kept away from the checkout.
    """
    return spec.working_dir is None or (spec.isolation is Isolation.NONE and same_folder(spec, assigned))


def _folder(spec: TaskSpec) -> str | None:
    if spec.working_dir is None:
        return None
    try:
        return str(resolve(spec.working_dir))
    except (OSError, RuntimeError):
        return spec.working_dir


@dataclass(frozen=True, slots=True)
class Followed:
    """What a task takes over from the one it continues."""

    spec: TaskSpec
    """The task's content with the place where it works."""
    dir_key: str | None
    """Directory key of the place taken over; None if the place is the task's own."""
    thread: str
    """The task that began the thread."""
    resumption: ResumedConversation | None
    """The conversation; if given up, it only tells whose work continues."""
    why: str | None = None
    """The reason, if it is given up."""


def followed(connection: Connection, task: Task, spec: TaskSpec) -> Followed | None:
    """Return what the task takes over from the completed task that it continues; None if it continues none."""
    other = None if spec.continues is None else dependency_rows.dependency(connection, task, spec.continues)
    if other is None:
        return None
    thread = other.thread or other.id
    run = None if other.last_run_id is None else run_rows.find(connection, other.last_run_id)
    if run is None:
        return Followed(spec, None, thread, None)
    content = task_rows.revision_of(connection, other.id, run.revision)
    assigned = TaskSpec.model_validate(content.spec)
    placed, dir_key = spec, None
    if assigned.working_dir is not None and stays(spec, assigned):
        placed = spec.model_copy(update={"working_dir": assigned.working_dir, "isolation": assigned.isolation})
        dir_key = content.dir_key
    why = _why_not(run, assigned, placed)
    resumption = ResumedConversation(
        run_id=run.id,
        agent=run.agent,
        kind=run.kind,
        tier=run.tier,
        revision=task.revision,
        given_up=why is not None,
        follows=run.id,
    )
    return Followed(placed, dir_key, thread, resumption, why)


def still_needed_by(connection: Connection, task: Task) -> Task | None:
    """Return a task that has not ended and continues in the place of this one, or will; None if no other task needs
    that place."""
    for other in task_rows.unended_of_thread(connection, task.thread or task.id):
        if other.id != task.id:
            return other
    for other in dependency_rows.dependents(connection, task.id):
        if other.state in UNENDED:
            spec = task_rows.spec_of(connection, other.id, other.revision)
            if spec.continues == task.name:
                return other
    return None


def _why_not(run: Run, assigned: TaskSpec, spec: TaskSpec) -> str | None:
    """Why the conversation cannot continue, judging by what is known before an agent is chosen."""
    if conversation_of(run) is None:
        return f"{run.agent} left none behind"
    if spec.agent.type not in (None, run.agent, run.kind):
        return f"{spec.name} asks for {spec.agent.type}, and {run.agent} has it"
    if not same_folder(spec, assigned):
        return (
            f"it belongs to {assigned.working_dir or 'a scratch folder'}, and {spec.name} works in {spec.working_dir}"
        )
    if spec.isolation is not assigned.isolation:
        where = "a work tree" if assigned.isolation is Isolation.WORKTREE else "the repository itself"
        return f"it belongs to {where}, and {spec.name} has isolation {spec.isolation}"
    return None
