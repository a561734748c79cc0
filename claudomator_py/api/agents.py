"""/v1/agents: the configured agents, and what an operator does to their holds."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path

from claudomator_py.api.conditional import IdempotencyKey
from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import FIRST_AGENT_LINKS, problems, request_body, told
from claudomator_py.api.request import OptionalJsonObject
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.views import AgentView, HoldRequest, Page, ReleaseRequest
from claudomator_py.domain.views.base import View
from claudomator_py.schema.validation import validate
from claudomator_py.service.access import Access

R = TypeVar("R", bound=View)
AgentName = Annotated[str, Path(max_length=128, description="The agent's name.")]
_HOLD = request_body(
    "HoldRequest",
    required=False,
    examples={
        "until_released": {},
        "for_the_night": {"until": "2099-12-01T06:00:00Z", "reason": "The window is reserved for daytime work."},
        "one_family": {"family": "opus", "until": "2099-12-01T06:00:00Z"},
        "the_account": {"account": True},
    },
)
_RELEASE = request_body(
    "ReleaseRequest", required=False, examples={"all_of_them": {}, "one_family": {"family": "opus"}}
)


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/agents", tags=["agents"])

    @routes.get(
        "",
        operation_id="listAgents",
        summary="The configured agents",
        responses=problems(503, also={200: told("As asked for", links=FIRST_AGENT_LINKS)}),
    )
    def list_agents(by: Asking) -> Page[AgentView]:
        """The agents in the order of the configuration, each with its slots, holds and health."""
        return Page[AgentView](items=tuple(access.as_(by).queries.agents()))

    @routes.post(
        "/{name}/hold",
        operation_id="holdAgent",
        summary="Start nothing on an agent",
        responses=problems(400, 404, 409, 413, 415, 422, 429, 503),
        openapi_extra=_HOLD,
    )
    def hold(by: Asking, name: AgentName, document: OptionalJsonObject, key: IdempotencyKey) -> AgentView:
        """Running tasks continue; new ones go to other agents or wait, until the time named or until it is released."""
        return access.as_(by).service.hold(name, _read(HoldRequest, document), key=key)

    @routes.post(
        "/{name}/release",
        operation_id="releaseAgent",
        summary="End the holds of an agent",
        responses=problems(400, 404, 409, 413, 415, 422, 429, 503),
        openapi_extra=_RELEASE,
    )
    def release(by: Asking, name: AgentName, document: OptionalJsonObject, key: IdempotencyKey) -> AgentView:
        """Tasks may start on it again at once, and on all agents that share its account. With `family`, only holds on
        that family end. Without a hold it changes nothing.
        """
        return access.as_(by).service.release(name, _read(ReleaseRequest, document), key=key)

    return routes


def _read(kind: type[R], document: Mapping[str, object] | None) -> R:
    request = validate(kind, document or {}, {})
    if isinstance(request, list):
        detail = "; ".join(problem.render() for problem in request)
        raise Invalid(detail, remedy="Fix the listed problems and retry.", problems=request)
    return request
