"""Schedules, from their rows to the shapes in which they are shown."""

from sqlalchemy import Connection

from claudomator_py.domain.principal import Principal
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.schedules.shape import FireView, ScheduleView
from claudomator_py.schema.taskfile import shown_document
from claudomator_py.sources.schedules import recurrence
from claudomator_py.store import schedule_rows, task_rows
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Schedule, ScheduleFire


def schedule_views(connection: Connection, schedules: list[Schedule]) -> list[ScheduleView]:
    """Return the shapes of these schedules, in their order, without those of which no task could be made either."""
    fires = schedule_rows.last_fires(connection, [schedule.id for schedule in schedules])
    views = (_view(connection, schedule, fires.get(schedule.id)) for schedule in schedules)
    return [view for view in views if view is not None]


def by_next_time(connection: Connection, by: Principal) -> list[ScheduleView]:
    """Return all schedules that exist for that principal, the next to come first; those without a next time last."""
    views = schedule_views(connection, list(schedule_rows.all_there(connection, by)))
    return sorted(views, key=lambda view: (view.next_at is None, view.next_at or "", view.name))


def _view(connection: Connection, schedule: Schedule, last: ScheduleFire | None) -> ScheduleView | None:
    spec = readable(TaskSpec, schedule.spec)
    if spec is None:
        return None
    paused = schedule.paused_ms
    next_ms = recurrence(schedule.cron, schedule.timezone).next_after(schedule.last_ms) if paused is None else None
    return ScheduleView.of(
        schedule,
        schedule=schedule.cron,
        catch_up=spec.catch_up,
        overlap=spec.overlap,
        next_at=next_ms,
        paused_since=paused,
        last=None if last is None else _fire_view(connection, last),
        spec=shown_document(spec),
    )


def _fire_view(connection: Connection, last: ScheduleFire) -> FireView:
    task = None if last.task_id is None else task_rows.get(connection, last.task_id)
    return FireView.of(
        last,
        task_name=None if task is None else task.name,
        task_state=None if task is None else task.state,
    )
