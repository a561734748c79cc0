"""/livez and /readyz: for supervisors. Open to all, so without a token they say yes or no and nothing else."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from claudomator_py.core.view import View
from claudomator_py.core.views import ReadinessView
from claudomator_py.service.desk.desk import Desk

_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": ReadinessView, "description": "Not ready"}}


class LivenessView(View):
    """The process answers."""

    alive: Literal[True] = True


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(tags=["health"])

    @routes.get("/livez", operation_id="getLiveness", summary="Whether the daemon answers")
    def livez() -> LivenessView:
        """Needs no token. It says nothing of whether tasks are accepted."""
        return LivenessView()

    @routes.get("/readyz", operation_id="getReadiness", summary="Whether tasks are accepted", responses=_NOT_READY)
    def readyz(request: Request, response: Response) -> ReadinessView:
        """Needs no token; with it, the answer has every check, with what to do where one failed."""
        found = desk.readiness()
        if not found.ready:
            response.status_code = 503
        return found if request.state.authorised else ReadinessView(ready=found.ready)

    return routes
