"""Lists, explains, submits, edits, cancels and restarts tasks, and takes answers and approvals."""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.dispatch.observe import Observer
from claudomator_py.dispatch.policing import Policing
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import Conflict, NotFound, Problem, StaleVersion, near, refuse, shown
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.requests import LatestFilter, RestartRequest, TaskFilter
from claudomator_py.domain.shape import Page
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import counted
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs, directory_key
from claudomator_py.ports import Clock, RunHost, Trees
from claudomator_py.prompts.conversations import ResumePolicy
from claudomator_py.resources import cursors
from claudomator_py.resources.agents.service import budget_sentences, hold_sentences
from claudomator_py.resources.concealment import concealed, without_hidden
from claudomator_py.resources.decisions.service import placements_of
from claudomator_py.resources.events.service import event_views
from claudomator_py.resources.routing.service import known_to, routing_of
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.runs.sentences import history_sentences
from claudomator_py.resources.runs.service import run_view
from claudomator_py.resources.session import KeyedService, find_task, reading
from claudomator_py.resources.tasks import (
    AnswerRequest,
    ApproveRequest,
    RejectRequest,
    TaskCalls,
    TaskView,
    WhyView,
    editing_refused,
)
from claudomator_py.resources.tasks.sentences import (
    backlog_sentences,
    cancelled_sentences,
    check_waits_sentence,
    conversation_sentences,
    discarded_sentences,
    input_sentences,
    revival_sentences,
    role_sentences,
    schedule_sentences,
    stale_sentences,
    thread_sentences,
    tree_sentences,
)
from claudomator_py.resources.tasks.views import TaskViews, with_tree
from claudomator_py.scheduler.records import DecisionKind
from claudomator_py.sources.inbox.refusals import Refusals, readable
from claudomator_py.store import decision_rows, events, reads, run_rows, specialist_rows, task_rows
from claudomator_py.store.tables import Event, Run, Task
from claudomator_py.surface import answers
from claudomator_py.tasks.accept import NewTask, accept, in_context, replace_content
from claudomator_py.tasks.decisions import record_policy
from claudomator_py.tasks.feasibility import acceptance_warnings, placement_problems
from claudomator_py.tasks.inputs import answer, approve, reject
from claudomator_py.tasks.readiness import cycle_problems
from claudomator_py.tasks.renewal import cancel_now, request_cancel, restart
from claudomator_py.tasks.specialists import task_problems
from claudomator_py.values import dataclass

T = TypeVar("T")
Versions = int | Collection[int] | None
"""The version, or versions, of a task that the caller has seen; None for any."""


def require_version(name: str, version: int, versions: Versions) -> None:
    """Raise StaleVersion unless the task of that name, now at ``version``, is at one of the versions."""
    among = (versions,) if isinstance(versions, int) else versions
    if among is not None and version not in among:
        seen = " or ".join(str(each) for each in sorted(among)) or "as named in the request"
        detail = f"{name} is at version {version}, not {seen}."
        raise StaleVersion(detail, remedy="Fetch it again and retry with its current version.")


@dataclass(eq=False, repr=False)
class Tasks(KeyedService):
    """The operations on tasks, for a principal, each in one transaction.

    Safe to call from many threads. Every method may raise ``domain.errors.ServiceError``.

    ref: a task's id, a unique prefix of it (at least 4 characters), or a name, which means the newest task of that
    name. Raises NotFound or Ambiguous. versions: raise StaleVersion unless the task is at one of these. key: a repeated
    request with the same key gets the first response. Raises KeyInUse and KeyReused.
    """

    registry: AgentRegistry
    host: RunHost
    observer: Observer
    views: TaskViews
    trees: Trees
    workdirs: Callable[[], Workdirs]
    """Returns the current ones; so does ``policing``."""
    clock: Clock
    policing: Callable[[], Policing]
    refusals: Refusals
    """The files refused at present."""

    def __post_init__(self) -> None:
        self._resuming = ResumePolicy(self.registry, self.host)

    @reading(TaskCalls.tasks)
    def page(
        self, connection: Connection, wanted: TaskFilter, cursor: str | None = None, limit: int = 50
    ) -> Page[TaskView]:
        """Return up to ``limit`` tasks, newest first. Raises Invalid for an unknown cursor."""
        listed = {"list": "tasks", **wanted.model_dump(mode="json", exclude_none=True)}
        before = cursors.read_time(cursor, listed)
        tasks = reads.page(connection, wanted, before, limit + 1, self._by)
        views = partial(self.views.of, connection)
        return cursors.page(tasks, limit, listed, lambda task: (task.created_ms, task.id), views)

    @reading()
    def count(self, connection: Connection, wanted: TaskFilter) -> int:
        """Return how many tasks match."""
        return reads.count(connection, wanted, self._by)

    @reading()
    def latest(
        self, connection: Connection, wanted: LatestFilter, cursor: str | None, limit: int
    ) -> tuple[Page[TaskView], int]:
        """Return up to ``limit`` tasks, latest change first, and their total. A task that changes meanwhile moves to
        the first page. Raises BadCursor."""
        listed = {"list": "latest", **wanted.model_dump(mode="json", exclude_none=True)}
        before = cursors.read_time(cursor, listed)
        tasks = reads.latest(connection, wanted, before, limit + 1, self._by)
        views = partial(self.views.of, connection)
        page = cursors.page(tasks.tasks, limit, listed, lambda task: (task.updated_ms, task.id), views)
        return page, tasks.total

    @answers(TaskCalls.task)
    def get(self, ref: str) -> TaskView:
        """Return the task with its content."""
        view = self._read(
            lambda connection: self.views.of(connection, [self._find(connection, ref)], with_spec=True)[0]
        )
        return with_tree(view, self.trees, self._read)

    @reading(TaskCalls.runs)
    def runs(self, connection: Connection, ref: str) -> list[RunView]:
        """Return all runs of the task, oldest first."""
        runs = without_hidden(connection, run_rows.of_task(connection, self._find(connection, ref).id), self._by)
        return list(concealed(connection, [run_view(run, self.host) for run in runs], self._by))

    def _find(self, connection: Connection, ref: str) -> Task:
        """Return the task that is meant. Raises NotFound, with the problem if its file was refused; Ambiguous."""
        try:
            return find_task(connection, ref, self._by)
        except NotFound:
            if not self._by.sees_all or (refusal := self.refusals.of_task(ref)) is None:
                raise
            first, more = refusal.problems[0], len(refusal.problems) - 1
            others = f" `claudomator inbox` lists {counted(more, 'more problem')}." if more else ""
            raise NotFound(
                f"There is no task {shown(ref)!r}: {readable(refusal.path)} was refused.",
                remedy=f"{first.render(Path(readable(refusal.path)).name)}.{others}",
            ) from None

    @reading(TaskCalls.why)
    def why(self, connection: Connection, ref: str) -> WhyView:
        """Explain why the task is in its state, with the underlying decisions and events."""
        task, by, now_ms = self._find(connection, ref), self._by, self.clock()
        view = self.views.of(connection, [task], with_spec=True)[0]
        trouble = self.database.trouble if by.sees_all else None
        decided = decision_rows.of_task(connection, task.id)
        routing = routing_of(task, decided, known_to(connection, decided, by))
        runs = without_hidden(connection, run_rows.of_task(connection, task.id), by)
        history = without_hidden(connection, events.of_task(connection, task.id), by)
        specialists = self.observer.routes and bool(specialist_rows.ids_seen(connection, by))
        by_run = {str(decision.run_id): decision for decision in decided if decision.kind == DecisionKind.PLACEMENT}
        sentences = [
            _headline(view),
            *(() if trouble is None or task.state in ENDED else stale_sentences(str(trouble))),
            *(f"Warning: {warning}" for warning in view.warnings),
            *_live_sentences(runs, self.observer, self.host),
            *hold_sentences(view.holds),
            *input_sentences(task, history, now_ms, specialists=specialists),
            *_unseen_sentences(connection, view, by),
            *_event_sentences(connection, task, view, history),
            *(() if routing is None else routing.sentences),
            *role_sentences(connection, task, by),
            *history_sentences(runs, by_run, history, now_ms),
        ]
        shape = WhyView(
            task=view,
            sentences=tuple(sentences),
            routing=routing,
            decisions=placements_of(connection, task, decided, by),
            events=event_views(connection, history, by),
        )
        return concealed(connection, [shape], by)[0]

    @answers(TaskCalls.submit)
    def submit(self, spec: TaskSpec, *, key: RequestKey | None = None, context: str | None = None) -> TaskView:
        """Accept a task. It is durable when this returns. context: the caller's name for the conversation that it
        continues or begins. Raises Invalid, for example for a directory outside the roots."""

        def prepare() -> Callable[[Connection], TaskView]:
            refuse(_of_a_schedule(spec) or placement_problems(spec, self.registry, self.workdirs()))
            # After the check, which refuses unreadable directories.
            order = NewTask(
                spec, directory_key(spec.working_dir), "api", creator=self._by.id, organisation=self._by.organisation
            )
            return partial(self._accept, order=order, context=context)

        view = self._once(key, TaskView, prepare)
        crashpoint("submit-committed")
        return view

    def _accept(self, connection: Connection, *, order: NewTask, context: str | None) -> TaskView:
        if context is not None:
            order = in_context(connection, order, context, self._by)
        refuse(task_problems(connection, order.spec, self._by))
        task = accept(connection, order, self.clock())
        refuse(cycle_problems(connection, [(task, order.spec)]))
        return self.views.changed(connection, task.id)

    def check(self, spec: TaskSpec) -> tuple[list[Problem], list[Problem]]:
        """Return why the task would be refused, and the warnings if it would be accepted."""
        problems = _of_a_schedule(spec) or placement_problems(spec, self.registry, self.workdirs())
        problems = problems or self._read(lambda connection: list(task_problems(connection, spec, self._by)))
        return problems, acceptance_warnings(spec, self.registry)

    @answers(TaskCalls.edit)
    def edit_waiting(self, ref: str, spec: TaskSpec, *, versions: Versions = None) -> TaskView:
        """Replace its content before it runs. Raises Invalid, also for another name; Conflict if it is running or has
        ended."""
        return self.edit(ref, spec, versions=versions, only_waiting=True)

    def edit(self, ref: str, spec: TaskSpec, *, versions: Versions = None, only_waiting: bool = False) -> TaskView:
        """Replace its content: at once, after its run if it is running, or as a new generation if it has ended. Raises
        Invalid, also for another name; Conflict."""
        refuse(_of_a_schedule(spec) or placement_problems(spec, self.registry, self.workdirs()))
        dir_key = directory_key(spec.working_dir)

        def change(connection: Connection, task: Task, now_ms: int) -> None:
            if only_waiting and (refused := editing_refused(task.name, task.state)) is not None:
                raise Conflict(refused[0], remedy=refused[1])
            if spec.name != task.name:
                refuse([Problem(field="name", message=f"is {spec.name}", remedy=f"leave it as it is: {task.name}")])
            refuse(task_problems(connection, spec, self._by))
            order = NewTask(spec, dir_key, task.source, creator=self._by.id, organisation=task.organisation)
            replaced = replace_content(connection, task, order, now_ms)
            refuse(cycle_problems(connection, [(replaced, spec)]))

        return self._change(ref, change, versions, None)

    @answers(TaskCalls.cancel)
    def cancel(self, ref: str, *, versions: Versions = None, key: RequestKey | None = None) -> TaskView:
        """Request its end. A running task ends a little later. Raises Conflict if it has ended already."""

        def change(connection: Connection, task: Task, now_ms: int) -> None:
            if task.state in ENDED:
                raise Conflict(f"{task.name} is {task.state} already.", remedy="There is nothing left to cancel.")
            if task.state != "RUNNING":
                cancel_now(connection, task, now_ms, data={"by": self._by.id})
            else:
                request_cancel(connection, task, now_ms)

        return self._change(ref, change, versions, key, lambda: crashpoint("cancel-committed"))

    @answers(TaskCalls.restart)
    def restart(
        self, ref: str, request: RestartRequest, *, versions: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Begin a new generation. Raises Conflict if it is queued, or running without ``force``; Invalid."""

        def change(connection: Connection, task: Task, now_ms: int) -> None:
            approval = None
            if request.resume and request.reason is not None:  # the agent gets the reason
                approval = self.policing().judge_answer(connection, task, request.reason, self._by)
            restart(
                connection,
                task,
                request,
                self._by,
                now_ms,
                registry=self.registry,
                workdirs=self.workdirs(),
                resuming=self._resuming,
            )
            if approval is not None:
                record_policy(connection, task_rows.get(connection, task.id), approval, now_ms)

        return self._change(ref, change, versions, key, lambda: crashpoint("restart-committed"))

    @answers(TaskCalls.answer)
    def answer(
        self, ref: str, request: AnswerRequest, *, versions: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Continue the agent's conversation with the answer, or route the task by it if no specialist has it yet.
        Raises Conflict; Forbidden if the policy refuses the answer or requires somebody else's approval; Invalid for an
        unknown specialist."""

        def take(connection: Connection, task: Task, now_ms: int) -> None:
            approval = self.policing().judge_answer(connection, task, request.text, self._by)
            answer(connection, task, request.text, self.registry, now_ms, by=self._by)
            if approval is not None:
                record_policy(connection, task_rows.get(connection, task.id), approval, now_ms)

        return self._change(ref, take, versions, key, lambda: crashpoint("input-committed"))

    @answers(TaskCalls.approve)
    def approve(
        self, ref: str, request: ApproveRequest, *, versions: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Approve its request. Raises Conflict; Forbidden if the policy requires somebody else's approval; Invalid if
        its agent cannot be configured to allow the tools."""
        take = partial(
            approve,
            tools=request.tools,
            registry=self.registry,
            by=self._by,
            why=request.reason,
            specialist=request.specialist,
        )
        return self._change(ref, take, versions, key, lambda: crashpoint("input-committed"))

    @answers(TaskCalls.reject)
    def reject(
        self, ref: str, request: RejectRequest, *, versions: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Fail a task that needs input. Raises Conflict."""
        return self._change(
            ref, partial(reject, reason=request.reason), versions, key, lambda: crashpoint("input-committed")
        )

    def _change(
        self,
        ref: str,
        change: Callable[..., None],
        versions: Versions,
        key: RequestKey | None,
        committed: Callable[[], None] = lambda: None,
    ) -> TaskView:
        """Change the task once per key, and return it. change: takes connection, task and ``now_ms``. committed:
        called after the transaction."""

        def transaction(connection: Connection) -> TaskView:
            task = self._find(connection, ref)
            require_version(task.name, task.version, versions)
            change(connection, task, now_ms=self.clock())
            return self.views.changed(connection, task.id)

        view = self._once(key, TaskView, lambda: transaction)
        committed()
        return view

    def _write(self, fn: Callable[[Connection], T]) -> T:
        try:
            return super()._write(fn)
        except task_rows.VersionConflict as error:
            raise Conflict(
                "The task changed at the same time.", remedy="Check its current state, then try again."
            ) from error


def _of_a_schedule(spec: TaskSpec) -> list[Problem]:
    if spec.schedule is None:
        return []
    message = "makes this a schedule, not a task"
    return [Problem(field="schedule", message=message, remedy="send it to /v1/schedules, or leave it out")]


def _live_sentences(runs: list[Run], observer: Observer, host: RunHost) -> list[str]:
    """Return sentences on the live run, if any: what its check waits for, or how much output is unread."""
    live = next((run.id for run in runs if run.live), None)
    waits = None if live is None else observer.check_slots.waits(live)
    return (
        backlog_sentences(None if live is None else host.backlog(live))
        if waits is None
        else [check_waits_sentence(waits)]
    )


def _unseen_sentences(connection: Connection, view: TaskView, by: Principal) -> list[str]:
    """Return sentences on dependencies that are not there yet and whose names resemble that of a task: a slip of the
    pen would be waited for forever."""
    unseen = [] if view.state in ENDED else [task.name for task in view.depends_on if task.state is None]
    names = [name for name in reads.newest_names(connection, by) if name != view.name] if unseen else []
    return [f"No task is named {name} yet: {hint}" for name in unseen if (hint := near(name, names)) is not None]


def _event_sentences(connection: Connection, task: Task, view: TaskView, history: list[Event]) -> list[str]:
    spec = task_rows.specs_shown(connection, [task])[task.id]
    return [
        *revival_sentences(connection, task),
        *thread_sentences(view),
        *conversation_sentences(task, history),
        *tree_sentences(history),
        *cancelled_sentences(task, history),
        *discarded_sentences(history),
        *schedule_sentences(connection, task),
        *budget_sentences(connection, task, spec),
        *(() if view.reach_origin is None else (view.reach_origin.sentence,)),
    ]


def _headline(view: TaskView) -> str:
    tail = f": {view.reason_text}" if view.reason_text else ""
    where = f" on {view.agent}" if view.state == "RUNNING" and view.agent else ""
    sentence = f"{view.name} is {view.state}{where}{tail}"
    return sentence if sentence.endswith(("?", "!")) else f"{sentence.rstrip('.')}."
