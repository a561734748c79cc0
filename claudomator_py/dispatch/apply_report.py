"""Applies the hosts' reports of ended runs and checks to their rows, idempotently."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from enum import StrEnum
from functools import partial

from pydantic import ValidationError
from sqlalchemy import Connection

from claudomator_py.dispatch.agent_states import close_ramped
from claudomator_py.dispatch.launch import LaunchRules
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.handoff import HANDOFF_MARKER, parse_handoff, without_request
from claudomator_py.domain.inputs import heard, needing_permission, wants_permission
from claudomator_py.domain.outcome import Fee, HandoffRequest, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.report import RunReport, Used
from claudomator_py.domain.run import Conversations, ExitRecord, command_text, ending_of
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_instant
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.worktrees import WorktreeManager, with_branch_made
from claudomator_py.log import get_logger
from claudomator_py.schema.validation import first_problem
from claudomator_py.store import run_rows, specialist_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.feasibility import unavailable_program
from claudomator_py.tasks.handing_on import decided
from claudomator_py.tasks.run_ends import Finished, RunEnd, finish_run
from claudomator_py.tasks.runs import note_use
from claudomator_py.values import dataclass

log = get_logger("claudomator.apply_report")

MAX_CHECKS = 5
UNKNOWN = Outcome(
    status=OutcomeStatus.LOST, reason=Reason.LOST, detail="its supervisor was killed before it could record the end"
)
GONE = "its run directory was removed or belongs to another database, so its outcome is unknown"


class Applied(StrEnum):
    """The effect of a report.

    ENDED: it ended the run. STALE: none, because the run has ended, is unknown or is at another step. WAITING: none
    yet, because the run's work tree is examined first; apply the report again.
    """

    ENDED = "ended"
    STALE = "stale"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class CheckWanted:
    """A report without effect yet, because the task's check has to run (again) first. exit_code: the agent's."""

    outcome: Outcome
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run with its task and the content that it was given."""

    run: Run
    task: Task
    spec: TaskSpec
    announced: bool = False
    """Whether the run has announced a handoff while it was live."""
    as_of: int | None = None
    """Number of commits before run and task were read, see ``Database.sees_as_of``; None: unknown."""

    def hands_on(self, outcome: Outcome) -> bool:
        """Return whether another specialist is to continue the task."""
        return self.announced or outcome.handoff is not None

    @property
    def stop_requested(self) -> bool:
        """Whether a cancellation or restart of the task was requested."""
        return self.task.cancel_requested_ms is not None or self.task.restart_requested is not None


@dataclass(frozen=True, slots=True)
class PendingEnd:
    """The end of a run whose write is pending."""

    subject: ReportedRun
    writing: "Future[Finished | None]"

    def applied(self) -> Applied:
        """Wait until the end is durable, and log it. Raises StoreUnavailable."""
        finished = self.writing.result()
        crashpoint("finish-committed")
        if finished is None:
            return Applied.STALE
        _log_end(self.subject, finished)
        return Applied.ENDED


class ReportApplier:
    """Applies reports. Reads only rows and the report, never the run directory."""

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        rules: Callable[[], LaunchRules],
        budgets: Budgets | None = None,
        worktrees: WorktreeManager | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        """rules: returns those in force. budgets: None for no limits. worktrees: None if no run is in a work tree.
        secrets: known secrets to redact; None to redact only by pattern."""
        self._database = database
        self._registry = registry
        self._rules = rules
        self._budgets = budgets or Budgets()
        self._worktrees = worktrees
        self._secrets = secrets or Secrets()

    def apply(
        self, report: RunReport, now_ms: int, known: ReportedRun | None = None
    ) -> PendingEnd | Applied | CheckWanted:
        """Apply the end of a run or check in one transaction, unless the run is no longer at that step. Returns before
        the end is durable.

        known: the run, if just read. Raises StoreUnavailable; the report can be applied again.
        """
        subject = self._read(report, known)
        if subject is None:
            return Applied.STALE
        judged = self._judged(subject, report)
        if report.step == 0 and not report.gone:
            crashpoint("outcome-read")
        if isinstance(judged, CheckWanted):
            return judged
        title = subject.task.name if subject.spec.commit and judged.status is OutcomeStatus.SUCCEEDED else None
        left_at = None if judged.changes is None else judged.changes.head
        # What a check leaves, such as its reports, is no work of the agent and not in the record of its changes.
        checked = subject.run.id if subject.spec.check else None
        if self._worktrees is not None and not self._worktrees.looked_after_run(
            subject.run.dir_key, title, left_at, checked
        ):
            return Applied.WAITING
        if title is not None and self._worktrees is not None and judged.changes is not None:
            redact = self._secrets.redactor(subject.spec.env, subject.run.id).redact
            changes = self._worktrees.committed(subject.run.dir_key, judged.changes, redact)
            judged = judged.model_copy(update={"changes": changes})
        crashpoint("finish-begin")
        ending = partial(self._end, subject=subject, report=report, outcome=judged, now_ms=now_ms)
        return PendingEnd(subject, self._database.submit(ending, planned=True))

    def _read(self, report: RunReport, known: ReportedRun | None) -> ReportedRun | None:
        """Return the run of the report; None if it is stale. A task with a check is read again, because the run's last
        words decide whether the check begins; anything else is read again in the transaction."""
        if known is not None and not known.spec.check:
            return known
        spec = None if known is None else known.spec
        return self._database.read(lambda connection: _subject(connection, report, spec))

    def _judged(self, subject: ReportedRun, report: RunReport) -> Outcome | CheckWanted:
        """Return the outcome by the report, or that a check has to run first."""
        if report.gone:
            return _directory_lost(subject)
        if report.step > 0:
            return self._after_check(subject, report)
        outcome = self._after_agent(subject, report)
        if outcome.status is not OutcomeStatus.SUCCEEDED or not subject.spec.check or subject.hands_on(outcome):
            return outcome
        if subject.stop_requested:
            # Without the check, the agent's claim of success does not count.
            return _cancelled(outcome)
        return CheckWanted(outcome, None if report.exit is None else report.exit.exit_code)

    def _after_agent(self, subject: ReportedRun, report: RunReport) -> Outcome:
        run, outcome = subject.run, report.outcome or UNKNOWN
        undisturbed = report.undisturbed or outcome
        stopped = run.over_budget is not None and not subject.stop_requested
        # A run that finished before it could be stopped for its budget has succeeded.
        was_done = stopped and undisturbed.status is OutcomeStatus.SUCCEEDED
        handing = _handing_on(undisturbed if was_done else outcome)
        if handing is not None:
            return handing
        ended = undisturbed if was_done else outcome
        if run.asked and ended.reason is Reason.NO_ANSWER:
            # What it had to say is its question.
            ended = ended.model_copy(update={"status": OutcomeStatus.SUCCEEDED, "reason": None, "detail": None})
        if run.asked and ended.status in (OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT):
            ended = ended.model_copy(update={"question": "\n\n".join(run.asked)})
        outcome = heard(ended, subject.spec, converses=self._converses(run))
        if outcome.status is OutcomeStatus.CANCELLED and stopped:
            over = SpentBudget.read(run.over_budget)
            changes = {"status": OutcomeStatus.FAILED, "reason": Reason.BUDGET, "over_budget": over}
            # An earlier version stored free text.
            return outcome.model_copy(update={**changes, "detail": run.over_budget if over is None else None})
        return outcome

    def _converses(self, run: Run) -> bool:
        """Return whether the run's agent has conversations that can be continued."""
        kind = self._registry.kinds.get(run.kind)
        return kind is not None and kind.conversations is not Conversations.NONE

    def _after_check(self, subject: ReportedRun, report: RunReport) -> Outcome | CheckWanted:
        run, record = subject.run, report.exit
        outcome = Outcome.model_validate(run.outcome)
        if record is not None:
            return self._checked(subject, outcome, record, report.check_output or "")
        # A check has no lasting effects, so a lost one is repeated, unless the task is to stop.
        if subject.stop_requested:
            return _cancelled(outcome)
        if run.check_seq >= MAX_CHECKS:
            return _unchecked(outcome, f"its check was started {run.check_seq} times and lost each time")
        return CheckWanted(outcome, run.exit_code)

    def _checked(self, subject: ReportedRun, outcome: Outcome, record: ExitRecord, wrote: str) -> Outcome:
        if record.ended_by == "cancel":
            return _cancelled(outcome)
        if record.exit_code == 0 and record.ended_by is None:
            return outcome.model_copy(update={"is_checked": True})
        words = subject.spec.check[min(record.step, len(subject.spec.check) - 1)]
        how = ending_of(f"check `{command_text(words)}`", record.exit_code, record.ended_by, record.error)
        if record.ended_by == "disk_full":
            # The agent is not to blame, and its conversation goes on.
            return _unchecked(outcome, how, Reason.DISK_FULL)
        reason, program = Reason.CHECK_FAILED, unavailable_program(words, subject.spec, record)
        if program is not None:
            reason = Reason.CHECK_UNAVAILABLE
            how += "" if record.error is not None else f", as {program} is missing or cannot be executed"
            resume = " --resume" if self._converses(subject.run) else ""
            how += f"; put that right, then run `claudomator restart {subject.task.name}{resume}`"
        redactor = self._secrets.redactor(subject.spec.env, subject.run.id)
        unchecked = _unchecked(outcome, redactor.redact(f"{how}\n{wrote}".rstrip()), reason)
        return needing_permission(unchecked) if wants_permission(outcome, subject.spec) else unchecked

    def _end(
        self, connection: Connection, subject: ReportedRun, report: RunReport, outcome: Outcome, now_ms: int
    ) -> Finished | None:
        """End the run, unless it is no longer at that step, and return how; None if nothing was written."""
        run, task = subject.run, subject.task
        if subject.as_of is None or not self._database.sees_as_of(subject.as_of):
            present = _run(connection, report)
            if present is None:
                return None
            run, task = present
        if (run.asked, run.over_budget) != (subject.run.asked, subject.run.over_budget):
            # It has asked a question or met a budget since it was read.
            judged = self._judged(replace(subject, run=run), report)
            outcome = outcome if isinstance(judged, CheckWanted) else judged
        agent = self._registry.of(run.agent, run.kind)
        ending = partial(
            self._ended, subject=subject, run=run, task=task, report=report, outcome=outcome, now_ms=now_ms
        )
        return self._budgets.change_and_record(connection, ending, run, agent, now_ms)

    def _ended(
        self,
        connection: Connection,
        subject: ReportedRun,
        run: Run,
        task: Task,
        report: RunReport,
        outcome: Outcome,
        now_ms: int,
    ) -> Finished | None:
        agent = self._registry.of(run.agent, run.kind)
        has_figures = outcome.over_budget is not None or (
            run.over_budget is not None and outcome.detail == run.over_budget
        )
        if outcome.reason is Reason.BUDGET and not has_figures:
            # An agent that stopped by its own budget option does not know the figures.
            note_use(connection, run, Used.by(outcome), now_ms)
            over = self._budgets.exceeded(connection, run, subject.spec, agent)
            outcome = outcome.model_copy(update={"over_budget": over})
        if outcome.changes is not None:
            changes = with_branch_made(connection, run, outcome.changes)
            outcome = outcome.model_copy(update={"changes": changes})
        finished = finish_run(
            connection,
            run,
            RunEnd(
                outcome=_with_fee(connection, run, outcome),
                exit=report.exit,
                now_ms=now_ms,
                answered=report.answered,
                input_hold_ms=self._rules().input_hold_ms,
                fallback_model=agent.fallback_model,
                check_output=report.check_output,
                max_handoffs=self._rules().max_handoffs,
                spec=subject.spec,
                task=task,
            ),
        )
        close_ramped(connection, self._registry.agents, now_ms)
        return finished


def _log_end(subject: ReportedRun, finished: Finished) -> None:
    run, outcome, hold = subject.run, finished.outcome, finished.hold
    reason = {} if outcome.reason is None else {"reason": outcome.reason.value}
    bound = log.bind(task=subject.task.name, task_id=run.task_id, run_id=run.id, agent=run.agent, attempt=run.attempt)
    bound.bind(status=outcome.status.value, **reason).info("run_ended")
    if hold is not None:
        until = format_instant(hold.until_ms) if hold.until_ms is not None else "released"
        held = log.bind(agent=run.agent, reason=str(hold.reason), run_id=run.id, bucket=hold.bucket.label)
        held.warning("agent_held", until=until, provenance=hold.provenance.value)


def _run(connection: Connection, report: RunReport) -> tuple[Run, Task] | None:
    """Return the run and its task if the run is live and at the report's step."""
    present = run_rows.with_task(connection, report.run_id)
    return present if present is not None and present[0].live and present[0].check_seq == report.step else None


def _subject(connection: Connection, report: RunReport, spec: TaskSpec | None) -> ReportedRun | None:
    """Return the run of the report; None if it is not live or not at that step."""
    present = _run(connection, report)
    if present is None:
        return None
    run, task = present
    announced = decided(connection, run.id) is not None
    return ReportedRun(run, task, spec or task_rows.spec_of(connection, run.task_id, run.revision), announced)


def _with_fee(connection: Connection, run: Run, outcome: Outcome) -> Outcome:
    """Return the outcome with the specialist's fee. A fee per task is charged once, when the task is done."""
    price = None if run.specialist is None else specialist_rows.price_of(connection, run.specialist, run.skill)
    if price is None:
        return outcome
    pricing, creator = price
    is_done = outcome.status is OutcomeStatus.SUCCEEDED and outcome.handoff is None
    if is_done:
        others = run_rows.of_generation(connection, run.task_id, run.generation)
        succeeded = [other for other in others if other.ended_as == OutcomeStatus.SUCCEEDED]
        is_done = all(other.specialist != run.specialist for other in succeeded)
    usd = pricing.usd(outcome, is_done=is_done)
    if not usd:
        return outcome
    fee = Fee(usd=usd, creator=creator)
    return outcome.model_copy(update={"cost_usd": round((outcome.cost_usd or 0.0) + usd, 6), "fee": fee})


def _handing_on(outcome: Outcome) -> Outcome | None:
    """Return the outcome if the run's last message hands the task on, else None."""
    if outcome.status is not OutcomeStatus.SUCCEEDED or outcome.text is None:
        return None
    try:
        request = parse_handoff(outcome.text)
    except ValidationError as error:
        problem = first_problem(HandoffRequest, error).render()
        detail = f"its last line begins with {HANDOFF_MARKER} but is not a valid handoff: {problem}"
        changes = {"status": OutcomeStatus.FAILED, "reason": Reason.HANDOFF_REFUSED, "detail": detail}
        return outcome.model_copy(update=changes)
    if request is None:
        return None
    return outcome.model_copy(update={"handoff": request, "text": without_request(outcome.text)})


def _cancelled(outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"status": OutcomeStatus.CANCELLED, "reason": Reason.CANCELLED})


def _directory_lost(subject: ReportedRun) -> Outcome:
    """Return the outcome of a run whose directory is gone: the agent's, if it was stored before a check."""
    if subject.run.outcome is None:
        return UNKNOWN.model_copy(update={"detail": GONE})
    outcome = Outcome.model_validate(subject.run.outcome)
    return _cancelled(outcome) if subject.stop_requested else _unchecked(outcome, GONE)


def _unchecked(outcome: Outcome, detail: str, reason: Reason = Reason.CHECK_FAILED) -> Outcome:
    changes = {"status": OutcomeStatus.FAILED, "reason": reason, "detail": detail}
    return Outcome.model_validate(outcome.model_dump() | changes)
