"""Rows of schedules, and of their times that were handled."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from claudomator_py.domain.lifecycle import UNENDED
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.store.statement import Selection, Statement
from claudomator_py.store.tables import SCHEDULE, SCHEDULE_FIRE, TASK, Schedule, ScheduleFire, Task
from claudomator_py.store.tables.columns import bytewise
from claudomator_py.store.visibility import representative, rows_seen

_FILES = Statement(
    select(SCHEDULE.c.file_path)
    .where(SCHEDULE.c.file_path.in_(bindparam("files", expanding=True)), SCHEDULE.c.gone_ms.is_(None))
    .distinct()
)


def change(connection: Connection, schedule_id: str, now_ms: int, **changes: Any) -> None:
    """Update columns of the schedule."""
    connection.execute(update(SCHEDULE).where(SCHEDULE.c.id == schedule_id).values(updated_ms=now_ms, **changes))


def get(connection: Connection, schedule_id: str) -> Schedule:
    """Return the schedule, gone or not. Raises LookupError."""
    if (schedule := Schedule.find(connection, SCHEDULE.c.id == schedule_id)) is None:
        raise LookupError(f"there is no schedule {schedule_id}")
    return schedule


def named(connection: Connection, name: str, organisation: str | None = None) -> Schedule | None:
    """Return the organisation's schedule with this name that is not gone, or None."""
    if "\0" in name:  # which PostgreSQL does not take
        return None
    return Schedule.find(
        connection,
        SCHEDULE.c.name == name,
        SCHEDULE.c.gone_ms.is_(None),
        SCHEDULE.c.organisation.is_not_distinct_from(organisation),
    )


def all_there(connection: Connection, by: Principal = OPERATOR) -> Sequence[Schedule]:
    """Return the schedules visible to the principal that are not gone, by name."""
    return _all_there(representative(by)).all(connection)


@lru_cache(maxsize=16)
def _all_there(by: Principal) -> Selection[Schedule]:
    query = select(SCHEDULE).where(SCHEDULE.c.gone_ms.is_(None), rows_seen(SCHEDULE, by))
    in_order = query.order_by(bytewise(SCHEDULE.c.name), bytewise(SCHEDULE.c.organisation).nulls_first())
    return Selection(Schedule, in_order)


def of_file(connection: Connection, path: str) -> Sequence[Schedule]:
    """Return the file's schedules that are not gone, by name."""
    query = select(SCHEDULE).where(SCHEDULE.c.file_path == path, SCHEDULE.c.gone_ms.is_(None))
    return Schedule.rows(connection, query.order_by(bytewise(SCHEDULE.c.name)))


def with_schedules(connection: Connection, paths: Collection[str]) -> set[str]:
    """Return those of the files that have schedules which are not gone."""
    return set(_FILES.values(connection, files=sorted(paths)))


def detach(connection: Connection, paths: Collection[str], now_ms: int) -> None:
    """Detach the files' schedules, so that they no longer follow a file."""
    query = update(SCHEDULE).where(SCHEDULE.c.file_path.in_(sorted(paths)))
    connection.execute(query.values(file_path=None, updated_ms=now_ms))


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
        for fire in ScheduleFire.rows(connection, query.order_by(SCHEDULE_FIRE.c.due_ms.desc()).limit(1)):
            fires[schedule_id] = fire
    return fires


def fire_of(connection: Connection, task_id: str) -> tuple[ScheduleFire, Schedule] | None:
    """Return the time that the task was created for, and its schedule, or None if no schedule created it."""
    fire = ScheduleFire.find(connection, SCHEDULE_FIRE.c.task_id == task_id)
    return None if fire is None else (fire, get(connection, fire.schedule_id))


def unended(connection: Connection, schedule_id: str) -> Task | None:
    """Return the newest task of the schedule that has not ended, or None."""
    query = (
        select(TASK)
        .join(SCHEDULE_FIRE, SCHEDULE_FIRE.c.task_id == TASK.c.id)
        .where(SCHEDULE_FIRE.c.schedule_id == schedule_id, TASK.c.state.in_(UNENDED))
        .order_by(TASK.c.created_ms.desc(), TASK.c.id)
        .limit(1)
    )
    return Task.one(connection, query)
