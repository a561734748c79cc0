"""Everything at a glance."""

from pydantic import Field

from claudomator_py.core.schedule_view import ScheduleView
from claudomator_py.core.view import StateName, View
from claudomator_py.core.views.agents import AgentView
from claudomator_py.core.views.budgets import BudgetView, SpendingView
from claudomator_py.core.views.daemon import CheckView, FileProblemView
from claudomator_py.core.views.tasks import TaskView


class StatusView(View):
    """Everything at a glance, what needs a person first.

    needs_you: tasks in NEEDS_INPUT. problems: failed tasks of the last 24 hours, newest first. inbox: refused files.
    queued: waiting and queued tasks in the order in which they would start. recent: completed and cancelled ones,
    newest first. Each list is cut at 50; counts are whole, by state. schedules: all of them, the next to come first,
    those that are paused last. trouble: what is not in order with the daemon. spent_today: by all agents; budget: what
    they may spend on a day, None if that is not limited.
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
    trouble: tuple[CheckView, ...] = ()
    spent_today: SpendingView = SpendingView()
    budget: BudgetView | None = None
