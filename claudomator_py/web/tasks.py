"""/v1/tasks: submit, list, look at, cancel and restart tasks."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import ConfigDict, Field

from claudomator_py.core.errors import Invalid
from claudomator_py.core.task import TaskSpec
from claudomator_py.core.taskfile import parse_task
from claudomator_py.core.views import Page, RestartRequest, RunView, TaskFilter, TaskView, WhyView
from claudomator_py.service.desk import Desk
from claudomator_py.web.json_body import JsonObject
from claudomator_py.web.openapi import TASK_BODY, problems
from claudomator_py.web.preconditions import IfMatch, set_etag

Ref = Annotated[str, Path(max_length=128, description="A task's id, a unique prefix of it, or its name.")]


class TaskQuery(TaskFilter):
    """What to list, and how much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cursor: str | None = Field(default=None, max_length=500, description="The next_cursor of the part before.")
    limit: int = Field(default=50, ge=1, le=200)


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @routes.post(
        "",
        status_code=201,
        operation_id="submitTask",
        summary="Submit a task",
        responses=problems(400, 413, 415, 422, 503),
        openapi_extra=TASK_BODY,
    )
    def submit(document: JsonObject, response: Response) -> TaskView:
        parsed = parse_task(document)
        if not isinstance(parsed, TaskSpec):
            detail = "; ".join(problem.render() for problem in parsed[:3])
            raise Invalid(detail, remedy="Mend what is named in problems, and send it again.", problems=parsed)
        return _located(desk.submit(parsed), response)

    @routes.get("", operation_id="listTasks", summary="List tasks, newest first", responses=problems(422))
    def list_tasks(query: Annotated[TaskQuery, Query()]) -> Page[TaskView]:
        wanted = TaskFilter(**query.model_dump(exclude={"cursor", "limit"}))
        return desk.tasks(wanted, query.cursor, query.limit)

    @routes.get("/{ref}", operation_id="getTask", summary="One task", responses=problems(404, 409, 422))
    def get_task(ref: Ref, response: Response) -> TaskView:
        return _tagged(desk.task(ref), response)

    @routes.post(
        "/{ref}/cancel",
        status_code=202,
        operation_id="cancelTask",
        summary="Cancel a task",
        responses=problems(404, 409, 412, 422, 503),
    )
    def cancel(ref: Ref, if_match: IfMatch, response: Response) -> TaskView:
        return _tagged(desk.cancel(ref, if_version=if_match), response)

    @routes.post(
        "/{ref}/restart",
        status_code=202,
        operation_id="restartTask",
        summary="Restart a task: the whole decision is made again",
        responses=problems(400, 404, 409, 412, 413, 422, 503),
    )
    def restart(ref: Ref, if_match: IfMatch, response: Response, request: RestartRequest | None = None) -> TaskView:
        return _located(desk.restart(ref, request or RestartRequest(), if_version=if_match), response)

    @routes.get("/{ref}/why", operation_id="explainTask", summary="Why it is so", responses=problems(404, 409, 422))
    def why(ref: Ref) -> WhyView:
        return desk.why(ref)

    @routes.get("/{ref}/runs", operation_id="listRuns", summary="A task's runs", responses=problems(404, 409, 422))
    def runs(ref: Ref) -> Page[RunView]:
        return Page[RunView](items=tuple(desk.runs(ref)))

    return routes


def _tagged(task: TaskView, response: Response) -> TaskView:
    set_etag(response, task)
    return task


def _located(task: TaskView, response: Response) -> TaskView:
    response.headers["Location"] = f"/v1/tasks/{task.id}"
    return _tagged(task, response)
