"""The alarm clock of schedules, based on APScheduler. Imported only by a daemon that has a schedule: APScheduler
searches all installed packages for extensions, which took a twentieth of a start."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from claudomator_py.domain.schedule import Recurrence

_SAFETY_S = 60
_MANY = 1_000
"""A single thread runs the jobs in turn, so this only limits how many may wait."""
_MOMENT = timedelta(milliseconds=100)


class Alarms:
    """Calls ``ring`` at the times of the given schedules, on a thread of its own, one call at a time."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._ringing = threading.Lock()
        self._closed = False
        self._left = threading.Event()
        # APScheduler would log every alarm.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            daemon=True,
            executors={"default": {"type": "threadpool", "max_workers": 1}},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": _MANY},
        )

    def start(self) -> None:
        """Ring now, and afterwards at the schedules' times."""
        self._scheduler.add_job(self._call, "interval", seconds=_SAFETY_S, id="safety", next_run_time=datetime.now(UTC))
        self._scheduler.start()
        threading.Thread(target=self._keep, name="alarms", daemon=True).start()

    def set(self, recurrences: Mapping[str, Recurrence]) -> None:
        """Ring at the times of these recurrences from now on, and at no others."""
        for job in self._scheduler.get_jobs():
            if job.id != "safety" and job.id not in recurrences:
                with suppress(JobLookupError):  # closed meanwhile
                    job.remove()
        for name, recurrence in recurrences.items():
            self._scheduler.add_job(self._call, _Times(recurrence), id=name, replace_existing=True)

    def soon(self) -> None:
        """Ring again now."""
        self._once_more(datetime.now(UTC))

    def later(self) -> None:
        """Ring again in a moment."""
        self._once_more(datetime.now(UTC) + _MOMENT)

    def close(self) -> None:
        """Stop ringing; waits for a call in progress."""
        self._left.set()
        if not self._scheduler.running:
            return
        # Waiting inside APScheduler would hold its job lock, which blocks forever if the call in progress sets the
        # times.
        self._scheduler.shutdown(wait=False)
        with self._ringing:
            self._closed = True

    def _keep(self) -> None:
        """Ring if the clock was set back: APScheduler, which goes by it, would ring when it is there again."""
        while not self._left.wait(_SAFETY_S):
            safety = self._scheduler.get_job("safety")
            latest = datetime.now(UTC) + timedelta(seconds=_SAFETY_S)
            if safety is not None and safety.next_run_time is not None and safety.next_run_time > latest:
                self.soon()

    def _call(self) -> None:
        with self._ringing:
            if not self._closed:
                self._ring()

    def _once_more(self, at: datetime) -> None:
        try:
            self._scheduler.modify_job("safety", next_run_time=at)
        except JobLookupError:
            pass  # not started yet, or closed


class _Times(BaseTrigger):  # type: ignore[misc] # APScheduler comes without types
    """A recurrence in the form that APScheduler requires."""

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The first time after both."""
        after = now if previous_fire_time is None else max(now, previous_fire_time)
        at_ms = self._recurrence.next_after(int(after.timestamp() * 1000))
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
