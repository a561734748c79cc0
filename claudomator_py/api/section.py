"""The routes of one resource, or of the pages: made when a request for one of them comes.

FastAPI takes longer to make a route than to answer a request, and of the hundred and fifty that there are a daemon is
asked for a few. Made at a start, they were a tenth of it.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final

from fastapi import APIRouter, Depends
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from claudomator_py.api.guard import roles
from claudomator_py.api.guard.asking import permitted
from claudomator_py.api.request import strict_query

GUARDS: Final = (Depends(permitted), Depends(strict_query))
"""What every route asks first."""


def guarded(prefix: str = "") -> APIRouter:
    """For routes that are not in the document of the API."""
    return APIRouter(prefix=prefix, include_in_schema=False, dependencies=[*GUARDS])


class Section(BaseRoute):
    """Routes that are matched in their order, as those of an application are. begins: what their paths begin with."""

    def __init__(self, begins: Iterable[str], make: Callable[[], Iterable[BaseRoute]]) -> None:
        self._begins = tuple(begins)
        self._make = make

    @cached_property
    def routes(self) -> tuple[BaseRoute, ...]:
        """All of them. Raises ValueError for one about which nobody has said who may use it, or that does not ask."""
        routes = tuple(self._make())
        roles.check_all(routes, permitted)
        return routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See ``starlette.routing.BaseRoute``."""
        best: tuple[Match, Scope] = (Match.NONE, {})
        if scope["type"] == "http" and scope["path"].startswith(self._begins):
            for route in self.routes:
                match, child = route.matches(scope)
                if match is Match.FULL:
                    return match, child
                if match is Match.PARTIAL and best[0] is Match.NONE:
                    best = match, child
        return best

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ``starlette.routing.BaseRoute``."""
        await scope["route"].handle(scope, receive, send)  # which a route of FastAPI names where it matches
