"""Rows of schedules, and of their times that were handled."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store.statement import Statement, loader
from claudomator_py.store.tables import SCHEDULE, SCHEDULE_FIRE, TASK, Schedule, ScheduleFire, Task
from claudomator_py.store.tables.columns import bytewise
from claudomator_py.store.task_rows import task_from
from claudomator_py.store.visibility import alike, schedules_seen

_OF_FILE = (
    select(SCHEDULE)
    .where(SCHEDULE.c.file_path == bindparam("file"), SCHEDULE.c.gone_ms.is_(None))
    .order_by(bytewise(SCHEDULE.c.name))
)
_FILES = Statement(
    select(SCHEDULE.c.file_path)
    .where(SCHEDULE.c.file_path.in_(bindparam("files", expanding=True)), SCHEDULE.c.gone_ms.is_(None))
    .distinct()
)
_schedule_from = loader(Schedule)
_UNENDED = ("WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT")


def add(connection: Connection, schedule: Schedule) -> None:
    """Insert a new schedule."""
    connection.execute(
        insert(SCHEDULE).values({column.name: getattr(schedule, column.name) for column in SCHEDULE.columns})
    )


def change(connection: Connection, schedule_id: str, now_ms: int, **changes: Any) -> None:
    """Update columns of the schedule."""
    connection.execute(update(SCHEDULE).where(SCHEDULE.c.id == schedule_id).values(updated_ms=now_ms, **changes))


def get(connection: Connection, schedule_id: str) -> Schedule:
    """Return the schedule, gone or not. Raises LookupError."""
    row = connection.execute(select(SCHEDULE).where(SCHEDULE.c.id == schedule_id)).one_or_none()
    if row is None:
        raise LookupError(f"there is no schedule {schedule_id}")
    return Schedule(**row._mapping)


def named(connection: Connection, name: str, organisation: str | None = None) -> Schedule | None:
    """Return the organisation's schedule with this name that is not gone, or None."""
    if "\0" in name:  # which PostgreSQL does not take
        return None
    query = select(SCHEDULE).where(
        SCHEDULE.c.name == name,
        SCHEDULE.c.gone_ms.is_(None),
        SCHEDULE.c.organisation.is_not_distinct_from(organisation),
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else Schedule(**row._mapping)


def all_there(connection: Connection, by: Principal = OPERATOR) -> Sequence[Schedule]:
    """Return the schedules visible to the principal that are not gone, by name."""
    return [_schedule_from(row) for row in _all_there(alike(by)).rows(connection)]


@lru_cache(maxsize=16)
def _all_there(by: Principal) -> Statement:
    query = select(SCHEDULE).where(SCHEDULE.c.gone_ms.is_(None), schedules_seen(by))
    return Statement(query.order_by(bytewise(SCHEDULE.c.name), bytewise(SCHEDULE.c.organisation).nulls_first()))


def of_file(connection: Connection, path: str) -> Sequence[Schedule]:
    """Return the file's schedules that are not gone, by name."""
    return [Schedule(**row._mapping) for row in connection.execute(_OF_FILE, {"file": path})]


def with_schedules(connection: Connection, paths: Collection[str]) -> set[str]:
    """Return those of the files that have schedules which are not gone."""
    return set(_FILES.values(connection, files=sorted(paths)))


def detach(connection: Connection, paths: Collection[str], now_ms: int) -> None:
    """Detach the files' schedules, so that they no longer follow a file."""
    query = update(SCHEDULE).where(SCHEDULE.c.file_path.in_(sorted(paths)))
    connection.execute(query.values(file_path=None, updated_ms=now_ms))


def fire(connection: Connection, entry: ScheduleFire) -> None:
    """Record that a time was handled. Raises IntegrityError if it was before."""
    values = {column.name: getattr(entry, column.name) for column in SCHEDULE_FIRE.columns}
    connection.execute(insert(SCHEDULE_FIRE).values(values))


def was_fired(connection: Connection, schedule_id: str, due_ms: int) -> bool:
    """Return whether the time was handled."""
    query = select(SCHEDULE_FIRE.c.due_ms).where(
        SCHEDULE_FIRE.c.schedule_id == schedule_id, SCHEDULE_FIRE.c.due_ms == due_ms
    )
    return connection.execute(query).one_or_none() is not None


def last_fires(connection: Connection, schedule_ids: Sequence[str]) -> Mapping[str, ScheduleFire]:
    """Return the newest handled time of each schedule that has one."""
    fires = {}
    for schedule_id in schedule_ids:
        query = select(SCHEDULE_FIRE).where(SCHEDULE_FIRE.c.schedule_id == schedule_id)
        row = connection.execute(query.order_by(SCHEDULE_FIRE.c.due_ms.desc()).limit(1)).one_or_none()
        if row is not None:
            fires[schedule_id] = ScheduleFire(**row._mapping)
    return fires


def fire_of(connection: Connection, task_id: str) -> tuple[ScheduleFire, Schedule] | None:
    """Return the time that the task was created for, and its schedule, or None if no schedule created it."""
    row = connection.execute(select(SCHEDULE_FIRE).where(SCHEDULE_FIRE.c.task_id == task_id)).one_or_none()
    if row is None:
        return None
    entry = ScheduleFire(**row._mapping)
    return entry, get(connection, entry.schedule_id)


def unended(connection: Connection, schedule_id: str) -> Task | None:
    """Return the newest task of the schedule that has not ended, or None."""
    query = (
        select(TASK)
        .join(SCHEDULE_FIRE, SCHEDULE_FIRE.c.task_id == TASK.c.id)
        .where(SCHEDULE_FIRE.c.schedule_id == schedule_id, TASK.c.state.in_(_UNENDED))
        .order_by(TASK.c.created_ms.desc(), TASK.c.id)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else task_from(row)
