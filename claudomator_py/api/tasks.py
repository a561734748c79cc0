"""/v1/tasks: submit, list, look at, cancel and restart tasks."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import ConfigDict, Field

from claudomator_py.api.conditional import (
    ETAG_HEADER,
    NOT_MODIFIED,
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    etag,
    set_etag,
)
from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import (
    FIRST_RUN_LINKS,
    FIRST_TASK_LINKS,
    LOCATION_HEADER,
    RESTART_BODY,
    TASK_BODY,
    TASK_LINKS,
    problems,
    told,
)
from claudomator_py.api.request import JsonObject, OptionalJsonObject
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import Page, RestartRequest, RunView, TaskFilter, TaskView, WhyView
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.validation import odd_values, validate
from claudomator_py.service.access import Access

Ref = Annotated[str, Path(max_length=128, description="A task's id, a unique prefix of it, or its name.")]


class TaskQuery(TaskFilter):
    """What to list, and how much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cursor: str | None = Field(default=None, max_length=500, description="The next_cursor of the previous page.")
    limit: int = Field(default=50, ge=1, le=200, description="Maximum number of tasks, 1 to 200.")


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @routes.post(
        "",
        status_code=201,
        operation_id="submitTask",
        summary="Submit a task",
        responses=problems(
            400,
            409,
            413,
            415,
            422,
            429,
            503,
            also={201: told("Accepted: it is durable", LOCATION_HEADER, ETAG_HEADER, links=TASK_LINKS)},
        ),
        openapi_extra=TASK_BODY,
    )
    def submit(by: Asking, document: JsonObject, key: IdempotencyKey, response: Response) -> TaskView:
        """Accept a task, as a task file would write it. It is durable once this answers."""
        parsed = parse_task(document)
        if not isinstance(parsed, TaskSpec):
            detail = "; ".join(problem.render() for problem in parsed[:3])
            raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=parsed)
        return _located(access.as_(by).service.submit(parsed, key=key), response)

    @routes.get(
        "",
        operation_id="listTasks",
        summary="List tasks, newest first",
        responses=problems(400, 422, 503, also={200: told("As asked for", links=FIRST_TASK_LINKS)}),
    )
    def list_tasks(by: Asking, query: Annotated[TaskQuery, Query()]) -> Page[TaskView]:
        """A part of the list; all conditions count together. Tasks that come meanwhile move nothing in later parts."""
        wanted = TaskFilter(**query.model_dump(exclude={"cursor", "limit"}))
        return access.as_(by).queries.tasks(wanted, query.cursor, query.limit)

    @routes.get(
        "/{ref}",
        operation_id="getTask",
        summary="One task",
        response_model=TaskView,
        responses=problems(400, 404, 409, 422, 503, also={200: told("As asked for", ETAG_HEADER), 304: NOT_MODIFIED}),
    )
    def get_task(by: Asking, ref: Ref, if_none_match: IfNoneMatch, response: Response) -> TaskView | Response:
        """The task with its content. With If-None-Match, 304 says that it has not been changed since."""
        task = access.as_(by).queries.task(ref)
        if if_none_match is not None and if_none_match.matches(task.version):
            return Response(status_code=304, headers={"ETag": etag(task.version)})
        return _tagged(task, response)

    @routes.post(
        "/{ref}/cancel",
        status_code=202,
        operation_id="cancelTask",
        summary="Cancel a task",
        responses=problems(
            400,
            404,
            409,
            412,
            413,
            422,
            429,
            503,
            also={202: told("Requested: it may take effect a little later", ETAG_HEADER, links=TASK_LINKS)},
        ),
    )
    def cancel(by: Asking, ref: Ref, if_match: IfMatch, key: IdempotencyKey, response: Response) -> TaskView:
        """Ask for its end. A running task ends a little later, when its agent has; 409 for one that has ended."""
        return _tagged(access.as_(by).service.cancel(ref, if_version=if_match, key=key), response)

    @routes.post(
        "/{ref}/restart",
        status_code=202,
        operation_id="restartTask",
        summary="Restart a task: the whole decision is made again",
        responses=problems(
            400,
            404,
            409,
            412,
            413,
            415,
            422,
            429,
            503,
            also={
                202: told(
                    "Requested: it may take effect a little later", LOCATION_HEADER, ETAG_HEADER, links=TASK_LINKS
                )
            },
        ),
        openapi_extra=RESTART_BODY,
    )
    def restart(
        by: Asking, ref: Ref, document: OptionalJsonObject, if_match: IfMatch, key: IdempotencyKey, response: Response
    ) -> TaskView:
        """Begin a new generation. What the task pins stays pinned unless the body says otherwise.

        409 for a queued task, which starts by itself, and for a running one unless `force` is true.
        """
        request = odd_values(document or {}, {}) or validate(RestartRequest, document or {}, {})
        if not isinstance(request, RestartRequest):
            detail = "; ".join(problem.render() for problem in request[:3])
            raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=request)
        return _located(access.as_(by).service.restart(ref, request, if_version=if_match, key=key), response)

    @routes.get(
        "/{ref}/why", operation_id="explainTask", summary="Why it is so", responses=problems(404, 409, 422, 503)
    )
    def why(by: Asking, ref: Ref) -> WhyView:
        """Why the task is where it is, in sentences, with the decisions and events behind them."""
        return access.as_(by).queries.why(ref)

    @routes.get(
        "/{ref}/runs",
        operation_id="listRuns",
        summary="A task's runs",
        responses=problems(404, 409, 422, 503, also={200: told("As asked for", links=FIRST_RUN_LINKS)}),
    )
    def runs(by: Asking, ref: Ref) -> Page[RunView]:
        """All runs of the task, oldest first."""
        return Page[RunView](items=tuple(access.as_(by).queries.runs(ref)))

    return routes


def _tagged(task: TaskView, response: Response) -> TaskView:
    set_etag(response, task)
    return task


def _located(task: TaskView, response: Response) -> TaskView:
    response.headers["Location"] = f"/v1/tasks/{task.id}"
    return _tagged(task, response)
