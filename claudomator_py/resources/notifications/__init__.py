"""The shapes and operations of notifications. Field order is the order of the JSON."""

from typing import Annotated, Final

from claudomator_py.domain.notice import DeliveryState, Notice
from claudomator_py.domain.shape import Instant, Page, View
from claudomator_py.surface import ADMIN_WHOLE, READ_WHOLE, Calls, Cursor, InPath, InQuery, Limit, operation

_MAX_ID: Final = 2**63 - 1


class DeliveryView(View):
    """A notice on its way to one target."""

    id: int
    target: str
    state: DeliveryState
    attempts: int
    error: str | None = None
    """Why the last attempt failed."""
    created_at: Instant
    next_at: Instant | None = None
    """When it is tried again."""
    ended_at: Instant | None = None
    notice: Notice


class NotificationCalls(Calls):
    """The operations on notifications, as the client calls them."""

    @operation("GET /v1/notifications", "listNotifications", READ_WHOLE, "Notifications, newest first")
    def notifications(
        self,
        state: Annotated[DeliveryState | None, InQuery("Only notifications in this state.")] = None,
        *,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[DeliveryView]:
        """Each is one notice to one target. Delivered ones are kept for a week, dead ones for thirty days."""

    @operation(
        "POST /v1/notifications/{delivery}/retry",
        "retryNotification",
        ADMIN_WHOLE,
        "Retry a notification that was given up",
        status=202,
        refuses=(409,),
    )
    def retry_notification(self, delivery: Annotated[int, InPath("The notification's id.", _MAX_ID)]) -> DeliveryView:
        """It gets as many attempts as a new one. 409 if it was delivered, or has not been given up."""

    @operation(
        "POST /v1/notifications/test/{target}", "testNotification", ADMIN_WHOLE, "Send a test notification to a target"
    )
    def test_notification(
        self, target: Annotated[str, InPath("A target's name in the configuration.")]
    ) -> DeliveryView:
        """Sent at once, only once, and not kept. The answer says whether it was delivered, and if not, why."""
