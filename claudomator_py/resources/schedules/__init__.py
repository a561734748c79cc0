"""Views of schedules, and the operations on them. The order of fields is the order in JSON."""

from typing import Annotated

from claudomator_py.domain.lifecycle import KnownState
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.schedule import CatchUp, Overlap
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.tasks import TaskView
from claudomator_py.surface import OPERATE, READ, Calls, InPath, Key, TaskDocument, operation


class FireView(View):
    """A time of a schedule that was handled."""

    due_at: Instant
    by: str
    """``clock`` or ``operator``."""
    task_id: str | None = None
    task_name: str | None = None
    task_state: KnownState = None
    skipped: str | None = None
    """Why no task was created."""


class ScheduleView(View):
    """A schedule."""

    id: str
    name: str
    schedule: str
    """The cron expression."""
    timezone: str
    """The time zone in force, explicit or not."""
    catch_up: CatchUp
    overlap: Overlap
    next_at: Instant | None = None
    """Its next time; absent while paused."""
    paused_since: Instant | None = None
    last: FireView | None = None
    """The latest time that was handled."""
    source: str
    """``file`` or ``api``."""
    file_path: str | None = None
    """The file that defines it."""
    created_at: Instant
    spec: dict[str, object]
    """Its content as in a task file."""
    creator: str = OPERATOR.id
    """Creator of its tasks."""
    organisation: str | None = None
    """Organisation of its tasks."""

    @property
    def place(self) -> tuple[bool, str, str]:
        """The key by which schedules are sorted: the next to run first, paused ones last."""
        return self.next_at is None, self.next_at or "", self.name


Name = Annotated[str, InPath("A schedule's name.", ambiguous=True)]
_NIGHTLY = {
    "name": "nightly-triage",
    "instructions": "Label the issues that came in today.",
    "schedule": "0 3 * * *",
    "timezone": "Europe/Berlin",
}


class ScheduleCalls(Calls):
    """Every operation on schedules, as the client calls it."""

    @operation("GET /v1/schedules", "listSchedules", READ, "Schedules, by name")
    def schedules(self) -> list[ScheduleView]:
        """Return all schedules, with their next time and the latest one that was handled."""

    @operation(
        "POST /v1/schedules",
        "addSchedule",
        OPERATE,
        "Add a schedule",
        status=201,
        answer_note="Accepted: it is durable",
        location="/v1/schedules/{name}",
    )
    def add_schedule(
        self, spec: Annotated[TaskSpec, TaskDocument({"every_night": _NIGHTLY})], *, idempotency_key: Key = None
    ) -> ScheduleView:
        """Create a task at each time of its `schedule`. Harmless when repeated. 409 if another schedule has its
        name."""

    @operation("GET /v1/schedules/{name}", "getSchedule", READ, "One schedule")
    def schedule(self, name: Name) -> ScheduleView:
        """Return the schedule with its content."""

    @operation("POST /v1/schedules/{name}/pause", "pauseSchedule", OPERATE, "Pause a schedule")
    def pause_schedule(self, name: Name) -> ScheduleView:
        """Stop creating tasks until it is resumed. Harmless when repeated."""

    @operation("POST /v1/schedules/{name}/resume", "resumeSchedule", OPERATE, "Resume a schedule")
    def resume_schedule(self, name: Name) -> ScheduleView:
        """Continue with its next time; missed times are not caught up. Harmless when repeated."""

    @operation("POST /v1/schedules/{name}/run", "runSchedule", OPERATE, "Run a schedule now", status=201)
    def run_schedule(self, name: Name, *, idempotency_key: Key = None) -> TaskView:
        """Create a task now, in addition to the scheduled ones, paused or not. 409 if its last task has not ended and
        `overlap` is `skip`."""

    @operation("DELETE /v1/schedules/{name}", "deleteSchedule", OPERATE, "Delete a schedule", status=204)
    def delete_schedule(self, name: Name) -> None:
        """Delete the schedule, but not its tasks. 409 if a file defines it: delete the file."""
