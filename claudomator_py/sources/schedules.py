"""The timekeeper: makes the tasks of schedules whose time has come, each once, whatever becomes of the daemon.

What is due is reckoned from the store: the schedule's times after the last one that was dealt with. A time, its task
and the mark that it was dealt with are one transaction.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from zoneinfo import ZoneInfo

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from sqlalchemy import Connection

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import problems_text
from claudomator_py.domain.schedule import Due, Recurrence, due
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_instant
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs, directory_key
from claudomator_py.faults import Doing, Faults, Item
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.store import schedule_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import record
from claudomator_py.store.tables import Schedule
from claudomator_py.tasks.feasibility import placement_problems
from claudomator_py.tasks.schedules import fire, overlapping, skip

_SAFETY_S = 60
_MANY = 1_000
"""As one thread takes them in turn, this is only how many may wait."""
_MOMENT = timedelta(milliseconds=100)


class Alarms:
    """Calls ``ring`` at the times of the schedules it was given, on a thread of its own, one call at a time."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._ringing = threading.Lock()
        self._closed = False
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
        self._scheduler.add_job(self._call, "interval", seconds=_SAFETY_S, id="safety", next_run_time=datetime.now(UTC))
        self._scheduler.start()

    def set(self, recurrences: Mapping[str, Recurrence]) -> None:
        """Ring at the times of these from now on, and of no others."""
        for job in self._scheduler.get_jobs():
            if job.id != "safety" and job.id not in recurrences:
                with suppress(JobLookupError):  # closed meanwhile
                    job.remove()
        for name, recurrence in recurrences.items():
            self._scheduler.add_job(self._call, _Times(recurrence), id=name, replace_existing=True)

    def soon(self) -> None:
        """Ring once more, now."""
        self._once_more(datetime.now(UTC))

    def later(self) -> None:
        """Ring once more, in a moment."""
        self._once_more(datetime.now(UTC) + _MOMENT)

    def close(self) -> None:
        """Ring no more; waits for what it called."""
        if not self._scheduler.running:
            return
        # APScheduler would wait with its jobs locked: for ever, where what was called sets the times.
        self._scheduler.shutdown(wait=False)
        with self._ringing:
            self._closed = True

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
    """A recurrence as APScheduler asks for it."""

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The first time after both."""
        after = now if previous_fire_time is None else max(now, previous_fire_time)
        at_ms = self._recurrence.next_after(int(after.timestamp() * 1000))
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)


log = get_logger("claudomator.schedules")


@lru_cache(maxsize=1_000)
def recurrence(cron: str, zone: str) -> Recurrence:
    """The times, read once. Raises ValueError."""
    return Recurrence(cron, ZoneInfo(zone))


class ScheduleRunner:
    """``meet`` from one thread at a time. workdirs: what is allowed at present. faults: of single schedules."""

    def __init__(
        self,
        database: Database,
        registry: AgentRegistry,
        workdirs: Callable[[], Workdirs],
        clock: Clock,
        faults: Faults,
    ) -> None:
        self._database = database
        self._registry = registry
        self._workdirs = workdirs
        self._clock = clock
        self._faults = faults

    def meet(self) -> int:
        """Make the tasks of every schedule that is due; how many times were dealt with. Raises StoreUnavailable.

        One for which that fails keeps no other from its time; it is tried again, and misses none.
        """
        going = self._going()
        self._faults.forget_others(Doing.SCHEDULE, {schedule.id for schedule in going})
        return sum(self._faults.attempt(_item(schedule), partial(self._meet, schedule)) or 0 for schedule in going)

    def recurrences(self) -> dict[str, Recurrence]:
        """The times of every schedule that is neither paused nor gone, by its id."""
        found = {}
        for schedule in self._going():
            try:
                found[schedule.id] = recurrence(schedule.cron, schedule.timezone)
            except Exception as error:
                # `meet` meets it too, and tells of it.
                log.debug("schedule_cannot_be_read", schedule=schedule.name, problem=str(error))
        return found

    def _going(self) -> list[Schedule]:
        return [row for row in self._database.read(schedule_rows.all_there) if row.paused_ms is None]

    def _meet(self, schedule: Schedule) -> int:
        times = recurrence(schedule.cron, schedule.timezone)
        spec = TaskSpec.model_validate(schedule.spec)
        found = due(times.next_after, schedule.last_ms, self._clock(), spec.catch_up)
        if not found.times and found.missed is None:
            return 0
        problems = placement_problems(spec, self._registry, self._workdirs())
        why = problems_text(problems) or None
        dir_key = directory_key(spec.working_dir) if why is None else ""
        crashpoint("schedule-due")
        return self._deal_with(schedule, found, dir_key, why)

    def _deal_with(self, schedule: Schedule, found: Due, dir_key: str, why: str | None) -> int:
        """why: the reason for which no task can be made."""

        def passing_over(missed_ms: int, connection: Connection) -> None:
            if self._unchanged(connection, schedule, missed_ms):
                now_ms = self._clock()
                schedule_rows.change(connection, schedule.id, now_ms, last_ms=missed_ms)
                record(connection, now_ms, "schedule_missed", data={"schedule": schedule.name, "until": missed_ms})

        def meeting(place: int, at_ms: int, connection: Connection) -> None:
            if not self._unchanged(connection, schedule, at_ms):
                return
            now_ms = self._clock()
            other = overlapping(connection, schedule)
            if why is not None:
                skip(connection, schedule, at_ms, why, now_ms)
            elif other is not None:
                skip(connection, schedule, at_ms, f"{other.name} had not ended ({other.state})", now_ms)
            else:
                fire(connection, schedule, at_ms, dir_key, "clock", now_ms, place)
            schedule_rows.change(connection, schedule.id, now_ms, last_ms=at_ms)

        if found.missed is not None:
            self._database.write(partial(passing_over, found.missed))
            log.info("schedule_missed", schedule=schedule.name, until=format_instant(found.missed))
        for place, at_ms in enumerate(found.times):
            self._database.write(partial(meeting, place, at_ms))
            crashpoint("schedule-met")
            log.info("schedule_met", schedule=schedule.name, due=format_instant(at_ms))
        return len(found.times)

    @staticmethod
    def _unchanged(connection: Connection, seen: Schedule, at_ms: int) -> bool:
        """Whether the schedule is as it was seen, and that time not dealt with."""
        now = schedule_rows.get(connection, seen.id)
        return (
            (now.gone_ms, now.paused_ms, now.spec, now.timezone) == (None, None, seen.spec, seen.timezone)
            and at_ms > now.last_ms
            and not schedule_rows.was_fired(connection, seen.id, at_ms)
        )


def _item(schedule: Schedule) -> Item:
    return Item(Doing.SCHEDULE, schedule.id, schedule.name, content=str(schedule.updated_ms))


class Clockwork:
    """The timekeeper and its alarms, in a daemon. ready: whether it is known which files are there."""

    def __init__(self, timekeeper: ScheduleRunner, ready: Callable[[], bool]) -> None:
        self._timekeeper = timekeeper
        self._ready = ready
        self._alarms = Alarms(self._ring)

    def start(self) -> None:
        """Make what became due before, and from now on what is due, on a thread of its own."""
        self._alarms.start()

    def wake(self) -> None:
        """A schedule was changed. From any thread."""
        self._alarms.soon()

    def close(self) -> None:
        """Make no more."""
        self._alarms.close()

    def _ring(self) -> None:
        if not self._ready():
            self._alarms.later()
            return
        try:
            # In this order: a time that comes in between is met now.
            self._alarms.set(self._timekeeper.recurrences())
            self._timekeeper.meet()
        except StoreUnavailable as error:
            log.error("schedules_not_met", problem=str(error), note="tried again within a minute")
        except Exception:
            log.exception("schedules_not_met")
