"""/v1/notifications: which method of the service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.resources.notifications.shape import NotificationCalls

notifications = serve(
    "notifications",
    Notices,
    {
        NotificationCalls.notifications: Notices.deliveries,
        NotificationCalls.retry_notification: Notices.again,
        NotificationCalls.test_notification: Notices.test,
    },
)
