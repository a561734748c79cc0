"""Whether a task can start, and the consequences for it and its dependents, inside one transaction."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from claudomator_py.acts.prose import needed_commands
from claudomator_py.domain.budget import is_spent
from claudomator_py.domain.errors import Conflict, Problem
from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.lifecycle import (
    ENDED,
    UNSUCCESSFUL,
    Answered,
    BecameReady,
    Deferred,
    Failed,
    Failing,
    InputAsked,
    InputKind,
    Queued,
    Waiting,
    WaitReason,
    readiness,
)
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.task import PermissionMode, TaskSpec, cycle_problem
from claudomator_py.prompts.conversations import columns_of, followed, record_fresh_start
from claudomator_py.store import dependency_rows, spending_rows, task_rows
from claudomator_py.store.tables import Task
from claudomator_py.store.task_rows import resumption_of


def ready(connection: Connection, task: Task, spec: TaskSpec, now_ms: int) -> Task:
    """Let a WAITING or QUEUED task enter the state that its readiness demands; if it ends, its dependents follow."""
    task = become_ready(connection, task, spec, now_ms)
    if task.state in ENDED:
        ready_dependents(connection, task, now_ms)
    return task


def become_ready(connection: Connection, task: Task, spec: TaskSpec, now_ms: int) -> Task:
    backoff_until = task.until_ms if task.reason == WaitReason.BACKOFF else None
    match readiness_of(connection, task, spec, backoff_until, now_ms):
        case Queued():
            if task.state == "QUEUED":
                return task
            task = _take_over_predecessor(connection, task, spec, now_ms)
            return task_rows.advance(connection, task, BecameReady(), now_ms)
        case Waiting(reason, until) as waiting:
            if task_rows.state_of(task) == waiting:
                return task
            if reason is not WaitReason.DEPENDENCY:
                task = _take_over_predecessor(connection, task, spec, now_ms)
            return task_rows.advance(connection, task, Deferred(reason, until), now_ms)
        case Failing() as failing:
            return _fail_dependent(connection, task, failing, now_ms)


def clock_set_back(connection: Connection, task: Task, by_ms: int, now_ms: int) -> None:
    """Move the end of the task's pause, and that of the time for which its directory is kept, along with a clock that
    was set back by so many milliseconds. A confirmation waits for the reset that the agent has named."""
    resumption = resumption_of(task)
    changes: dict[str, int] = {}
    confirms = resumption is not None and resumption.confirms
    if task.reason == WaitReason.BACKOFF and task.until_ms is not None and not confirms:
        changes["until_ms"] = task.until_ms - by_ms
    if task.kept_until_ms is not None:
        changes["kept_until_ms"] = task.kept_until_ms - by_ms
    if changes:
        task_rows.change(connection, task, now_ms, **changes)


def ask(connection: Connection, task: Task, request: InputRequest, now_ms: int) -> Task:
    """Let the task wait for a person before its first run."""
    spec = task_rows.spec_of(connection, task.id, task.revision)
    request = request.within(spec.expires)
    if request.kind is InputKind.APPROVAL and spec.permissions.mode is not PermissionMode.PLAN:
        # One approval also covers the commands that the task announces, so that it is not stopped at them a second
        # time.
        request = request.model_copy(update={"commands": needed_commands(spec.instructions)})
    data, event = request.event_data, InputAsked(request.kind, request.until_ms)
    return task_rows.advance(connection, task, event, now_ms, data=data, asks=request.model_dump(mode="json"))


def go_on(
    connection: Connection, task: Task, now_ms: int, *, data: Mapping[str, Any] | None = None, **changes: Any
) -> Task:
    """Return the task in the state its readiness demands, after a person gave the needed input. changes: of its
    columns. Raises Conflict if a dependency did not complete: the input would be lost when its restart revives this
    task."""
    refuse_after_failed(connection, task)
    spec = task_rows.spec_of(connection, task.id, task.revision)
    readiness = readiness_of(connection, task, spec, None, now_ms)
    into = readiness if isinstance(readiness, Queued | Waiting) else Waiting(WaitReason.DEPENDENCY)
    task = task_rows.advance(connection, task, Answered(into), now_ms, data=data, **changes)
    propagate_rank(connection, task, now_ms)
    return ready(connection, task, spec, now_ms)


def refuse_after_failed(connection: Connection, task: Task) -> None:
    """Refuse to let the task begin or continue after dependencies that did not complete. Raises Conflict."""
    failed = [state.name for state in dependency_rows.states(connection, task.id) if state.state in UNSUCCESSFUL]
    if failed:
        revived = task_rows.state_of(task) == Failed(Reason.DEPENDENCY_FAILED)
        then = f"this revives {task.name}" if revived else f"then {task.name}"
        remedy = f"Restart {', '.join(dependency_rows.first_failed(connection, task.id))} first; {then}."
        raise Conflict(f"{task.name} depends on {', '.join(failed)}, which did not complete.", remedy=remedy)


def _take_over_predecessor(connection: Connection, task: Task, spec: TaskSpec, now_ms: int) -> Task:
    """Have a task whose dependencies are complete take over the place, thread and conversation of the task it
    continues. spec: its content."""
    if spec.continues is None or task.reason != WaitReason.DEPENDENCY:
        return task
    content = task_rows.revision_of(connection, task.id, task.revision)
    given_revision = content.derived_from or content.revision
    given = task_rows.revision_of(connection, task.id, given_revision)
    own = TaskSpec.model_validate(given.spec)
    continuation = followed(
        connection, task, spec.model_copy(update={"working_dir": own.working_dir, "isolation": own.isolation})
    )
    if continuation is None:
        return task
    dir_key = given.dir_key if continuation.dir_key is None else continuation.dir_key
    changes: dict[str, Any] = {"thread": continuation.thread, "dir_key": dir_key}
    if continuation.spec != spec:
        changes["revision"] = task_rows.newest_revision(connection, task.id) + 1
        task_rows.add_content(
            connection, task.id, changes["revision"], continuation.spec, dir_key, now_ms, derived_from=given_revision
        )
    resumption, holder = resumption_of(task), continuation.resumption
    if resumption is None or (resumption.follows is not None and holder and holder.follows != resumption.follows):
        resumption = holder
        if holder is not None and continuation.why is not None:
            record_fresh_start(connection, task, None, holder.run_id, continuation.why, now_ms)
        if holder is not None and not holder.given_up:
            changes["tier"] = task.tier or holder.tier
    return task_rows.change(connection, task, now_ms, **changes, **columns_of(resumption, continuation.spec))


def _fail_dependent(connection: Connection, task: Task, failing: Failing, now_ms: int) -> Task:
    """Fail the task because a dependency ended unsuccessfully."""
    if task.state == "QUEUED":
        task = task_rows.advance(connection, task, Deferred(WaitReason.DEPENDENCY), now_ms)
    names = [state.name for state in dependency_rows.states(connection, task.id) if state.state in UNSUCCESSFUL]
    return task_rows.advance(connection, task, failing, now_ms, data={"dependencies": names})


def ready_dependents(connection: Connection, task: Task, now_ms: int) -> None:
    """Let every task that waits for this ended one become ready or fail; if one fails, its own dependents follow."""
    ended = deque([task] if task.state in ENDED else [])
    while ended:
        for dependent in dependency_rows.dependents(connection, ended.popleft().id):
            if dependent.state == "WAITING" and dependent.reason == WaitReason.DEPENDENCY:
                spec = task_rows.spec_of(connection, dependent.id, dependent.revision)
                dependent = become_ready(connection, dependent, spec, now_ms)
                if dependent.state in ENDED:
                    ended.append(dependent)


def propagate_rank(connection: Connection, task: Task, now_ms: int) -> None:
    """Hand on the task's rank: a dependency inherits the rank of a dependent that is ahead of it, and so on
    transitively."""
    waiting = deque([task] if task.state not in ENDED else [])
    while waiting:
        dependent = waiting.popleft()
        for dependency in dependency_rows.dependencies(connection, dependent.id):
            if dependency.state not in ENDED and dependency.rank_ms > dependent.rank_ms:
                waiting.append(task_rows.change(connection, dependency, now_ms, rank_ms=dependent.rank_ms))


def readiness_of(
    connection: Connection, task: Task, spec: TaskSpec, backoff_until: int | None, now_ms: int
) -> Queued | Waiting | Failing:
    states = dependency_rows.states(connection, task.id)
    used_up = is_spent(spec.budget, lambda: spending_rows.of_task(connection, task.id))
    return readiness(states, spec.not_before_ms, backoff_until, now_ms, spent=used_up)


def cycle_problems(
    connection: Connection,
    contents: Sequence[tuple[Task, TaskSpec]],
    located: Callable[[TaskSpec, Problem], Problem] = lambda _, problem: problem,
) -> list[Problem]:
    """Return the dependency cycle that these tasks would close with this content, stored or not; at most one problem.
    located: says where in its file the problem of a task is."""
    if not any(spec.prerequisites for _, spec in contents):
        return []
    wanted = {task.id: spec.prerequisites for task, spec in contents}
    # Dependencies that running tasks will have once their runs have ended.
    coming = {
        task_id: spec.prerequisites for task_id, spec in task_rows.coming_contents(connection) if task_id not in wanted
    }
    cycle = dependency_rows.cycle(connection, wanted, coming)
    if cycle is None:
        return []
    specs = [spec for _, spec in contents]
    closing = next((spec for spec in specs if spec.name in cycle), specs[0])
    return [located(closing, cycle_problem(cycle, specs))]
