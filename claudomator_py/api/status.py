"""/v1/status and /v1/inbox: everything at a glance, and the files that were refused."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import problems
from claudomator_py.domain.views import FileProblemPage, StatusView
from claudomator_py.service.access import Access


class InboxQuery(BaseModel):
    """Which part of the refused files to list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cursor: str | None = Field(default=None, max_length=500, description="The next_cursor of the previous page.")
    limit: int = Field(default=50, ge=1, le=200, description="Maximum number of items, 1 to 200.")


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1", tags=["status"])

    @routes.get("/status", operation_id="getStatus", summary="Everything at a glance, what needs a person first")
    def status(by: Asking) -> StatusView:
        """What `claudomator status` shows. Each list is cut at 50; the counts are whole."""
        return access.as_(by).queries.status()

    @routes.get(
        "/inbox",
        operation_id="listFileProblems",
        summary="Files of the inbox that were refused",
        responses=problems(400, 422),
    )
    def inbox(by: Asking, query: Annotated[InboxQuery, Query()]) -> FileProblemPage:
        """The last one refused first, each with its reasons; a file is accepted whole or not at all."""
        return access.as_(by).queries.inbox_problems(query.cursor, query.limit)

    return routes
