"""The daemon itself: its health, its switches, its refusals."""

from typing import Literal

from pydantic import Field

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.outcome import HoldKind, Reason
from claudomator_py.domain.views.agents import AgentView, BudgetView, SpendingView
from claudomator_py.domain.views.base import Instant, Page, View
from claudomator_py.domain.views.schedules import ScheduleView
from claudomator_py.domain.views.tasks import TaskView


class FileProblemView(View):
    """A file of the inbox that was refused as a whole, and every reason."""

    path: str
    problems: tuple[Problem, ...]


class FileProblemPage(Page[FileProblemView]):
    """A part of the refused files, the last one refused first. total: of all of them."""

    total: int


class BackupView(View):
    """A copy of the database. path: on the daemon's machine."""

    path: str
    bytes: int
    created_at: Instant


class ReasonView(View):
    """What a reason code means and what follows from it; see ``domain.outcome.ReasonPolicy``."""

    reason: Reason
    meaning: str
    counts_attempt: bool
    retries: bool
    escalates: bool
    hold: HoldKind
    needs_person: bool
    falls_back: bool


class CheckView(View):
    """One thing that was looked at. remedy: what to do when it is not ok.

    blocking: whether tasks are not accepted or not started while it is not ok; else it only needs attention.
    """

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    blocking: bool = True


class ReadinessView(View):
    """Whether tasks are accepted and started. Without authentication ``checks`` is empty."""

    ready: bool
    checks: tuple[CheckView, ...] = ()


class DrainView(View):
    """Whether the daemon is drained, and starts nothing new. running: live runs, which finish."""

    drained: bool
    since: Instant | None = None
    reason: str | None = None
    running: int


class LoginCodeView(View):
    """A code that lets one browser in, once. url: where to take it. path: the part of that after the host."""

    code: str
    path: str
    url: str
    expires_at: Instant


class ProblemDetails(View):
    """An error response of the API (RFC 9457). code: its stable name; remedy: what to do next.

    problems: each fault, where a document or several fields were wrong.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    code: str
    remedy: str
    problems: tuple[Problem, ...] = ()


ListName = Literal["needs_you", "problems", "inbox", "running", "queued", "recent"]


class StatusView(View):
    """Everything at a glance, what needs a person first.

    needs_you: tasks in NEEDS_INPUT, and those that wait for a larger budget. problems: failed tasks of the last 24
    hours, newest first. inbox: refused files, the last one refused first. queued: waiting and queued tasks in the
    order in which they would start. recent: completed and cancelled ones, newest first. Each list is cut at 50; totals
    are the lengths of the whole lists, by list; problem_reasons how many of all problems have a reason, by reason;
    counts the numbers of tasks, by state. schedules: all of them, the next to come first, those that are paused last.
    trouble: what is not in order with the daemon. spent_today: by all agents;
    budget: what they may spend on a day, None if that is not limited.
    """

    needs_you: tuple[TaskView, ...] = ()
    problems: tuple[TaskView, ...] = ()
    inbox: tuple[FileProblemView, ...] = ()
    running: tuple[TaskView, ...] = ()
    queued: tuple[TaskView, ...] = ()
    recent: tuple[TaskView, ...] = ()
    agents: tuple[AgentView, ...] = ()
    schedules: tuple[ScheduleView, ...] = ()
    counts: dict[StateName, int] = Field(default_factory=dict)
    totals: dict[ListName, int] = Field(default_factory=dict)
    problem_reasons: dict[str, int] = Field(default_factory=dict)
    trouble: tuple[CheckView, ...] = ()
    spent_today: SpendingView = SpendingView()
    budget: BudgetView | None = None

    def total(self, name: ListName) -> int:
        """How long that list is, whatever is shown of it."""
        return self.totals.get(name, len(getattr(self, name)))

    @property
    def first_to_reset(self) -> AgentView | None:
        """If every agent that tasks may go to is limited: the one whose limit resets first. None: one is not."""
        able = [agent for agent in self.agents if agent.auto_select and agent.installed and agent.problem is None]
        if not able or not all(agent.limited for agent in able):
            return None
        return min(able, key=lambda agent: (agent.limited_until is None, agent.limited_until or ""))
