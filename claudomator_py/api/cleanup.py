"""/v1/cleanup: remove what ended tasks have left."""

from fastapi import APIRouter

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import problems, request_body
from claudomator_py.api.request import OptionalJsonObject
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.retention import CleanupRequest, CleanupView
from claudomator_py.schema.validation import validate
from claudomator_py.service.access import Access

_CLEANUP_BODY = request_body(
    "CleanupRequest",
    required=False,
    examples={"look_first": {"dry_run": True}, "at_once": {"older_than": "0s"}},
)


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/cleanup", tags=["cleanup"])

    @routes.post(
        "",
        operation_id="cleanUp",
        summary="Remove spent work trees and the directories of old runs",
        responses=problems(400, 409, 413, 415, 422, 429, 503),
        openapi_extra=_CLEANUP_BODY,
    )
    def clean_up(by: Asking, document: OptionalJsonObject) -> CleanupView:
        """Only of tasks that have ended. A work tree goes with its branch, and only if nothing in it would be lost:
        unchanged, or committed and merged. The answer says what is kept, and why."""
        request = validate(CleanupRequest, document or {}, {})
        if not isinstance(request, CleanupRequest):
            detail = "; ".join(problem.render() for problem in request)
            raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=request)
        return access.as_(by).service.clean_up(request)

    return routes
