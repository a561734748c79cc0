"""What can happen to a run inside one transaction: committed, seen running, checking, ended, or given up."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import Connection

from claudomator_py.domain import lifecycle
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.budget import SpentBudget, is_spent
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.handoff import Given
from claudomator_py.domain.inputs import InputRequest, asked_by
from claudomator_py.domain.lifecycle import ENDED, InputKind, Phase, PhaseReached, Requeued, Started
from claudomator_py.domain.limits import Hold, believable, done_text
from claudomator_py.domain.outcome import OUTAGES, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.pricing import Used
from claudomator_py.domain.readiness import backoff_ms
from claudomator_py.domain.run import CheckResult, ExitRecord
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import SECOND_MS
from claudomator_py.ports import AgentKind
from claudomator_py.prompts.conversations import (
    columns_of,
    give_up_conversation,
    goes_on,
    meant_by_force,
    resumption_of,
    scratch_of,
    used_by,
)
from claudomator_py.scheduler.after_run import EndedRun, after_run
from claudomator_py.scheduler.decision import DecisionKind
from claudomator_py.scheduler.plan import StartRun
from claudomator_py.scheduler.snapshot import FALLBACK_REASONS
from claudomator_py.store import decision_rows, run_rows, spending_rows, task_rows
from claudomator_py.store.decision_rows import PackedSnapshot
from claudomator_py.store.events import record
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import VersionConflict
from claudomator_py.tasks.decisions import record_placement
from claudomator_py.tasks.handing_on import (
    asked_after,
    fallen_back,
    given_on,
    keep,
    routed_again,
    settled,
    with_verdict,
)
from claudomator_py.tasks.holds import hold_after_run
from claudomator_py.tasks.readiness import ready_dependents
from claudomator_py.tasks.renewal import renew

NOTE_OF = "note_of"
"""In the event of a start: the run of which the agent gets a note, as a fresh conversation takes over its work."""
GIVEN_UP_PAUSE_MS = SECOND_MS
MOST_USED = 10**12
"""Tokens, or US dollars: what one run can have used at most, many times over."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended. hold: on what it draws on, if it has met a limit that was not known to last so long."""

    outcome: Outcome
    hold: Hold | None


def planned_run(
    task: Task,
    start: StartRun,
    kind: AgentKind,
    account: str,
    now_ms: int,
    earlier: Run | None = None,
    scratch: str | None = None,
) -> Run:
    """The run that this start means: its identity follows from the task's row alone.

    account: whose quota it draws on. earlier: the run whose conversation it continues in; None: it begins one. scratch:
    the run whose scratch folder it takes over then; None: its own.
    """
    attempt, seq = task.attempt + 1, task.seq + 1
    run_id, conversation_id = run_rows.identity(task.id, task.generation, attempt, seq)
    own_conversation = conversation_id if kind.conversations is Conversations.GIVEN else None
    return Run(
        id=run_id,
        task_id=task.id,
        generation=task.generation,
        attempt=attempt,
        seq=seq,
        revision=task.revision,
        agent=start.decision.agent,
        kind=kind.kind,
        account=account,
        model=start.decision.model,
        ran_model=start.chosen_model,
        tier=start.decision.tier.value,
        dir_key=task.dir_key,
        conversation_id=own_conversation if earlier is None else earlier.conversation_id,
        resumes=None if earlier is None else earlier.id,
        prior=None if earlier is None else used_by(earlier).model_dump(mode="json"),
        scratch_of=scratch if earlier is None else scratch_of(earlier),
        thread=task.thread or task.id,
        state="starting",
        live=True,
        started_ms=now_ms,
        specialist=task.specialist,
        skill=task.skill,
        risk=task.risk,
        channel=task.channel,
        creator=task.creator,
        organisation=task.organisation,
    )


def commit_start(
    connection: Connection,
    start: StartRun,
    run: Run,
    observed: PackedSnapshot,
    obstacle: str | None = None,
    left: Run | None = None,
    given: Given | None = None,
) -> None:
    """Record the intent to start the run. Raises VersionConflict if the task has changed since it was planned.

    obstacle: why it does not continue the conversation that it was to continue. left: the run of which it gets a note.
    given: what it may do, and is to look at and hand back; None: it does not start after all.
    """
    task = task_rows.get(connection, run.task_id)
    if task.version != start.head.version or task.state != "QUEUED":
        raise VersionConflict(task.id, start.head.version)
    run_rows.add(connection, run)
    decision_rows.add_snapshot(connection, observed, run.started_ms)
    record_placement(connection, task, run, start.decision.model_copy(update={"given": given}), observed.digest)
    changes: dict[str, Any] = {"seq": run.seq, "last_run_id": run.id, "tier": run.tier, "kept_until_ms": None}
    changes |= {"failed_on": None, "failed_for": None}
    resumption = resumption_of(task)
    if resumption is not None and resumption.optional and run.resumes is None:
        told_again = resumption.follows is not None or resumption.heard
        kept = resumption.model_copy(update={"given_up": True}) if told_again else None
        changes |= columns_of(kept, task_rows.spec_of(connection, task.id, task.revision))
    elif obstacle is not None:
        changes |= give_up_conversation(connection, task, run.id, obstacle, run.started_ms)
    data: dict[str, Any] = {"agent": run.agent, "attempt": run.attempt}
    if left is not None:
        data[NOTE_OF] = left.id
    task_rows.advance(connection, task, Started(), run.started_ms, run_id=run.id, data=data, **changes)


def reach_phase(connection: Connection, run: Run, phase: Phase, now_ms: int) -> None:
    """The run got to this phase; nothing happens if it has ended meanwhile, or is stopping already."""
    task = task_rows.get(connection, run.task_id)
    if task.last_run_id != run.id or task.state != "RUNNING" or task.phase in (phase.value, Phase.STOPPING.value):
        return
    if phase is Phase.RUNNING and not run_rows.change(connection, run, state="running"):
        return
    task_rows.advance(connection, task, PhaseReached(phase), now_ms, run_id=run.id)


def is_noted(run: Run, used: Used) -> bool:
    """Whether the run's row says so already."""
    return all(getattr(run, column) == value for column, value in _used_columns(run, used, 0).items())


def note_use(connection: Connection, run: Run, used: Used, now_ms: int) -> None:
    """The live run has used so much by now; nothing happens if it has ended meanwhile."""
    run_rows.change(connection, run, **_used_columns(run, used, now_ms))


def stop_over_budget(connection: Connection, run: Run, over: SpentBudget, now_ms: int) -> bool:
    """The run is to be stopped, as that budget is used up. False: it has ended meanwhile."""
    if not run_rows.change(connection, run, over_budget=over.model_dump_json()):
        return False
    data = {"budget": over.model_dump(mode="json")}
    record(connection, now_ms, "over_budget", task_id=run.task_id, run_id=run.id, data=data)
    reach_phase(connection, run, Phase.STOPPING, now_ms)
    return True


def begin_check(connection: Connection, run: Run, outcome: Outcome, exit_code: int | None, now_ms: int) -> bool:
    """The agent succeeded: record its outcome and the intent to check it (again). False, and nothing was written: the
    run is no longer live, or has gone on to another check since it was read."""
    changes = {
        "state": "checking",
        "check_seq": run.check_seq + 1,
        "answered_ms": run.answered_ms or now_ms,
        "outcome": outcome.model_dump(mode="json"),
        "exit_code": exit_code,
        "check_result": _check_of(connection, run, now_ms).model_dump(mode="json"),
        **_used_columns(run, Used.by(outcome), now_ms),
    }
    if not run_rows.change(connection, run, **changes):
        return False
    reach_phase(connection, run, Phase.CHECKING, now_ms)
    return True


def finish_run(
    connection: Connection,
    run: Run,
    outcome: Outcome,
    exit_record: ExitRecord | None,
    now_ms: int,
    *,
    answered: bool = False,
    input_hold_ms: int = 0,
    spare: str | None = None,
    check_output: str | None = None,
    max_handoffs: int = 0,
    spec: TaskSpec | None = None,
) -> Finished | None:
    """The run has ended: outcome, hold and the task's next state in one transaction. answered: its model did.

    input_hold_ms: how long the directory of a task that needs input is kept for it. spare: the model that its agent has
    for one that is not to be had. check_output: the end of what its check wrote, if that failed. max_handoffs: how
    often the task may be handed on. spec: the content that it ran, if that is at hand. None, and nothing was
    written, if it was recorded before.
    """
    ended_ms = exit_record.ended_ms if exit_record is not None else now_ms
    outcome = believable(outcome, ended_ms)
    exit_code = exit_record.exit_code if exit_record is not None else None
    if run.state == "checking":
        # The record is the check's; the run's own exit code is known already.
        exit_code = run.exit_code
    checked: dict[str, Any] = {}
    if run.state == "checking":
        stored = run.check_result  # a daemon of an earlier version wrote none
        check_begun = CheckResult.model_validate(stored) if stored is not None else _check_of(connection, run, now_ms)
        cancelled = outcome.status is OutcomeStatus.CANCELLED
        result = check_begun.ended(exit_record, cancelled=cancelled, now_ms=now_ms, output=check_output)
        checked["check_result"] = result.model_dump(mode="json")
    task = task_rows.get(connection, run.task_id)
    if spec is None:
        spec = task_rows.spec_of(connection, task.id, run.revision)
    asks: InputRequest | None = None
    handing = settled(connection, task, run, outcome, max_handoffs)
    if handing is not None:
        outcome = with_verdict(outcome, handing, spec)
    else:
        handing = fallen_back(connection, task, run, outcome, spec, max_handoffs)
        if handing is not None and not handing.accepted:
            asks = asked_after(handing, outcome, run, now_ms)
    conversation_id = _left_behind(run, outcome)
    answered = answered or run.answered_ms is not None or outcome.status is OutcomeStatus.SUCCEEDED
    written = run_rows.change(
        connection,
        run,
        state="ended",
        live=False,
        ended_ms=max(ended_ms, run.started_ms),
        answered_ms=run.answered_ms or (now_ms if answered else None),
        exit_code=exit_code,
        outcome=outcome.model_dump(mode="json"),
        conversation_id=conversation_id,
        ran_model=outcome.model or run.ran_model,
        warned_until_ms=outcome.near_limit_until,
        ended_as=outcome.status.value,
        reason=outcome.reason.value if outcome.reason is not None else None,
        **checked,
        **_used_columns(run, Used.by(outcome), now_ms),
    )
    if not written:
        return None
    if handing is not None:
        keep(connection, task, handing, now_ms)
    met_limit = hold_after_run(connection, run, outcome, now_ms, ended_ms=ended_ms, spare=spare)
    known_limit = met_limit is not None and met_limit.known and outcome.status is OutcomeStatus.LIMITED
    if not answered and (known_limit or outcome.reason in OUTAGES):
        run_rows.note_in_vain(connection, run.id)
    succeeded = outcome.status is OutcomeStatus.SUCCEEDED
    outages, interrupted_answers = (0, 0) if succeeded else run_rows.outages(connection, run)
    ended = EndedRun(
        run_id=run.id,
        attempt=run.attempt,
        tier=Tier(run.tier) if run.tier is not None else None,
        held_until=met_limit.hold.until_ms if met_limit is not None else None,
        cancelled=task.cancel_requested_ms is not None,
        tries=run.seq if not succeeded and _was_a_try(connection, run) else 0,
        resumed=run.resumes is not None,
        # Of a run that was lost nobody knows how far it came: its agent is asked, and says so if there is nothing.
        begun=conversation_id is not None and (answered or run.resumes is not None or outcome.reason is Reason.LOST),
        answered=answered,
        outages=outages,
        interrupted_answers=interrupted_answers,
        spent=is_spent(spec.budget, lambda: spending_rows.of_task(connection, task.id)),
        spare=spare not in (None, run.model) and spec.agent.model is None,
        handed_on=handing is not None and handing.accepted,
        confirms=_confirms(task, run),
        asks=None if asks is None else asks.kind,
    )
    ending = after_run(outcome, spec, ended, now_ms)
    attempt = run.attempt if ending.counts_attempt else run.attempt - 1
    data: dict[str, Any] = {"status": outcome.status.value, "agent": run.agent, "detail": outcome.detail}
    if outcome.refused_handoff is not None:
        data["refused_handoff"] = outcome.refused_handoff.model_dump(mode="json")
    if outcome.over_budget is not None:
        data["budget"] = outcome.over_budget.model_dump(mode="json")
    if succeeded and (remark := done_text(outcome, checked=bool(spec.check))) is not None:
        data["remark"] = remark
    event = _unless_superseded(task, ending.event)
    tier = ending.tier.value if ending.tier is not None else task.tier
    restart = task.restart_requested
    changes: dict[str, Any] = {"attempt": attempt, "tier": tier, "cancel_requested_ms": None}
    failed = outcome.reason in FALLBACK_REASONS
    changes |= {"failed_on": run.agent if failed else None, "failed_for": outcome.reason if failed else None}
    if handing is not None and handing.accepted and isinstance(event, lifecycle.Requeued):
        changes |= given_on(connection, task, spec, handing, now_ms)
    elif isinstance(event, lifecycle.Retrying | lifecycle.Requeued):
        if (ending.goes_on or ending.may_go_on) and conversation_id is not None:
            changes |= goes_on(connection, task, run, optional=ending.may_go_on, confirms=ending.confirms)
        elif run.resumes is not None:
            changes |= give_up_conversation(connection, task, run.id, _why_afresh(run, outcome), now_ms)
    if isinstance(event, lifecycle.InputAsked):
        request = (asks or asked_by(outcome, run.agent, run.id, now_ms)).within(spec.expires)
        event = replace(event, until=request.until_ms)
        if request.kind is InputKind.CLARIFICATION:
            changes |= routed_again(task, spec)
        data |= request.event_data
        changes["asks"] = request.model_dump(mode="json")
        changes["kept_until_ms"] = now_ms + input_hold_ms if task.dir_key and input_hold_ms else None
    task = task_rows.advance(connection, task, event, now_ms, run_id=run.id, data=data, **changes)
    _follow(connection, task, run, restart, now_ms)
    return Finished(outcome, met_limit.hold if met_limit is not None and met_limit.news else None)


def give_up(connection: Connection, run: Run, now_ms: int) -> bool:
    """The run was revoked before it started: it cost nothing, and the task is queued again. False: it had ended.

    If it was not the first in a row, the next one follows after a pause: what keeps runs from starting may last.
    """
    if not run_rows.change(connection, run, state="revoked", live=False, ended_ms=now_ms, ended_as="revoked"):
        return False
    task = task_rows.get(connection, run.task_id)
    restart = task.restart_requested
    event: lifecycle.Event = Requeued()
    if task.cancel_requested_ms is not None:
        event = lifecycle.Cancelling()
    elif (in_a_row := run_rows.given_up_in_a_row(connection, run)) > 1:
        event = lifecycle.Retrying(now_ms + backoff_ms(GIVEN_UP_PAUSE_MS, in_a_row - 1, run.id))
    event = _unless_superseded(task, event)
    data = {"why": "the run was given up before it started"}
    task = task_rows.advance(connection, task, event, now_ms, run_id=run.id, data=data, cancel_requested_ms=None)
    _follow(connection, task, run, restart, now_ms)
    return True


def _check_of(connection: Connection, run: Run, now_ms: int) -> CheckResult:
    """Its check, begun now."""
    commands = task_rows.spec_of(connection, run.task_id, run.revision).check
    return CheckResult(commands=commands, started_ms=now_ms)


def _left_behind(run: Run, outcome: Outcome) -> str | None:
    """The conversation that a later run can continue in: as the agent calls it, else as it was given to the agent."""
    if outcome.conversation_lost:
        return None
    if outcome.conversation_id is not None:
        return outcome.conversation_id
    begun = run.resumes is not None or outcome.reason is not Reason.SETUP_FAILED
    return run.conversation_id if begun else None


def _confirms(task: Task, run: Run) -> bool:
    """Whether the run was asked to finish what had succeeded near a limit, or to confirm that it was done."""
    resumption = resumption_of(task)
    return run.resumes is not None and resumption is not None and resumption.confirms


def _why_afresh(run: Run, outcome: Outcome) -> str:
    return f"{run.agent} no longer knows it" if outcome.conversation_lost else f"it ended in {outcome.reason}"


def _used_columns(run: Run, used: Used, now_ms: int) -> dict[str, Any]:
    """What a run has used, as far as it has said; what was known before stays known."""
    windows = {name: use.model_dump(mode="json") for name, use in used.windows.items()}
    columns: dict[str, Any] = {
        "input_tokens": _plausible(used.tokens.input),
        "output_tokens": _plausible(used.tokens.output),
        "cost_usd": _plausible(used.cost_usd),
    }
    columns = {column: getattr(run, column) if value is None else value for column, value in columns.items()}
    return columns if not windows or windows == run.windows else {**columns, "windows": windows, "windows_ms": now_ms}


def _plausible(used: Number | None) -> Number | None:
    """What an agent says it used, unless no run can have used so much, and the sum of all would be worth nothing."""
    return used if used is not None and 0 <= used <= MOST_USED else None


def _was_a_try(connection: Connection, run: Run) -> bool:
    """Whether it was started although every agent was limited."""
    decision = decision_rows.find(connection, decision_rows.identity(DecisionKind.PLACEMENT, run.id))
    return decision is not None and decision.data["fallback"] is not None


def _unless_superseded(task: Task, event: lifecycle.Event) -> lifecycle.Event:
    """With new content or a forced restart at hand no further attempt at the old content follows."""
    if task.restart_requested is not None and not isinstance(event, lifecycle.Succeeded):
        return lifecycle.Cancelling()
    if task.next_revision is not None and isinstance(event, lifecycle.Retrying):
        return Requeued()
    return event


def _follow(connection: Connection, task: Task, run: Run, restart: dict[str, Any] | None, now_ms: int) -> None:
    if restart is not None:
        # Content that arrived after the request is the newer wish.
        revision = max(int(restart["revision"]), task.next_revision or 0)
        meant = meant_by_force(connection, task, run, restart, revision, now_ms) if restart.get("resume") else None
        renew(connection, task, now_ms, revision=revision, data={"restart": restart}, resumption=meant)
    elif task.next_revision is not None:  # which a cancel takes back: this has come since
        data = {"why": "its content had changed while it ran"}
        renew(connection, task, now_ms, revision=task.next_revision, data=data)
    elif task.state in ENDED:
        ready_dependents(connection, task, now_ms)
