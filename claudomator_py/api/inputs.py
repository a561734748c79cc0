"""/v1/tasks/{ref}/answer, approve and reject: what a person says to a task that needs input."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel

from claudomator_py.api.conditional import ETAG_HEADER, IdempotencyKey, IfMatch, set_etag
from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import TASK_LINKS, problems, request_body, told
from claudomator_py.api.request import JsonObject, OptionalJsonObject
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.views import AnswerRequest, ApproveRequest, RejectRequest, TaskView
from claudomator_py.schema.validation import odd_values, validate
from claudomator_py.service.access import Access

R = TypeVar("R", bound=BaseModel)
Ref = Annotated[str, Path(max_length=128, description="A task's id, a unique prefix of it, or its name.")]

_ANSWER = request_body("AnswerRequest", required=True, examples={"in_words": {"text": "Blue, as on the old page."}})
_APPROVE = request_body(
    "ApproveRequest",
    required=False,
    examples={"what_it_asks_for": {}, "something_else": {"tools": ["Bash(npm run build)", "Bash(npm test)"]}},
)
_REJECT = request_body(
    "RejectRequest", required=False, examples={"without_a_reason": {}, "with_a_reason": {"reason": "Not on a Friday."}}
)


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @routes.post(
        "/{ref}/answer",
        status_code=202,
        operation_id="answerTask",
        summary="Answer what its agent asks",
        responses=_responses("Accepted; the agent will continue with the answer"),
        openapi_extra=_ANSWER,
    )
    def answer(
        by: Asking, ref: Ref, document: JsonObject, if_match: IfMatch, key: IdempotencyKey, response: Response
    ) -> TaskView:
        """The agent continues the conversation in which it asked; no attempt is used up. 409 if it asks nothing."""
        return _tagged(
            access.as_(by).service.answer(ref, _valid(AnswerRequest, document), if_version=if_match, key=key), response
        )

    @routes.post(
        "/{ref}/approve",
        status_code=202,
        operation_id="approveTask",
        summary="Allow what it asks for",
        responses=_responses("Accepted; the task will continue"),
        openapi_extra=_APPROVE,
    )
    def approve(
        by: Asking, ref: Ref, document: OptionalJsonObject, if_match: IfMatch, key: IdempotencyKey, response: Response
    ) -> TaskView:
        """Its first run, or the tools that its agent was denied: for this content, until it is restarted.

        409 if it asks for no approval, 422 for what its agent cannot be configured to allow.
        """
        return _tagged(
            access.as_(by).service.approve(ref, _valid(ApproveRequest, document), if_version=if_match, key=key),
            response,
        )

    @routes.post(
        "/{ref}/reject",
        status_code=202,
        operation_id="rejectTask",
        summary="Reject a task that needs input, which ends it",
        responses=_responses("Done: it has failed, with reason `rejected`"),
        openapi_extra=_REJECT,
    )
    def reject(
        by: Asking, ref: Ref, document: OptionalJsonObject, if_match: IfMatch, key: IdempotencyKey, response: Response
    ) -> TaskView:
        """It fails, and what depends on it. 409 if it asks nothing."""
        return _tagged(
            access.as_(by).service.reject(ref, _valid(RejectRequest, document), if_version=if_match, key=key), response
        )

    return routes


def _responses(accepted: str) -> dict[int | str, dict[str, object]]:
    also = {202: told(accepted, ETAG_HEADER, links=TASK_LINKS)}
    return problems(400, 404, 409, 412, 413, 415, 422, 429, 503, also=also)


def _valid(model: type[R], document: Mapping[str, object] | None) -> R:
    # What is no text would stop the run that is to be told it.
    request = odd_values(document or {}, {}) or validate(model, document or {}, {})
    if not isinstance(request, model):
        found = request if isinstance(request, list) else []
        detail = "; ".join(problem.render() for problem in found[:3])
        raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=found)
    return request


def _tagged(task: TaskView, response: Response) -> TaskView:
    set_etag(response, task)
    return task
