"""The API as typed calls: views come back, refusals are raised."""

from email.utils import parsedate_to_datetime

import httpx

from claudomator_py.client.errors import DaemonNotRunning
from claudomator_py.client.specialists import SpecialistCalls
from claudomator_py.client.tasks import TaskCalls
from claudomator_py.client.transport import body_of, part_of, path_segment
from claudomator_py.domain.notice import DeliveryState, DeliveryView
from claudomator_py.domain.retention import CleanupRequest, CleanupView
from claudomator_py.domain.views import (
    BackupView,
    DrainView,
    FileProblemPage,
    FileProblemView,
    Page,
    ReadinessView,
    ReasonView,
)
from claudomator_py.domain.views.base import all_items
from claudomator_py.domain.views.daemon import DrainRequest
from claudomator_py.resources.access.shape import LoginCalls, TokenCalls
from claudomator_py.resources.agents.shape import AgentCalls
from claudomator_py.resources.channels.shape import ChannelCalls
from claudomator_py.resources.overview.shape import StatusView
from claudomator_py.resources.policy.shape import PolicyCalls
from claudomator_py.resources.schedules.shape import ScheduleCalls


class Client(TaskCalls, SpecialistCalls, AgentCalls, ChannelCalls, ScheduleCalls, TokenCalls, LoginCalls, PolicyCalls):
    """A connection to the daemon; use it in a ``with`` block.

    Every call may raise ``client.errors.ClientError``. ref: a task's id, a unique prefix of it, or its name.
    if_version: the version that was seen; a task that was changed since is refused (``stale_version``).
    idempotency_key: a name for this one request; sent again with it, after a lost connection, it is not done again.
    """

    def reasons(self) -> list[ReasonView]:
        """Every reason code, and what follows from it."""
        return list(self._view(Page[ReasonView], "GET", "/v1/reasons").items)

    def drain(self, reason: str | None = None) -> DrainView:
        """Stop starting tasks; running ones finish."""
        return self._view(DrainView, "POST", "/v1/drain", json=body_of(DrainRequest(reason=reason)))

    def undrain(self) -> DrainView:
        """Start tasks again."""
        return self._view(DrainView, "POST", "/v1/undrain")

    def drain_state(self) -> DrainView:
        """Whether the daemon is drained, and how many runs are live."""
        return self._view(DrainView, "GET", "/v1/drain")

    def notifications(
        self, state: DeliveryState | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[DeliveryView]:
        """One part of the notifications, newest first."""
        query = {"state": state, "cursor": cursor, "limit": limit}
        given = {key: value for key, value in query.items() if value is not None}
        return self._view(Page[DeliveryView], "GET", "/v1/notifications", params=given)

    def retry_notification(self, delivery: int) -> DeliveryView:
        """Retry a notification that was given up."""
        return self._view(DeliveryView, "POST", f"/v1/notifications/{delivery}/retry")

    def test_notification(self, target: str) -> DeliveryView:
        """Send a test notification to a target now."""
        return self._view(DeliveryView, "POST", f"/v1/notifications/test/{path_segment(target)}")

    def backup(self) -> BackupView:
        """Copy the database, on the daemon's machine."""
        return self._view(BackupView, "POST", "/v1/backups")

    def clean_up(self, request: CleanupRequest | None = None) -> CleanupView:
        """Remove what ended tasks have left: spent work trees, and the directories of old runs."""
        body = body_of(request or CleanupRequest())
        return self._view(CleanupView, "POST", "/v1/cleanup", json=body)

    def status(self) -> StatusView:
        """Everything at a glance."""
        return self._view(StatusView, "GET", "/v1/status")

    def inbox_page(self, cursor: str | None = None, *, limit: int = 50) -> FileProblemPage:
        """One part of the files of the inbox that were refused, the last one first."""
        return self._view(FileProblemPage, "GET", "/v1/inbox", params=part_of(cursor, limit))

    def inbox_problems(self) -> list[FileProblemView]:
        """All files of the inbox that were refused, the last one first."""
        return list(all_items(lambda cursor, limit: self.inbox_page(cursor, limit=limit)))

    def metrics(self) -> str:
        """What is measured, in the text format of Prometheus."""
        return self._request("GET", "/metrics", headers={"Accept": "text/plain"}).text

    def alive(self) -> bool:
        """Whether a daemon answers at all; it needs no token."""
        try:
            return self._send("GET", "/livez").is_success
        except DaemonNotRunning:
            return False

    def server_time(self) -> float | None:
        """What time it is where the daemon is (Unix time, to the second); None if it does not say."""
        told = self._send("GET", "/livez").headers.get("Date")
        try:
            return None if told is None else parsedate_to_datetime(told).timestamp()
        except ValueError:
            return None

    def readiness(self) -> ReadinessView:
        """Whether tasks are accepted; with the reasons if the token is right."""
        response = self._send("GET", "/readyz")
        if response.status_code not in (httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE):
            raise self._refusal(response)
        return self._parsed(ReadinessView, response)
