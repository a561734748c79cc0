"""The times of a schedule in its time zone, and the alarms that ring at them: APScheduler as a clock, nothing more.

Every alarm is made anew from the schedules in the store, and may be late, missing or double: what is due is reckoned
from the store whenever one rings, and once a minute in any case, for clocks that were set and machines that slept.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger

from claudomator_py.core.cron import Cron, parse_cron

# APScheduler counts weekdays from Monday and cron from Sunday; by name they agree.
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SAFETY_S = 60
_MANY = 1_000
"""As one thread takes them in turn, this is only how many may wait."""
_INSTANT = timedelta(microseconds=1)
_MOMENT = timedelta(milliseconds=100)
_EARLIER = timedelta(hours=3)
"""No clock is set by more for the change of seasons."""


class Recurrence:
    """The times at which clocks of that zone show what the expression says.

    Where clocks are set forward, a time that they leave out comes as much later. Where they are set back, a time that
    they show twice counts once, the first time; unless every hour is meant: then each hour counts. Raises ValueError.
    """

    def __init__(self, cron: str, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        parsed = parse_cron(cron)
        self._twice = parsed.every_hour
        self._trigger = _trigger(parsed, self._zone)

    def next_after(self, at_ms: int) -> int | None:
        """The first time after that one, in epoch milliseconds; None if there is none."""
        after = datetime.fromtimestamp(at_ms / 1000, UTC)
        begin = after
        if self._offset(after - _EARLIER) != self._offset(after):
            # A time that clocks left out is seen only by looking from before they were set.
            begin -= _EARLIER
        while (found := self._shown_after(begin)) is not None:
            begin = found.astimezone(UTC)
            if begin > after and (self._twice or not begin.astimezone(self._zone).fold):
                return round(begin.timestamp() * 1000)
        return None

    def _shown_after(self, at: datetime) -> datetime | None:
        found: datetime | None = self._trigger.get_next_fire_time(None, (at + _INSTANT).astimezone(self._zone))
        return found

    def _offset(self, at: datetime) -> timedelta | None:
        return at.astimezone(self._zone).utcoffset()


class Alarms:
    """Calls ``ring`` at the times of the schedules it was given, on a thread of its own, one call at a time."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        # It would tell of every alarm.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            daemon=True,
            executors={"default": {"type": "threadpool", "max_workers": 1}},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": _MANY},
        )

    def start(self) -> None:
        """Ring now, and then when it is time."""
        self._scheduler.add_job(self._ring, "interval", seconds=_SAFETY_S, id="safety", next_run_time=datetime.now(UTC))
        self._scheduler.start()

    def set(self, recurrences: Mapping[str, Recurrence]) -> None:
        """Ring at the times of these from now on, and of no others."""
        for job in self._scheduler.get_jobs():
            if job.id != "safety" and job.id not in recurrences:
                job.remove()
        for name, recurrence in recurrences.items():
            self._scheduler.add_job(self._ring, _Times(recurrence), id=name, replace_existing=True)

    def soon(self) -> None:
        """Ring once more, now."""
        self._once_more(datetime.now(UTC))

    def later(self) -> None:
        """Ring once more, in a moment."""
        self._once_more(datetime.now(UTC) + _MOMENT)

    def close(self) -> None:
        """Ring no more; waits for what it called."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def _once_more(self, at: datetime) -> None:
        try:
            self._scheduler.modify_job("safety", next_run_time=at)
        except JobLookupError:
            pass  # not started yet, or closed


class _Times(BaseTrigger):  # type: ignore[misc] # APScheduler comes without types
    """A recurrence as APScheduler asks for it."""

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The first time after both."""
        after = now if previous_fire_time is None else max(now, previous_fire_time)
        at_ms = self._recurrence.next_after(int(after.timestamp() * 1000))
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)


def _trigger(cron: Cron, zone: ZoneInfo) -> BaseTrigger:
    clock = {"minute": _listed(cron.minutes), "hour": _listed(cron.hours), "month": _listed(cron.months)}
    days = _listed(cron.days)
    weekdays = ",".join(_WEEKDAYS[day] for day in sorted(cron.weekdays))
    if cron.either_day:
        return OrTrigger(
            [
                CronTrigger(**clock, day=days, timezone=zone),
                CronTrigger(**clock, day_of_week=weekdays, timezone=zone),
            ]
        )
    return CronTrigger(**clock, day=days, day_of_week=weekdays, timezone=zone)


def _listed(numbers: frozenset[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))
