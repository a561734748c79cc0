"""/v1/schedules: what is made again and again, and when."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from claudomator_py.api.conditional import IdempotencyKey
from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import problems, request_body, told
from claudomator_py.api.request import JsonObject
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import Page, TaskView
from claudomator_py.domain.views.schedules import ScheduleView
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.service.access import Access

Name = Annotated[str, Path(max_length=128, description="A schedule's name.")]

_BODY = request_body(
    "TaskDocument",
    required=True,
    examples={
        "every_night": {
            "name": "nightly-triage",
            "instructions": "Label the issues that came in today.",
            "schedule": "0 3 * * *",
            "timezone": "Europe/Berlin",
        }
    },
)
_LOCATION = {"Location": {"description": "URL of the schedule", "schema": {"type": "string"}, "required": True}}


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/schedules", tags=["schedules"])

    @routes.get("", operation_id="listSchedules", summary="Schedules, by name", responses=problems(503))
    def list_schedules(by: Asking) -> Page[ScheduleView]:
        """All of them, each with its next time and the last one that was dealt with."""
        return Page[ScheduleView](items=tuple(access.as_(by).schedules.all()))

    @routes.post(
        "",
        status_code=201,
        operation_id="addSchedule",
        summary="Add a schedule",
        responses=problems(400, 409, 413, 415, 422, 429, 503, also={201: told("Accepted: it is durable", _LOCATION)}),
        openapi_extra=_BODY,
    )
    def add(by: Asking, document: JsonObject, key: IdempotencyKey, response: Response) -> ScheduleView:
        """Have a task made at each time of its `schedule`. Harmless when repeated; 409 where another has its name."""
        parsed = parse_task(document)
        if not isinstance(parsed, TaskSpec):
            detail = "; ".join(problem.render() for problem in parsed[:3])
            raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=parsed)
        view = access.as_(by).schedules.add(parsed, key=key)
        response.headers["Location"] = f"/v1/schedules/{view.name}"
        return view

    @routes.get("/{name}", operation_id="getSchedule", summary="One schedule", responses=problems(404, 422, 503))
    def get_schedule(by: Asking, name: Name) -> ScheduleView:
        """The schedule with its content."""
        return access.as_(by).schedules.one(name)

    @routes.post(
        "/{name}/pause", operation_id="pauseSchedule", summary="Pause a schedule", responses=problems(404, 422, 503)
    )
    def pause(by: Asking, name: Name) -> ScheduleView:
        """It makes no more tasks until it is resumed. Harmless when repeated."""
        return access.as_(by).schedules.pause(name)

    @routes.post(
        "/{name}/resume", operation_id="resumeSchedule", summary="Resume a schedule", responses=problems(404, 422, 503)
    )
    def resume(by: Asking, name: Name) -> ScheduleView:
        """It continues with its next time; missed times are not caught up. Harmless when repeated."""
        return access.as_(by).schedules.resume(name)

    @routes.post(
        "/{name}/run",
        status_code=201,
        operation_id="runSchedule",
        summary="Run a schedule now",
        responses=problems(400, 404, 409, 413, 422, 429, 503),
    )
    def run(by: Asking, name: Name, key: IdempotencyKey) -> TaskView:
        """In addition to its times, paused or not. 409 where its last task has not ended and `overlap` is `skip`."""
        return access.as_(by).schedules.run(name, key=key)

    @routes.delete(
        "/{name}",
        status_code=204,
        operation_id="deleteSchedule",
        summary="End a schedule",
        responses=problems(404, 409, 422, 503),
    )
    def delete(by: Asking, name: Name) -> None:
        """Its tasks stay. 409 for one that follows a file: delete the file."""
        access.as_(by).schedules.delete(name)

    return routes
