"""/v1/agents: the configured agents, and what an operator does to their holds."""

from typing import Annotated

from fastapi import Path

from claudomator_py.api.conditional import IdempotencyKey
from claudomator_py.api.operation import Allowed, Operations, body, links
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.views import Page
from claudomator_py.queries.queries import Queries
from claudomator_py.resources.agents.shape import AgentView
from claudomator_py.service.task_service import TaskService
from claudomator_py.surface.operation import ADMIN_WHOLE, READ

agents = Operations("agents")

AgentName = Annotated[str, Path(max_length=128, description="The agent's name.")]


@agents.operation(
    "GET /v1/agents",
    "listAgents",
    READ,
    "The configured agents",
    links=links("name", "$response.body#/items/0/name", releaseAgent="End its holds"),
)
def list_agents(granted: Allowed) -> Page[AgentView]:
    """The agents in the order of the configuration, each with its slots, holds and health."""
    return Page[AgentView](items=tuple(granted[Queries].agents()))


@agents.operation("POST /v1/agents/{name}/hold", "holdAgent", ADMIN_WHOLE, "Start nothing on an agent", refuses=(404,))
def hold(
    granted: Allowed,
    name: AgentName,
    request: Annotated[
        HoldRequest,
        body(
            HoldRequest,
            until_released={},
            for_the_night={"until": "2099-12-01T06:00:00Z", "reason": "The window is reserved for daytime work."},
            one_family={"family": "opus", "until": "2099-12-01T06:00:00Z"},
            the_account={"account": True},
        ),
    ],
    key: IdempotencyKey,
) -> AgentView:
    """Running tasks continue; new ones go to other agents or wait, until the time named or until it is released."""
    return granted[TaskService].hold(name, request, key=key)


@agents.operation(
    "POST /v1/agents/{name}/release", "releaseAgent", ADMIN_WHOLE, "End the holds of an agent", refuses=(404,)
)
def release(
    granted: Allowed,
    name: AgentName,
    request: Annotated[ReleaseRequest, body(ReleaseRequest, all_of_them={}, one_family={"family": "opus"})],
    key: IdempotencyKey,
) -> AgentView:
    """Tasks may start on it again at once, and on all agents that share its account. With `family`, only holds on
    that family end. Without a hold it changes nothing.
    """
    return granted[TaskService].release(name, request, key=key)
