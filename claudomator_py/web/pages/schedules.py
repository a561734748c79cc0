"""/schedules/{name}/...: the buttons of a schedule on the front page."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import RedirectResponse, Response

from claudomator_py.service.desk.desk import Desk

Name = Annotated[str, Path(max_length=128)]


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(prefix="/schedules/{name}", include_in_schema=False)

    @routes.post("/pause")
    def pause(name: Name) -> Response:
        desk.schedules.pause(name)
        return _back()

    @routes.post("/resume")
    def resume(name: Name) -> Response:
        desk.schedules.resume(name)
        return _back()

    @routes.post("/run")
    def run(name: Name) -> Response:
        return RedirectResponse(f"/tasks/{desk.schedules.run(name).id}", 303)

    return routes


def _back() -> Response:
    return RedirectResponse("/#schedules", 303)
