"""Advances live runs: from a host's status of a run to its next step, its check, or the report of its end."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.agent_states import begun_since, begun_under, note_answer
from claudomator_py.dispatch.apply_report import Applied, CheckWanted, PendingEnd, ReportApplier, ReportedRun
from claudomator_py.dispatch.launch import LaunchRules, check_run
from claudomator_py.dispatch.spending import Budgets
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.lifecycle import Phase
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.report import LiveOutput, RunReport, Stage
from claudomator_py.domain.run import ExitRecord, LaunchRequest, RunConflict, RunFate, RunStatus, WindDown
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.log import FieldLogger, get_logger
from claudomator_py.ports import RunHost
from claudomator_py.store import hold_rows, run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task
from claudomator_py.tasks.run_ends import give_up
from claudomator_py.tasks.runs import begin_check, is_noted, note_use, reach_phase, stop_over_budget

log = get_logger("claudomator.collect")

WORTH_ENDING_MS = MINUTE_MS
"""A shorter sleep costs less than a new start."""
EXIT_MS = SECOND_MS
"""Most programs exit within this time after their final message."""
PATIENCE_MS = 5 * MINUTE_MS
"""How long a CLI may wait for a limit to reset, or for a service in trouble, without naming the time."""


class Collector:
    """Advances one live run by one step at a time. Every step is idempotent. rules: returns those in force."""

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        host: RunHost,
        rules: Callable[[], LaunchRules],
        applier: ReportApplier,
        budgets: Budgets | None = None,
    ) -> None:
        """applier: applies the reports of ended runs. budgets: None for no limits."""
        self._database = database
        self._registry = registry
        self._host = host
        self._rules = rules
        self._budgets = budgets or Budgets()
        self._counting = False
        self._winding: dict[str, WindDown] = {}
        """The latest wind-down order of each run that has sent its final message."""
        self._stays_ms: int | None = None
        self._applier = applier
        self._probes: set[str] = set()
        self._begun: list[tuple[ReportedRun, Future[None]]] = []
        self._contents: dict[str, TaskSpec] = {}
        """The tasks' contents, by run id. A revision never changes."""
        self.check_obstacle: Callable[[Run], Blocked | None] = lambda _: None
        """Returns why the check of an ended run cannot begin yet; None if it can. Set by the owner of the slots."""
        self._waiting: set[str] = set()

    def expect(self, contents: Mapping[str, TaskSpec]) -> None:
        """Cache the contents of started runs, by run id."""
        self._contents |= contents

    def keep_only(self, connection: Connection, live: Sequence[Run], now_ms: int, *, held: bool) -> None:
        """Forget all runs that are not live any more. held: whether there are any holds."""
        self._counting, self._stays_ms = False, None
        self._waiting.clear()
        ids = {run.id for run in live}
        self._winding = {run_id: order for run_id, order in self._winding.items() if run_id in ids}
        self._contents = {run_id: spec for run_id, spec in self._contents.items() if run_id in ids}
        silent = [run for run in live if run.answered_ms is None] if held else []
        self._probes = _probes(connection, silent, now_ms) if silent else set()

    @property
    def watches(self) -> bool:
        """Whether other runs wait for a live run's model to answer."""
        return bool(self._probes)

    @property
    def checks_wait(self) -> bool:
        """Whether a check waits for a slot."""
        return bool(self._waiting)

    @property
    def counts(self) -> bool:
        """Whether a live run could use up a budget."""
        return self._counting

    @property
    def stays_ms(self) -> int | None:
        """When to check again whether a run has exited after its final message, in epoch milliseconds; None if there
        is no such run."""
        return self._stays_ms

    def begun(self) -> Sequence[tuple[ReportedRun, "Future[None]"]]:
        """Return the runs that have begun since the last call, each with its pending write. It commits with the next
        write, or with ``Database.flush``."""
        begun, self._begun = self._begun, []
        return begun

    def collect(self, run: Run, now_ms: int, task: Task | None = None, as_of: int | None = None) -> bool | PendingEnd:
        """Advance the run. Return whether it is still live, or its end, which is not durable yet. task: the run's, if
        read together with it. as_of: see ``ReportedRun``."""
        step = run.check_seq
        status = self._host.reconcile(run.id, step)
        subject = self._subject(run, task, as_of)
        match status.fate:
            case RunFate.STARTING | RunFate.ALIVE:
                self._attend(subject, step, status, now_ms)
                return True
            case RunFate.ORPHANED if step == 0:
                _log_of(subject).warning("run_orphaned", note="its supervisor was killed; another one takes over")
                self._attend(subject, step, status, now_ms)
                return True
            case RunFate.REVOKED if step == 0:
                return not self._database.write(lambda connection: give_up(connection, run, now_ms))
            case RunFate.ENDED if step == 0:
                return self._report(subject, step, status.exit, now_ms)
            case RunFate.ENDED if status.exit is not None and status.exit.ended_by != "interrupt":
                return self._report(subject, step, status.exit, now_ms)
        return self._without_record(subject, step, now_ms)

    def _is_gone(self, run: Run) -> bool:
        """Return whether the run's directory is gone."""
        return self._host.reconcile(run.id).fate is RunFate.MISSING

    def _subject(self, run: Run, task: Task | None, as_of: int | None) -> ReportedRun:
        spec = self._contents.get(run.id)
        if task is not None and spec is not None:
            return ReportedRun(run, task, spec, as_of=as_of)

        def read(connection: Connection) -> ReportedRun:
            known = task or task_rows.get(connection, run.task_id)
            return ReportedRun(run, known, spec or task_rows.spec_of(connection, run.task_id, run.revision))

        subject = self._database.read(read)
        self._contents[run.id] = subject.spec
        return subject

    def _attend(self, subject: ReportedRun, step: int, status: RunStatus, now_ms: int) -> None:
        run = subject.run
        if subject.stop_requested:
            self._host.cancel(run.id, step)
            crashpoint("cancel-asked")
        elif step == 0 and run.over_budget is not None:
            self._host.cancel(run.id)
            crashpoint("cancel-asked")
        elif run.state == "starting" and status.fate is not RunFate.STARTING:
            reaching = partial(reach_phase, run=run, phase=Phase.RUNNING, now_ms=now_ms)
            self._begun.append((subject, self._database.submit(reaching, planned=True, lazily=True)))
        elif step == 0:
            self._listen(subject, now_ms)

    def _listen(self, subject: ReportedRun, now_ms: int) -> None:
        """Act on the live run's output."""
        run = subject.run
        output = self._host.follow(self._request(subject))
        if output is None:
            return
        if _waits_too_long(output, now_ms) and output.is_current:
            # The reader reports what the run waits for, although it is stopped.
            _log_of(subject).info("run_waits_too_long", note="the run is stopped and its agent held")
            self._host.cancel(run.id)
            crashpoint("cancel-asked")
            return
        if output.answered and run.answered_ms is None and run.id in self._probes:
            self._database.write(lambda connection: note_answer(connection, run, self._registry.agents, now_ms))
            self._probes.discard(run.id)
        self._wind_down(run, output, now_ms)
        self._count(subject, output, now_ms)

    def _wind_down(self, run: Run, output: LiveOutput, now_ms: int) -> None:
        """Have the host end a run that does not exit after its final message."""
        order = self._rules().wind_down(output, now_ms)
        if order is None:
            return
        before = self._winding.get(run.id)
        if before is not None and (before.stdout, before.idle) == (order.stdout, order.idle):
            return
        exits_ms = output.stage_since + EXIT_MS
        if now_ms < exits_ms:
            self._stays_ms = min(self._stays_ms or exits_ms, exits_ms)
            return
        self._host.wind_down(run.id, order)
        self._winding[run.id] = order

    def _count(self, subject: ReportedRun, output: LiveOutput, now_ms: int) -> None:
        """Store the run's usage if it counts towards a budget, and stop the run when a budget is used up."""
        run, agent = subject.run, self._agent(subject)
        if not self._budgets.watches(subject.spec, agent) or output.stage is Stage.DONE:
            return
        self._counting = True
        used = output.used.priced(agent.prices, run.model)
        if not is_noted(run, used):
            noting = partial(note_use, run=run, used=used, now_ms=now_ms)
            self._database.write(
                lambda connection: self._budgets.change_and_record(connection, noting, run, agent, now_ms)
            )
        exceeded = self._database.read(lambda connection: self._budgets.exceeded(connection, run, subject.spec, agent))
        if exceeded is None:
            return
        if not self._database.write(lambda connection: stop_over_budget(connection, run, exceeded, now_ms)):
            return
        crashpoint("budget-met")
        _log_of(subject).warning("run_over_budget", why=exceeded.text)
        self._host.cancel(run.id)
        crashpoint("cancel-asked")

    def _without_record(self, subject: ReportedRun, step: int, now_ms: int) -> bool | PendingEnd:
        """Report a run whose shim or directory is gone, after all of its processes have ended: a retry must not
        overlap with them."""
        if step > 0 and self._host.reconcile(subject.run.id, step + 1).fate not in (RunFate.MISSING, RunFate.REVOKED):
            # The next check is running already. Ending it would fail the task.
            return self._take_over_check(subject, Outcome.model_validate(subject.run.outcome), now_ms)
        self._database.flush()  # no write waits for processes that do not end
        if not self._host.end_survivors(subject.run.id):
            _log_of(subject).warning("run_survived", note="some of its processes are still ending")
            return True
        if self._is_gone(subject.run):
            return self._apply(subject, RunReport(run_id=subject.run.id, step=step, gone=True), now_ms)
        return self._report(subject, step, None, now_ms)

    def _report(self, subject: ReportedRun, step: int, record: ExitRecord | None, now_ms: int) -> bool | PendingEnd:
        """Apply the run's end, see ``collect``. record: the exit record; None if the supervisor was lost."""
        report = self._host.report(self._request(subject), record, step)
        # There is no report until all output is read.
        return True if report is None else self._apply(subject, report, now_ms)

    def _apply(self, subject: ReportedRun, report: RunReport, now_ms: int) -> bool | PendingEnd:
        applied = self._applier.apply(report, now_ms, subject)
        if isinstance(applied, CheckWanted):
            if self.check_obstacle(subject.run) is not None:
                self._waiting.add(subject.run.id)
                return True
            return self._check(subject, applied.outcome, applied.exit_code, now_ms)
        return applied if isinstance(applied, PendingEnd) else applied is Applied.WAITING

    def _check(self, subject: ReportedRun, outcome: Outcome, exit_code: int | None, now_ms: int) -> bool:
        """Start the check like a run: directory, committed row, shim."""
        run, step = subject.run, subject.run.check_seq + 1
        prepared = check_run(run, subject.spec, self._rules())
        try:
            self._host.prepare(prepared.order, step)
        except RunConflict:
            return self._take_over_check(subject, outcome, now_ms, exit_code)
        self._host.flush_prepared()
        crashpoint("check-prepared")
        if not self._database.write(lambda connection: begin_check(connection, run, outcome, exit_code, now_ms)):
            return False
        crashpoint("check-committed")
        self._host.spawn(run.id, prepared.environment, step)
        return True

    def _take_over_check(
        self, subject: ReportedRun, outcome: Outcome, now_ms: int, exit_code: int | None = None
    ) -> bool:
        """Adopt a running check that the database does not know, because an older copy of it was restored."""
        run = subject.run
        code = run.exit_code if exit_code is None else exit_code
        note = "it was running, but the database did not know it"
        _log_of(subject).warning("check_taken_over", step=run.check_seq + 1, note=note)
        return self._database.write(lambda connection: begin_check(connection, run, outcome, code, now_ms))

    def _request(self, subject: ReportedRun) -> LaunchRequest:
        """Return the launch request by which the run's output is read."""
        return run_rows.launch_request(subject.run, subject.spec, self._agent(subject))

    def _agent(self, subject: ReportedRun) -> AgentSpec:
        return self._registry.of(subject.run.agent, subject.run.kind)


def _probes(connection: Connection, silent: Sequence[Run], now_ms: int) -> set[str]:
    """Return the silent runs that probe whether a limit is over."""
    in_force, expired = hold_rows.in_force_and_expired(connection, now_ms)
    return {
        run.id
        for run in silent
        if any(begun_since(hold, run) for hold in expired) or any(begun_under(hold, run) for hold in in_force)
    }


def _log_of(subject: ReportedRun) -> FieldLogger:
    run = subject.run
    return log.bind(task=subject.task.name, task_id=run.task_id, run_id=run.id, agent=run.agent, attempt=run.attempt)


def _waits_too_long(output: LiveOutput, now_ms: int) -> bool:
    """Return whether the run waits for its service for so long that it is cheaper to end it."""
    if output.stuck_until is not None:
        return output.stuck_until - now_ms > WORTH_ENDING_MS
    return output.stuck_since is not None and now_ms - output.stuck_since > PATIENCE_MS
