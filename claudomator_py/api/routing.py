"""/v1/route: who would do a task, and why."""

from typing import Annotated

from claudomator_py.api.guard.roles import READ
from claudomator_py.api.operation import Allowed, Operations, body
from claudomator_py.domain.views.routing import RouteRequest, RouteView

routing = Operations("routing")

_Asked = Annotated[
    RouteRequest,
    body(
        RouteRequest,
        required=True,
        the_least={"instructions": "The totals of the invoice page are wrong by a cent. Find out why, and fix it."},
        as_a_task={"name": "nightly-dump", "instructions": "Restore last night's dump.", "tags": ["database"]},
    ),
]


@routing.operation("POST /v1/route", "route", READ, "Who would do a task", refuses=(409,))
def route(granted: Allowed, asked: _Asked) -> RouteView:
    """The decision on a task of that content, if whoever asks made it now: every candidate with what its score is made
    of, and what would have changed the answer. Nothing is made or stored. 409 where nothing is routed."""
    return granted.specialists.route(asked)
