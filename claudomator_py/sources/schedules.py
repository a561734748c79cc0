"""Creates the tasks of schedules whose time has come, each exactly once, whatever happens to the daemon.

What is due is computed from the store: the schedule's times after the last one that was handled. A time's task and the
mark that the time was handled are written in one transaction.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import problems_text
from claudomator_py.domain.schedule import Recurrence, due
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_instant
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs, directory_key
from claudomator_py.faults import Activity, Faults, Item
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.store import schedule_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import DAMAGED
from claudomator_py.store.tables import Schedule
from claudomator_py.tasks.feasibility import placement_problems
from claudomator_py.tasks.schedules import fire, make_way, skip, warn_of

if TYPE_CHECKING:
    from claudomator_py.sources.alarms import Alarms

log = get_logger("claudomator.schedules")


@lru_cache(maxsize=1_000)
def recurrence(cron: str, zone: str) -> Recurrence:
    """Return the recurrence, parsed only once. Raises ValueError."""
    return Recurrence(cron, ZoneInfo(zone))


def next_time(schedule: Schedule) -> int | None:
    """Return the schedule's next time in epoch milliseconds, unless it is paused, has none, or has been changed by hand
    so that it cannot be computed."""
    try:
        times = recurrence(schedule.cron, schedule.timezone)
        return None if schedule.paused_ms is not None else times.next_after(schedule.last_ms)
    except (*DAMAGED, OSError, OverflowError):
        return None  # ``ScheduleRunner`` meets the same error, and reports it


class ScheduleRunner:
    """Call ``run_due`` from one thread at a time. workdirs: returns what is currently allowed. faults: of individual
    schedules."""

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

    def run_due(self) -> int:
        """Create the tasks of every schedule that is due; returns the number of times handled. Raises StoreUnavailable.
        A schedule for which this fails does not hold up others; it is retried and misses no time."""
        active = self._active()
        self._faults.forget_others(Activity.SCHEDULE, {schedule.id for schedule in active})
        return sum(self._faults.attempt(_item(schedule), partial(self._handle, schedule)) or 0 for schedule in active)

    def has_any(self) -> bool:
        """Return whether there is a schedule that is neither paused nor gone. Raises StoreUnavailable."""
        return bool(self._active())

    def recurrences(self) -> dict[str, Recurrence]:
        """Return the recurrence of every schedule that is neither paused nor gone, by id."""
        changes = {}
        for schedule in self._active():
            try:
                changes[schedule.id] = recurrence(schedule.cron, schedule.timezone)
            except Exception as error:
                # `run_due` meets the same error, and reports it.
                log.debug("schedule_cannot_be_read", schedule=schedule.name, problem=str(error))
        return changes

    def _active(self) -> list[Schedule]:
        return [row for row in self._database.read(schedule_rows.all_there) if row.paused_ms is None]

    def _handle(self, schedule: Schedule) -> int:
        """Handle the times of a schedule that have come. Return their number."""
        times = recurrence(schedule.cron, schedule.timezone)
        spec = TaskSpec.model_validate(schedule.spec)
        if schedule.last_ms > self._clock():
            schedule = self._database.write(partial(self._set_back, schedule.id))
        occasion = due(times.next_after, schedule.last_ms, self._clock(), spec.catch_up)
        if not occasion.times and occasion.missed is None:
            return 0
        why = problems_text(placement_problems(spec, self._registry, self._workdirs())) or None
        dir_key = directory_key(spec.working_dir) if why is None else ""
        crashpoint("schedule-due")
        if occasion.missed is not None:
            self._database.write(partial(self._miss, schedule, occasion.missed))
            log.info("schedule_missed", schedule=schedule.name, until=format_instant(occasion.missed))
        for place, at_ms in enumerate(occasion.times):
            self._database.write(partial(self._meet, schedule, at_ms, place, dir_key, why))
            crashpoint("schedule-met")
            log.info("schedule_met", schedule=schedule.name, due=format_instant(at_ms))
        return len(occasion.times)

    def _set_back(self, schedule_id: str, connection: Connection) -> Schedule:
        """Return the schedule as it is after the clock has been set back: its times from now on count again, of which
        those that were handled are known by their rows."""
        now_ms = self._clock()
        schedule = schedule_rows.get(connection, schedule_id)
        if schedule.gone_ms is not None or schedule.last_ms <= now_ms:
            return schedule
        log.warning("schedule_set_back", schedule=schedule.name, until=format_instant(schedule.last_ms))
        schedule_rows.change(connection, schedule_id, now_ms, last_ms=now_ms)
        return schedule_rows.get(connection, schedule_id)

    def _miss(self, schedule: Schedule, missed_ms: int, connection: Connection) -> None:
        """Record that the schedule's times up to this one passed while no daemon ran."""
        if self._is_unchanged(connection, schedule, missed_ms):
            now_ms = self._clock()
            schedule_rows.change(connection, schedule.id, now_ms, last_ms=missed_ms)
            record(connection, now_ms, "schedule_missed", data={"schedule": schedule.name, "until": missed_ms})

    def _meet(
        self, schedule: Schedule, at_ms: int, place: int, dir_key: str, why: str | None, connection: Connection
    ) -> None:
        """Create the task for one time, or skip it. why: the reason why no task can be created."""
        if not self._is_unchanged(connection, schedule, at_ms):
            return
        now_ms = self._clock()
        if schedule_rows.was_fired(connection, schedule.id, at_ms):
            pass  # handled before the clock was set back
        elif why is not None:
            skip(connection, schedule, at_ms, why, now_ms)
        elif (other := make_way(connection, schedule, now_ms)) is not None:
            warn_of(connection, schedule, other, now_ms)
            skip(connection, schedule, at_ms, f"{other.name} had not ended ({other.state})", now_ms)
        else:
            fire(connection, schedule, at_ms, dir_key, "clock", now_ms, place)
        schedule_rows.change(connection, schedule.id, now_ms, last_ms=at_ms)

    @staticmethod
    def _is_unchanged(connection: Connection, seen: Schedule, at_ms: int) -> bool:
        """Return whether the schedule is as it was read, and has not got past that time."""
        now = schedule_rows.get(connection, seen.id)
        is_active = now.gone_ms is None and now.paused_ms is None and now.last_ms < at_ms
        return is_active and (now.spec, now.timezone) == (seen.spec, seen.timezone)


def _item(schedule: Schedule) -> Item:
    return Item(Activity.SCHEDULE, schedule.id, schedule.name, content=str(schedule.updated_ms))


class CronWorker:
    """Runs what is due on a thread of its own. ready: returns whether it is known which files are present."""

    def __init__(self, runner: ScheduleRunner, ready: Callable[[], bool]) -> None:
        self._runner = runner
        self._ready = ready
        self._lock = threading.Lock()
        self._alarms: Alarms | None = None
        self._started = self._closed = False

    def start(self) -> None:
        """Handle what became due earlier, and from now on what becomes due, on a thread of its own."""
        self._started = True
        with suppress(StoreUnavailable):
            if not self._runner.has_any():
                return  # until there is one, which ``wake`` announces
        self._set_up()

    def wake(self) -> None:
        """Read the schedules again, as one was changed. Thread-safe; does nothing before the start."""
        if self._started and (alarms := self._set_up()) is not None:
            alarms.soon()

    def close(self) -> None:
        """Stop creating tasks."""
        with self._lock:
            self._closed = True
        if self._alarms is not None:
            self._alarms.close()

    def _set_up(self) -> "Alarms | None":
        """The alarms, started; None after ``close``."""
        from claudomator_py.sources.alarms import Alarms  # imports APScheduler, needed only with schedules

        with self._lock:
            if self._alarms is None and not self._closed:
                self._alarms = Alarms(self._ring)
                self._alarms.start()
            return self._alarms

    def _ring(self) -> None:
        alarms = self._set_up()
        if alarms is None:
            return
        if not self._ready():
            alarms.later()
            return
        try:
            # In this order, a time that comes in between is handled now.
            alarms.set(self._runner.recurrences())
            self._runner.run_due()
        except StoreUnavailable as error:
            log.error("schedules_not_met", problem=str(error), note="tried again within a minute")
        except Exception:
            log.exception("schedules_not_met")
