"""The API as typed calls: views come back, refusals are raised."""

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Final

import httpx
from pydantic import BaseModel

from claudomator_py.client.errors import DaemonNotRunning
from claudomator_py.client.logs import RunLogs
from claudomator_py.client.streams import PATIENCE_S
from claudomator_py.client.transport import path_segment
from claudomator_py.domain.card import Card
from claudomator_py.domain.channel import MarkVerdict, NewChannel, NewMessage
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.notice import DeliveryState, DeliveryView
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.principal import LONGEST_KEY
from claudomator_py.domain.retention import CleanupRequest, CleanupView
from claudomator_py.domain.run_requests import ProgressRequest, QuestionRequest, SubtaskRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views import (
    AgentView,
    AnswerRequest,
    ApproveRequest,
    AskedView,
    BackupView,
    DrainRequest,
    DrainView,
    EventView,
    FileProblemPage,
    FileProblemView,
    HandoffView,
    HoldRequest,
    LoginCodeView,
    NewTokenView,
    Page,
    ProgressView,
    ReadinessView,
    ReasonView,
    RejectRequest,
    ReleaseRequest,
    RestartRequest,
    RunView,
    SessionView,
    StatusView,
    SubtaskView,
    TaskFilter,
    TaskView,
    TokenRequest,
    TokenView,
    WhyView,
)
from claudomator_py.domain.views.channels import (
    AttachmentRequest,
    ChannelStatsView,
    ChannelView,
    MessageView,
    MuteRequest,
    SettingsRequest,
)
from claudomator_py.domain.views.decisions import DecisionFilter, RecordedDecisionView
from claudomator_py.domain.views.policy import PolicyView, TriedRouteView
from claudomator_py.domain.views.routing import (
    ForgetRequest,
    LabelledTasksView,
    LearnedView,
    RouteRequest,
    RoutingStatsView,
)
from claudomator_py.domain.views.schedules import ScheduleView
from claudomator_py.domain.views.specialists import SearchView, SpecialistView

_PAGE: Final = 200
_KEY = re.compile(rf"[\x20-\x7e]{{1,{LONGEST_KEY}}}")


class Client(RunLogs):
    """A connection to the daemon; use it in a ``with`` block.

    Every call may raise ``client.errors.ClientError``. ref: a task's id, a unique prefix of it, or its name.
    if_version: the version that was seen; a task that was changed since is refused (``stale_version``).
    idempotency_key: a name for this one request; sent again with it, after a lost connection, it is not done again.
    """

    def submit(self, spec: TaskSpec, *, idempotency_key: str | None = None) -> TaskView:
        """Hand in a task; it is durable when this returns."""
        document = _document(spec)
        return self._view(TaskView, "POST", "/v1/tasks", json=document, headers=_headers(idempotency_key))

    def tasks(self, wanted: TaskFilter | None = None, *, cursor: str | None = None, limit: int = 50) -> Page[TaskView]:
        """One part of the list, newest first."""
        query = (wanted or TaskFilter()).model_dump(mode="json", exclude_none=True)
        cursors = {} if cursor is None else {"cursor": cursor}
        return self._view(Page[TaskView], "GET", "/v1/tasks", params={**query, **cursors, "limit": limit})

    def all_tasks(self, wanted: TaskFilter | None = None) -> Iterator[TaskView]:
        """The whole list, newest first, fetched as it is read."""
        page = self.tasks(wanted, limit=_PAGE)
        yield from page.items
        while page.next_cursor is not None:
            page = self.tasks(wanted, cursor=page.next_cursor, limit=_PAGE)
            yield from page.items

    def task(self, ref: str) -> TaskView:
        """One task with its content."""
        return self._view(TaskView, "GET", f"/v1/tasks/{path_segment(ref)}")

    def task_unless(self, ref: str, version: int) -> TaskView | None:
        """One task with its content; None if it is at that version still, which costs little to ask."""
        response = self._send("GET", f"/v1/tasks/{path_segment(ref)}", headers={"If-None-Match": f'"{version}"'})
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        if not response.is_success:
            raise self._refusal(response)
        return self._parsed(TaskView, response)

    def cancel(self, ref: str, *, if_version: int | None = None, idempotency_key: str | None = None) -> TaskView:
        """Ask for its end."""
        headers = _headers(idempotency_key, if_version)
        return self._view(TaskView, "POST", f"/v1/tasks/{path_segment(ref)}/cancel", headers=headers)

    def restart(
        self,
        ref: str,
        request: RestartRequest | None = None,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> TaskView:
        """Begin a new generation: the whole decision is made again."""
        body = (request or RestartRequest()).model_dump(mode="json", exclude_defaults=True)
        headers = _headers(idempotency_key, if_version)
        return self._view(TaskView, "POST", f"/v1/tasks/{path_segment(ref)}/restart", json=body, headers=headers)

    def answer(
        self,
        ref: str,
        request: AnswerRequest,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> TaskView:
        """Answer what its agent asks: it goes on with that, in the conversation in which it asked."""
        return self._say(ref, "answer", request, if_version, idempotency_key)

    def approve(
        self,
        ref: str,
        request: ApproveRequest | None = None,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> TaskView:
        """Allow what it asks for: its first run, or the tools that its agent was denied."""
        return self._say(ref, "approve", request or ApproveRequest(), if_version, idempotency_key)

    def reject(
        self,
        ref: str,
        request: RejectRequest | None = None,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> TaskView:
        """Reject a task that needs input. It fails, and so do the tasks that depend on it."""
        return self._say(ref, "reject", request or RejectRequest(), if_version, idempotency_key)

    def _say(
        self,
        ref: str,
        what: str,
        request: AnswerRequest | ApproveRequest | RejectRequest,
        if_version: int | None,
        idempotency_key: str | None,
    ) -> TaskView:
        body = request.model_dump(mode="json", exclude_defaults=True)
        headers = _headers(idempotency_key, if_version)
        return self._view(TaskView, "POST", f"/v1/tasks/{path_segment(ref)}/{what}", json=body, headers=headers)

    def runs(self, ref: str) -> list[RunView]:
        """All runs of a task, oldest first."""
        return list(self._view(Page[RunView], "GET", f"/v1/tasks/{path_segment(ref)}/runs").items)

    def run(self, run_id: str) -> RunView:
        """One run, by its whole id."""
        return self._view(RunView, "GET", f"/v1/runs/{path_segment(run_id)}")

    def hand_on(self, run_id: str, request: HandoffRequest) -> HandoffView:
        """Have another specialist go on with the task once that run has ended."""
        return self._view(HandoffView, "POST", f"/v1/runs/{path_segment(run_id)}/handoff", json=_said(request))

    def handoff(self, run_id: str) -> Handoff:
        """What the run was told of decisions, authority and the work before it."""
        return self._view(Handoff, "GET", f"/v1/runs/{path_segment(run_id)}/handoff")

    def ask(self, run_id: str, request: QuestionRequest) -> AskedView:
        """Have a person asked once that run has ended."""
        return self._view(AskedView, "POST", f"/v1/runs/{path_segment(run_id)}/questions", json=_said(request))

    def report_progress(self, run_id: str, request: ProgressRequest) -> ProgressView:
        """Show people how far that run is."""
        return self._view(ProgressView, "POST", f"/v1/runs/{path_segment(run_id)}/progress", json=_said(request))

    def create_subtask(
        self, run_id: str, request: SubtaskRequest, *, idempotency_key: str | None = None
    ) -> SubtaskView:
        """Create a task beside that run's own."""
        url, headers = f"/v1/runs/{path_segment(run_id)}/subtasks", _headers(idempotency_key, None)
        return self._view(SubtaskView, "POST", url, json=_said(request), headers=headers)

    def events(
        self,
        after: int | None = None,
        *,
        task: str | None = None,
        kinds: Sequence[str] = (),
        patience_s: float = PATIENCE_S,
        on_connect: Callable[[], None] = lambda: None,
    ) -> Generator[EventView, None, None]:
        """What happens, without end: after that event, or from now on. It outlasts restarts of the daemon.

        on_connect: called when the stream has begun, and again when it was lost and found. An event of kind ``reset``
        says that what happened before it is to be asked for anew.
        """
        query = {"after": after, "task": task, "kind": list(kinds)}
        for _, data in self._follow("/v1/events", query, patience_s, on_connect):
            yield self._valid(EventView, data)

    def event_page(
        self,
        cursor: str | None = None,
        *,
        task: str | None = None,
        kinds: Sequence[str] = (),
        by: str | None = None,
        limit: int = 100,
    ) -> Page[EventView]:
        """One part of what happened, oldest first. by: only what that name caused."""
        query = {"cursor": cursor, "task": task, "kind": list(kinds), "by": by, "limit": limit}
        given = {name: value for name, value in query.items() if value is not None}
        return self._view(Page[EventView], "GET", "/v1/events", params=given)

    def last_events(self, last: int, *, task: str | None = None, by: str | None = None) -> list[EventView]:
        """The newest of what happened, oldest first. by: only what that name caused."""
        query = {"last": last, "task": task, "by": by}
        given = {name: value for name, value in query.items() if value is not None}
        return list(self._view(Page[EventView], "GET", "/v1/events", params=given).items)

    def why(self, ref: str) -> WhyView:
        """Why a task is where it is."""
        return self._view(WhyView, "GET", f"/v1/tasks/{path_segment(ref)}/why")

    def agents(self) -> list[AgentView]:
        """The configured agents."""
        return list(self._view(Page[AgentView], "GET", "/v1/agents").items)

    def hold(self, agent: str, request: HoldRequest | None = None, *, idempotency_key: str | None = None) -> AgentView:
        """Start nothing on an agent, until it is released unless the request says until when."""
        body = (request or HoldRequest()).model_dump(mode="json", exclude_none=True)
        return self._view(
            AgentView, "POST", f"/v1/agents/{path_segment(agent)}/hold", json=body, headers=_headers(idempotency_key)
        )

    def release(
        self, agent: str, request: ReleaseRequest | None = None, *, idempotency_key: str | None = None
    ) -> AgentView:
        """End all holds of an agent, or those on a family of its models."""
        body = (request or ReleaseRequest()).model_dump(mode="json", exclude_none=True)
        return self._view(
            AgentView, "POST", f"/v1/agents/{path_segment(agent)}/release", json=body, headers=_headers(idempotency_key)
        )

    def reasons(self) -> list[ReasonView]:
        """Every reason code, and what follows from it."""
        return list(self._view(Page[ReasonView], "GET", "/v1/reasons").items)

    def schedules(self) -> list[ScheduleView]:
        """What is made again and again, by name."""
        return list(self._view(Page[ScheduleView], "GET", "/v1/schedules").items)

    def schedule(self, name: str) -> ScheduleView:
        """One schedule with its content."""
        return self._view(ScheduleView, "GET", f"/v1/schedules/{path_segment(name)}")

    def add_schedule(self, spec: TaskSpec, *, idempotency_key: str | None = None) -> ScheduleView:
        """Have the task made at each time of its schedule. Harmless when repeated."""
        document = _document(spec)
        return self._view(ScheduleView, "POST", "/v1/schedules", json=document, headers=_headers(idempotency_key))

    def pause_schedule(self, name: str) -> ScheduleView:
        """Have it make no more tasks until it is resumed."""
        return self._view(ScheduleView, "POST", f"/v1/schedules/{path_segment(name)}/pause")

    def resume_schedule(self, name: str) -> ScheduleView:
        """Resume it, starting with its next scheduled time."""
        return self._view(ScheduleView, "POST", f"/v1/schedules/{path_segment(name)}/resume")

    def run_schedule(self, name: str, *, idempotency_key: str | None = None) -> TaskView:
        """Create a task now, in addition to the scheduled ones."""
        return self._view(
            TaskView, "POST", f"/v1/schedules/{path_segment(name)}/run", headers=_headers(idempotency_key)
        )

    def delete_schedule(self, name: str) -> None:
        """End it; its tasks stay."""
        self._request("DELETE", f"/v1/schedules/{path_segment(name)}")

    def specialists(self, *, cursor: str | None = None, limit: int = 50) -> Page[SpecialistView]:
        """One part of the specialists, by id."""
        query = {"limit": limit} if cursor is None else {"cursor": cursor, "limit": limit}
        return self._view(Page[SpecialistView], "GET", "/v1/specialists", params=query)

    def all_specialists(self) -> Iterator[SpecialistView]:
        """All specialists, by id, fetched as they are read."""
        page = self.specialists(limit=_PAGE)
        yield from page.items
        while page.next_cursor is not None:
            page = self.specialists(cursor=page.next_cursor, limit=_PAGE)
            yield from page.items

    def specialist(self, specialist_id: str) -> SpecialistView:
        """One specialist with its card."""
        return self._view(SpecialistView, "GET", f"/v1/specialists/{path_segment(specialist_id)}")

    def search_specialists(self, query: str, *, limit: int = 10) -> SearchView:
        """The specialists that match, the best first."""
        params = {"query": query, "limit": limit}
        return self._view(SearchView, "GET", "/v1/specialists/search", params=params)

    def decisions(
        self, wanted: DecisionFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[RecordedDecisionView]:
        """One part of the decisions, newest first."""
        query = (wanted or DecisionFilter()).model_dump(mode="json", exclude_none=True) | {"limit": limit}
        more = {} if cursor is None else {"cursor": cursor}
        return self._view(Page[RecordedDecisionView], "GET", "/v1/decisions", params=query | more)

    def all_decisions(self, wanted: DecisionFilter | None = None) -> Iterator[RecordedDecisionView]:
        """All of them, newest first, fetched as they are read."""
        page = self.decisions(wanted, limit=_PAGE)
        yield from page.items
        while page.next_cursor is not None:
            page = self.decisions(wanted, cursor=page.next_cursor, limit=_PAGE)
            yield from page.items

    def decision(self, decision_id: str) -> RecordedDecisionView:
        """One decision."""
        return self._view(RecordedDecisionView, "GET", f"/v1/decisions/{path_segment(decision_id)}")

    def route(self, asked: RouteRequest) -> TriedRouteView:
        """Who would do such a task, and why, and what the policy would say of it."""
        return self._view(
            TriedRouteView, "POST", "/v1/route", json=asked.model_dump(mode="json", exclude_defaults=True)
        )

    def routing_stats(self, *, days: int = 30) -> RoutingStatsView:
        """How routing did in the last days, 1 to 365."""
        return self._view(RoutingStatsView, "GET", "/v1/routing/stats", params={"days": days})

    def policy(self, *, days: int = 30) -> PolicyView:
        """The rules in force, and how often each applied in the last days, 1 to 365."""
        return self._view(PolicyView, "GET", "/v1/policy", params={"days": days})

    def learned(self) -> LearnedView:
        """What was learned from outcomes and corrections."""
        return self._view(LearnedView, "GET", "/v1/routing/learned")

    def labels(self, *, limit: int = 1_000) -> LabelledTasksView:
        """Tasks of which it is known who is right for them, the newest first."""
        return self._view(LabelledTasksView, "GET", "/v1/routing/labels", params={"limit": limit})

    def reset_learned(self, asked: ForgetRequest | None = None) -> LearnedView:
        """Forget it."""
        document = (asked or ForgetRequest()).model_dump(mode="json", exclude_defaults=True)
        return self._view(LearnedView, "POST", "/v1/routing/reset", json=document)

    def freeze_learning(self) -> LearnedView:
        """Learn nothing more."""
        return self._view(LearnedView, "POST", "/v1/routing/freeze")

    def unfreeze_learning(self) -> LearnedView:
        """Learn again."""
        return self._view(LearnedView, "POST", "/v1/routing/unfreeze")

    def register_specialist(self, card: Card, *, idempotency_key: str | None = None) -> SpecialistView:
        """Add it, or update one's own of that id. Harmless when repeated."""
        headers = _headers(idempotency_key)
        return self._view(SpecialistView, "POST", "/v1/specialists", json=card.document, headers=headers)

    def change_specialist(self, card: Card, *, if_version: int | None = None) -> SpecialistView:
        """Replace the card of the specialist that has its id."""
        headers = _headers(None, if_version)
        path = f"/v1/specialists/{path_segment(card.id)}"
        return self._view(SpecialistView, "PUT", path, json=card.document, headers=headers)

    def remove_specialist(self, specialist_id: str, *, if_version: int | None = None) -> None:
        """Remove it with its grants."""
        self._request("DELETE", f"/v1/specialists/{path_segment(specialist_id)}", headers=_headers(None, if_version))

    def grant_specialist(self, specialist_id: str, grantee: str) -> SpecialistView:
        """Let a shared one exist for a principal, or for all of an organisation: ``org:NAME``."""
        path = f"/v1/specialists/{path_segment(specialist_id)}/grants"
        return self._view(SpecialistView, "POST", path, json={"grantee": grantee})

    def revoke_specialist(self, specialist_id: str, grantee: str) -> SpecialistView:
        """Take a grant back."""
        path = f"/v1/specialists/{path_segment(specialist_id)}/grants/{path_segment(grantee)}"
        return self._view(SpecialistView, "DELETE", path)

    def channels(self, *, cursor: str | None = None, limit: int = 50) -> Page[ChannelView]:
        """One part of the channels, by id."""
        query = {"limit": limit} if cursor is None else {"cursor": cursor, "limit": limit}
        return self._view(Page[ChannelView], "GET", "/v1/channels", params=query)

    def all_channels(self) -> Iterator[ChannelView]:
        """All channels, by id, fetched as they are read."""
        page = self.channels(limit=_PAGE)
        yield from page.items
        while page.next_cursor is not None:
            page = self.channels(cursor=page.next_cursor, limit=_PAGE)
            yield from page.items

    def channel(self, ref: str) -> ChannelView:
        """One channel. ref: its id or its name, as in all that follows."""
        return self._view(ChannelView, "GET", _channel(ref))

    def create_channel(self, wanted: NewChannel, *, idempotency_key: str | None = None) -> ChannelView:
        """Create it."""
        document = wanted.model_dump(mode="json", exclude_defaults=True)
        return self._view(ChannelView, "POST", "/v1/channels", json=document, headers=_headers(idempotency_key))

    def change_channel_settings(
        self, ref: str, wanted: SettingsRequest, *, if_version: int | None = None
    ) -> ChannelView:
        """Replace its settings and its primary."""
        document = wanted.model_dump(mode="json", exclude_defaults=True)
        headers = _headers(None, if_version)
        return self._view(ChannelView, "PUT", f"{_channel(ref)}/settings", json=document, headers=headers)

    def join_channel(self, ref: str, specialist: str) -> ChannelView:
        """Have a specialist take part. Harmless when repeated."""
        return self._view(ChannelView, "POST", f"{_channel(ref)}/participants", json={"specialist": specialist})

    def leave_channel(self, ref: str, participant: str) -> ChannelView:
        """Have somebody take part no more. Harmless when repeated."""
        return self._view(ChannelView, "DELETE", f"{_channel(ref)}/participants/{path_segment(participant)}")

    def mute_participant(self, ref: str, participant: str, wanted: MuteRequest) -> ChannelView:
        """Ask a specialist nothing for a time, or ask it again."""
        path = f"{_channel(ref)}/participants/{path_segment(participant)}/mute"
        return self._view(ChannelView, "POST", path, json=wanted.model_dump(mode="json", exclude_none=True))

    def messages(self, ref: str, *, cursor: str | None = None, limit: int = 50) -> Page[MessageView]:
        """One part of a channel's messages, newest first."""
        query = {"limit": limit} if cursor is None else {"cursor": cursor, "limit": limit}
        return self._view(Page[MessageView], "GET", f"{_channel(ref)}/messages", params=query)

    def message(self, ref: str, message: int) -> MessageView:
        """One message of a channel."""
        return self._view(MessageView, "GET", f"{_channel(ref)}/messages/{message}")

    def post_message(self, ref: str, message: NewMessage, *, idempotency_key: str | None = None) -> MessageView:
        """Write in a channel."""
        document = message.model_dump(mode="json", exclude_defaults=True)
        return self._view(
            MessageView, "POST", f"{_channel(ref)}/messages", json=document, headers=_headers(idempotency_key)
        )

    def process_attachment(self, ref: str, message: int, attachment: str, wanted: AttachmentRequest) -> MessageView:
        """Say what came of processing an attachment."""
        path = f"{_channel(ref)}/messages/{message}/attachments/{path_segment(attachment)}"
        return self._view(MessageView, "PUT", path, json=wanted.model_dump(mode="json", exclude_none=True))

    def mark_message(self, ref: str, message: int, verdict: MarkVerdict | None) -> MessageView:
        """Say whether the right ones answered a message; None: nothing any more."""
        path = f"{_channel(ref)}/messages/{message}/verdict"
        return self._view(MessageView, "PUT", path, json={"verdict": verdict})

    def channel_stats(self, ref: str, *, days: int = 30) -> ChannelStatsView:
        """How triage did in a channel in the last days, 1 to 365."""
        return self._view(ChannelStatsView, "GET", f"{_channel(ref)}/stats", params={"days": days})

    def drain(self, reason: str | None = None) -> DrainView:
        """Stop starting tasks; running ones finish."""
        return self._view(DrainView, "POST", "/v1/drain", json=DrainRequest(reason=reason).model_dump())

    def undrain(self) -> DrainView:
        """Start tasks again."""
        return self._view(DrainView, "POST", "/v1/undrain")

    def drain_state(self) -> DrainView:
        """Whether the daemon is drained, and how many runs are live."""
        return self._view(DrainView, "GET", "/v1/drain")

    def notifications(
        self, state: DeliveryState | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[DeliveryView]:
        """One part of who was told of what, newest first."""
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
        body = (request or CleanupRequest()).model_dump(mode="json", exclude_defaults=True)
        return self._view(CleanupView, "POST", "/v1/cleanup", json=body)

    def status(self) -> StatusView:
        """Everything at a glance."""
        return self._view(StatusView, "GET", "/v1/status")

    def inbox_page(self, cursor: str | None = None, *, limit: int = 50) -> FileProblemPage:
        """One part of the files of the inbox that were refused, the last one first."""
        query = {"cursor": cursor, "limit": limit} if cursor is not None else {"limit": limit}
        return self._view(FileProblemPage, "GET", "/v1/inbox", params=query)

    def inbox_problems(self) -> list[FileProblemView]:
        """All files of the inbox that were refused, the last one first."""
        page = self.inbox_page(limit=200)
        files = list(page.items)
        while page.next_cursor is not None:
            page = self.inbox_page(page.next_cursor, limit=200)
            files += page.items
        return files

    def tokens(self) -> list[TokenView]:
        """The tokens that were given out, newest first."""
        return list(self._view(Page[TokenView], "GET", "/v1/tokens").items)

    def create_token(self, request: TokenRequest) -> NewTokenView:
        """Create a token; it is shown this once."""
        body = request.model_dump(mode="json", exclude_none=True)
        return self._view(NewTokenView, "POST", "/v1/tokens", json=body)

    def revoke_token(self, ref: str) -> TokenView:
        """End the token of that id or name, at once and for good."""
        return self._view(TokenView, "DELETE", f"/v1/tokens/{path_segment(ref)}")

    def login_code(self) -> LoginCodeView:
        """A code that lets one browser in, once, within a minute."""
        return self._view(LoginCodeView, "POST", "/v1/login-codes")

    def sessions(self) -> list[SessionView]:
        """The browsers that are logged in, the last used first."""
        return list(self._view(Page[SessionView], "GET", "/v1/sessions").items)

    def end_session(self, session_id: str) -> SessionView:
        """Log that browser out."""
        return self._view(SessionView, "DELETE", f"/v1/sessions/{path_segment(session_id)}")

    def end_sessions(self) -> list[SessionView]:
        """Log out everywhere; what has ended."""
        return list(self._view(Page[SessionView], "DELETE", "/v1/sessions").items)

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


def _channel(ref: str) -> str:
    """The path of a channel, by its id or name."""
    return f"/v1/channels/{path_segment(ref)}"


def _said(request: BaseModel) -> dict[str, object]:
    """The request as JSON, without what it does not say."""
    return request.model_dump(mode="json", exclude_defaults=True)


def _document(spec: TaskSpec) -> dict[str, object]:
    """The task as a file would write it."""
    from claudomator_py.schema.taskfile import to_document  # with all that is known of files, which most calls are not

    return to_document(spec, defaults=False)


def _headers(idempotency_key: str | None, if_version: int | None = None) -> Mapping[str, str]:
    """What makes a change safe to ask for. Raises ValueError for what is no key."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    if idempotency_key is not None:
        if not _KEY.fullmatch(idempotency_key):
            raise ValueError(f"an idempotency key has 1 to {LONGEST_KEY} printable ASCII characters")
        escaped = idempotency_key.replace("\\", "\\\\").replace('"', '\\"')
        headers["Idempotency-Key"] = f'"{escaped}"'
    return headers
