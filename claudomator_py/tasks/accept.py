"""What can happen to a task inside one transaction: accepted, replaced, renewed, readied; and what follows."""

import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain import lifecycle
from claudomator_py.domain.budget import Spending, is_spent
from claudomator_py.domain.conversation import ConversationRef
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.inputs import BEFORE_FIRST_RUN, InputRequest
from claudomator_py.domain.lifecycle import (
    Answered,
    BecameReady,
    Deferred,
    Failed,
    Failing,
    InputAsked,
    NeedsInput,
    Queued,
    Renewed,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.readiness import rank, readiness
from claudomator_py.domain.task import Isolation, TaskSpec
from claudomator_py.prompts.conversations import columns_of, followed, resumption_of, tell_given_up
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.schema.taskfile import content_hash
from claudomator_py.store import dependency_rows, inbox_rows, spending_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Task, TaskRevision

_NEW = Waiting(WaitReason.DEPENDENCY)
"""A task before anything is known of its readiness."""
ENDED = ("COMPLETED", "FAILED", "CANCELLED")


@dataclass(frozen=True, slots=True)
class NewTask:
    """A valid task on its way in."""

    spec: TaskSpec
    dir_key: str
    """Of its working directory."""
    source: str
    """``file``, ``api``, ``schedule`` or ``run``."""
    file_path: str | None = None
    place: int = 0
    """Its place among those that come with it, which is their order if nothing else tells them apart."""
    creator: str = OPERATOR.id
    """See ``store.tables.Task``."""
    organisation: str | None = None
    """See ``creator``."""
    channel: str | None = None
    """The channel of the message that it is made of, by its id."""
    parent_run: str | None = None
    """The run that makes it, by its id."""

    @property
    def shared(self) -> str:
        """The directory that one run at a time may use: none, if each of its generations has a work tree of its own."""
        return "" if self.spec.isolation is Isolation.WORKTREE else self.dir_key


def accept(connection: Connection, order: NewTask, now_ms: int) -> Task:
    """Insert the task, in the state in which its readiness puts it."""
    spec = order.spec
    if is_ready_when_new(spec, now_ms):
        [(task, _)] = accept_ready(connection, [(order, now_ms)])
        _bind_waiters(connection, task, now_ms)
        return task_rows.get(connection, task.id)
    task = _new_task(order, now_ms)
    task_rows.add(connection, task, now_ms, settled=bool(spec.needs))
    add_content(connection, task.id, 1, spec, order.shared, now_ms)
    dependency_rows.replace(connection, task.id, spec.needs)
    task = ready(connection, task, spec, now_ms)
    lend_rank(connection, task, now_ms)
    _bind_waiters(connection, task, now_ms)
    # It may have failed already by a dependency of its own, which those that waited for its name have to hear.
    ready_dependents(connection, task, now_ms)
    return task_rows.get(connection, task.id)


def accept_ready(connection: Connection, orders: Sequence[tuple[NewTask, int]]) -> list[tuple[Task, TaskRevision]]:
    """Insert tasks that are ready when they are new and for whose names no task waits; each with its content.

    orders: each with the time, in epoch milliseconds. However many they are, they take a statement for each table.
    """
    event = BecameReady()
    tasks = [_new_task(order, now_ms, lifecycle.transition(_NEW, event), version=2) for order, now_ms in orders]
    task_rows.add_all(connection, tasks, event)
    contents = [
        _content(task.id, 1, order.spec, order.shared, now_ms)
        for task, (order, now_ms) in zip(tasks, orders, strict=True)
    ]
    task_rows.add_revisions(connection, contents)
    return list(zip(tasks, contents, strict=True))


def _new_task(order: NewTask, now_ms: int, state: lifecycle.State = _NEW, version: int = 1) -> Task:
    """The task that is to be inserted in that state."""
    spec = order.spec
    return Task(
        id=str(uuid.uuid4()),
        name=spec.name,
        version=version,
        **task_rows.columns_of(state),
        priority=int(spec.priority),
        rank_ms=rank(spec.priority, now_ms + order.place),
        **lane_columns(spec),
        dir_key=order.shared,
        tags=list(spec.tags),
        source=order.source,
        file_path=order.file_path,
        creator=order.creator,
        organisation=order.organisation,
        channel=order.channel,
        parent_run=order.parent_run,
        created_ms=now_ms,
        updated_ms=now_ms,
    )


def is_ready_when_new(spec: TaskSpec, now_ms: int) -> bool:
    """Whether a new task of that content can be queued at once, as it waits for nothing."""
    if spec.needs or is_spent(spec.budget, Spending):
        return False
    return isinstance(readiness((), _not_before(spec), None, now_ms, approved=not spec.approval), Queued)


def rename(connection: Connection, task: Task, name: str, now_ms: int) -> Task:
    """Give the task another name, and nothing else: its file, which names it, has another one."""
    record(connection, now_ms, "renamed", task_id=task.id, data={"from": task.name, "to": name})
    task = task_rows.change(connection, task, now_ms, name=name)
    _bind_waiters(connection, task, now_ms)
    ready_dependents(connection, task, now_ms)
    return task_rows.get(connection, task.id)


def _bind_waiters(connection: Connection, task: Task, now_ms: int) -> None:
    """Tasks that wait for a task of this name wait for this one."""
    for waiter in dependency_rows.bind(connection, task):
        lend_rank(connection, task_rows.get(connection, waiter), now_ms)
        record(connection, now_ms, "dependency_bound", task_id=waiter, data={"name": task.name, "to": task.id})


def ready(connection: Connection, task: Task, spec: TaskSpec, now_ms: int) -> Task:
    """Let a WAITING or QUEUED task become what its readiness says, if that is something else; and its dependents."""
    task = _become_ready(connection, task, spec, now_ms)
    if task.state in ENDED:
        ready_dependents(connection, task, now_ms)
    return task


def _become_ready(connection: Connection, task: Task, spec: TaskSpec, now_ms: int) -> Task:
    backoff_until = task.until_ms if task.reason == WaitReason.BACKOFF else None
    approved = task.approved_ms is not None
    match _readiness(connection, task, spec, backoff_until, now_ms, approved=approved):
        case Queued():
            if task.state == "QUEUED":
                return task
            task = _follow(connection, task, spec, now_ms)
            return task_rows.advance(connection, task, BecameReady(), now_ms)
        case Waiting(reason, until) as waiting:
            if task_rows.state_of(task) == waiting:
                return task
            if reason is not WaitReason.DEPENDENCY:
                task = _follow(connection, task, spec, now_ms)
            return task_rows.advance(connection, task, Deferred(reason, until), now_ms)
        case NeedsInput(kind):
            asked = InputRequest(kind=kind, text=BEFORE_FIRST_RUN, since_ms=now_ms)
            task = _follow(connection, task, spec, now_ms)
            return ask(connection, task, asked, now_ms)
        case Failing() as failing:
            return _fail_dependent(connection, task, failing, now_ms)


def ask(connection: Connection, task: Task, asked: InputRequest, now_ms: int) -> Task:
    """Let the task wait for a person before its first run."""
    data, event = {"asks": asked.text}, InputAsked(asked.kind, asked.until_ms)
    return task_rows.advance(connection, task, event, now_ms, data=data, asks=asked.model_dump(mode="json"))


def go_on(
    connection: Connection, task: Task, now_ms: int, *, data: Mapping[str, Any] | None = None, **changes: Any
) -> Task:
    """A person has said what the task needed: it becomes what its readiness says. changes: of its columns."""
    spec = task_rows.spec_of(connection, task.id, task.revision)
    approved = changes.get("approved_ms", task.approved_ms) is not None
    found = _readiness(connection, task, spec, None, now_ms, approved=approved)
    into = found if isinstance(found, Queued | Waiting) else Waiting(WaitReason.DEPENDENCY)
    task = task_rows.advance(connection, task, Answered(into), now_ms, data=data, **changes)
    lend_rank(connection, task, now_ms)
    return ready(connection, task, spec, now_ms)


def _follow(connection: Connection, task: Task, spec: TaskSpec, now_ms: int) -> Task:
    """What a task waited for is complete: it takes over the place, thread and conversation of one that it continues.

    spec: its content.
    """
    if spec.continues is None or task.reason != WaitReason.DEPENDENCY:
        return task
    content = task_rows.revision_of(connection, task.id, task.revision)
    first = content.derived_from or content.revision
    given = task_rows.revision_of(connection, task.id, first)
    own = TaskSpec.model_validate(given.spec)
    found = followed(
        connection, task, spec.model_copy(update={"working_dir": own.working_dir, "isolation": own.isolation})
    )
    if found is None:
        return task
    dir_key = given.dir_key if found.dir_key is None else found.dir_key
    changes: dict[str, Any] = {"thread": found.thread, "dir_key": dir_key}
    if found.spec != spec:
        changes["revision"] = task_rows.newest_revision(connection, task.id) + 1
        add_content(connection, task.id, changes["revision"], found.spec, dir_key, now_ms, derived_from=first)
    resumption, theirs = resumption_of(task), found.resumption
    if resumption is None or (resumption.follows is not None and theirs and theirs.follows != resumption.follows):
        resumption = theirs
        if theirs is not None and found.why is not None:
            tell_given_up(connection, task, None, theirs.run_id, found.why, now_ms)
        if theirs is not None and not theirs.given_up:
            changes["tier"] = task.tier or theirs.tier
    return task_rows.change(connection, task, now_ms, **changes, **columns_of(resumption, found.spec))


def _fail_dependent(connection: Connection, task: Task, failing: Failing, now_ms: int) -> Task:
    """A dependency ended badly, and the task fails by it."""
    if task.state == "QUEUED":
        task = task_rows.advance(connection, task, Deferred(WaitReason.DEPENDENCY), now_ms)
    names = [
        state.name for state in dependency_rows.states(connection, task.id) if state.state in ("FAILED", "CANCELLED")
    ]
    return task_rows.advance(connection, task, failing, now_ms, data={"dependencies": names})


def ready_dependents(connection: Connection, task: Task, now_ms: int) -> None:
    """The task has ended: let every task that waits for it become ready, or fail by it, and then those behind it."""
    ended = deque([task] if task.state in ENDED else [])
    while ended:
        for dependent in dependency_rows.dependents(connection, ended.popleft().id):
            if dependent.state == "WAITING" and dependent.reason == WaitReason.DEPENDENCY:
                spec = task_rows.spec_of(connection, dependent.id, dependent.revision)
                dependent = _become_ready(connection, dependent, spec, now_ms)
                if dependent.state in ENDED:
                    ended.append(dependent)


def replace_content(connection: Connection, task: Task, order: NewTask, now_ms: int) -> Task:
    """Give the task new content: now if it waits, after its run if it runs, as a new generation if it has ended.

    Content that is what runs already takes back what was to follow: nothing runs twice for an edit that was undone.
    """
    revision = task_rows.newest_revision(connection, task.id) + 1
    add_content(connection, task.id, revision, order.spec, order.shared, now_ms)
    taken_back = task.next_revision is not None and _runs_already(connection, task, order.spec)
    data = {"revision": revision, **({"taken_back": task.next_revision} if taken_back else {})}
    record(connection, now_ms, "content_changed", task_id=task.id, data=data)
    if task.state == "RUNNING":
        return task_rows.change(connection, task, now_ms, next_revision=None if taken_back else revision)
    return renew(connection, task, now_ms, revision=revision, again=task.state in ENDED, place=order.place)


def _runs_already(connection: Connection, task: Task, spec: TaskSpec) -> bool:
    """Whether the present revision is this content, or was made of it, and no restart is to follow its run."""
    content = task_rows.revision_of(connection, task.id, task.revision)
    if content.derived_from is not None:
        content = task_rows.revision_of(connection, task.id, content.derived_from)
    return task.restart_requested is None and content.content_hash == content_hash(spec)


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


def add_content(
    connection: Connection,
    task_id: str,
    revision: int,
    spec: TaskSpec,
    dir_key: str,
    now_ms: int,
    derived_from: int | None = None,
) -> None:
    """Insert one version of a task's content."""
    content = _content(task_id, revision, spec, dir_key, now_ms, derived_from)
    task_rows.add_revisions(connection, [content])


def _content(
    task_id: str, revision: int, spec: TaskSpec, dir_key: str, now_ms: int, derived_from: int | None = None
) -> TaskRevision:
    return TaskRevision(
        task_id=task_id,
        revision=revision,
        spec=spec.model_dump(mode="json"),
        content_hash=content_hash(spec),
        dir_key=dir_key,
        derived_from=derived_from,
        created_ms=now_ms,
    )


def renew(
    connection: Connection,
    task: Task,
    now_ms: int,
    *,
    revision: int,
    again: bool = True,
    data: Mapping[str, Any] | None = None,
    place: int = 0,
    resumption: ConversationRef | None = None,
) -> Task:
    """Begin again with this content. again: a new generation; else the present one, of which nothing has run.
    place: see ``NewTask``. resumption: the conversation to continue in; None: a fresh one.

    What failed by this task is revived, and so are its own dependents; what was ready because this task had completed
    waits for it again.
    """
    task = _renew(
        connection, task, now_ms, revision=revision, again=again, data=data, place=place, resumption=resumption
    )
    begun = deque([task])
    while begun:
        dependency = begun.popleft()
        if dependency.state in ENDED:
            ready_dependents(connection, dependency, now_ms)
            continue
        for seen in dependency_rows.dependents(connection, dependency.id):
            # Lending its rank may have changed it since it was listed.
            dependent = task_rows.get(connection, seen.id)
            if _revivable(connection, dependent):
                revived = {"revived_by": dependency.name}
                begun.append(
                    _renew(connection, dependent, now_ms, revision=dependent.revision, again=True, data=revived)
                )
            elif dependent.state in ("WAITING", "QUEUED"):
                spec = task_rows.spec_of(connection, dependent.id, dependent.revision)
                dependent = _become_ready(connection, dependent, spec, now_ms)
                lend_rank(connection, dependent, now_ms)
                if dependent.state in ENDED:
                    begun.append(dependent)
    return task_rows.get(connection, task.id)


def _renew(
    connection: Connection,
    task: Task,
    now_ms: int,
    *,
    revision: int,
    again: bool,
    data: Mapping[str, Any] | None,
    place: int = 0,
    resumption: ConversationRef | None = None,
) -> Task:
    content = task_rows.revision_of(connection, task.id, revision)
    spec = TaskSpec.model_validate(content.spec)
    dependency_rows.replace(connection, task.id, spec.needs)
    again = again or task.seq > 0
    changes: dict[str, Any] = {
        "revision": revision,
        "next_revision": None,
        "generation": task.generation + 1 if again else task.generation,
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
        found = _readiness(connection, task, spec, None, now_ms, approved=False)
        into = found if isinstance(found, Queued | Waiting) else into
    task = task_rows.advance(connection, task, Renewed(into), now_ms, data=data, **changes)
    task = _become_ready(connection, task, spec, now_ms)
    lend_rank(connection, task, now_ms)
    return task


def _revivable(connection: Connection, dependent: Task) -> bool:
    """Whether it failed by a dependency, and none of them stands in its way any more."""
    if task_rows.state_of(dependent) != Failed(Reason.DEPENDENCY_FAILED):
        return False
    states = dependency_rows.states(connection, dependent.id)
    return not any(dependency.state in ("FAILED", "CANCELLED") for dependency in states)


def cancel_now(connection: Connection, task: Task, now_ms: int, *, data: Mapping[str, Any] | None = None) -> Task:
    """Cancel a task of which no run lives."""
    task = task_rows.advance(connection, task, lifecycle.Cancelling(), now_ms, data=data, cancel_requested_ms=None)
    ready_dependents(connection, task, now_ms)
    return task


def lend_rank(connection: Connection, task: Task, now_ms: int) -> None:
    """A dependency inherits the rank of a dependent that is ahead of it, and so do the dependencies of that one."""
    lenders = deque([task] if task.state not in ENDED else [])
    while lenders:
        lender = lenders.popleft()
        for dependency in dependency_rows.dependencies(connection, lender.id):
            if dependency.state not in ENDED and dependency.rank_ms > lender.rank_ms:
                lenders.append(task_rows.change(connection, dependency, now_ms, rank_ms=lender.rank_ms))


def _readiness(
    connection: Connection, task: Task, spec: TaskSpec, backoff_until: int | None, now_ms: int, *, approved: bool
) -> Queued | Waiting | NeedsInput | Failing:
    states = dependency_rows.states(connection, task.id)
    used_up = is_spent(spec.budget, lambda: spending_rows.of_task(connection, task.id))
    allowed = approved or not spec.approval
    return readiness(states, _not_before(spec), backoff_until, now_ms, approved=allowed, spent=used_up)


def _not_before(spec: TaskSpec) -> int | None:
    """The task's earliest start, in epoch milliseconds."""
    return None if spec.not_before is None else int(spec.not_before.timestamp() * 1000)


def circle_problem(connection: Connection, contents: Sequence[tuple[Task, TaskSpec]]) -> Problem | None:
    """A circle that these tasks close with this content, which is stored or will be, or None."""
    if not any(spec.needs for _, spec in contents):
        return None
    wanted = {task.id: spec.needs for task, spec in contents}
    # What a running task will depend on once its run has ended.
    coming = {task_id: spec.needs for task_id, spec in task_rows.coming_contents(connection) if task_id not in wanted}
    circle = dependency_rows.circle(connection, wanted, coming)
    if circle is None:
        return None
    message = f"these tasks would wait for each other forever: {' -> '.join(circle)}"
    field = "depends_on" if any(spec.depends_on for _, spec in contents) else "continues"
    return Problem(field=field, message=message, remedy="remove one of these dependencies")
