"""Everything at a glance."""

from typing import Literal

from pydantic import Field

from claudomator_py.core.schedule_view import ScheduleView
from claudomator_py.core.view import StateName, View
from claudomator_py.core.views.agents import AgentView
from claudomator_py.core.views.budgets import BudgetView, SpendingView
from claudomator_py.core.views.daemon import CheckView, FileProblemView
from claudomator_py.core.views.tasks import TaskView

ListName = Literal["needs_you", "problems", "inbox", "running", "queued", "recent"]


class StatusView(View):
    """Everything at a glance, what needs a person first.

    needs_you: tasks in NEEDS_INPUT, and those that wait for a larger budget. problems: failed tasks of the last 24
    hours, newest first. inbox: refused files, the last one refused first. queued: waiting and queued tasks in the
    order in which they would start. recent: completed and cancelled ones, newest first. Each list is cut at 50; totals
    are the lengths of the whole lists, by list; counts those of tasks, by state. schedules: all of them, the next to
    come first, those that are paused last. trouble: what is not in order with the daemon. spent_today: by all agents;
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
