"""Tasks, their runs, and what happens to them, as typed calls."""

import httpx

from claudomator_py.client.logs import RunLogs
from claudomator_py.client.transport import (
    body_of,
    change_headers,
    path_segment,
)
from claudomator_py.domain.handoff import Handoff
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.run_requests import ProgressRequest, QuestionRequest, SubtaskRequest
from claudomator_py.resources.runs.shape import AskedView, HandoffView, ProgressView, RunView, SubtaskView
from claudomator_py.resources.tasks.shape import TaskView


class RunCalls(RunLogs):
    """See ``client.http.Client``."""

    def task_unless(self, ref: str, version: int) -> TaskView | None:
        """One task with its content; None if it is at that version still, which costs little to ask."""
        response = self._send("GET", f"/v1/tasks/{path_segment(ref)}", headers={"If-None-Match": f'"{version}"'})
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        if not response.is_success:
            raise self._refusal(response)
        return self._parsed(TaskView, response)

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
