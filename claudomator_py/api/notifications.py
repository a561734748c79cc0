"""/v1/notifications: who was told of what, what could not be delivered, and trying it again."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import problems
from claudomator_py.domain.notice import DeliveryState, DeliveryView
from claudomator_py.domain.views import Page
from claudomator_py.service.access import Access

_LAST_ID = 2**63 - 1


class NotificationQuery(BaseModel):
    """What to list, and how much of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: DeliveryState | None = Field(default=None, description="Only those in this state.")
    cursor: str | None = Field(default=None, max_length=500, description="The next_cursor of the previous page.")
    limit: int = Field(default=50, ge=1, le=200, description="Maximum number of items, 1 to 200.")


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/notifications", tags=["notifications"])

    @routes.get(
        "",
        operation_id="listNotifications",
        summary="Notifications, newest first",
        responses=problems(400, 422, 503),
    )
    def list_notifications(by: Asking, query: Annotated[NotificationQuery, Query()]) -> Page[DeliveryView]:
        """Each is one notice to one target. A delivered one is kept for a week, a dead one for thirty days."""
        return access.as_(by).notices.deliveries(query.state, query.cursor, query.limit)

    @routes.post(
        "/{delivery}/retry",
        status_code=202,
        operation_id="retryNotification",
        summary="Retry a notification that was given up",
        responses=problems(404, 409, 422, 503),
    )
    def retry(
        by: Asking,
        delivery: Annotated[int, Path(ge=1, le=_LAST_ID, description="The notification's id.")],
    ) -> DeliveryView:
        """It gets as many attempts as a new one. 409 for one that was delivered, or is still on its way."""
        return access.as_(by).notices.again(delivery)

    @routes.post(
        "/test/{target}",
        operation_id="testNotification",
        summary="Send a test notification to a target",
        responses=problems(404, 422, 503),
    )
    def test(
        by: Asking,
        target: Annotated[str, Path(max_length=128, description="A target's name in the configuration.")],
    ) -> DeliveryView:
        """Sent at once, a single time, and not kept: the answer says whether it was delivered, and if not, why."""
        return access.as_(by).notices.test(target)

    return routes
