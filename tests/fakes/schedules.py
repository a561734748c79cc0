"""Schedules in memory, whose times never come."""

from collections.abc import Callable
from dataclasses import dataclass, field

from claudomator_py.domain.errors import Conflict, Invalid, NotFound, Problem
from claudomator_py.domain.principal import RequestKey
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import TaskView
from claudomator_py.domain.views.schedules import FireView, ScheduleView
from claudomator_py.schema.taskfile import to_document
from tests.fakes.repeats import FakeRepeats

AT = "2026-11-22T02:00:00.000Z"


@dataclass
class FakeSchedules:
    """Implements ``service.schedules.Schedules``. submit: makes a task."""

    submit: Callable[[TaskSpec], TaskView]
    repeats: FakeRepeats
    known: dict[str, ScheduleView] = field(default_factory=dict)

    def all(self) -> list[ScheduleView]:
        return [self.known[name] for name in sorted(self.known)]

    def one(self, name: str) -> ScheduleView:
        if name not in self.known:
            raise NotFound(f"There is no schedule {name!r}.", remedy="List them.")
        return self.known[name]

    def add(self, spec: TaskSpec, *, key: RequestKey | None = None) -> ScheduleView:
        return self.repeats.once(key, lambda: self._add(spec))

    def _add(self, spec: TaskSpec) -> ScheduleView:
        if spec.schedule is None:
            problem = Problem(field="schedule", message="is missing", remedy="add one")
            raise Invalid(problem.render(), remedy="Correct it.", problems=[problem])
        document = to_document(spec)
        there = self.known.get(spec.name)
        if there is not None and there.spec != document:
            raise Conflict(f"There is another schedule named {spec.name}.", remedy="End that one first.")
        self.known[spec.name] = there or ScheduleView(
            id=f"schedule-{spec.name}",
            name=spec.name,
            schedule=spec.schedule,
            timezone=spec.timezone or "UTC",
            catch_up=spec.catch_up,
            overlap=spec.overlap,
            next_at=AT,
            source="api",
            created_at=AT,
            spec=document,
        )
        return self.known[spec.name]

    def pause(self, name: str) -> ScheduleView:
        return self._change(name, paused_since=AT, next_at=None)

    def resume(self, name: str) -> ScheduleView:
        return self._change(name, paused_since=None, next_at=AT)

    def run(self, name: str, *, key: RequestKey | None = None) -> TaskView:
        return self.repeats.once(key, lambda: self._run(name))

    def _run(self, name: str) -> TaskView:
        self.one(name)
        task = self.submit(TaskSpec(name=f"{name}.20261122t0200z", instructions="x"))
        last = FireView(due_at=AT, by="operator", task_id=task.id, task_name=task.name, task_state=task.state)
        self._change(name, last=last)
        return task

    def delete(self, name: str) -> None:
        if self.one(name).file_path is not None:
            raise Conflict(f"{name} follows a file.", remedy="Delete the file.")
        del self.known[name]

    def _change(self, name: str, **changes: object) -> ScheduleView:
        self.known[name] = self.one(name).model_copy(update=changes)
        return self.known[name]
