"""/livez and /readyz: for supervisors. Open to all, so without a token they say yes or no and nothing else."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.views import ReadinessView
from claudomator_py.domain.views.base import View
from claudomator_py.service.access import Access

_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": ReadinessView, "description": "Not ready"}}


class LivenessView(View):
    """The process answers."""

    alive: Literal[True] = True


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["health"])

    @routes.get("/livez", operation_id="getLiveness", summary="Whether the daemon answers")
    def livez() -> LivenessView:
        """Needs no token. It says nothing of whether tasks are accepted."""
        return LivenessView()

    @routes.get("/readyz", operation_id="getReadiness", summary="Whether tasks are accepted", responses=_NOT_READY)
    def readyz(request: Request, response: Response) -> ReadinessView:
        """Needs no token; with it, the answer has every check, with what to do where one failed."""
        by = request.state.principal
        found = access.as_(by or OPERATOR).queries.readiness()
        if not found.ready:
            response.status_code = 503
        return ReadinessView(ready=found.ready) if by is None else found

    return routes
