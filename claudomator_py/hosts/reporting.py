"""The reading half of a host: from a run's files to its live output and to the report of its end.

It does not use the database: the launch request contains everything it needs, so it works wherever the files are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.redaction import Redactor, without_secrets
from claudomator_py.domain.report import Backlog, LiveOutput, OutputPiece, RunReport, priced, tail_of
from claudomator_py.domain.run import ExitRecord, LaunchRequest, Stream
from claudomator_py.hosts.live_output import STREAMS, LiveRunMonitor
from claudomator_py.ports import AgentKind, Clock, OutputReader

TAIL_BYTES = 4_000

RedactorOf = Callable[[Mapping[str, str], str], Redactor]
"""Returns the redactor for a run, given its task's variables and its id."""


class ReportingHost(ABC):
    """A host with access to its runs' output, which it reads with the readers of their agents. See ``RunHost``."""

    def __init__(self, kinds: Mapping[str, AgentKind], redactor: RedactorOf, clock: Clock) -> None:
        """kinds: agent kinds by name."""
        self.news: Callable[[], None] = lambda: None
        self._kinds = kinds
        self._redactor = redactor
        self._monitor = LiveRunMonitor(self.read, clock)
        self._monitor.news = self._notify

    @abstractmethod
    def read(self, run_id: str, stream: Stream, offset: int, limit: int, step: int = 0) -> OutputPiece:
        """See ``RunHost``."""

    def start_reading(self) -> None:
        """Start to read the output of live runs, on a separate thread."""
        self._monitor.start()

    def close(self) -> None:
        """Stop reading and watching. The runs continue; the next daemon starts from their files."""
        self._monitor.close()

    def watch(self, live: Iterable[tuple[str, int]]) -> None:
        """Forget the output of other runs. See ``RunHost``."""
        self._monitor.keep({run_id for run_id, step in live if step == 0})

    def follow(self, request: LaunchRequest) -> LiveOutput | None:
        if request.agent.kind not in self._kinds:
            return None
        output = self._monitor.follow(request.run_id, lambda: self._reader(request))
        stuck = output.stuck_until is not None or output.stuck_since is not None
        return replace(output, is_current=self._monitor.is_current(request.run_id)) if stuck else output

    def backlog(self, run_id: str) -> Backlog | None:
        return self._monitor.backlog(run_id)

    def report(self, request: LaunchRequest, record: ExitRecord | None, step: int = 0) -> RunReport | None:
        """See ``RunHost``."""
        if step > 0:
            wrote = None if record is None or _is_quiet(record) else self._tail(request, step).rstrip() or None
            return RunReport(run_id=request.run_id, step=step, exit=record, check_output=wrote)
        kind = request.agent.kind
        if kind not in self._kinds:
            detail = f"no agent of kind {kind!r} is known"
            unread = Outcome(status=OutcomeStatus.LOST, reason=Reason.LOST, detail=detail)
            return RunReport(run_id=request.run_id, exit=record, outcome=unread)
        read = self._monitor.report(request.run_id, lambda: self._reader(request), record)
        if read is None:
            return None
        outcome = undisturbed = self._shown(request, read.outcome)
        if read.undisturbed is not read.outcome:
            undisturbed = self._shown(request, read.undisturbed)
        return RunReport(
            run_id=request.run_id,
            exit=record,
            outcome=outcome,
            undisturbed=undisturbed,
            answered=read.answered,
        )

    def _with_changes(self, request: LaunchRequest, report: RunReport, changes: RunChanges) -> RunReport:
        """Return the report with the run's changes, redacted."""
        redactor, known = self._redactor(request.task.env, request.run_id), {"changes": changes.shortened()}
        return report.with_outcomes(lambda outcome: without_secrets(outcome.model_copy(update=known), redactor))

    def _notify(self) -> None:
        self.news()

    def _reader(self, request: LaunchRequest) -> OutputReader:
        return self._kinds[request.agent.kind].reader(request)

    def _shown(self, request: LaunchRequest, outcome: Outcome) -> Outcome:
        """Return the outcome, redacted and priced."""
        outcome = without_secrets(outcome, self._redactor(request.task.env, request.run_id))
        return priced(outcome, request.agent.prices, None if request.model is None else request.model.model)

    def _tail(self, request: LaunchRequest, step: int) -> str:
        """Return the end of the check's output. It is cut after redaction, so that no part of a secret is left."""
        redactor = self._redactor(request.task.env, request.run_id)
        reads = (partial(self.read, request.run_id, stream, step=step) for stream in STREAMS)
        tails = (tail_of(read, 2 * TAIL_BYTES).decode(errors="replace") for read in reads)
        return "".join(map(redactor.redact_piece, tails))[-TAIL_BYTES:]


def _is_quiet(record: ExitRecord) -> bool:
    """Return whether the check's output is of no interest."""
    passed = record.exit_code == 0 and record.ended_by is None
    return passed or record.ended_by == "cancel"
