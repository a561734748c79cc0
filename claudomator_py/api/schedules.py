"""/v1/schedules: what is made again and again, and when."""

from typing import Annotated

from fastapi import Path, Response

from claudomator_py.api.conditional import IdempotencyKey
from claudomator_py.api.guard.roles import OPERATE, READ
from claudomator_py.api.operation import Allowed, Operations, location, task_document
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import Page, TaskView
from claudomator_py.domain.views.schedules import ScheduleView

schedules = Operations("schedules")

Name = Annotated[str, Path(max_length=128, description="A schedule's name.")]


@schedules.operation("GET /v1/schedules", "listSchedules", READ, "Schedules, by name")
def list_schedules(granted: Allowed) -> Page[ScheduleView]:
    """All of them, each with its next time and the last one that was dealt with."""
    return Page[ScheduleView](items=tuple(granted.schedules.all()))


@schedules.operation(
    "POST /v1/schedules",
    "addSchedule",
    OPERATE,
    "Add a schedule",
    status=201,
    told="Accepted: it is durable",
    headers=location("URL of the schedule"),
)
def add(
    granted: Allowed,
    spec: Annotated[
        TaskSpec,
        task_document(
            every_night={
                "name": "nightly-triage",
                "instructions": "Label the issues that came in today.",
                "schedule": "0 3 * * *",
                "timezone": "Europe/Berlin",
            }
        ),
    ],
    key: IdempotencyKey,
    response: Response,
) -> ScheduleView:
    """Have a task made at each time of its `schedule`. Harmless when repeated; 409 where another has its name."""
    view = granted.schedules.add(spec, key=key)
    response.headers["Location"] = f"/v1/schedules/{view.name}"
    return view


@schedules.operation("GET /v1/schedules/{name}", "getSchedule", READ, "One schedule", refuses=(404,))
def get_schedule(granted: Allowed, name: Name) -> ScheduleView:
    """The schedule with its content."""
    return granted.schedules.one(name)


@schedules.operation("POST /v1/schedules/{name}/pause", "pauseSchedule", OPERATE, "Pause a schedule", refuses=(404,))
def pause(granted: Allowed, name: Name) -> ScheduleView:
    """It makes no more tasks until it is resumed. Harmless when repeated."""
    return granted.schedules.pause(name)


@schedules.operation("POST /v1/schedules/{name}/resume", "resumeSchedule", OPERATE, "Resume a schedule", refuses=(404,))
def resume(granted: Allowed, name: Name) -> ScheduleView:
    """It continues with its next time; missed times are not caught up. Harmless when repeated."""
    return granted.schedules.resume(name)


@schedules.operation(
    "POST /v1/schedules/{name}/run", "runSchedule", OPERATE, "Run a schedule now", status=201, refuses=(404, 409)
)
def run(granted: Allowed, name: Name, key: IdempotencyKey) -> TaskView:
    """In addition to its times, paused or not. 409 where its last task has not ended and `overlap` is `skip`."""
    return granted.schedules.run(name, key=key)


@schedules.operation(
    "DELETE /v1/schedules/{name}", "deleteSchedule", OPERATE, "End a schedule", status=204, refuses=(404, 409)
)
def delete(granted: Allowed, name: Name) -> None:
    """Its tasks stay. 409 for one that follows a file: delete the file."""
    granted.schedules.delete(name)
