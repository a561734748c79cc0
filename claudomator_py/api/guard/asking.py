"""Who asks: the principal of a request, whether it may do what it asks for, and whether it is still there."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request

from claudomator_py.api.guard.roles import needed_by, not_permitted
from claudomator_py.domain.principal import Principal


async def permitted(request: Request) -> None:
    """A dependency of every route. Raises Refused where the principal may not do what it asks for."""
    route: Any = request.scope["route"]
    needed, by = needed_by(route, request.method), request.state.principal
    if needed is None:  # the application does not start with such a route; if it did, nobody may use it
        raise LookupError(f"{route.path} needs no role that is known")
    if not needed.permits(by):
        raise not_permitted(by, needed)


async def _principal(request: Request) -> Principal:
    by = request.state.principal
    if not isinstance(by, Principal):  # Security lets nobody else get here
        raise LookupError(f"nobody is known to ask for {request.url.path}")
    return by


async def _standing(request: Request) -> Callable[[], bool]:
    standing: Callable[[], bool] = request.state.standing
    return standing


Asking = Annotated[Principal, Depends(_principal)]
"""Who sent the request."""

Standing = Annotated[Callable[[], bool], Depends(_standing)]
"""Whether the credentials of the request are still good, for answers that take long."""
