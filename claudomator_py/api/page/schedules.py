"""/schedules/{name}/...: the buttons of a schedule on the front page."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.section import guarded
from claudomator_py.service.access import Access

Name = Annotated[str, Path(max_length=128)]


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = guarded("/schedules/{name}")

    @routes.post("/pause")
    def pause(by: Asking, name: Name) -> Response:
        access.as_(by).schedules.pause(name)
        return _back()

    @routes.post("/resume")
    def resume(by: Asking, name: Name) -> Response:
        access.as_(by).schedules.resume(name)
        return _back()

    @routes.post("/run")
    def run(by: Asking, name: Name) -> Response:
        return RedirectResponse(f"/tasks/{access.as_(by).schedules.run(name).id}", 303)

    return routes


def _back() -> Response:
    return RedirectResponse("/#schedules", 303)
