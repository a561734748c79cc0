"""/v1/drain and /v1/undrain: start nothing new, and start again."""

from fastapi import APIRouter

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import problems, request_body
from claudomator_py.api.request import OptionalJsonObject
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.views import DrainRequest, DrainView
from claudomator_py.schema.validation import validate
from claudomator_py.service.access import Access

_BODY = request_body(
    "DrainRequest",
    required=False,
    examples={"without_a_reason": {}, "with_a_reason": {"reason": "The machine is restarted at six."}},
)


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["drain"])

    @routes.get(
        "/drain",
        operation_id="getDrain",
        summary="Whether the daemon is drained, and how many runs are live",
        responses=problems(503),
    )
    def state(by: Asking) -> DrainView:
        """What readiness says of it, too, with the number of live runs to wait for."""
        return access.as_(by).queries.drain_state()

    @routes.post(
        "/drain",
        operation_id="drain",
        summary="Stop starting tasks; running ones finish",
        responses=problems(400, 413, 415, 422, 503),
        openapi_extra=_BODY,
    )
    def drain(by: Asking, document: OptionalJsonObject) -> DrainView:
        """Harmless when repeated. It holds over restarts of the daemon, until it is taken back."""
        request = validate(DrainRequest, document or {}, {})
        if not isinstance(request, DrainRequest):
            detail = "; ".join(problem.render() for problem in request)
            raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=request)
        return access.as_(by).service.drain(request.reason)

    @routes.post("/undrain", operation_id="undrain", summary="Start tasks again", responses=problems(503))
    def undrain(by: Asking) -> DrainView:
        """Harmless when repeated."""
        return access.as_(by).service.undrain()

    return routes
