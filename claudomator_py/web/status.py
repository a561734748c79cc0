"""/v1/status and /v1/inbox: everything at a glance, and the files that were refused."""

from fastapi import APIRouter

from claudomator_py.core.views import FileProblemView, Page, StatusView
from claudomator_py.service.desk.desk import Desk


def router(desk: Desk) -> APIRouter:
    """The routes, on this desk."""
    routes = APIRouter(prefix="/v1", tags=["status"])

    @routes.get("/status", operation_id="getStatus", summary="Everything at a glance, what needs a person first")
    def status() -> StatusView:
        """What `claudomator status` shows. Each list is cut at 50; the counts are whole."""
        return desk.status()

    @routes.get("/inbox", operation_id="listFileProblems", summary="Files of the inbox that were refused")
    def inbox() -> Page[FileProblemView]:
        """Each with every reason; a file is accepted whole or not at all."""
        return Page[FileProblemView](items=tuple(desk.inbox_problems()))

    return routes
