"""Sends the spans of what has ended to the collector in the background, in order; a crash loses none.

Spans are made from the rows, and the event cursor is stored once the collector has taken their spans. So a crash in
between sends spans again, under the same names. A collector that is down is retried with growing pauses, which delays
only its spans.
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
from claudomator_py.workers.spans import spans_of
from claudomator_py.workers.worker import Worker

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
    """Events that were looked at together. spans: what is left to be sent of those that ended with them."""

    spans: list[Span]
    reached: int
    """The last of the events."""
    more: bool
    """Whether others may follow at once."""
    worth_noting: bool
    """Whether looking at them again would be a pity."""


class SpanSender(Worker):
    """Sends what ends from its first start on. secrets: what no span may hold."""

    wakes_on_commit = True

    def __init__(self, database: Database, exporter: SpanExporter, clock: Clock, secrets: Secrets) -> None:
        super().__init__("telemetry", clock, settle_s=SETTLE_S)
        self._database = database
        self._exporter = exporter
        self._secrets = secrets
        self._page: _Page | None = None
        self._reached: int | None = None
        """The last event whose spans were sent; None: it is to be read."""
        self._failures = 0
        """Times in a row."""
        self._fault: tuple[str, int] | None = None
        """Why nothing is taken at present, and since when."""
        self._refused = 0
        """Spans that the collector will never take."""

    def close(self) -> None:
        """Send nothing more; the next daemon continues."""
        self.stop()
        self._exporter.close()
        super().close()

    def check(self) -> CheckView:
        """Return whether spans are taken."""
        if (fault := self._fault) is not None:
            detail = f"no span was taken since {format_instant(fault[1])}: {fault[0]}"
            remedy = "check the collector and `telemetry` in the configuration; spans are sent once it takes them"
            return CheckView(name="telemetry", ok=False, detail=detail, remedy=remedy, blocking=False)
        detail = f"{self._refused} spans were refused, see the log" if self._refused else "spans are taken"
        return CheckView(name="telemetry", ok=True, detail=detail, blocking=False)

    def run_once(self) -> None:
        """Send all that there is; after a failure wait, whatever wakes it. Raises StoreUnavailable."""
        try:
            self.send_all()
        except ExportFault as fault:
            self._stopped.wait(self._pause_after(fault))
            self.wake()

    def send_all(self) -> None:
        """Send all that there is. Raises ExportFault and StoreUnavailable: what was not sent is sent the next time."""
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
        """The next events, with the spans that ended with them."""
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
        """The event to continue after. Of a past that nobody collected nothing is sent."""
        found = self._database.read(trace_rows.cursor)
        if found is None:
            self._database.write(lambda connection: trace_rows.move_cursor(connection, newest))
        return newest if found is None else found

    def _spans(self, history: TaskHistory, ended_by: Container[int]) -> list[Span]:
        """Of a task that cannot be read there are none, and it keeps no other from being sent."""
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
            log.info("spans are taken again")
        self._failures, self._fault = 0, None

    def _pause_after(self, fault: ExportFault) -> float:
        """Seconds."""
        self._failures += 1
        since_ms = self._clock() if self._fault is None else self._fault[1]
        self._fault = (self._secrets.redact_piece(str(fault)), since_ms)
        if not self._stopped.is_set():
            log.warning("spans were not taken, attempt %d: %s", self._failures, self._fault[0])
        return backoff_ms(FIRST_PAUSE_MS, self._failures, "telemetry", longest_ms=MAX_PAUSE_MS) / 1000
