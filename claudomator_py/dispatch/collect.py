"""Reading what happened: from a live run's directory to its outcome, its check, and its end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection
from structlog.stdlib import BoundLogger

from claudomator_py.dispatch.launch import LaunchRules, check_run, launch_request
from claudomator_py.dispatch.live_output import LiveRunMonitor, Report, Said
from claudomator_py.dispatch.probing import begun_since, begun_under, close_ramped, note_answer
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.inputs import asks_leave, heard, leave_asked
from claudomator_py.domain.lifecycle import Phase
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.pricing import Used, priced
from claudomator_py.domain.redaction import Redactor, without_secrets
from claudomator_py.domain.run import ExitRecord, RunConflict, RunFate, RunStatus, Stream, command_text, ended_text
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import MINUTE_MS, format_instant
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.worktrees import Isolating
from claudomator_py.log import get_logger
from claudomator_py.ports import OutputReader, RunHost
from claudomator_py.store import hold_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.runs import (
    begin_check,
    finish_run,
    give_up,
    is_noted,
    note_use,
    reach_phase,
    stop_over_budget,
)

log = get_logger("claudomator.collect")

TAIL_BYTES = 4_000
MOST_CHECKS = 5
WORTH_ENDING_MS = MINUTE_MS
"""A shorter sleep costs less than starting again."""
PATIENCE_MS = 5 * MINUTE_MS
"""How long a CLI may wait out a limit without saying for how long."""
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
UNKNOWN = Outcome(
    status=OutcomeStatus.LOST, reason=Reason.LOST, detail="its supervisor was killed before it could record the end"
)
GONE = "its run directory was removed, or is not that of this database; what became of it is not known"


@dataclass(frozen=True, slots=True)
class _Subject:
    run: Run
    task: Task
    spec: TaskSpec

    @property
    def stop_wanted(self) -> bool:
        return self.task.cancel_requested_ms is not None or self.task.restart_requested is not None


class Collector:
    """Looks at one live run and takes it one step further. Every step can be repeated safely. rules: those in force."""

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        host: RunHost,
        monitor: LiveRunMonitor,
        rules: Callable[[], LaunchRules],
        budgets: Budgets | None = None,
        isolating: Isolating | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        """monitor: reads what runs write. budgets: what may be spent; None: anything. isolating: None: no run is in a
        work tree. secrets: what is known to be one; None: nothing but what is by its shape."""
        self._isolating = isolating
        self._database = database
        self._registry = registry
        self._host = host
        self._rules = rules
        self._budgets = budgets or Budgets()
        self._counting = False
        self._monitor = monitor
        self._secrets = secrets or Secrets()
        self._probes: set[str] = set()

    def look_only_at(self, live: Sequence[Run], now_ms: int) -> None:
        """These are all the live runs there are."""
        self._counting = False
        self._monitor.keep({run.id for run in live if run.state != "checking"})
        over = self._database.read(lambda connection: hold_rows.over(connection, now_ms))
        in_force = self._database.read(lambda connection: hold_rows.in_force(connection, now_ms))
        self._probes = {
            run.id
            for run in live
            if run.answered_ms is None
            and (any(begun_since(hold, run) for hold in over) or any(begun_under(hold, run) for hold in in_force))
        }

    @property
    def watches(self) -> bool:
        """Whether somebody waits for a live run's model to answer."""
        return bool(self._probes)

    @property
    def counts(self) -> bool:
        """Whether a live run could use up a budget."""
        return self._counting

    def collect(self, run: Run, now_ms: int) -> bool:
        """Whether the run is still live afterwards."""
        step = run.check_seq if run.state == "checking" else 0
        status = self._host.settle(run.id, step)
        subject = self._subject(run)
        match status.fate:
            case RunFate.STARTING | RunFate.ALIVE:
                self._attend(subject, step, status, now_ms)
                return True
            case RunFate.ORPHANED if step == 0 and self._host.take_over(run.id):
                _log_of(subject).warning("run_orphaned", note="its supervisor was killed; another one takes over")
                self._attend(subject, step, status, now_ms)
                return True
            case RunFate.REVOKED if step == 0:
                return not self._database.write(lambda connection: give_up(connection, run, now_ms))
            case RunFate.ENDED if step == 0:
                return self._agent_ended(subject, status.exit, now_ms)
            case RunFate.ENDED if status.exit is not None and status.exit.ended_by != "interrupt":
                outcome, wrote = self._check_outcome(subject, status.exit, step)
                return self._finish(subject, outcome, status.exit, now_ms, check_output=wrote)
        return self._without_record(subject, step, now_ms)

    def _is_gone(self, run: Run) -> bool:
        """Whether the whole directory of the run is."""
        return self._host.settle(run.id).fate is RunFate.MISSING

    def _subject(self, run: Run) -> _Subject:
        return self._database.read(
            lambda connection: _Subject(
                run, task_rows.get(connection, run.task_id), task_rows.spec_of(connection, run.task_id, run.revision)
            )
        )

    def _attend(self, subject: _Subject, step: int, status: RunStatus, now_ms: int) -> None:
        run = subject.run
        if subject.stop_wanted:
            self._host.cancel(run.id, step)
            crashpoint("cancel-asked")
            if subject.task.phase != Phase.STOPPING.value:
                self._database.write(lambda connection: reach_phase(connection, run, Phase.STOPPING, now_ms))
        elif step == 0 and run.over_budget is not None:
            self._host.cancel(run.id)
            crashpoint("cancel-asked")
        elif run.state == "starting" and status.fate is not RunFate.STARTING:
            self._database.write(lambda connection: reach_phase(connection, run, Phase.RUNNING, now_ms))
        elif step == 0:
            self._listen(subject, now_ms)

    def _listen(self, subject: _Subject, now_ms: int) -> None:
        """Act on what the live run has said."""
        run = subject.run
        if not self._is_readable(run):
            return
        said = self._monitor.follow(run.id, lambda: self._reader(subject))
        if _sleeps_in_limit(said, now_ms) and self._monitor.is_current(run.id):
            # Its reader makes a limit of it, however it is ended.
            _log_of(subject).info("run_sleeps_in_limit", note="it is ended, and its agent held")
            self._host.cancel(run.id)
            crashpoint("cancel-asked")
            return
        if said.answered and run.answered_ms is None and run.id in self._probes:
            self._database.write(lambda connection: note_answer(connection, run, self._registry.agents, now_ms))
            self._probes.discard(run.id)
        self._count(subject, said, now_ms)

    def _count(self, subject: _Subject, said: Said, now_ms: int) -> None:
        """Note what the run has used by now, if a budget could be used up by it, and stop it once one is."""
        run, agent = subject.run, self._agent(subject.run)
        if not self._budgets.watches(subject.spec, agent) or said.terminal:
            return
        self._counting = True
        used = said.used.priced(agent.prices, run.model)
        if not is_noted(run, used):
            noting = partial(note_use, run=run, used=used, now_ms=now_ms)
            self._database.write(lambda connection: self._budgets.telling(connection, noting, run, agent, now_ms))
        why = self._database.read(lambda connection: self._budgets.over(connection, run, subject.spec, agent))
        if why is None:
            return
        if not self._database.write(lambda connection: stop_over_budget(connection, run, why, now_ms)):
            return
        crashpoint("budget-met")
        _log_of(subject).warning("run_over_budget", why=why)
        self._host.cancel(run.id)
        crashpoint("cancel-asked")

    def _without_record(self, subject: _Subject, step: int, now_ms: int) -> bool:
        """The shim is gone, or the directory is. No retry before nothing of the run is left."""
        if step > 0 and self._host.settle(subject.run.id, step + 1).fate not in (RunFate.MISSING, RunFate.REVOKED):
            # What is left of the run is that check. To end it would fail the task.
            return self._take_over_check(subject, Outcome.model_validate(subject.run.outcome), now_ms)
        if not self._host.end_survivors(subject.run.id):
            _log_of(subject).warning("run_survived", note="processes of it are still ending")
            return True
        if self._is_gone(subject.run):
            return self._finish(subject, _gone(subject), None, now_ms)
        if step > 0:
            return self._check_lost(subject, now_ms)
        return self._agent_ended(subject, None, now_ms)

    def _agent_ended(self, subject: _Subject, exit_record: ExitRecord | None, now_ms: int) -> bool:
        run = subject.run
        if not self._is_readable(run):
            detail = f"no agent of kind {run.kind!r} is known any more"
            return self._finish(subject, UNKNOWN.model_copy(update={"detail": detail}), exit_record, now_ms)
        report = self._monitor.report(run.id, lambda: self._reader(subject), exit_record)
        if report is None:
            return True
        outcome, answered = self._agent_outcome(subject, report, now_ms), report.answered
        crashpoint("outcome-read")
        if outcome.status is not OutcomeStatus.SUCCEEDED or not subject.spec.check:
            return self._finish(subject, outcome, exit_record, now_ms, answered=answered)
        if subject.stop_wanted:
            # The agent's word alone is no success of a task that is to be checked.
            return self._finish(subject, _cancelled(outcome), exit_record, now_ms)
        exit_code = exit_record.exit_code if exit_record is not None else None
        return self._check(subject, outcome, exit_code, now_ms)

    def _check(self, subject: _Subject, outcome: Outcome, exit_code: int | None, now_ms: int) -> bool:
        """As with the run itself: directory, committed intent, shim."""
        run, step = subject.run, subject.run.check_seq + 1
        prepared = check_run(run, subject.spec, self._rules())
        try:
            self._host.prepare(prepared.order, step)
        except RunConflict:
            return self._take_over_check(subject, outcome, now_ms, exit_code)
        crashpoint("check-prepared")
        if not self._database.write(lambda connection: begin_check(connection, run, outcome, exit_code, now_ms)):
            return False
        crashpoint("check-committed")
        self._host.spawn(run.id, prepared.environment, step)
        return True

    def _take_over_check(self, subject: _Subject, outcome: Outcome, now_ms: int, exit_code: int | None = None) -> bool:
        """The next check has begun although no row says so: an older copy of the database was put back."""
        run = subject.run
        step, code = run.check_seq + 1, run.exit_code if exit_code is None else exit_code
        _log_of(subject).warning("check_taken_over", step=step, note="it had begun, and the database did not know")
        return self._database.write(lambda connection: begin_check(connection, run, outcome, code, now_ms))

    def _check_lost(self, subject: _Subject, now_ms: int) -> bool:
        """A check changes nothing that matters, so a lost one is begun again, unless the task is to stop."""
        run = subject.run
        outcome = Outcome.model_validate(run.outcome)
        if subject.stop_wanted:
            return self._finish(subject, _cancelled(outcome), None, now_ms)
        if run.check_seq >= MOST_CHECKS:
            detail = f"its check was begun {run.check_seq} times, and lost each time"
            return self._finish(subject, _unchecked(outcome, detail), None, now_ms)
        return self._check(subject, outcome, run.exit_code, now_ms)

    def _agent_outcome(self, subject: _Subject, report: Report, now_ms: int) -> Outcome:
        """What the report means for the task."""
        run = subject.run
        stopped = run.over_budget is not None and not subject.stop_wanted
        # A run that was done before it could be stopped for its budget is done.
        was_done = stopped and report.undisturbed.status is OutcomeStatus.SUCCEEDED
        outcome = self._heard(subject, report.undisturbed if was_done else report.outcome)
        outcome = priced(outcome, self._agent(run).prices, run.model)
        return self._over_budget(subject, outcome, now_ms)

    def _heard(self, subject: _Subject, outcome: Outcome) -> Outcome:
        """The outcome as the task takes it, fit to be shown. Questions are cut: so it is cleaned before."""
        kind = self._registry.kinds.get(subject.run.kind)
        converses = kind is not None and kind.conversations is not Conversations.NONE
        outcome = without_secrets(outcome, self._secrets.redactor(subject.spec.env, subject.run.id))
        return heard(outcome, subject.spec, converses=converses)

    def _over_budget(self, subject: _Subject, outcome: Outcome, now_ms: int) -> Outcome:
        """The outcome, with the figures if a budget has ended the run: by us, or by an agent that kept to one."""
        run = subject.run
        if outcome.status is OutcomeStatus.CANCELLED and run.over_budget is not None and not subject.stop_wanted:
            changes = {"status": OutcomeStatus.FAILED, "reason": Reason.BUDGET, "detail": run.over_budget}
            return outcome.model_copy(update=changes)
        if outcome.reason is not Reason.BUDGET:
            return outcome
        agent = self._agent(run)
        self._database.write(lambda connection: note_use(connection, run, Used.by(outcome), now_ms))
        why = self._database.read(lambda connection: self._budgets.over(connection, run, subject.spec, agent))
        said = ". ".join(part for part in (why, outcome.detail) if part)
        return outcome.model_copy(update={"detail": said or None})

    def _is_readable(self, run: Run) -> bool:
        """Whether an agent of that kind is known still."""
        return run.kind in self._registry.kinds

    def _reader(self, subject: _Subject) -> OutputReader:
        run = subject.run
        return self._registry.kinds[run.kind].reader(launch_request(run, subject.spec, self._agent(run)))

    def _agent(self, run: Run) -> AgentSpec:
        """The run's agent; one that is no longer configured is known by its kind only."""
        return self._registry.find(run.agent) or AgentSpec(name=run.agent, kind=run.kind)

    def _check_outcome(self, subject: _Subject, exit_record: ExitRecord, step: int) -> tuple[Outcome, str | None]:
        """And the end of what the check wrote, if it failed."""
        outcome = Outcome.model_validate(subject.run.outcome)
        if exit_record.ended_by == "cancel":
            return _cancelled(outcome), None
        if exit_record.exit_code == 0 and exit_record.ended_by is None:
            return outcome, None
        command = command_text(subject.spec.check[min(exit_record.step, len(subject.spec.check) - 1)])
        how = ended_text(exit_record.exit_code, exit_record.ended_by, exit_record.error)
        redactor = self._secrets.redactor(subject.spec.env, subject.run.id)
        wrote = self._tail(subject.run.id, step, redactor).rstrip()
        unchecked = _unchecked(outcome, redactor.redact(f"check `{command}` {how}\n{wrote}".rstrip()))
        return leave_asked(unchecked) if asks_leave(outcome, subject.spec) else unchecked, wrote or None

    def _tail(self, run_id: str, step: int, redactor: Redactor) -> str:
        """The end of what the check wrote. It is cut after secrets were taken out, so that no part of one is left."""
        tails = (self._host.tail(run_id, stream, 2 * TAIL_BYTES, step).decode(errors="replace") for stream in STREAMS)
        return "".join(map(redactor.redact_piece, tails))[-TAIL_BYTES:]

    def _finish(
        self,
        subject: _Subject,
        outcome: Outcome,
        exit_record: ExitRecord | None,
        now_ms: int,
        *,
        answered: bool = False,
        check_output: str | None = None,
    ) -> bool:
        run = subject.run
        if self._isolating is not None and not self._isolating.looked_after_run(run.dir_key):
            return True
        crashpoint("finish-begin")
        ending = partial(
            self._ended,
            run=run,
            outcome=outcome,
            exit_record=exit_record,
            now_ms=now_ms,
            answered=answered,
            check_output=check_output,
        )
        agent = self._agent(run)
        self._database.write(lambda connection: self._budgets.telling(connection, ending, run, agent, now_ms))
        crashpoint("finish-committed")
        told = {} if outcome.reason is None else {"reason": outcome.reason.value}
        _log_of(subject).info("run_ended", status=outcome.status.value, **told)
        for hold in self._database.read(lambda connection: hold_rows.in_force(connection, now_ms)):
            its = hold.bucket.is_of(run.agent, run.kind, run.account)
            if its and hold.reason is not None and (hold.run_id, hold.created_ms) == (run.id, now_ms):
                until = format_instant(hold.until_ms) if hold.until_ms is not None else "released"
                held = log.bind(agent=run.agent, reason=hold.reason.value, run_id=run.id, bucket=hold.bucket.label)
                held.warning("agent_held", until=until, provenance=hold.provenance.value)
        return False

    def _ended(
        self,
        connection: Connection,
        run: Run,
        outcome: Outcome,
        exit_record: ExitRecord | None,
        now_ms: int,
        answered: bool,
        check_output: str | None,
    ) -> None:
        hold_ms = self._rules().input_hold_ms
        spare = self._agent(run).fallback_model
        finish_run(
            connection,
            run,
            outcome,
            exit_record,
            now_ms,
            answered=answered,
            input_hold_ms=hold_ms,
            spare=spare,
            check_output=check_output,
        )
        close_ramped(connection, self._registry.agents, now_ms)


def _log_of(subject: _Subject) -> BoundLogger:
    run = subject.run
    return log.bind(task=subject.task.name, task_id=run.task_id, run_id=run.id, agent=run.agent, attempt=run.attempt)


def _sleeps_in_limit(said: Said, now_ms: int) -> bool:
    """Whether the run sleeps in a limit for longer than is worth waiting."""
    if said.stuck_until is not None:
        return said.stuck_until - now_ms > WORTH_ENDING_MS
    return said.stuck_since is not None and now_ms - said.stuck_since > PATIENCE_MS


def _cancelled(outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"status": OutcomeStatus.CANCELLED, "reason": Reason.CANCELLED})


def _gone(subject: _Subject) -> Outcome:
    """Of what the agent wrote nothing can be read; what it had said before its check is known."""
    if subject.run.outcome is None:
        return UNKNOWN.model_copy(update={"detail": GONE})
    outcome = Outcome.model_validate(subject.run.outcome)
    return _cancelled(outcome) if subject.stop_wanted else _unchecked(outcome, GONE)


def _unchecked(outcome: Outcome, detail: str) -> Outcome:
    return Outcome.model_validate(
        outcome.model_dump() | {"status": OutcomeStatus.FAILED, "reason": Reason.CHECK_FAILED, "detail": detail}
    )
