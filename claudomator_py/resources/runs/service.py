"""Shows runs, and takes the requests of live ones: handoffs, questions, subtasks and progress reports."""

from collections.abc import Callable
from functools import partial

from pydantic import ValidationError
from sqlalchemy import Connection

from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.domain.budget import Budget, Unit, left
from claudomator_py.domain.errors import Conflict, NotFound, ended, refuse
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.outcome import HandoffRequest, Outcome
from claudomator_py.domain.principal import RequestKey, Role, creator_of
from claudomator_py.domain.redaction import clean
from claudomator_py.domain.report import with_zeros
from claudomator_py.domain.requests import (
    MAX_PROGRESS_EVENTS,
    MAX_QUESTIONS,
    MAX_SUBTASK_DEPTH,
    PROGRESS_EVERY_MS,
    Progress,
    ProgressRequest,
    QuestionRequest,
    SubtaskRequest,
)
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.run import CheckResult, Stream
from claudomator_py.domain.task import OnInput, TaskSpec
from claudomator_py.domain.units import format_instant
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.workdirs import directory_key
from claudomator_py.ports import Clock, RunHost
from claudomator_py.prompts.conversations import scratch_of
from claudomator_py.resources.concealment import SOMEBODY, concealed, visible_handoff, without_hidden
from claudomator_py.resources.runs import (
    AskedView,
    HandoffView,
    LogChunk,
    OutcomeView,
    ProgressView,
    RunCalls,
    RunCheckView,
    RunProgressView,
    RunView,
    SubtaskView,
)
from claudomator_py.resources.runs.logs import log_step
from claudomator_py.resources.session import KeyedService, find_run, reading, writing
from claudomator_py.scheduler.records import HandoffRecord
from claudomator_py.store import run_rows, specialist_rows, spending_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Run, Task
from claudomator_py.surface import answers
from claudomator_py.tasks.accept import NewTask, accept
from claudomator_py.tasks.decisions import record_handoff
from claudomator_py.tasks.handing_on import decided, evaluate_request
from claudomator_py.tasks.specialists import task_problems
from claudomator_py.values import dataclass

MAX_LOG_BYTES = 1024 * 1024
ASKED = "question_asked"
"""Event of a run's question. Data: ``question``."""

PROGRESS = "progress"
"""Event of a progress report. Data: ``text``, and ``percent`` if reported."""

SUBTASK = "subtask_created"
"""Event of a subtask. Data: its ``name``, and its id in ``to``."""

_ITS_OWN = frozenset(SubtaskRequest.model_fields) | {
    "depends_on",
    "continues",
    "not_before",
    "schedule",
    "timezone",
    "overlap",
    "catch_up",
    "expires",
    "check",
}
"""Fields that a subtask does not inherit."""

_GO_ON = "Continue the task yourself, or ask the operator."


@dataclass(frozen=True, slots=True)
class _Asking:
    """A live run that makes a request, with its task and content."""

    run: Run
    task: Task
    spec: TaskSpec


@dataclass(eq=False, repr=False)
class Runs(KeyedService):
    """The operations on runs, for a principal. Every method may raise ``domain.errors.ServiceError``, and NotFound for
    a run that is hidden from the caller."""

    clock: Clock
    host: RunHost
    rules: Callable[[], LaunchRules]
    """Returns those in force."""
    secrets: Secrets
    """To redact from requests before they are stored."""

    @reading(RunCalls.run)
    def get(self, connection: Connection, run_id: str) -> RunView:
        """Return the run with that id or prefix."""
        run = without_hidden(connection, [find_run(connection, run_id, self._by)], self._by)[0]
        return concealed(connection, [run_view(run, self.host)], self._by)[0]

    def log(self, run_id: str, stream: Stream, offset: int, limit: int, *, check: bool = False) -> LogChunk:
        """Return up to ``limit`` bytes of the output of the run or of its check; empty if there is nothing yet."""
        run = self._read(lambda connection: find_run(connection, run_id, self._by))
        reading = partial(self.host.read, run.id, stream, step=log_step(run, check=check))
        data = with_zeros(reading, offset, min(limit, MAX_LOG_BYTES))
        end = offset + len(data)
        return LogChunk(data, offset, end, ended=not run.live and not data)

    @answers(RunCalls.handoff)
    def handoff(self, run_id: str) -> Handoff:
        """Return the run's handoff document. Raises NotFound."""
        run = self._read(lambda connection: find_run(connection, run_id, self._by))
        try:
            document = Handoff.model_validate_json(self.host.handoff(run.id))
        except (OSError, ValueError):
            detail = f"The run {run.id} has no handoff document, or no longer has one."
            raise NotFound(detail, remedy="It is removed with the run directory.") from None
        return self._read(lambda connection: visible_handoff(connection, document, self._by))

    @writing(RunCalls.hand_on)
    def hand_on(self, connection: Connection, run_id: str, asked: HandoffRequest) -> HandoffView:
        """Have the specialist continue the task once the run has ended, whatever its outcome. Harmless when repeated.

        Raises Conflict if the task cannot be handed on; the current specialist then keeps it.
        """
        run = find_run(connection, run_id, self._by)
        known = decided(connection, run.id)
        task = task_rows.get(connection, run.task_id)
        spec = task_rows.spec_of(connection, task.id, run.revision)
        request = clean(asked, self.secrets.redactor(spec.env, run.id))
        if known is not None and known.specialist is not None:
            if known.asked == request:
                return _handed_on(task, known, known.specialist)
            raise self._goes_already(connection, task, known.specialist)
        asking = _under_way(connection, run, "hands its task on")
        if run.asked:
            detail = f"The run of {task.name} has asked a question, and only that run can receive the answer."
            raise Conflict(detail, remedy="Wait for the answer, and hand the task on then.")
        record = evaluate_request(connection, asking.task, run, request, self.rules().max_handoffs, by=self._by)
        if record.specialist is None:
            detail = ended(f"{task.name} cannot be handed on to {request.to}: {record.reason.text}")
            raise Conflict(detail, remedy=_GO_ON)
        record_handoff(connection, asking.task, record, self.clock())
        return _handed_on(task, record, record.specialist)

    @writing(RunCalls.ask)
    def ask(self, connection: Connection, run_id: str, request: QuestionRequest) -> AskedView:
        """Ask a person once the run has succeeded; the answer continues its conversation. Harmless when repeated.

        Raises Conflict if nobody would be asked.
        """
        asking = _under_way(connection, find_run(connection, run_id, self._by), "asks")
        run, spec = asking.run, asking.spec
        question = clean(request, self.secrets.redactor(spec.env, run.id)).text
        before = tuple(run.asked or ())
        if question in before:
            return AskedView(task_id=run.task_id, run_id=run.id, questions=before)
        known = decided(connection, run.id)
        if known is not None and known.specialist is not None:
            raise self._goes_already(connection, asking.task, known.specialist)
        if spec.on_input is OnInput.DENY:
            detail = f"{spec.name} may ask no questions: it has on_input: deny."
            raise Conflict(detail, remedy="Decide yourself, and say in your last message what you decided.")
        if len(before) >= MAX_QUESTIONS:
            detail = f"The run has asked {MAX_QUESTIONS} questions already."
            raise Conflict(detail, remedy="End your turn; the answers come as your next message.")
        questions = (*before, question)
        run_rows.change(connection, run, asked=list(questions))
        record(connection, self.clock(), ASKED, task_id=run.task_id, run_id=run.id, data={"question": question})
        return AskedView(task_id=run.task_id, run_id=run.id, questions=questions)

    @writing(RunCalls.report_progress)
    def report_progress(self, connection: Connection, run_id: str, request: ProgressRequest) -> ProgressView:
        """Store the run's progress for people to see, unless the previous report is too recent; the result says so."""
        asking = _under_way(connection, find_run(connection, run_id, self._by), "reports its progress")
        run, now_ms = asking.run, self.clock()
        before = None if run.progress is None else Progress.model_validate(run.progress)
        if before is not None and now_ms - before.at_ms < PROGRESS_EVERY_MS:
            return ProgressView(recorded=False, next_at=format_instant(before.at_ms + PROGRESS_EVERY_MS))
        report = clean(request, self.secrets.redactor(asking.spec.env, run.id))
        events = 0 if before is None else before.events
        if events < MAX_PROGRESS_EVENTS:
            data = report.model_dump(mode="json", exclude_none=True)
            record(connection, now_ms, PROGRESS, task_id=run.task_id, run_id=run.id, data=data)
        progress = Progress(text=report.text, percent=report.percent, at_ms=now_ms, events=events + 1)
        run_rows.change(connection, run, progress=progress.model_dump(mode="json"))
        return ProgressView(recorded=True, next_at=format_instant(now_ms + PROGRESS_EVERY_MS))

    @answers(RunCalls.create_subtask)
    def create_subtask(self, run_id: str, request: SubtaskRequest, *, key: RequestKey | None = None) -> SubtaskView:
        """Accept a subtask with the creator, directory and permissions of the run's own task.

        Raises Conflict if the run has created too many, and Invalid, for example for a specialist that the creator
        cannot see.
        """

        def transaction(connection: Connection) -> SubtaskView:
            asking = _under_way(connection, find_run(connection, run_id, self._by), "creates tasks")
            return self._created(connection, asking, request)

        return self._once(key, SubtaskView, lambda: transaction)

    def _created(self, connection: Connection, asking: _Asking, request: SubtaskRequest) -> SubtaskView:
        run, task, most = asking.run, asking.task, self.rules().max_subtasks
        number = run_rows.subtasks(connection, run.id) + 1
        if number > most:
            detail = f"A run may create at most {most} tasks." if most else "Runs may not create tasks here."
            raise Conflict(detail, remedy="Do it yourself, or name in your last message what is left to do.")
        if _depth(connection, task) >= MAX_SUBTASK_DEPTH:
            detail = f"{task.name} is already nested {MAX_SUBTASK_DEPTH} levels deep."
            raise Conflict(detail, remedy="Do it yourself, or name in your last message what is left to do.")
        spec = _beside(connection, asking, clean(request, self.secrets.redactor(asking.spec.env, run.id)))
        refuse(task_problems(connection, spec, creator_of(task)))
        order = NewTask(
            spec,
            directory_key(spec.working_dir),
            "run",
            creator=task.creator,
            organisation=task.organisation,
            parent_run=run.id,
        )
        made = accept(connection, order, self.clock())
        data = {"name": made.name, "to": made.id}
        record(connection, self.clock(), SUBTASK, task_id=task.id, run_id=run.id, data=data)
        return SubtaskView(task_id=made.id, name=made.name, run_id=run.id, subtasks=number, max_subtasks=most)

    def _goes_already(self, connection: Connection, task: Task, to: str) -> Conflict:
        if self._by.role is not Role.RUN and specialist_rows.hidden(connection, [to], self._by):
            to = SOMEBODY
        detail = f"{task.name} goes to {to} already."
        return Conflict(detail, remedy="A run can hand its task on only once, and cannot ask questions after that.")


def _under_way(connection: Connection, run: Run, does: str) -> _Asking:
    """Return the live run with its task. Raises Conflict if it has ended or is being stopped."""
    task = task_rows.get(connection, run.task_id)
    if not run.live or task.cancel_requested_ms is not None or task.restart_requested is not None:
        detail = f"The run of {task.name} has ended, or is being stopped."
        raise Conflict(detail, remedy=f"Only a live run {does}.")
    return _Asking(run, task, task_rows.spec_of(connection, task.id, run.revision))


def _handed_on(task: Task, record: HandoffRecord, to: str) -> HandoffView:
    return HandoffView.of(record, task_id=task.id, specialist=to, handed_on_by=record.by)


def _depth(connection: Connection, task: Task) -> int:
    """Return how deep the task is nested: the number of its ancestors."""
    depth, parent = 0, task.parent_run
    while parent is not None and (run := run_rows.find(connection, parent)) is not None:
        depth += 1
        parent = task_rows.get(connection, run.task_id).parent_run
    return depth


def _beside(connection: Connection, asking: _Asking, request: SubtaskRequest) -> TaskSpec:
    """Return the spec of a subtask: with the permissions of the run's own task, but without its dependencies and times.

    Raises Conflict if nothing of the budget is left.
    """
    spec = asking.spec
    kept = {name: getattr(spec, name) for name in spec.model_fields_set - _ITS_OWN}
    if not spec.agent.strict:
        # The subtask's specialist may use another agent.
        kept.pop("agent", None)
    if spec.budget.units:
        kept["budget"] = _rest_of_budget(connection, asking)
    ruled = Constraints.parse(asking.task.constraints).limited(spec).reach
    if ruled is not None:
        # The rules that limit the run's own task may not apply to the subtask: keep their limit.
        kept["reach"] = ruled
    wanted = {name: getattr(request, name) for name in request.model_fields_set}
    return TaskSpec.model_construct(**{**kept, **wanted})


def _rest_of_budget(connection: Connection, asking: _Asking) -> Budget:
    """Return the rest of the task's budget. Raises Conflict if nothing is left."""
    budget = asking.spec.budget
    spending = spending_rows.of_task(connection, asking.task.id)
    usd, tokens, runs = (left(budget, spending, unit) for unit in (Unit.USD, Unit.TOKENS, Unit.RUNS))
    try:
        return Budget(
            usd=usd,
            tokens=None if tokens is None else int(tokens),
            runs=None if runs is None else int(runs),
        )
    except ValidationError:
        detail = f"The budget of {asking.task.name} has nothing left for another task."
        raise Conflict(detail, remedy="End your turn, and name in your last message what is left to do.") from None


def run_view(run: Run, host: RunHost) -> RunView:
    """Return the view of a run. host: the one that ran it."""
    checked, outcome = readable(CheckResult, run.check_result), readable(Outcome, run.outcome)
    progress = readable(Progress, run.progress)
    check = None if checked is None else RunCheckView.of(checked)
    shown = OutcomeView.of(outcome, detail=outcome.error) if outcome is not None else None
    return RunView.legible(
        run,
        check=check,
        outcome=shown,
        changes=None if outcome is None else outcome.changes,
        progress=None if progress is None else RunProgressView.of(progress),
        asked=tuple(run.asked or ()),
        scratch_dir=host.scratch(scratch_of(run)),
        host=host.host_of(run.id),
        output_kept=run.live or host.has_directory(run.id),
    )
