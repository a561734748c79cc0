"""Sends spans of ended work to the collector in the background, in order; a crash loses none.

Spans are made from rows, and the event cursor is stored after the collector has accepted their spans. A crash in
between sends spans again, with the same ids. A collector that is down is retried with growing pauses, which delays
nothing but its spans.
"""

import logging
from collections.abc import Container
from dataclasses import replace
from functools import partial

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.lifecycle import backoff_ms
from claudomator_py.domain.trace import Span
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.environment.secrets import Secrets
from claudomator_py.ports import Clock, ExportFault, SpanExporter
from claudomator_py.store import events, trace_rows
from claudomator_py.store.database import Database
from claudomator_py.store.trace_rows import TaskHistory
from claudomator_py.values import dataclass
from claudomator_py.workers import Worker
from claudomator_py.workers.spans import spans_of

log = logging.getLogger("claudomator.telemetry")

PAGE = 100
"""Number of state changes examined together."""
BATCH_SIZE = 500
"""Maximum spans per request; a span is about a kilobyte."""
FIRST_PAUSE_MS = 2 * SECOND_MS
MAX_PAUSE_MS = 5 * MINUTE_MS
SETTLE_S = 1.0
"""Delay that lets changes committed in quick succession be handled in one round."""


@dataclass(slots=True)
class _Page:
    """A page of events. spans: those that ended with them and are not sent yet."""

    spans: list[Span]
    reached: int
    """The id of the last event."""
    more: bool
    """Whether further events may be available."""
    worth_noting: bool
    """Whether to store the cursor, because reading the page again would be costly or would send spans twice."""


class SpanSender(Worker):
    """Sends the spans that end after its very first start. secrets: removed from spans."""

    wakes_on_commit = True

    def __init__(self, database: Database, exporter: SpanExporter, clock: Clock, secrets: Secrets) -> None:
        super().__init__("telemetry", clock, settle_s=SETTLE_S)
        self._database = database
        self._exporter = exporter
        self._secrets = secrets
        self._page: _Page | None = None
        self._reached: int | None = None
        """The last event whose spans were sent; None: not read yet."""
        self._failures = 0
        """Consecutive failures."""
        self._fault: tuple[str, int] | None = None
        """The current problem, and since when, in epoch milliseconds."""
        self._refused = 0
        """Spans that the collector refused permanently."""

    def close(self) -> None:
        """Stop sending; the next daemon continues."""
        self.stop()
        self._exporter.close()
        super().close()

    def check(self) -> CheckView:
        """Return the check of whether the collector accepts spans."""
        if (fault := self._fault) is not None:
            detail = f"no span was accepted since {format_instant(fault[1])}: {fault[0]}"
            remedy = "check the collector and `telemetry` in the configuration; spans are kept and sent later"
            return CheckView(name="telemetry", ok=False, detail=detail, remedy=remedy, blocking=False)
        detail = f"{self._refused} spans were refused, see the log" if self._refused else "spans are accepted"
        return CheckView(name="telemetry", ok=True, detail=detail, blocking=False)

    def run_once(self) -> None:
        """Send all pending spans, and pause after a failure. Raises StoreUnavailable."""
        try:
            self.send_all()
        except ExportFault as fault:
            self._stopped.wait(self._pause_after(fault))
            self.wake()

    def send_all(self) -> None:
        """Send all pending spans. Raises ExportFault, StoreUnavailable; the rest is sent the next time."""
        while not self._stopped.is_set():
            page = self._page = self._page or self._look()
            while page.spans:
                self._send(page.spans[:BATCH_SIZE])
                del page.spans[:BATCH_SIZE]
            if page.worth_noting:
                crashpoint("spans-sent")
                self._database.write(partial(trace_rows.move_cursor, event_id=page.reached))
            self._reached, self._page = page.reached, None
            if not page.more:
                break

    def _look(self) -> _Page:
        """Read the next page of events, and make the spans that ended with them."""
        newest = self._database.read(events.last_id)
        after = self._begun_at(newest) if self._reached is None else self._reached
        changes = self._database.read(lambda connection: trace_rows.changes_after(connection, after, PAGE))
        more, ids = len(changes) == PAGE, {event.id or 0 for event in changes}
        task_ids = {str(event.task_id) for event in changes}
        histories = self._database.read(lambda connection: trace_rows.histories(connection, task_ids))
        spans = [span for history in histories for span in self._spans(history, ids)]
        reached = max(ids) if more else max(newest, after, *ids)
        return _Page(spans, reached, more, bool(spans) or reached - after >= PAGE)

    def _begun_at(self, newest: int) -> int:
        """Return the event to continue after. At the very first start that is the newest: the past is not sent."""
        cursor = self._database.read(trace_rows.cursor)
        if cursor is None:
            self._database.write(lambda connection: trace_rows.move_cursor(connection, newest))
        return newest if cursor is None else cursor

    def _spans(self, history: TaskHistory, ended_by: Container[int]) -> list[Span]:
        """Return the task's spans; none if it cannot be read, so that it does not stop others."""
        try:
            return [
                replace(span, title=self._secrets.clean(span.title), attributes=self._secrets.clean(span.attributes))
                for span in spans_of(history, ended_by)
            ]
        except Exception:
            log.exception("the spans of task %s cannot be made", history.task.id)
            return []

    def _send(self, spans: list[Span]) -> None:
        try:
            self._exporter.send(spans)
        except ExportFault as fault:
            if not fault.lasting:
                raise
            self._refused += len(spans)
            log.error("%d spans were refused: %s", len(spans), fault)
        if self._fault is not None:
            log.info("spans are accepted again")
        self._failures, self._fault = 0, None

    def _pause_after(self, fault: ExportFault) -> float:
        """Record the fault, and return the seconds to wait."""
        self._failures += 1
        since_ms = self._clock() if self._fault is None else self._fault[1]
        self._fault = (self._secrets.redact_piece(str(fault)), since_ms)
        if not self._stopped.is_set():
            log.warning("spans were not accepted, attempt %d: %s", self._failures, self._fault[0])
        return backoff_ms(FIRST_PAUSE_MS, self._failures, "telemetry", longest_ms=MAX_PAUSE_MS) / 1000
