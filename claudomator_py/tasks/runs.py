"""Changes to a live run, each inside one transaction: committed, seen running, stopped, checked.

How it ends is in ``run_ends``.
"""

from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain.budget import SpentBudget
from claudomator_py.domain.handoff import Given
from claudomator_py.domain.lifecycle import Phase, PhaseReached, Started
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.report import Used
from claudomator_py.domain.run import CheckResult, Conversations
from claudomator_py.ports import AgentKind
from claudomator_py.prompts.conversations import columns_of, give_up_conversation, scratch_of, used_by
from claudomator_py.scheduler.plan import StartRun
from claudomator_py.store import decision_rows, run_rows, task_rows
from claudomator_py.store.decision_rows import PackedSnapshot
from claudomator_py.store.events import record
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks.decisions import record_placement

NOTE_OF = "note_of"
"""Key in the start event: the run about which the agent gets a note, as a fresh conversation takes over its work."""


def planned_run(
    task: Task,
    start: StartRun,
    kind: AgentKind,
    account: str,
    now_ms: int,
    earlier: Run | None = None,
    scratch: str | None = None,
) -> Run:
    """Return the run that this start stands for; its id follows from the task's row alone.

    account: whose quota it draws on. earlier: the run whose conversation it continues; None: it begins one. scratch:
    the run whose scratch folder it takes over in that case; None: its own.
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
    task: Task,
    start: StartRun,
    run: Run,
    observed: PackedSnapshot,
    obstacle: str | None = None,
    left: Run | None = None,
    given: Given | None = None,
) -> None:
    """Record the intent to start the run. Raises VersionConflict if the task has changed since it was planned.

    task: as planned. obstacle: why the run does not continue the intended conversation. left: the run about which it
    gets a note. given: what the run may do, and must examine and hand back; None: it does not start after all.
    """
    changes: dict[str, Any] = {"seq": run.seq, "last_run_id": run.id, "tier": run.tier, "kept_until_ms": None}
    changes |= {"failed_on": None, "failed_for": None}
    resumption = resumption_of(task)
    if resumption is not None and resumption.optional and run.resumes is None:
        repeats_all = resumption.follows is not None or resumption.heard
        kept = resumption.model_copy(update={"given_up": True}) if repeats_all else None
        changes |= columns_of(kept, task_rows.spec_of(connection, task.id, task.revision))
    elif obstacle is not None:
        changes |= give_up_conversation(connection, task, run.id, obstacle, run.started_ms)
    data: dict[str, Any] = {"agent": run.agent, "attempt": run.attempt}
    if left is not None:
        data[NOTE_OF] = left.id
    # First, as this is what finds out whether the task has changed.
    task_rows.advance(connection, task, Started(), run.started_ms, run_id=run.id, data=data, **changes)
    run_rows.add(connection, run)
    decision_rows.add_snapshot(connection, observed, run.started_ms)
    record_placement(connection, task, run, start.decision.model_copy(update={"given": given}), observed.digest)


def reach_phase(connection: Connection, run: Run, phase: Phase, now_ms: int) -> None:
    """Record that the run reached this phase; does nothing if it has ended or is already stopping."""
    task = task_rows.get(connection, run.task_id)
    if task.last_run_id != run.id or task.state != "RUNNING" or task.phase in (phase.value, Phase.STOPPING.value):
        return
    if phase is Phase.RUNNING and not run_rows.change(connection, run, state="running"):
        return
    task_rows.advance(connection, task, PhaseReached(phase), now_ms, run_id=run.id)


def is_noted(run: Run, used: Used) -> bool:
    """Return whether the run's row already shows this use."""
    return all(getattr(run, column) == value for column, value in run_rows.used_columns(run, used, 0).items())


def note_use(connection: Connection, run: Run, used: Used, now_ms: int) -> None:
    """Note what the live run has used so far; does nothing if it has ended."""
    run_rows.change(connection, run, **run_rows.used_columns(run, used, now_ms))


def stop_over_budget(connection: Connection, run: Run, over: SpentBudget, now_ms: int) -> bool:
    """Stop the run because it has used up that budget. False: it had already ended."""
    if not run_rows.change(connection, run, over_budget=over.model_dump_json()):
        return False
    data = {"budget": over.model_dump(mode="json")}
    record(connection, now_ms, "over_budget", task_id=run.task_id, run_id=run.id, data=data)
    reach_phase(connection, run, Phase.STOPPING, now_ms)
    return True


def begin_check(connection: Connection, run: Run, outcome: Outcome, exit_code: int | None, now_ms: int) -> bool:
    """Record the successful agent's outcome, and that its check starts. Return False, without writing, if the run is
    no longer live or has reached another check since it was read."""
    changes = {
        "state": "checking",
        "check_seq": run.check_seq + 1,
        "answered_ms": run.answered_ms or now_ms,
        "outcome": outcome.model_dump(mode="json"),
        "exit_code": exit_code,
        "check_result": check_of(connection, run, now_ms).model_dump(mode="json"),
        **run_rows.used_columns(run, Used.by(outcome), now_ms),
    }
    if not run_rows.change(connection, run, **changes):
        return False
    reach_phase(connection, run, Phase.CHECKING, now_ms)
    return True


def check_of(connection: Connection, run: Run, now_ms: int) -> CheckResult:
    """Return the run's check, starting now."""
    commands = task_rows.spec_of(connection, run.task_id, run.revision).check
    return CheckResult(commands=commands, started_ms=now_ms)
