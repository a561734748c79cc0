"""Reading what happened: from a live run's directory to its outcome, its check, and its end."""

import logging
from dataclasses import dataclass

from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.crashpoint import crashpoint
from claudomator_py.core.lifecycle import Phase
from claudomator_py.core.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.core.run import ExitRecord, RunFate, RunStatus, Stream
from claudomator_py.core.task import TaskSpec
from claudomator_py.service.launching import LaunchRules, check_run, launch_request
from claudomator_py.service.ports import OutputReader, RunHost
from claudomator_py.service.registry import AgentRegistry
from claudomator_py.service.run_changes import begin_check, finish_run, give_up, reach_phase
from claudomator_py.store import task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import Run, Task

log = logging.getLogger("claudomator.collect")

TAIL_BYTES = 4_000
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
UNKNOWN = Outcome(
    status=OutcomeStatus.LOST, reason=Reason.LOST, detail="its supervisor was killed before it could record the end"
)


@dataclass(frozen=True, slots=True)
class _Subject:
    run: Run
    task: Task
    spec: TaskSpec

    @property
    def stop_wanted(self) -> bool:
        return self.task.cancel_requested_ms is not None or self.task.restart_requested is not None


class Collector:
    """Looks at one live run and takes it one step further. Every step can be repeated safely."""

    def __init__(self, database: Database, registry: AgentRegistry, host: RunHost, rules: LaunchRules) -> None:
        self._database = database
        self._registry = registry
        self._host = host
        self._rules = rules

    def collect(self, run: Run, now_ms: int) -> bool:
        """Whether the run is still live afterwards."""
        step = run.check_seq if run.state == "checking" else 0
        status = self._host.settle(run.id, step)
        subject = self._subject(run)
        match status.fate:
            case RunFate.STARTING | RunFate.ALIVE:
                self._attend(subject, step, status, now_ms)
                return True
            case RunFate.REVOKED if step == 0:
                return not self._database.write(lambda connection: give_up(connection, run, now_ms))
            case RunFate.ENDED if step == 0:
                return self._agent_ended(subject, status.exit, now_ms)
            case RunFate.ENDED if status.exit is not None:
                return self._finish(subject, self._check_outcome(subject, status.exit, step), status.exit, now_ms)
        return self._without_record(subject, step, now_ms)

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
        elif run.state == "starting" and status.fate is RunFate.ALIVE:
            self._database.write(lambda connection: reach_phase(connection, run, Phase.RUNNING, now_ms))

    def _without_record(self, subject: _Subject, step: int, now_ms: int) -> bool:
        """The shim is gone, or the directory is. No retry before nothing of the run is left."""
        if not self._host.end_survivors(subject.run.id):
            log.warning("run %s: processes of it are still ending", subject.run.id)
            return True
        if step > 0:
            return self._check_lost(subject, now_ms)
        return self._agent_ended(subject, None, now_ms)

    def _agent_ended(self, subject: _Subject, exit_record: ExitRecord | None, now_ms: int) -> bool:
        outcome = self._agent_outcome(subject, exit_record, now_ms)
        crashpoint("outcome-read")
        checks = outcome.status is OutcomeStatus.SUCCEEDED and subject.spec.check and not subject.stop_wanted
        if not checks:
            return self._finish(subject, outcome, exit_record, now_ms)
        exit_code = exit_record.exit_code if exit_record is not None else None
        return self._check(subject, outcome, exit_code, now_ms)

    def _check(self, subject: _Subject, outcome: Outcome, exit_code: int | None, now_ms: int) -> bool:
        checking = self._database.write(
            lambda connection: begin_check(connection, subject.run, outcome, exit_code, now_ms)
        )
        crashpoint("check-committed")
        if checking is None:
            return False
        prepared = check_run(checking, subject.spec, self._rules)
        self._host.prepare(prepared.order, checking.check_seq)
        crashpoint("check-prepared")
        self._host.spawn(checking.id, prepared.environment, checking.check_seq)
        return True

    def _check_lost(self, subject: _Subject, now_ms: int) -> bool:
        """A check changes nothing that matters, so a lost one is begun again, unless the task is to stop."""
        outcome = Outcome.model_validate(subject.run.outcome)
        if subject.stop_wanted:
            cancelled = outcome.model_copy(update={"status": OutcomeStatus.CANCELLED, "reason": Reason.CANCELLED})
            return self._finish(subject, cancelled, None, now_ms)
        return self._check(subject, outcome, subject.run.exit_code, now_ms)

    def _agent_outcome(self, subject: _Subject, exit_record: ExitRecord | None, now_ms: int) -> Outcome:
        reader = self._reader(subject)
        if reader is None:
            return UNKNOWN.model_copy(update={"detail": f"no agent of kind {subject.run.kind!r} is known any more"})
        for stream in STREAMS:
            for piece in self._host.output(subject.run.id, stream):
                reader.feed(stream, piece)
        return reader.outcome(exit_record, now_ms)

    def _reader(self, subject: _Subject) -> OutputReader | None:
        run = subject.run
        kind = self._registry.kinds.get(run.kind)
        agent = self._registry.find(run.agent) or AgentSpec(name=run.agent, kind=run.kind)
        return None if kind is None else kind.reader(launch_request(run, subject.spec, agent))

    def _check_outcome(self, subject: _Subject, exit_record: ExitRecord, step: int) -> Outcome:
        outcome = Outcome.model_validate(subject.run.outcome)
        if exit_record.ended_by == "cancel":
            return outcome.model_copy(update={"status": OutcomeStatus.CANCELLED, "reason": Reason.CANCELLED})
        if exit_record.exit_code == 0 and exit_record.ended_by is None:
            return outcome
        command = " ".join(subject.spec.check[min(exit_record.step, len(subject.spec.check) - 1)])
        how = exit_record.error or _how_it_ended(exit_record)
        detail = f"check `{command}` {how}\n{self._tail(subject.run.id, step)}".rstrip()
        changes = {"status": OutcomeStatus.FAILED, "reason": Reason.CHECK_FAILED, "detail": detail}
        return outcome.model_copy(update=changes)

    def _tail(self, run_id: str, step: int) -> str:
        tail = b""
        for stream in STREAMS:
            for piece in self._host.output(run_id, stream, step):
                tail = (tail + piece)[-TAIL_BYTES:]
        return tail.decode(errors="replace")

    def _finish(self, subject: _Subject, outcome: Outcome, exit_record: ExitRecord | None, now_ms: int) -> bool:
        run = subject.run
        crashpoint("finish-begin")
        self._database.write(lambda connection: finish_run(connection, run, outcome, exit_record, now_ms))
        crashpoint("finish-committed")
        why = f" ({outcome.reason})" if outcome.reason is not None else ""
        log.info("%s: attempt %d on %s %s%s", subject.task.name, run.attempt, run.agent, outcome.status, why)
        return False


def _how_it_ended(exit_record: ExitRecord) -> str:
    if exit_record.ended_by is not None:
        return f"was ended by its {exit_record.ended_by.replace('_', ' ')}"
    if exit_record.exit_code is not None and exit_record.exit_code < 0:
        return f"was ended by signal {-exit_record.exit_code}"
    return f"exited with {exit_record.exit_code}"
