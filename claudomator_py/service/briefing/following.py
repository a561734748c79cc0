"""Going on after another task: where, in which conversation, and in which thread, once that task has completed."""

from dataclasses import dataclass

from sqlalchemy import Connection

from claudomator_py.core.conversation import Resumption
from claudomator_py.core.task import Isolation, TaskSpec
from claudomator_py.service.briefing.resuming import conversation_of, same_folder
from claudomator_py.store import dependency_rows, run_rows, task_rows
from claudomator_py.store.tables import Run, Task


@dataclass(frozen=True, slots=True)
class Followed:
    """What a task takes over from the one that it continues.

    spec, dir_key: its content with the place that it works in; dir_key None: that is its own. thread: the task that
    began the thread. resumption: the conversation; one that is given up tells only whose work goes on. why: the cause,
    if it is given up.
    """

    spec: TaskSpec
    dir_key: str | None
    thread: str
    resumption: Resumption | None
    why: str | None = None


def followed(connection: Connection, task: Task, spec: TaskSpec) -> Followed | None:
    """What it takes over; None: it continues none. The task that it continues has completed."""
    other = _continued(connection, task, spec)
    if other is None:
        return None
    thread = other.thread or other.id
    run = None if other.last_run_id is None else run_rows.find(connection, other.last_run_id)
    if run is None:
        return Followed(spec, None, thread, None)
    content = task_rows.revision_of(connection, other.id, run.revision)
    told = TaskSpec.model_validate(content.spec)
    placed, dir_key = spec, None
    if spec.working_dir is None and told.working_dir is not None:
        placed = spec.model_copy(update={"working_dir": told.working_dir, "isolation": told.isolation})
        dir_key = content.dir_key
    why = _why_not(run, told, placed)
    resumption = Resumption(
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
    """A task that has not ended and goes on where this one was, or is to; None: no other task needs that any more."""
    for other in task_rows.unended_of_thread(connection, task.thread or task.id):
        if other.id != task.id:
            return other
    for other in dependency_rows.dependents(connection, task.id):
        if other.state in ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT"):
            spec = task_rows.spec_of(connection, other.id, other.revision)
            if spec.continues == task.name:
                return other
    return None


def _continued(connection: Connection, task: Task, spec: TaskSpec) -> Task | None:
    if spec.continues is None:
        return None
    bound = {name: task_id for name, task_id, _ in dependency_rows.bound(connection, task.id)}
    task_id = bound.get(spec.continues)
    return None if task_id is None else task_rows.find(connection, task_id)


def _why_not(run: Run, told: TaskSpec, spec: TaskSpec) -> str | None:
    """Why the conversation cannot go on, by what is known before an agent is chosen."""
    if conversation_of(run, None) is None:
        return f"{run.agent} left none behind"
    if spec.agent.type not in (None, run.agent, run.kind):
        return f"{spec.name} asks for {spec.agent.type}, and {run.agent} has it"
    if not same_folder(spec, told):
        return f"it belongs to {told.working_dir or 'a scratch folder'}, and {spec.name} works in {spec.working_dir}"
    if spec.isolation is not told.isolation:
        where = "a work tree" if told.isolation is Isolation.WORKTREE else "the repository itself"
        return f"it belongs to {where}, and {spec.name} has isolation {spec.isolation}"
    return None
