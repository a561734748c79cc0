"""The host's side of an end: from what a run left behind to its report. It knows no database.

What it needs to know of the run is in the request that the run was launched with, so it can be done wherever the run's
files are.
"""

from collections.abc import Callable, Mapping
from functools import partial

from claudomator_py.dispatch.live_output import LiveRunMonitor, Said
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.output import OutputPiece, tail_of
from claudomator_py.domain.pricing import priced
from claudomator_py.domain.redaction import Redactor, without_secrets
from claudomator_py.domain.report import RunReport
from claudomator_py.domain.run import ExitRecord, LaunchRequest, Stream
from claudomator_py.ports import AgentKind, OutputReader, RunHost

TAIL_BYTES = 4_000
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


class RunReporter:
    """Reads what runs say, with the readers of their agents."""

    def __init__(
        self,
        host: RunHost,
        monitor: LiveRunMonitor,
        kinds: Mapping[str, AgentKind],
        redactor: Callable[[Mapping[str, str], str], Redactor],
    ) -> None:
        """kinds: of agents, by name. redactor: what finds the secrets of a run, by its task's variables and its id."""
        self._host = host
        self._monitor = monitor
        self._kinds = kinds
        self._redactor = redactor

    def live(self, request: LaunchRequest) -> Said | None:
        """What the live run has said as far as it has been read; None: nobody can read it. Raises OSError."""
        if request.agent.kind not in self._kinds:
            return None
        return self._monitor.follow(request.run_id, lambda: self._reader(request))

    def agent_ended(self, request: LaunchRequest, record: ExitRecord | None) -> RunReport | None:
        """What the agent's run came to; None: its output is being read. Nothing that could write is left of it.

        record: how it ended; None: its supervisor was lost. Raises OSError.
        """
        kind = request.agent.kind
        if kind not in self._kinds:
            detail = f"no agent of kind {kind!r} is known"
            unread = Outcome(status=OutcomeStatus.LOST, reason=Reason.LOST, detail=detail)
            return RunReport(run_id=request.run_id, exit=record, outcome=unread)
        read = self._monitor.report(request.run_id, lambda: self._reader(request), record)
        if read is None:
            return None
        return RunReport(
            run_id=request.run_id,
            exit=record,
            outcome=self._shown(request, read.outcome),
            undisturbed=self._shown(request, read.undisturbed),
            answered=read.answered,
        )

    def check_ended(self, request: LaunchRequest, step: int, record: ExitRecord) -> RunReport:
        """How that check ended, with what it wrote last if it failed. Raises OSError."""
        passed = record.exit_code == 0 and record.ended_by is None
        wrote = "" if passed or record.ended_by == "cancel" else self._tail(request, step).rstrip()
        return RunReport(run_id=request.run_id, step=step, exit=record, check_output=wrote or None)

    def _read(self, run_id: str, stream: Stream, step: int, offset: int, limit: int) -> OutputPiece:
        return self._host.read(run_id, stream, offset, limit, step)

    def _reader(self, request: LaunchRequest) -> OutputReader:
        return self._kinds[request.agent.kind].reader(request)

    def _shown(self, request: LaunchRequest, outcome: Outcome) -> Outcome:
        """The outcome as others may see it."""
        outcome = without_secrets(outcome, self._redactor(request.task.env, request.run_id))
        return priced(outcome, request.agent.prices, None if request.model is None else request.model.model)

    def _tail(self, request: LaunchRequest, step: int) -> str:
        """The end of what the check wrote. It is cut after secrets were taken out, so that no part of one is left."""
        redactor = self._redactor(request.task.env, request.run_id)
        tails = (
            tail_of(partial(self._read, request.run_id, stream, step), 2 * TAIL_BYTES).decode(errors="replace")
            for stream in STREAMS
        )
        return "".join(map(redactor.redact_piece, tails))[-TAIL_BYTES:]
