"""Changes to a schedule inside one transaction: begin, replace, move, end, and fire or skip one of its times."""

import uuid

from sqlalchemy import Connection

from claudomator_py.domain.inputs import InputRequest
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.schedule import MAX_HELD_UP_MS, Overlap
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import DAY_MS, format_instant
from claudomator_py.store import schedule_rows, task_rows
from claudomator_py.store.events import EventQuery, newest, record
from claudomator_py.store.tables import Schedule, ScheduleFire, Task
from claudomator_py.tasks.accept import NewTask, accept
from claudomator_py.tasks.inputs import current_request, expire, request_of_older_version
from claudomator_py.tasks.renewal import cancel_now
from claudomator_py.values import dataclass

HELD_UP = "schedule_held_up"
"""Event: the task waits for a person, and its schedule makes no other task until it no longer does."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A validated schedule that is about to be stored."""

    spec: TaskSpec
    local: str
    """The time zone used if the task names none."""
    source: str
    """``file`` or ``api``."""
    file_path: str | None = None
    creator: str = OPERATOR.id
    """The principal who creates it, and its tasks."""
    organisation: str | None = None
    """The organisation that owns them, if any."""

    @property
    def cron(self) -> str:
        """The cron expression. Raises ValueError for a task without a schedule."""
        if self.spec.schedule is None:
            raise ValueError(f"{self.spec.name} has no schedule")
        return self.spec.schedule


def begin(connection: Connection, plan: Plan, now_ms: int) -> Schedule:
    """Insert the schedule; it fires first at its next time."""
    schedule = Schedule(
        id=str(uuid.uuid4()),
        name=plan.spec.name,
        spec=plan.spec.model_dump(mode="json"),
        cron=plan.cron,
        timezone=plan.spec.timezone or plan.local,
        source=plan.source,
        file_path=plan.file_path,
        creator=plan.creator,
        organisation=plan.organisation,
        last_ms=now_ms,
        created_ms=now_ms,
        updated_ms=now_ms,
    )
    schedule.insert(connection)
    record(connection, now_ms, "schedule_added", data={"schedule": schedule.name, "cron": schedule.cron})
    return schedule


def replace(connection: Connection, schedule: Schedule, plan: Plan, now_ms: int) -> None:
    """Give the schedule this content, reviving it if it had ended. If the times or the zone changed, or it had ended,
    it starts from now: earlier times are not caught up. If neither content names a zone, the stored one is kept."""
    zone = plan.spec.timezone
    if zone is None:
        named_before = TaskSpec.model_validate(schedule.spec).timezone is not None
        zone = plan.local if named_before else schedule.timezone
    same_times = schedule.gone_ms is None and (schedule.cron, schedule.timezone) == (plan.cron, zone)
    schedule_rows.change(
        connection,
        schedule.id,
        now_ms,
        spec=plan.spec.model_dump(mode="json"),
        cron=plan.cron,
        timezone=zone,
        source=plan.source,
        file_path=plan.file_path,
        gone_ms=None,
        last_ms=schedule.last_ms if same_times else now_ms,
    )
    record(connection, now_ms, "schedule_changed", data={"schedule": schedule.name, "cron": plan.cron})


def move(connection: Connection, schedule: Schedule, plan: Plan, now_ms: int) -> None:
    """Move the schedule after its file was renamed; if the file determines its name, it is renamed too. Times are
    unchanged."""
    data = {"schedule": plan.spec.name, "from": schedule.name, "to": plan.spec.name}
    if schedule.name != plan.spec.name:
        record(connection, now_ms, "renamed", data=data)
    columns = {"name": plan.spec.name, "spec": plan.spec.model_dump(mode="json"), "file_path": plan.file_path}
    schedule_rows.change(connection, schedule.id, now_ms, **columns)


def end(connection: Connection, schedule: Schedule, now_ms: int) -> None:
    """End the schedule: it makes no more tasks; those it has made stay."""
    schedule_rows.change(connection, schedule.id, now_ms, gone_ms=now_ms)
    record(connection, now_ms, "schedule_ended", data={"schedule": schedule.name})


def end_of_file(connection: Connection, path: str, now_ms: int, kept_names: frozenset[str] = frozenset()) -> None:
    """End the schedules of the file, except those with these names."""
    for schedule in schedule_rows.of_file(connection, path):
        if schedule.name not in kept_names:
            end(connection, schedule, now_ms)


def fire(
    connection: Connection, schedule: Schedule, at_ms: int, dir_key: str, by: str, now_ms: int, place: int = 0
) -> Task:
    """Make the task of that time. dir_key: see ``store.tables.Task``. by: ``clock`` or ``operator``. place: position
    among the times that are caught up together."""
    spec = TaskSpec.model_validate(schedule.spec).fired(at_ms)
    order = NewTask(
        spec, dir_key, "schedule", place=place, creator=schedule.creator, organisation=schedule.organisation
    )
    task = accept(connection, order, now_ms)
    ScheduleFire(schedule_id=schedule.id, due_ms=at_ms, task_id=task.id, by=by, at_ms=now_ms).insert(connection)
    data = {"schedule": schedule.name, "due": format_instant(at_ms), "by": by}
    record(connection, now_ms, "schedule_fired", task_id=task.id, data=data)
    return task


def skip(connection: Connection, schedule: Schedule, at_ms: int, why: str, now_ms: int) -> None:
    """Let that time pass, and record why."""
    ScheduleFire(schedule_id=schedule.id, due_ms=at_ms, skipped=why, by="clock", at_ms=now_ms).insert(connection)
    data = {"schedule": schedule.name, "due": format_instant(at_ms), "why": why}
    record(connection, now_ms, "schedule_skipped", data=data)


def make_way(connection: Connection, schedule: Schedule, now_ms: int) -> Task | None:
    """End tasks that the schedule replaces, or that have blocked it for too long. Return the task whose end it still
    waits for, or None if it may create the next one."""
    spec = TaskSpec.model_validate(schedule.spec)
    if spec.overlap is Overlap.QUEUE:
        return None
    while (other := schedule_rows.unended(connection, schedule.id)) is not None:
        if spec.overlap is Overlap.REPLACE and other.state != "RUNNING":
            cancel_now(connection, other, now_ms, data={"why": f"schedule {schedule.name} has replaced it"})
        elif other.state == "NEEDS_INPUT" and (asked := _asked(other)).until_ms is None and _due(asked) <= now_ms:
            asks = asked.within(MAX_HELD_UP_MS).model_dump(mode="json")
            expire(connection, task_rows.change(connection, other, now_ms, asks=asks), now_ms)
        else:
            return other
    return None


def _asked(task: Task) -> InputRequest:
    return current_request(task) or request_of_older_version(task)


def _due(asked: InputRequest) -> int:
    """When the task stops blocking its schedule, in epoch milliseconds: its own deadline, else ``MAX_HELD_UP_MS``
    after it asked."""
    return asked.since_ms + MAX_HELD_UP_MS if asked.until_ms is None else asked.until_ms


def warn_of(connection: Connection, schedule: Schedule, other: Task, now_ms: int) -> None:
    """Tell, at most once a day, that a task waiting for a person blocks the schedule."""
    latest = newest(connection, 1, EventQuery(task_id=other.id, kinds=(HELD_UP,)))
    if other.state != "NEEDS_INPUT" or (latest and now_ms < latest[0].at_ms + DAY_MS):
        return
    asked = _asked(other)
    data = {"schedule": schedule.name, "until": format_instant(_due(asked)), **asked.event_data}
    record(connection, now_ms, HELD_UP, task_id=other.id, data=data)
