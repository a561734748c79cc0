"""Tasks, their runs, and what happens to them, as typed calls."""

from collections.abc import Iterator

import httpx

from claudomator_py.client.logs import RunLogs
from claudomator_py.client.transport import (
    body_of,
    change_headers,
    part_of,
    path_segment,
    task_document,
)
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.run_requests import ProgressRequest, QuestionRequest, SubtaskRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.views.base import Page, all_items
from claudomator_py.resources.runs.shape import AskedView, HandoffView, ProgressView, RunView, SubtaskView
from claudomator_py.resources.tasks.shape import AnswerRequest, ApproveRequest, RejectRequest, TaskView, WhyView


class TaskCalls(RunLogs):
    """See ``client.http.Client``."""

    def submit(self, spec: TaskSpec, *, idempotency_key: str | None = None) -> TaskView:
        """Submit a task; it is durable when this returns."""
        document = task_document(spec)
        return self._view(TaskView, "POST", "/v1/tasks", json=document, headers=change_headers(idempotency_key))

    def tasks(self, wanted: TaskFilter | None = None, *, cursor: str | None = None, limit: int = 50) -> Page[TaskView]:
        """One part of the list, newest first."""
        query = {**body_of(wanted or TaskFilter()), **part_of(cursor, limit)}
        return self._view(Page[TaskView], "GET", "/v1/tasks", params=query)

    def all_tasks(self, wanted: TaskFilter | None = None) -> Iterator[TaskView]:
        """The whole list, newest first, fetched as it is read."""
        return all_items(lambda cursor, limit: self.tasks(wanted, cursor=cursor, limit=limit))

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
        headers = change_headers(idempotency_key, if_version)
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
        body = body_of(request or RestartRequest())
        headers = change_headers(idempotency_key, if_version)
        return self._view(TaskView, "POST", f"/v1/tasks/{path_segment(ref)}/restart", json=body, headers=headers)

    def answer(
        self,
        ref: str,
        request: AnswerRequest,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> TaskView:
        """Answer what its agent asks: it continues with that, in the conversation in which it asked."""
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
        body = body_of(request)
        headers = change_headers(idempotency_key, if_version)
        return self._view(TaskView, "POST", f"/v1/tasks/{path_segment(ref)}/{what}", json=body, headers=headers)

    def runs(self, ref: str) -> list[RunView]:
        """All runs of a task, oldest first."""
        return list(self._view(Page[RunView], "GET", f"/v1/tasks/{path_segment(ref)}/runs").items)

    def run(self, run_id: str) -> RunView:
        """One run, by its whole id."""
        return self._view(RunView, "GET", f"/v1/runs/{path_segment(run_id)}")

    def hand_on(self, run_id: str, request: HandoffRequest) -> HandoffView:
        """Have another specialist continue with the task once that run has ended."""
        return self._view(HandoffView, "POST", f"/v1/runs/{path_segment(run_id)}/handoff", json=body_of(request))

    def handoff(self, run_id: str) -> Handoff:
        """What the run was told about decisions, authority and the work before it."""
        return self._view(Handoff, "GET", f"/v1/runs/{path_segment(run_id)}/handoff")

    def ask(self, run_id: str, request: QuestionRequest) -> AskedView:
        """Have a person asked once that run has ended."""
        return self._view(AskedView, "POST", f"/v1/runs/{path_segment(run_id)}/questions", json=body_of(request))

    def report_progress(self, run_id: str, request: ProgressRequest) -> ProgressView:
        """Show people how far that run is."""
        return self._view(ProgressView, "POST", f"/v1/runs/{path_segment(run_id)}/progress", json=body_of(request))

    def create_subtask(
        self, run_id: str, request: SubtaskRequest, *, idempotency_key: str | None = None
    ) -> SubtaskView:
        """Create a task beside that run's own."""
        url, headers = f"/v1/runs/{path_segment(run_id)}/subtasks", change_headers(idempotency_key, None)
        return self._view(SubtaskView, "POST", url, json=body_of(request), headers=headers)

    def why(self, ref: str) -> WhyView:
        """Why a task is where it is."""
        return self._view(WhyView, "GET", f"/v1/tasks/{path_segment(ref)}/why")
