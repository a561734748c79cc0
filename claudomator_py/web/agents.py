"""/v1/agents: the configured agents, and the release of their holds."""

from typing import Annotated

from fastapi import APIRouter, Path

from claudomator_py.core.views import AgentView, Page
from claudomator_py.service.desk import Desk
from claudomator_py.web.openapi import problems


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(prefix="/v1/agents", tags=["agents"])

    @routes.get("", operation_id="listAgents", summary="The configured agents")
    def list_agents() -> Page[AgentView]:
        return Page[AgentView](items=tuple(desk.agents()))

    @routes.post(
        "/{name}/release",
        operation_id="releaseAgent",
        summary="End all holds of an agent",
        responses=problems(404, 422, 503),
    )
    def release(name: Annotated[str, Path(max_length=128)]) -> AgentView:
        return desk.release(name)

    return routes
