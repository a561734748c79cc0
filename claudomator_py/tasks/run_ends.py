"""How a run ends, in one transaction: its outcome and hold, its handoff, and its task's next state."""

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection

from claudomator_py.domain import lifecycle
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import is_spent
from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.inputs import InputRequest, asked_by
from claudomator_py.domain.lifecycle import ENDED, InputKind, Requeued, backoff_ms
from claudomator_py.domain.limits import Hold, RanOn, believable, bucket_after, done_text, hold_after
from claudomator_py.domain.outcome import OUTAGES, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.proof import altered_checks, weakened_tests
from claudomator_py.domain.report import Used
from claudomator_py.domain.run import CheckResult, ExitRecord
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import SECOND_MS, counted
from claudomator_py.prompts.conversations import forced_conversation, give_up_conversation, resuming_columns
from claudomator_py.routing.role import is_named
from claudomator_py.scheduler.after_run import EndedRun, Ending, after_run
from claudomator_py.scheduler.records import DecisionKind, HandoffRecord, SpecialistRecord
from claudomator_py.scheduler.snapshot import FALLBACK_REASONS
from claudomator_py.store import decision_rows, dependency_rows, hold_rows, run_rows, spending_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks.handing_on import (
    apply_handoff_verdict,
    fallback_handoff,
    handoff_at_end,
    reassign_columns,
    request_after_fallback,
    rerouting_columns,
    store_decision,
)
from claudomator_py.tasks.readiness import ready, ready_dependents
from claudomator_py.tasks.renewal import renew
from claudomator_py.tasks.runs import check_of
from claudomator_py.values import dataclass

GIVEN_UP_PAUSE_MS = SECOND_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What is known about the end of a run in addition to its row."""

    outcome: Outcome
    exit: ExitRecord | None = None
    """Exit of the agent, or of the check if that was running; None: the supervisor was lost, or the run did not
    start."""
    now_ms: int
    answered: bool = False
    """True if the model produced any output."""
    input_hold_ms: int = 0
    """How long the directory of a task that needs input is reserved for it."""
    fallback_model: str | None = None
    """The model that the agent uses if the wanted one is unavailable."""
    check_output: str | None = None
    """Tail of the check's output; None unless the check failed."""
    max_handoffs: int = 0
    """Maximum number of handoffs."""
    spec: TaskSpec | None = None
    """The content that the run used, if already loaded."""
    task: Task | None = None
    """The task, if already read in this transaction."""

    @property
    def ended_ms(self) -> int:
        """When the run ended, in epoch milliseconds."""
        return self.now_ms if self.exit is None else self.exit.ended_ms


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended."""

    outcome: Outcome
    hold: Hold | None
    """New hold on what the run draws on; None if the run met no limit or the limit was already known to last that
    long."""


@dataclass(slots=True)
class _Finishing:
    """A run that is being finished, and the results of the steps so far."""

    run: Run
    task: Task
    spec: TaskSpec
    end: RunEnd
    outcome: Outcome
    answered: bool = False
    handoff: HandoffRecord | None = None
    """The decision; None: no handoff was requested."""
    request: InputRequest | None = None
    """The request to a person, made if the task could not be handed on."""
    is_deserted: bool = False
    """Whether the specialist's agent is gone, so that another specialist is chosen."""
    conversation_id: str | None = None
    """Conversation that a later run can continue."""
    limit: hold_rows.LimitHit | None = None
    data: dict[str, Any] = field(default_factory=dict)
    """Data of the event."""

    @property
    def succeeded(self) -> bool:
        return self.outcome.status is OutcomeStatus.SUCCEEDED

    @property
    def handed_on(self) -> bool:
        return self.handoff is not None and self.handoff.accepted


def finish_run(connection: Connection, run: Run, end: RunEnd) -> Finished | None:
    """Record the end of the run: outcome, hold and the task's next state. Returns None and writes nothing if it is
    already recorded."""
    task = end.task or task_rows.get(connection, run.task_id)
    spec = task_rows.spec_of(connection, task.id, run.revision) if end.spec is None else end.spec
    outcome = _after_earlier(connection, run, task, spec, believable(end.outcome, end.ended_ms))
    it = _Finishing(run, task, spec, end, outcome)
    _decide_handoff(connection, it)
    it.is_deserted = _is_deserted(connection, run, it.outcome)
    if not _write_end(connection, it):
        return None
    _hold_and_handoff(connection, it)
    ending = after_run(it.outcome, spec, _ended_run(connection, it), end.now_ms)
    _advance_task(connection, it, ending)
    return Finished(it.outcome, it.limit.hold if it.limit is not None and it.limit.is_news else None)


def _after_earlier(connection: Connection, run: Run, task: Task, spec: TaskSpec, outcome: Outcome) -> Outcome:
    """Return the outcome with what it and earlier runs of the task changed together, and marked if it changed nothing
    after earlier runs of the same work that did: of the task, of the conversation that it continues, or of the task
    that it follows."""
    if outcome.changes is None:
        return outcome
    resumption = resumption_of(task)
    ids = {run.resumes, None if resumption is None else resumption.follows} - {None}
    runs = run_rows.of_generation(connection, task.id, run.generation) if task.seq > 1 else ()
    earlier = [other for other in runs if other.seq < run.seq]
    outcome = _in_all(outcome, outcome.changes, earlier, spec)
    if outcome.changes is None or not outcome.changes.is_empty:
        return outcome
    earlier += [other for run_id in ids if (other := run_rows.find(connection, str(run_id))) is not None]
    return outcome.model_copy(update={"continues_changes": any(map(_has_changed, earlier))})


def _in_all(outcome: Outcome, changes: RunChanges, earlier: Sequence[Run], spec: TaskSpec) -> Outcome:
    """Return the outcome with what the runs of the task changed together. changes: those of the last run."""
    ended = (readable(Outcome, other.outcome) for other in earlier)
    before = [it.changes for it in ended if it is not None and it.changes is not None and not it.changes.is_empty]
    if any(made.place != changes.place for made in before):
        return outcome
    together = changes.with_earlier(before)
    update: dict[str, Any] = {}
    if before:
        count = len(before) + (not changes.is_empty)
        update["in_all"] = f"{together.summary}, by {counted(count, 'run') if count > 1 else 'an earlier run'}"
    if outcome.status is OutcomeStatus.SUCCEEDED:
        update["weakened_tests"] = weakened_tests(spec, together)
    if outcome.is_checked:
        update["altered_checks"] = altered_checks(spec, together, _folder(spec, together.repository or together.place))
    return outcome.model_copy(update=update)


def _folder(spec: TaskSpec, top: str) -> str:
    """Return the task's working directory relative to the top of its repository; the top itself if it is elsewhere."""
    try:
        home = Path(spec.working_dir or top).expanduser()
    except RuntimeError:  # nobody knows whose home it is
        return "."
    return str(home.relative_to(top)) if home.is_relative_to(top) else "."


def _has_changed(run: Run) -> bool:
    outcome = readable(Outcome, run.outcome)
    if outcome is None or outcome.changes is None:
        return False
    return outcome.continues_changes or not outcome.changes.is_empty


def _decide_handoff(connection: Connection, it: _Finishing) -> None:
    """Decide on a handoff that was requested, or that follows from repeated failure."""
    it.handoff = handoff_at_end(connection, it.task, it.run, it.outcome, it.end.max_handoffs)
    if it.handoff is not None:
        it.outcome = apply_handoff_verdict(it.outcome, it.handoff, it.spec)
        return
    it.handoff = fallback_handoff(connection, it.task, it.run, it.outcome, it.spec, it.end.max_handoffs)
    if it.handoff is not None and not it.handoff.accepted:
        it.request = request_after_fallback(it.handoff, it.outcome, it.run, it.end.now_ms)


def _write_end(connection: Connection, it: _Finishing) -> bool:
    """Write the end into the run's row. False: it is already recorded."""
    run, outcome, end = it.run, it.outcome, it.end
    exit_code = None if end.exit is None else end.exit.exit_code
    checked: dict[str, Any] = {}
    if run.state == "checking":
        # The exit record is the check's; the run's own exit code is already known.
        exit_code = run.exit_code
        checked["check_result"] = _check_result(connection, it).model_dump(mode="json")
    it.conversation_id = _resumable_conversation(run, outcome)
    it.answered = end.answered or run.answered_ms is not None or it.succeeded
    return run_rows.change(
        connection,
        run,
        state="ended",
        live=False,
        ended_ms=max(end.ended_ms, run.started_ms),
        answered_ms=run.answered_ms or (end.now_ms if it.answered else None),
        exit_code=exit_code,
        outcome=outcome.model_dump(mode="json"),
        conversation_id=it.conversation_id,
        ran_model=outcome.model or run.ran_model,
        warned_until_ms=outcome.near_limit_until,
        ended_as=outcome.status.value,
        reason=outcome.reason.value if outcome.reason is not None else None,
        **checked,
        **run_rows.used_columns(run, Used.by(outcome), end.now_ms),
    )


def _check_result(connection: Connection, it: _Finishing) -> CheckResult:
    stored = it.run.check_result  # a daemon of an earlier version wrote none
    begun = check_of(connection, it.run, it.end.now_ms) if stored is None else CheckResult.model_validate(stored)
    cancelled = it.outcome.status is OutcomeStatus.CANCELLED
    return begun.ended(it.end.exit, cancelled=cancelled, now_ms=it.end.now_ms, output=it.end.check_output)


def _hold_and_handoff(connection: Connection, it: _Finishing) -> None:
    """Store the handoff decision, and the hold for a limit that the run met."""
    end = it.end
    if it.handoff is not None:
        store_decision(connection, it.task, it.handoff, end.now_ms)
    it.limit = _hold_after_run(connection, it.run, it.outcome, end)
    known_limit = it.limit is not None and it.limit.known and it.outcome.status is OutcomeStatus.LIMITED
    if not it.answered and (known_limit or it.outcome.reason in OUTAGES):
        run_rows.mark_unanswered(connection, it.run.id)


def _hold_after_run(connection: Connection, run: Run, outcome: Outcome, end: RunEnd) -> hold_rows.LimitHit | None:
    """Hold the run's account, agent or model as its outcome demands; return None if it demands no hold. Runs that meet
    the same limit together cause one event."""
    ran_on = RanOn(run.agent, run.kind, run.account, run.model, outcome.model)
    bucket = bucket_after(outcome, ran_on, end.fallback_model)
    if bucket is None:
        return None
    previous = hold_rows.latest(connection, bucket)
    hold = hold_after(outcome, bucket, previous, end.now_ms, end.ended_ms, run.started_ms)
    if hold is None:
        return None
    hit = hold_rows.record_limit_hit(connection, hold, run.id, end.ended_ms)
    if hit.is_news:
        data = {"agent": run.agent, **hit.hold.event_data}
        record(connection, end.now_ms, "hold", task_id=run.task_id, run_id=run.id, data=data)
    return hit


def _ended_run(connection: Connection, it: _Finishing) -> EndedRun:
    """What determines the task's next state, apart from outcome and content."""
    run, outcome = it.run, it.outcome
    outages, interrupted_answers = (0, 0) if it.succeeded else run_rows.outages(connection, run)
    resumed = run.resumes is not None
    return EndedRun(
        run_id=run.id,
        attempt=run.attempt,
        tier=Tier(run.tier) if run.tier is not None else None,
        held_until=it.limit.hold.until_ms if it.limit is not None else None,
        cancelled=it.task.cancel_requested_ms is not None,
        tries=run.seq if not it.succeeded and _was_a_try(connection, run) else 0,
        resumed=resumed,
        # It is unknown how far a lost run came: the next run tries its conversation, and the agent says so if there
        # is none.
        begun=it.conversation_id is not None and (it.answered or resumed or outcome.reason is Reason.LOST),
        answered=it.answered,
        outages=outages,
        interrupted_answers=interrupted_answers,
        spent=is_spent(it.spec.budget, lambda: spending_rows.of_task(connection, it.task.id)),
        has_fallback_model=it.end.fallback_model not in (None, run.model) and it.spec.agent.model is None,
        handed_on=it.handed_on,
        confirms=_confirms(it.task, run),
        is_deserted=it.is_deserted,
        asks=None if it.request is None else it.request.kind,
    )


def _advance_task(connection: Connection, it: _Finishing, ending: Ending) -> None:
    """Write the task's next state, and what its next run begins from."""
    run, outcome, now_ms = it.run, it.outcome, it.end.now_ms
    event = _superseding_event(it.task, ending.event)
    restart = it.task.restart_requested
    failed = outcome.reason in FALLBACK_REASONS
    it.data |= _event_data(it)
    changes: dict[str, Any] = {
        "attempt": run.attempt if ending.counts_attempt else run.attempt - 1,
        "tier": ending.tier.value if ending.tier is not None else it.task.tier,
        "cancel_requested_ms": None,
        "failed_on": run.agent if failed else None,
        "failed_for": outcome.reason if failed else None,
    }
    if isinstance(event, lifecycle.Retrying | lifecycle.Requeued):
        changes |= _next_run(connection, it, ending, event)
    if isinstance(event, lifecycle.InputAsked):
        request = (it.request or asked_by(outcome, run.agent, run.id, now_ms)).within(it.spec.expires)
        event = replace(event, until=request.until_ms)
        if request.kind is InputKind.CLARIFICATION:
            changes |= rerouting_columns(it.task, it.spec)
        it.data |= request.event_data
        changes["asks"] = request.model_dump(mode="json")
        keeps = it.task.dir_key and it.end.input_hold_ms
        changes["kept_until_ms"] = now_ms + it.end.input_hold_ms if keeps else None
    task = task_rows.advance(connection, it.task, event, now_ms, run_id=run.id, data=it.data, **changes)
    _propagate(connection, task, run, restart, now_ms)


def _event_data(it: _Finishing) -> dict[str, Any]:
    outcome = it.outcome
    data: dict[str, Any] = {"status": outcome.status.value, "agent": it.run.agent, "detail": outcome.detail}
    if outcome.refused_handoff is not None:
        data["refused_handoff"] = outcome.refused_handoff.model_dump(mode="json")
    if outcome.over_budget is not None:
        data["budget"] = outcome.over_budget.model_dump(mode="json")
    if it.succeeded and (remark := done_text(outcome, checked=bool(it.spec.check))) is not None:
        data["remark"] = remark
    return data


def _next_run(connection: Connection, it: _Finishing, ending: Ending, event: lifecycle.Event) -> dict[str, Any]:
    """The columns from which the task's next run begins: another specialist, this conversation, or a fresh one."""
    run, now_ms = it.run, it.end.now_ms
    if it.handoff is not None and it.handed_on and isinstance(event, lifecycle.Requeued):
        return reassign_columns(connection, it.task, it.spec, it.handoff, now_ms)
    if it.is_deserted:
        return rerouting_columns(it.task, it.spec)
    if (ending.resumes or ending.may_resume) and it.conversation_id is not None:
        return resuming_columns(connection, it.task, run, optional=ending.may_resume, confirms=ending.confirms)
    if run.resumes is not None:
        lost = it.outcome.conversation_lost
        why = f"{run.agent} no longer knows it" if lost else f"it ended in {it.outcome.reason}"
        return give_up_conversation(connection, it.task, run.id, why, now_ms)
    return {}


def _is_deserted(connection: Connection, run: Run, outcome: Outcome) -> bool:
    """Return whether the task leaves a specialist whose agent is gone: if nobody has named that specialist, and only
    once, as an agent that comes and goes would cost run after run."""
    if outcome.reason is not Reason.NOT_RUNNING or run.specialist is None:
        return False
    runs = run_rows.of_generation(connection, run.task_id, run.generation)
    same_end = [other for other in runs if (other.specialist, other.reason) == (run.specialist, outcome.reason)]
    if any(other.id != run.id for other in same_end):
        return False
    decision = decision_rows.latest(connection, run.task_id, DecisionKind.SPECIALIST, run.generation)
    try:
        return decision is not None and not is_named(SpecialistRecord.model_validate(decision.data).reason.code)
    except ValidationError:  # a damaged row, which must not keep the run from ending
        return False


def give_up(connection: Connection, run: Run, now_ms: int) -> bool:
    """Record that the run was revoked before it started: it cost nothing, and the task is queued again. False: it had
    already ended.

    After several such runs in a row the next one waits, as whatever keeps runs from starting may last.
    """
    if not run_rows.change(connection, run, state="revoked", live=False, ended_ms=now_ms, ended_as="revoked"):
        return False
    task = task_rows.get(connection, run.task_id)
    restart = task.restart_requested
    event: lifecycle.Event = Requeued()
    if task.cancel_requested_ms is not None:
        event = lifecycle.Cancelling()
    elif (in_a_row := run_rows.consecutive_revocations(connection, run)) > 1:
        event = lifecycle.Retrying(now_ms + backoff_ms(GIVEN_UP_PAUSE_MS, in_a_row - 1, run.id))
    event = _superseding_event(task, event)
    data = {"why": "the run was given up before it started"}
    task = task_rows.advance(connection, task, event, now_ms, run_id=run.id, data=data, cancel_requested_ms=None)
    _propagate(connection, task, run, restart, now_ms)
    return True


def _resumable_conversation(run: Run, outcome: Outcome) -> str | None:
    """The conversation that a later run can continue: by the agent's id for it, else by the id given to the agent."""
    if outcome.conversation_lost:
        return None
    if outcome.conversation_id is not None:
        return outcome.conversation_id
    begun = run.resumes is not None or outcome.reason is not Reason.SETUP_FAILED
    return run.conversation_id if begun else None


def _confirms(task: Task, run: Run) -> bool:
    """Whether the run was asked to finish work that had succeeded near a limit, or to confirm that it was done."""
    resumption = resumption_of(task)
    return run.resumes is not None and resumption is not None and resumption.confirms


def _was_a_try(connection: Connection, run: Run) -> bool:
    """Whether the run was started although every agent was limited."""
    decision = decision_rows.find(connection, decision_rows.identity(DecisionKind.PLACEMENT, run.id))
    return decision is not None and decision.data["fallback"] is not None


def _superseding_event(task: Task, event: lifecycle.Event) -> lifecycle.Event:
    """The event, unless new content or a forced restart is pending: then no further attempt at the old content
    follows."""
    if task.restart_requested is not None and not isinstance(event, lifecycle.Succeeded):
        return lifecycle.Cancelling()
    if task.next_revision is not None and isinstance(event, lifecycle.Retrying):
        return Requeued()
    return event


def _propagate(connection: Connection, task: Task, run: Run, restart: dict[str, Any] | None, now_ms: int) -> None:
    """Begin the generation that was requested during the run; without one, ready the task or those that wait for it."""
    if restart is not None:
        # Content that arrived after the restart request is the newer wish.
        revision = max(int(restart["revision"]), task.next_revision or 0)
        meant = forced_conversation(connection, task, run, restart, revision, now_ms) if restart.get("resume") else None
        renew(connection, task, now_ms, revision=revision, data={"restart": restart}, resumption=meant)
    elif task.next_revision is not None:  # which a cancel takes back: this has come since
        data = {"why": "its content had changed while it ran"}
        renew(connection, task, now_ms, revision=task.next_revision, data=data)
    elif task.state in ENDED:
        ready_dependents(connection, task, now_ms)
    elif task.state in ("WAITING", "QUEUED") and dependency_rows.states(connection, task.id):
        # A dependency may have begun again, or failed, during the run.
        ready(connection, task, task_rows.spec_of(connection, task.id, task.revision), now_ms)
