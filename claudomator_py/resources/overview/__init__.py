"""Everything at a glance. Field order is the order of the JSON."""

from typing import Literal

from pydantic import Field

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.host import HostView
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.shape import Page, View, all_items
from claudomator_py.resources.agents import AgentView, BudgetView, SpendingView
from claudomator_py.resources.schedules import ScheduleView
from claudomator_py.resources.tasks import TaskView
from claudomator_py.surface import READ, Calls, Cursor, Limit, operation

ListName = Literal["needs_you", "problems", "inbox", "running", "queued", "recent"]


class FileProblemView(View):
    """A file of the inbox that was refused as a whole, and every reason."""

    path: str
    problems: tuple[Problem, ...]


class FileProblemPage(Page[FileProblemView]):
    """A part of the refused files, the last one refused first."""

    total: int
    """Of all of them."""


class StatusView(View):
    """Everything at a glance, what needs a person first. Each list is cut at 50."""

    needs_you: tuple[TaskView, ...] = ()
    """Tasks in NEEDS_INPUT, and those that wait for a larger budget."""
    problems: tuple[TaskView, ...] = ()
    """Failed tasks of the last 24 hours, newest first."""
    inbox: tuple[FileProblemView, ...] = ()
    """Refused files, the last one refused first."""
    running: tuple[TaskView, ...] = ()
    queued: tuple[TaskView, ...] = ()
    """Waiting and queued tasks in the order in which they would start."""
    recent: tuple[TaskView, ...] = ()
    """Completed and cancelled tasks, newest first."""
    agents: tuple[AgentView, ...] = ()
    hosts: tuple[HostView, ...] = ()
    """Where runs execute, with what their engines said last; empty if this machine is the only place."""
    schedules: tuple[ScheduleView, ...] = ()
    """All of them, the next to come first, those that are paused last."""
    counts: dict[StateName, int] = Field(default_factory=dict)
    """The number of tasks in each state."""
    totals: dict[ListName, int] = Field(default_factory=dict)
    """The length of each whole list, by its name."""
    problem_reasons: dict[str, int] = Field(default_factory=dict)
    """How many of all problems have each reason."""
    unlisted: dict[str, int] = Field(default_factory=dict)
    """How many tasks that no list names are where they are for the same reason as a listed one, by its id."""
    trouble: tuple[CheckView, ...] = ()
    """What is not in order with the daemon."""
    spent_today: SpendingView = SpendingView()
    """By all agents."""
    budget: BudgetView | None = None
    """What all agents may spend on a day; null if that is not limited."""

    def total(self, name: ListName) -> int:
        """Return how long that list is, whatever is shown of it."""
        return self.totals.get(name, len(getattr(self, name)))

    @property
    def first_to_reset(self) -> AgentView | None:
        """If every agent that tasks may go to is limited: the one whose limit resets first. None: one is not."""
        able = [agent for agent in self.agents if agent.auto_select and agent.installed and agent.problem is None]
        if not able or not all(agent.limited for agent in able):
            return None
        return min(able, key=lambda agent: (agent.limited_until is None, agent.limited_until or ""))


class OverviewCalls(Calls):
    """Every operation on the whole at a glance, as the client calls it."""

    @operation("GET /v1/status", "getStatus", READ, "Everything at a glance, what needs a person first")
    def status(self) -> StatusView:
        """What `claudomator status` shows. Each list is cut at 50; the counts are whole."""

    @operation("GET /v1/inbox", "listFileProblems", READ, "Files of the inbox that were refused")
    def inbox_page(self, *, cursor: Cursor = None, limit: Limit = 50) -> FileProblemPage:
        """The last one refused first, each with its reasons; a file is accepted whole or not at all."""

    def inbox_problems(self) -> list[FileProblemView]:
        """Return all files of the inbox that were refused, the last one first."""
        return list(all_items(lambda cursor, limit: self.inbox_page(cursor=cursor, limit=limit)))
