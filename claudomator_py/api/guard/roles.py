"""The role that each operation requires, as declared with it (``api/operation.py``), or in the table here for pages. A
route without a role is refused.

read looks; operate also changes tasks and schedules; admin is for what concerns the whole daemon: its agents' holds,
draining, backups, cleanup, notifications, tokens. A principal of an organisation may not do what affects or reveals
the tasks of others, whatever its role. ``Asking`` is who sent a request.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from claudomator_py.api.problem import Refused
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.surface import OPEN, OPERATE, READ, Needed

OPERATIONS: Final[dict[str, Needed]] = {}
"""The required role by operation id, as declared with the operation."""

PAGES: Final[dict[str, Needed | str]] = {
    "GET /.well-known/agent-card.json": OPEN,
    "POST /a2a": READ,
    "POST /v1/channels/{channel_id}/incoming": OPEN,
    "GET /login": OPEN,
    "POST /login": OPEN,
    "POST /logout": READ,
    "GET /static/{name}": OPEN,
    "GET /": READ,
    "GET /next": READ,
    "GET /agents": "listAgents",
    "GET /schedules": "listSchedules",
    "GET /notices": "listNotifications",
    "POST /notices/{delivery}/retry": "retryNotification",
    "GET /new": "submitTask",
    "POST /new": "submitTask",
    "POST /new/check": "submitTask",
    "GET /tasks/{ref}/edit": "restartTask",
    "POST /tasks/{ref}/edit": "restartTask",
    "GET /sessions": "listSessions",
    "POST /sessions/end": "endSessions",
    "POST /sessions/{session_id}/end": "endSession",
    "GET /select": OPERATE,
    "POST /select/{change}": OPERATE,
    "GET /tasks/{ref}": READ,
    "GET /tasks/{ref}/cancel": "cancelTask",
    "POST /tasks/{ref}/cancel": "cancelTask",
    "GET /tasks/{ref}/merge": "mergeTask",
    "POST /tasks/{ref}/merge": "mergeTask",
    "GET /tasks/{ref}/discard": "discardTask",
    "POST /tasks/{ref}/discard": "discardTask",
    "GET /tasks/{ref}/restart": "restartTask",
    "POST /tasks/{ref}/restart": "restartTask",
    "GET /tasks/{ref}/answer": "answerTask",
    "POST /tasks/{ref}/answer": "answerTask",
    "GET /tasks/{ref}/approve": "approveTask",
    "POST /tasks/{ref}/approve": "approveTask",
    "GET /tasks/{ref}/reject": "rejectTask",
    "POST /tasks/{ref}/reject": "rejectTask",
    "POST /agents/{name}/release": "releaseAgent",
    "POST /agents/{name}/hold": "holdAgent",
    "POST /drain": "drain",
    "POST /undrain": "undrain",
    "POST /hosts/{name}/drain": "drainHost",
    "POST /hosts/{name}/undrain": "undrainHost",
    "POST /schedules/{name}/pause": "pauseSchedule",
    "POST /schedules/{name}/resume": "resumeSchedule",
    "POST /schedules/{name}/run": "runSchedule",
    "GET /specialists": "listSpecialists",
    "POST /specialists": "registerSpecialist",
    "GET /specialists/{specialist_id}": "getSpecialist",
    "GET /specialists/{specialist_id}/edit": "changeSpecialist",
    "POST /specialists/{specialist_id}/edit": "changeSpecialist",
    "GET /specialists/{specialist_id}/remove": "removeSpecialist",
    "POST /specialists/{specialist_id}/remove": "removeSpecialist",
    "GET /specialists/{specialist_id}/forget": "resetLearned",
    "POST /specialists/{specialist_id}/forget": "resetLearned",
    "POST /specialists/{specialist_id}/grant": "grantSpecialist",
    "POST /specialists/{specialist_id}/revoke": "revokeSpecialist",
    "POST /specialists/{specialist_id}/admit": "admitSpecialist",
    "POST /specialists/{specialist_id}/dismiss": "dismissSpecialist",
    "GET /channels": "listChannels",
    "POST /channels": "createChannel",
    "GET /channels/{channel}": "getChannel",
    "POST /channels/{channel}/messages": "postMessage",
    "POST /channels/{channel}/messages/{message}/verdict": "markMessage",
    "POST /channels/{channel}/join": "joinChannel",
    "POST /channels/{channel}/participants/{member}/leave": "leaveChannel",
    "POST /channels/{channel}/participants/{member}/mute": "muteParticipant",
    "GET /decisions": "listDecisions",
    "GET /decisions/{decision_id}": "getDecision",
    "GET /decisions/{decision_id}/json": "getDecision",
    "GET /policy": "getPolicy",
    "POST /policy": "getPolicy",
    "GET /report": "getReport",
    "GET /night": READ,
    "GET /repositories": "getReport",
    "GET /routing": "getRoutingStats",
    "POST /routing": "route",
    "GET /routing/forget": "resetLearned",
    "POST /routing/forget": "resetLearned",
    "POST /routing/freeze": "freezeLearning",
    "POST /routing/unfreeze": "unfreezeLearning",
}
"""Pages, A2A and webhooks, by method and path: a role, or the operation whose role applies. Webhooks are open, as their
requests are signed.
"""


def declare(operation: str, needed: Needed) -> None:
    """Declare who may use the operation of that id. Raises ValueError if it is declared already."""
    if operation in OPERATIONS:
        raise ValueError(f"there are two operations {operation}")
    OPERATIONS[operation] = needed


def may(by: Principal, operation: str) -> bool:
    """Return whether the principal may use the operation of that id."""
    return OPERATIONS[operation].permits(by)


def needed_by(route: APIRoute, method: str) -> Needed | None:
    """Return what the route requires of a principal; None: undeclared."""
    if route.include_in_schema:
        return OPERATIONS.get(route.operation_id or "")
    page = PAGES.get(f"{method} {route.path}")
    return OPERATIONS.get(page) if isinstance(page, str) else page


def check_all(routes: Iterable[BaseRoute], permitted: Callable[..., Any]) -> None:
    """Raise ValueError for a route without a declared role, or without the dependency ``permitted``."""
    lacking, unguarded = [], []
    for route in routes:
        if not isinstance(route, APIRoute):
            lacking.append(str(route))
            continue
        lacking += [f"{method} {route.path}" for method in route.methods or () if needed_by(route, method) is None]
        if permitted not in {dependency.dependency for dependency in route.dependencies}:
            unguarded.append(route.path)
    if lacking:
        raise ValueError(f"routes without a role: {', '.join(sorted(lacking))}")
    if unguarded:
        raise ValueError(f"routes that do not check the role: {', '.join(sorted(unguarded))}")


def not_permitted(by: Principal, needed: Needed) -> Refused:
    """Return the refusal for a principal that lacks what is needed."""
    role = needed.role.value if needed.role is not None else Role.READ.value
    if by.role is Role.RUN:
        detail = f"The token of a run may not do this: it requires the role {role}."
        remedy = "A run reads its own task."
    elif not by.role.permits(Role(role)):
        detail = f"{by.id} has the role {by.role.value}, and this needs {role}."
        remedy = f"Create a token that has it: claudomator token create NAME --role {role}"
    else:
        detail = f"{by.id} belongs to {by.organisation}, but this concerns the whole daemon."
        remedy = f"Use a token with the role {role} that belongs to no organisation."
    return Refused(403, "not_permitted", detail, remedy)


async def permitted(request: Request) -> None:
    """Check a request; a dependency of every route. Raises Refused if the principal may not do what it asks for."""
    route: Any = request.scope["route"]
    needed, by = needed_by(route, request.method), request.state.principal
    if needed is None:  # unreachable, as the application does not start with such a route
        raise LookupError(f"{route.path} has no declared role")
    if not needed.permits(by):
        raise not_permitted(by, needed)


async def _principal(request: Request) -> Principal:
    by = request.state.principal
    if not isinstance(by, Principal):  # unreachable behind Security
        raise LookupError(f"the principal of {request.url.path} is unknown")
    return by


async def _standing(request: Request) -> Callable[[], bool]:
    standing: Callable[[], bool] = request.state.standing
    return standing


Asking = Annotated[Principal, Depends(_principal)]
"""Who sent the request."""
Standing = Annotated[Callable[[], bool], Depends(_standing)]
"""Whether the request's credentials are still valid, for answers that take long."""
