"""/v1/route and /v1/routing: who would do a task, and why; how routing does, and what was learned."""

from typing import Annotated

from fastapi import Query

from claudomator_py.api.operation import Allowed, Operations, body
from claudomator_py.api.request import DIGITS, Days
from claudomator_py.domain.views.policy import TriedRouteView
from claudomator_py.domain.views.routing import (
    ForgetRequest,
    LabelledTasksView,
    LearnedView,
    RouteRequest,
    RoutingStatsView,
)
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.service.learning import Learned
from claudomator_py.surface.operation import ADMIN, ADMIN_WHOLE, READ

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
def route(granted: Allowed, asked: _Asked) -> TriedRouteView:
    """The decision on a task of that content, if whoever asks made it now: every candidate with what its score is made
    of, what would have changed the answer, and what the policy would say. Nothing is made or stored. 409 where nothing
    is routed."""
    return granted[Specialists].route(asked)


@routing.operation("GET /v1/routing/stats", "getRoutingStats", READ, "Routing statistics")
def stats(
    granted: Allowed,
    days: Days = 30,
) -> RoutingStatsView:
    """Of the tasks that exist for whoever asks: decisions, their confidence, corrections and failures by specialist and
    by topic; what specialists cover badly; and what each signal of the score has changed."""
    return granted[Learned].stats(days)


@routing.operation("GET /v1/routing/learned", "getLearned", READ, "What was learned")
def learned(granted: Allowed) -> LearnedView:
    """From outcomes and corrections of the tasks that exist for whoever asks."""
    return granted[Learned].all()


@routing.operation("GET /v1/routing/labels", "listLabels", READ, "Labelled tasks")
def labels(
    granted: Allowed,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Maximum number of tasks."), DIGITS] = 1_000,
) -> LabelledTasksView:
    """Those that operators gave to somebody else, and those that were completed where they were, the newest first: what
    `claudomator calibrate` fits thresholds on."""
    return granted[Learned].labelled(limit)


@routing.operation("POST /v1/routing/reset", "resetLearned", ADMIN, "Forget what was learned", refuses=(404,))
def reset(
    granted: Allowed,
    asked: Annotated[ForgetRequest, body(ForgetRequest, all_of_it={}, of_one={"specialist": "database-administrator"})],
) -> LearnedView:
    """It counts no more, nor does what is still to be learned of tasks that have ended. Of an organisation's principal,
    only what was learned from its tasks."""
    return granted[Learned].forget(asked)


@routing.operation("POST /v1/routing/freeze", "freezeLearning", ADMIN_WHOLE, "Freeze learning")
def freeze(granted: Allowed) -> LearnedView:
    """What was learned still counts. What happens until `unfreeze` is never learned. Harmless when repeated."""
    return granted[Learned].freeze()


@routing.operation("POST /v1/routing/unfreeze", "unfreezeLearning", ADMIN_WHOLE, "Resume learning")
def unfreeze(granted: Allowed) -> LearnedView:
    """From what happens from now on. Harmless when repeated."""
    return granted[Learned].unfreeze()
