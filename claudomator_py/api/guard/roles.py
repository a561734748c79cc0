"""The role that each operation and each page requires, as declared with it (``api/operation.py``). A route without a
role is refused.

read looks; operate also changes tasks and schedules; admin is for what concerns the whole daemon: its agents' holds,
draining, backups, cleanup, notifications, tokens. A principal of an organisation may not do what affects or reveals
the tasks of others, whatever its role. ``Asking`` is who sent a request.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, compile_path

from claudomator_py.api.problem import Refused
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.surface import Needed

OPERATIONS: Final[dict[str, Needed]] = {}
"""The required role by operation id, as declared with the operation."""

PAGES: Final[dict[str, Needed | str]] = {}
"""What the routes outside of the document require, by method and path: a role, or the operation whose role applies."""


def declare(operation: str, needed: Needed) -> None:
    """Declare who may use the operation of that id. Raises ValueError if it is declared already."""
    if operation in OPERATIONS:
        raise ValueError(f"there are two operations {operation}")
    OPERATIONS[operation] = needed


def may(by: Principal, operation: str) -> bool:
    """Return whether the principal may use the operation of that id."""
    return OPERATIONS[operation].permits(by)


def may_post(by: Principal, address: str) -> bool:
    """Return whether the principal may send a form to this address of a page. Nobody may if no page takes it."""
    for page, needed in PAGES.items():
        method, _, path = page.partition(" ")
        if method == "POST" and _pattern(path).match(address):
            return may(by, needed) if isinstance(needed, str) else needed.permits(by)
    return False


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return compile_path(path)[0]


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
