"""/v1/agents: the configured agents, and the release of their holds."""

from typing import Annotated

from fastapi import APIRouter, Path

from claudomator_py.core.views import AgentView, Page
from claudomator_py.service.desk import Desk
from claudomator_py.web.idempotency import IdempotencyKey
from claudomator_py.web.openapi import FIRST_AGENT_LINKS, problems, told


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(prefix="/v1/agents", tags=["agents"])

    @routes.get(
        "",
        operation_id="listAgents",
        summary="The configured agents",
        responses=problems(503, also={200: told("As asked for", links=FIRST_AGENT_LINKS)}),
    )
    def list_agents() -> Page[AgentView]:
        """The agents in the order of the configuration, each with its slots, holds and health."""
        return Page[AgentView](items=tuple(desk.agents()))

    @routes.post(
        "/{name}/release",
        operation_id="releaseAgent",
        summary="End all holds of an agent",
        responses=problems(400, 404, 409, 413, 422, 429, 503),
    )
    def release(
        name: Annotated[str, Path(max_length=128, description="The agent's name.")], key: IdempotencyKey
    ) -> AgentView:
        """Tasks may start on it again at once. Without a hold it changes nothing."""
        return desk.release(name, key=key)

    return routes
