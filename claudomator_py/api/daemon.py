"""The daemon itself: everything at a glance, refused files, draining, notices, backups, cleaning up, reason codes; and
/livez and /readyz for supervisors, which are open to all, so without a token they say yes or no and nothing else.
"""

from typing import Annotated, Literal

from fastapi import Path, Query, Request, Response
from pydantic import Field

from claudomator_py.api.operation import Allowed, Operations, access_of, body
from claudomator_py.api.request import DIGITS, PageQuery
from claudomator_py.domain.notice import DeliveryState, DeliveryView
from claudomator_py.domain.outcome import REASON_POLICIES, Reason
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.retention import CleanupRequest, CleanupView
from claudomator_py.domain.views import BackupView, DrainView, FileProblemPage, Page, ReadinessView, ReasonView
from claudomator_py.domain.views.base import View
from claudomator_py.domain.views.daemon import DrainRequest
from claudomator_py.queries.queries import Queries
from claudomator_py.resources.overview.shape import StatusView
from claudomator_py.service.notices import Notices
from claudomator_py.service.task_service import TaskService
from claudomator_py.surface.operation import ADMIN_WHOLE, OPEN, READ, READ_WHOLE

daemon = Operations("status")

_LAST_ID = 2**63 - 1


class NotificationQuery(PageQuery):
    """What to list, and how much of it."""

    state: DeliveryState | None = Field(default=None, description="Only those in this state.")


class LivenessView(View):
    """The process answers."""

    alive: Literal[True] = True


@daemon.operation("GET /v1/status", "getStatus", READ, "Everything at a glance, what needs a person first")
def status(granted: Allowed) -> StatusView:
    """What `claudomator status` shows. Each list is cut at 50; the counts are whole."""
    return granted[Queries].status()


@daemon.operation("GET /v1/inbox", "listFileProblems", READ, "Files of the inbox that were refused")
def inbox(granted: Allowed, query: Annotated[PageQuery, Query()]) -> FileProblemPage:
    """The last one refused first, each with its reasons; a file is accepted whole or not at all."""
    return granted[Queries].inbox_problems(query.cursor, query.limit)


@daemon.operation(
    "GET /v1/drain", "getDrain", READ, "Whether the daemon is drained, and how many runs are live", tag="drain"
)
def drain_state(granted: Allowed) -> DrainView:
    """What readiness says of it, too, with the number of live runs to wait for."""
    return granted[Queries].drain_state()


@daemon.operation("POST /v1/drain", "drain", ADMIN_WHOLE, "Stop starting tasks; running ones finish", tag="drain")
def drain(
    granted: Allowed,
    request: Annotated[
        DrainRequest,
        body(DrainRequest, without_a_reason={}, with_a_reason={"reason": "The machine is restarted at six."}),
    ],
) -> DrainView:
    """Harmless when repeated. It survives restarts of the daemon and lasts until `undrain`."""
    return granted[TaskService].drain(request.reason)


@daemon.operation("POST /v1/undrain", "undrain", ADMIN_WHOLE, "Start tasks again", tag="drain")
def undrain(granted: Allowed) -> DrainView:
    """Harmless when repeated."""
    return granted[TaskService].undrain()


@daemon.operation(
    "GET /v1/notifications", "listNotifications", READ_WHOLE, "Notifications, newest first", tag="notifications"
)
def list_notifications(granted: Allowed, query: Annotated[NotificationQuery, Query()]) -> Page[DeliveryView]:
    """Each is one notice to one target. A delivered one is kept for a week, a dead one for thirty days."""
    return granted[Notices].deliveries(query.state, query.cursor, query.limit)


@daemon.operation(
    "POST /v1/notifications/{delivery}/retry",
    "retryNotification",
    ADMIN_WHOLE,
    "Retry a notification that was given up",
    status=202,
    refuses=(404, 409),
    tag="notifications",
)
def retry_notification(
    granted: Allowed, delivery: Annotated[int, Path(ge=1, le=_LAST_ID, description="The notification's id."), DIGITS]
) -> DeliveryView:
    """It gets as many attempts as a new one. 409 for one that was delivered, or is still on its way."""
    return granted[Notices].again(delivery)


@daemon.operation(
    "POST /v1/notifications/test/{target}",
    "testNotification",
    ADMIN_WHOLE,
    "Send a test notification to a target",
    refuses=(404,),
    tag="notifications",
)
def test_notification(
    granted: Allowed, target: Annotated[str, Path(max_length=128, description="A target's name in the configuration.")]
) -> DeliveryView:
    """Sent at once, a single time, and not kept: the answer says whether it was delivered, and if not, why."""
    return granted[Notices].test(target)


@daemon.operation("POST /v1/backups", "makeBackup", ADMIN_WHOLE, "Copy the database", status=201, tag="backups")
def backup(granted: Allowed) -> BackupView:
    """A consistent copy, into the folder `backups` of the state folder; tasks continue meanwhile. SQLite only."""
    return granted[TaskService].backup()


@daemon.operation(
    "POST /v1/cleanup",
    "cleanUp",
    ADMIN_WHOLE,
    "Remove spent work trees and the directories of old runs",
    refuses=(409,),
    tag="cleanup",
)
def clean_up(
    granted: Allowed,
    request: Annotated[
        CleanupRequest, body(CleanupRequest, look_first={"dry_run": True}, at_once={"older_than": "0s"})
    ],
) -> CleanupView:
    """Only of tasks that have ended. A work tree goes with its branch, and only if nothing in it would be lost:
    unchanged, or committed and merged. The answer says what is kept, and why."""
    return granted[TaskService].clean_up(request)


@daemon.operation("GET /v1/reasons", "listReasons", READ, "The reason codes, and what follows from each", tag="reasons")
def list_reasons() -> Page[ReasonView]:
    """The codes are stable: they are the same here, in tasks, in logs and in metrics."""
    return Page[ReasonView](items=tuple(ReasonView.of(REASON_POLICIES[reason], reason=reason) for reason in Reason))


@daemon.operation("GET /livez", "getLiveness", OPEN, "Whether the daemon answers", tag="health")
def livez() -> LivenessView:
    """Needs no token. It says nothing of whether tasks are accepted."""
    return LivenessView()


@daemon.operation(
    "GET /readyz",
    "getReadiness",
    OPEN,
    "Whether tasks are accepted",
    responses={503: {"model": ReadinessView, "description": "Not ready"}},
    tag="health",
)
def readyz(request: Request, response: Response) -> ReadinessView:
    """Needs no token; with it, the answer has every check, with what to do where one failed."""
    by = request.state.principal
    found = access_of(request).as_(by or OPERATOR)[Queries].readiness()
    if not found.ready:
        response.status_code = 503
    return ReadinessView(ready=found.ready) if by is None else found
