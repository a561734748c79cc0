"""Requests that change something about tasks or agents, each in one transaction."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Self, TypeVar

from sqlalchemy import Connection

from claudomator_py.dispatch.policing import Policing
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import (
    Conflict,
    Problem,
    StaleVersion,
    refuse,
)
from claudomator_py.domain.lifecycle import ENDED
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs, directory_key
from claudomator_py.ports import Clock, RunHost
from claudomator_py.prompts.conversations import ResumePolicy
from claudomator_py.queries.finding import find_task
from claudomator_py.queries.queries import Queries
from claudomator_py.resources.session import Service
from claudomator_py.resources.tasks.shape import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.store import task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Task
from claudomator_py.tasks.accept import NewTask, accept, in_context
from claudomator_py.tasks.decisions import record_policy
from claudomator_py.tasks.feasibility import placement_problems
from claudomator_py.tasks.idempotency import IdempotentRequests
from claudomator_py.tasks.inputs import answer, approve, reject
from claudomator_py.tasks.readiness import cycle_problems
from claudomator_py.tasks.renewal import cancel_now, request_cancel
from claudomator_py.tasks.restart import restart
from claudomator_py.tasks.specialists import task_problems

T = TypeVar("T")
Changed = tuple[str, TaskView | None]
"""A task's id, and its view where that was settled in the transaction."""


Versions = int | Collection[int] | None
"""The version of a task that a caller has seen, or several; None: any."""


def require_version(name: str, version: int, versions: Versions) -> None:
    """Raises StaleVersion if the task of that name, now at ``version``, is at none of those wanted."""
    among = (versions,) if isinstance(versions, int) else versions
    if among is not None and version not in among:
        seen = " or ".join(str(one) for one in sorted(among)) or "as named in the request"
        detail = f"{name} is at version {version}, not {seen}."
        raise StaleVersion(detail, remedy="Fetch it again and retry with its current version.")


class TaskService(Service):
    """What one principal may change, each request in one transaction.

    Synchronous and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``.

    ref: a task's id, a unique prefix of it (4 characters or more), or a name, which means the newest task of that
    name. It raises NotFound or Ambiguous. if_version: what the caller has seen of it; StaleVersion if it is another by
    now. key: a repetition of the same request gets the answer that the first one got. Raises KeyInUse and KeyReused.
    """

    def __init__(
        self,
        database: Database,
        queries: Queries,
        registry: AgentRegistry,
        host: RunHost,
        workdirs: Callable[[], Workdirs],
        clock: Clock,
        repeats: IdempotentRequests,
        policing: Callable[[], Policing],
    ) -> None:
        """workdirs: what is allowed at present; policing: by the rules that are in force."""
        super().__init__(database)
        self._queries = queries
        self._registry = registry
        self._workdirs = workdirs
        self._clock = clock
        self._repeats = repeats
        self._policing = policing
        self._resuming = ResumePolicy(registry, host)

    def as_(self, by: Principal) -> Self:
        """The same, for who asks."""
        bound = super().as_(by)
        bound._queries = self._queries.as_(by)
        return bound

    def submit(self, spec: TaskSpec, *, key: RequestKey | None = None, context: str | None = None) -> TaskView:
        """Accept a task; it is durable when this returns. context: what whoever asks calls the conversation that it
        continues, or begins. Raises Invalid, such as for a directory outside the roots."""

        def transaction(connection: Connection, order: NewTask) -> Changed:
            if context is not None:
                order = in_context(connection, order, context, self._by)
            refuse(task_problems(connection, order.spec, self._by))
            task = accept(connection, order, self._clock())
            refuse(cycle_problems(connection, [(task, order.spec)]))
            return self._changed(connection, task.id, key)

        with self._repeats.claim(key, self._by.id, TaskView) as earlier:
            if earlier is not None:
                return earlier
            refuse(_of_a_schedule(spec) or placement_problems(spec, self._registry, self._workdirs()))
            # Only now: a directory that cannot be looked at has been refused.
            order = NewTask(
                spec, directory_key(spec.working_dir), "api", creator=self._by.id, organisation=self._by.organisation
            )
            task_id, told = self._write(lambda connection: transaction(connection, order))
            crashpoint("submit-committed")
            return told or self._read(lambda connection: self._queries.task_views.one(connection, task_id))

    def cancel(self, ref: str, *, if_version: Versions = None, key: RequestKey | None = None) -> TaskView:
        """Ask for its end; a running one ends a little later. Raises Conflict when it has ended already."""

        def change(connection: Connection) -> str:
            task = self._current(connection, ref, if_version)
            if task.state in ENDED:
                raise Conflict(f"{task.name} is {task.state} already.", remedy="There is nothing left to cancel.")
            now_ms = self._clock()
            if task.state != "RUNNING":
                cancel_now(connection, task, now_ms, data={"by": self._by.id})
            else:
                request_cancel(connection, task, now_ms)
            return task.id

        return self._change_task(change, key, lambda: crashpoint("cancel-committed"))

    def restart(
        self, ref: str, request: RestartRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Begin a new generation. Raises Conflict when queued, or running without ``force``; Invalid."""

        def change(connection: Connection) -> str:
            task = self._current(connection, ref, if_version)
            restart(
                connection,
                task,
                request,
                self._by,
                self._clock(),
                registry=self._registry,
                workdirs=self._workdirs(),
                resuming=self._resuming,
            )
            return task.id

        return self._change_task(change, key, lambda: crashpoint("restart-committed"))

    def answer(
        self, ref: str, request: AnswerRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Let its agent continue with the answer, in the conversation in which it asked; or, where nobody has the task
        yet, have it routed by the answer. Raises Conflict; Forbidden for what the policy refuses, or has somebody else
        approve; Invalid for a specialist that there is not."""

        def take(connection: Connection, task: Task, now_ms: int) -> None:
            approval = self._policing().of_answer(connection, task, request.text, self._by)
            answer(connection, task, request.text, self._registry, now_ms, by=self._by)
            if approval is not None:
                record_policy(connection, task_rows.get(connection, task.id), approval, now_ms)

        return self._take_input(ref, take, if_version, key)

    def approve(
        self, ref: str, request: ApproveRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """Allow what it asks for. Raises Conflict; Forbidden where the policy has somebody else approve it; Invalid for
        what its agent cannot be configured to allow."""
        take = partial(
            approve,
            tools=request.tools,
            registry=self._registry,
            by=self._by,
            why=request.reason,
            specialist=request.specialist,
        )
        return self._take_input(ref, take, if_version, key)

    def reject(
        self, ref: str, request: RejectRequest, *, if_version: Versions = None, key: RequestKey | None = None
    ) -> TaskView:
        """End it, as what it asks for is not to be. Raises Conflict."""
        return self._take_input(ref, partial(reject, reason=request.reason), if_version, key)

    def _take_input(
        self, ref: str, take: Callable[..., None], if_version: Versions, key: RequestKey | None
    ) -> TaskView:
        """What a person says to a task. take: a function of ``tasks.inputs``."""

        def change(connection: Connection) -> str:
            task = self._current(connection, ref, if_version)
            take(connection, task, now_ms=self._clock())
            return task.id

        return self._change_task(change, key, lambda: crashpoint("input-committed"))

    def _change_task(
        self, change: Callable[[Connection], str], key: RequestKey | None, committed: Callable[[], None]
    ) -> TaskView:
        """The task that was changed, once for each key. change: gives its id. committed: called after that."""
        with self._repeats.claim(key, self._by.id, TaskView) as earlier:
            if earlier is not None:
                return earlier
            task_id, told = self._write(lambda connection: self._changed(connection, change(connection), key))
            committed()
            return told or self._read(lambda connection: self._queries.task_views.one(connection, task_id))

    def _current(self, connection: Connection, ref: str, if_version: Versions) -> Task:
        task = find_task(connection, ref, self._by)
        require_version(task.name, task.version, if_version)
        return task

    def _changed(self, connection: Connection, task_id: str, key: RequestKey | None) -> Changed:
        """The end of every change of a task: with a key, what is told about it is settled and kept here and now."""
        if key is None:
            return task_id, None
        view = self._queries.task_views.one(connection, task_id)
        return task_id, self._repeats.kept(connection, key, view, self._by.id)

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
