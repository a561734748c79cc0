"""Runs: attempts at tasks."""

from typing import Literal

from claudomator_py.core.agent import Tier
from claudomator_py.core.view import Instant, View
from claudomator_py.core.views.outcomes import OutcomeView

RunState = Literal["starting", "running", "checking", "ended", "revoked"]


class RunView(View):
    """One attempt at a task. resumes: the run whose conversation it went on in; None: it began one."""

    id: str
    task_id: str
    generation: int
    attempt: int
    agent: str
    model: str | None = None
    tier: Tier | None = None
    state: RunState
    started_at: Instant
    ended_at: Instant | None = None
    exit_code: int | None = None
    outcome: OutcomeView | None = None
    resumes: str | None = None
