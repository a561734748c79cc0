"""The daily report: an event at the configured time, of which those who want reports are notified.
The event itself records that the report was made, so a crash neither loses one nor makes two.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from claudomator_py.domain.schedule import Recurrence
from claudomator_py.domain.units import DAY_MS, HOUR_MS, SECOND_MS, parse_instant
from claudomator_py.ports import Clock
from claudomator_py.schema.settings import Settings
from claudomator_py.schema.zones import local_zone
from claudomator_py.store.database import Database
from claudomator_py.store.events import EventQuery, newest, record
from claudomator_py.workers import IDLE_S, Worker

MADE = "report_made"
"""The event of a daily report, with its text."""
MAX_LATE_MS = 3 * HOUR_MS
"""How late a report may be made if no daemon was running at its time."""
Write = Callable[[datetime, Callable[[str | None], str]], tuple[str, str]]
"""Returns headline and text of the report since then, with instants in the given words."""
_SPAN_MS = DAY_MS
_RECENT = 8
"""Reports among which to look for the one that is due."""
_MAX_DAY_MS = DAY_MS + 2 * HOUR_MS
"""Includes the hours by which clocks may be set back."""


class DailyReporter(Worker):
    """Makes a report at the configured time."""

    def __init__(self, database: Database, write: Write, settings: Callable[[], Settings], clock: Clock) -> None:
        super().__init__("report", clock)
        self._database = database
        self._write = write
        self._settings = settings

    def run_once(self) -> bool:
        """Make the report that is due, and return whether there was one. Raises StoreUnavailable."""
        now_ms = self._clock()
        times = self._times()
        due_ms = None if times is None else _latest(times, now_ms)
        if due_ms is None or now_ms - due_ms > MAX_LATE_MS:
            return False
        sought = EventQuery(of_no_task=True, kinds=(MADE,))
        last = self._database.read(lambda connection: newest(connection, _RECENT, sought))
        # What was made while the machine's clock was ahead is no reason to leave out those of the days until then.
        if any(due_ms <= report.data.get("due", 0) <= now_ms for report in last):
            return False
        begin = datetime.fromtimestamp((due_ms - _SPAN_MS) / SECOND_MS, UTC)
        headline, text = self._write(begin, self._shown)
        data = {"due": due_ms, "headline": headline, "text": text}

        def note(connection: Connection) -> None:
            record(connection, self._clock(), MADE, data=data)

        self._database.write(note)
        return True

    def pause_s(self) -> float:
        """Return the seconds until a report is due, at most a minute, to notice changes of the configuration."""
        times = self._times()
        next_ms = None if times is None else times.next_after(self._clock())
        return IDLE_S if next_ms is None else min(IDLE_S, max(0.0, (next_ms - self._clock()) / SECOND_MS))

    @property
    def _zone(self) -> ZoneInfo:
        settings = self._settings()
        return ZoneInfo(settings.report.timezone or settings.budget.timezone or local_zone())

    def _times(self) -> Recurrence | None:
        at = self._settings().report.at
        if at is None:
            return None
        hour, _, minute = at.partition(":")
        return Recurrence(f"{int(minute)} {int(hour)} * * *", self._zone)

    def _shown(self, instant: str | None) -> str:
        if instant is None:
            return ""
        at = datetime.fromtimestamp(parse_instant(instant) / SECOND_MS, self._zone)
        return f"{at:%Y-%m-%d %H:%M %Z}"


def _latest(times: Recurrence, now_ms: int) -> int | None:
    """Return the latest of the times that has passed; None if there was none for a day."""
    due_ms, next_ms = None, times.next_after(now_ms - _MAX_DAY_MS)
    while next_ms is not None and next_ms <= now_ms:
        due_ms, next_ms = next_ms, times.next_after(next_ms)
    return due_ms
