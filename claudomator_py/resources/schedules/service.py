"""Lists, adds, pauses, runs and deletes schedules."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from claudomator_py.domain.errors import Ambiguous, Conflict, NotFound, Problem, refuse
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs, directory_key
from claudomator_py.ports import Clock
from claudomator_py.resources.schedules import FireView, ScheduleCalls, ScheduleView
from claudomator_py.resources.session import KeyedService, reading, writing
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.views import TaskViews
from claudomator_py.schema.taskfile import shown_document
from claudomator_py.schema.zones import local_zone
from claudomator_py.sources.schedules import next_time
from claudomator_py.store import schedule_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Schedule, ScheduleFire
from claudomator_py.surface import answers
from claudomator_py.tasks.feasibility import placement_problems, zone_problems
from claudomator_py.tasks.schedules import Plan, begin, end, fire, make_way
from claudomator_py.values import dataclass


def schedule_views(connection: Connection, schedules: list[Schedule]) -> list[ScheduleView]:
    """Return the views of the schedules, in order, without schedules whose content cannot be read."""
    fires = schedule_rows.last_fires(connection, [schedule.id for schedule in schedules])
    views = (_view(connection, schedule, fires.get(schedule.id)) for schedule in schedules)
    return [view for view in views if view is not None]


def by_next_time(connection: Connection, by: Principal) -> list[ScheduleView]:
    """Return all schedules that the principal can see, ordered by their next time; paused ones come last."""
    views = schedule_views(connection, list(schedule_rows.all_there(connection, by)))
    return sorted(views, key=lambda view: view.place)


def _view(connection: Connection, schedule: Schedule, last: ScheduleFire | None) -> ScheduleView | None:
    spec = readable(TaskSpec, schedule.spec)
    if spec is None:
        return None
    return ScheduleView.legible(
        schedule,
        schedule=schedule.cron,
        catch_up=spec.catch_up,
        overlap=spec.overlap,
        next_at=next_time(schedule),
        paused_since=schedule.paused_ms,
        last=None if last is None else _fire_view(connection, last),
        spec=shown_document(spec),
    )


def _fire_view(connection: Connection, last: ScheduleFire) -> FireView:
    task = None if last.task_id is None else task_rows.get(connection, last.task_id)
    return FireView.legible(
        last,
        task_name=None if task is None else task.name,
        task_state=None if task is None else task.state,
    )


T = TypeVar("T")


@dataclass(eq=False, repr=False)
class Schedules(KeyedService):
    """The operations on schedules, for a principal. Every method may raise ``domain.errors.ServiceError``, such as
    NotFound.

    name: a schedule's name. key: as for ``Tasks``. changed: called after each change.
    """

    registry: AgentRegistry
    workdirs: Callable[[], Workdirs]
    clock: Clock
    task_views: TaskViews
    changed: Callable[[], None] = lambda: None

    @reading(ScheduleCalls.schedules)
    def all(self, connection: Connection) -> list[ScheduleView]:
        """Return all schedules, by name."""
        return schedule_views(connection, list(schedule_rows.all_there(connection, self._by)))

    @reading(ScheduleCalls.schedule)
    def get(self, connection: Connection, name: str) -> ScheduleView:
        """Return the schedule with that name."""
        return schedule_views(connection, [_named(connection, name, self._by)])[0]

    @answers(ScheduleCalls.add_schedule)
    def add(self, spec: TaskSpec, *, key: RequestKey | None = None) -> ScheduleView:
        """Add a schedule. Harmless when repeated. Raises Invalid, and Conflict if another schedule has its name."""
        plan = Plan(spec, local_zone(), "api", creator=self._by.id, organisation=self._by.organisation)

        def change(connection: Connection) -> ScheduleView:
            existing = schedule_rows.named(connection, spec.name, self._by.organisation)
            if existing is not None and (existing.source != "api" or TaskSpec.model_validate(existing.spec) != spec):
                remedy = f"Choose another name, or delete that schedule first: claudomator schedule delete {spec.name}"
                raise Conflict(f"There is another schedule named {spec.name}.", remedy=remedy)
            schedule = existing if existing is not None else begin(connection, plan, self.clock())
            return schedule_views(connection, [schedule])[0]

        def prepare() -> Callable[[Connection], ScheduleView]:
            refuse(_no_times(spec) or zone_problems(spec) or self._problems(spec))
            return change

        return self._once(key, ScheduleView, prepare)

    @answers(ScheduleCalls.pause_schedule)
    def pause(self, name: str) -> ScheduleView:
        """Stop creating tasks until it is resumed. Harmless when repeated."""
        return self._switch(name, paused=True)

    @answers(ScheduleCalls.resume_schedule)
    def resume(self, name: str) -> ScheduleView:
        """Continue with the next time; missed times are not caught up. Harmless when repeated."""
        return self._switch(name, paused=False)

    @answers(ScheduleCalls.run_schedule)
    def run(self, name: str, *, key: RequestKey | None = None) -> TaskView:
        """Create a task now, in addition to the scheduled ones, paused or not. Raises Conflict if the last task has not
        ended and the schedule does not let tasks queue."""
        return self._once(key, TaskView, lambda: self._run(name))

    def _run(self, name: str) -> Callable[[Connection], TaskView]:
        spec = TaskSpec.model_validate(self._read(lambda connection: _named(connection, name, self._by)).spec)
        refuse(self._problems(spec))
        dir_key = directory_key(spec.working_dir)

        def change(connection: Connection) -> TaskView:
            schedule = _named(connection, name, self._by)
            if schedule.spec != spec.model_dump(mode="json"):
                raise Conflict(f"{name} changed at the same time.", remedy="Check its current state, then try again.")
            now_ms = at_ms = self.clock()
            other = make_way(connection, schedule, now_ms)
            if other is not None:
                remedy = f"Cancel it, or wait for it to end; with `overlap: queue` {name} would not wait for it."
                raise Conflict(f"{other.name} has not ended ({other.state}).", remedy=remedy)
            while schedule_rows.was_fired(connection, schedule.id, at_ms):
                at_ms += 1
            made = fire(connection, schedule, at_ms, dir_key, "operator", now_ms)
            return self.task_views.changed(connection, made.id)

        return change

    @writing(ScheduleCalls.delete_schedule)
    def delete(self, connection: Connection, name: str) -> None:
        """Delete the schedule, but not its tasks. Raises Conflict if a file defines it."""
        schedule = _named(connection, name, self._by)
        if schedule.file_path is not None:
            remedy = "Delete the file, or pause the schedule."
            raise Conflict(f"{name} follows the file {schedule.file_path}.", remedy=remedy)
        end(connection, schedule, self.clock())

    @writing()
    def _switch(self, connection: Connection, name: str, *, paused: bool) -> ScheduleView:
        schedule = _named(connection, name, self._by)
        now_ms = self.clock()
        if paused and schedule.paused_ms is None:
            schedule_rows.change(connection, schedule.id, now_ms, paused_ms=now_ms)
            record(connection, now_ms, "schedule_paused", data={"schedule": name})
        elif not paused and schedule.paused_ms is not None:
            schedule_rows.change(connection, schedule.id, now_ms, paused_ms=None, last_ms=now_ms)
            record(connection, now_ms, "schedule_resumed", data={"schedule": name})
        return schedule_views(connection, [_named(connection, name, self._by)])[0]

    def _problems(self, spec: TaskSpec) -> list[Problem]:
        return placement_problems(spec, self.registry, self.workdirs())

    def _write(self, fn: Callable[[Connection], T]) -> T:
        result = super()._write(fn)
        self.changed()
        return result


def _named(connection: Connection, name: str, by: Principal) -> Schedule:
    """Return the schedule of that name: the principal's own, or else the only one. Raises NotFound, Ambiguous."""
    schedule = schedule_rows.named(connection, name, by.organisation)
    if schedule is not None:
        return schedule
    visible = schedule_rows.all_there(connection, by)
    namesakes = [schedule for schedule in visible if schedule.name == name]
    if len(namesakes) > 1:
        whose = ", ".join(str(schedule.organisation) for schedule in namesakes)
        raise Ambiguous(f"There is a schedule {name!r} of {whose}.", remedy="Ask with a token of that organisation.")
    if not namesakes:
        raise NotFound.among(
            "schedule", name, [schedule.name for schedule in visible], listing="claudomator schedule list"
        )
    return namesakes[0]


def _no_times(spec: TaskSpec) -> list[Problem]:
    if spec.schedule is not None:
        return []
    remedy = 'add one, such as "0 3 * * *", or send it to /v1/tasks'
    return [Problem(field="schedule", message="is missing", remedy=remedy)]
