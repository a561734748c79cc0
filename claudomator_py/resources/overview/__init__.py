"""The shapes and operations of the overview. Field order is the order of the JSON."""

from collections.abc import Sequence
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
from claudomator_py.texts import one_line

ListName = Literal["needs_you", "problems", "inbox", "running", "queued", "recent"]


class FileProblemView(View):
    """A file of the inbox that was refused, with all reasons."""

    path: str
    problems: tuple[Problem, ...]

    @property
    def line(self) -> str:
        """The first problem in one line, with the number of the others; empty for none."""
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return "".join(f"{one_line(problem.render(self.path))}{more}" for problem in self.problems[:1])


class FileProblemPage(Page[FileProblemView]):
    """A page of refused files, the last one refused first."""

    total: int
    """The number of all refused files."""


class StatusView(View):
    """Everything at a glance, with what needs a person first. Each list has at most 50 items."""

    needs_you: tuple[TaskView, ...] = ()
    """Tasks in NEEDS_INPUT, and those that wait for a larger budget, the longest waiting first."""
    problems: tuple[TaskView, ...] = ()
    """Tasks that failed in the last 24 hours, newest first; if there are more than listed, some for each reason."""
    inbox: tuple[FileProblemView, ...] = ()
    """Refused files, the last one refused first."""
    running: tuple[TaskView, ...] = ()
    queued: tuple[TaskView, ...] = ()
    """Waiting and queued tasks in the order they would start in."""
    recent: tuple[TaskView, ...] = ()
    """Completed and cancelled tasks, newest first."""
    agents: tuple[AgentView, ...] = ()
    hosts: tuple[HostView, ...] = ()
    """Where runs take place, as their engines last reported; empty if this machine is the only place."""
    schedules: tuple[ScheduleView, ...] = ()
    """All schedules, the next to run first, paused ones last."""
    counts: dict[StateName, int] = Field(default_factory=dict)
    """The number of tasks in each state."""
    totals: dict[ListName, int] = Field(default_factory=dict)
    """The full length of each list, by name."""
    problem_reasons: dict[str, int] = Field(default_factory=dict)
    """How many of all problems have each reason."""
    unlisted: dict[str, int] = Field(default_factory=dict)
    """How many unlisted tasks are where they are for the same reason as a listed one, by the id of that one."""
    trouble: tuple[CheckView, ...] = ()
    """What is wrong with the daemon."""
    spent_today: SpendingView = SpendingView()
    """By all agents."""
    budget: BudgetView | None = None
    """What all agents may spend in a day; null if unlimited."""

    def total(self, name: ListName) -> int:
        """Return the full length of the list, however much of it is shown."""
        return self.totals.get(name, len(getattr(self, name)))

    @property
    def first_to_reset(self) -> AgentView | None:
        """Return, if every agent that is chosen automatically is limited, the one whose limit resets first; else None.
        If none is chosen automatically, those that tasks name count."""
        chosen = [agent for agent in self._able if agent.auto_select] or self._able
        if not chosen or not all(agent.limited for agent in chosen):
            return None
        return min(chosen, key=lambda agent: (agent.limited_until is None, agent.limited_until or ""))

    @property
    def standstill(self) -> str:
        """Return which agents start nothing if ``first_to_reset`` is one, as a clause: ``All agents are limited``."""
        limited = [agent for agent in self._able if agent.limited]
        whose = "All agents" if len(limited) == len(self._able) else "All agents that are chosen automatically"
        return f"{whose} are {' or '.join(sorted({agent.condition for agent in limited}))}"

    @property
    def _able(self) -> Sequence[AgentView]:
        return [agent for agent in self.agents if agent.installed and agent.problem is None]


class OverviewCalls(Calls):
    """The operations on the overview, as the client calls them."""

    @operation("GET /v1/status", "getStatus", READ, "Everything at a glance, what needs a person first")
    def status(self) -> StatusView:
        """What `claudomator status` shows. Each list has at most 50 items; the counts are complete."""

    @operation("GET /v1/inbox", "listFileProblems", READ, "Files of the inbox that were refused")
    def inbox_page(self, *, cursor: Cursor = None, limit: Limit = 50) -> FileProblemPage:
        """The last one refused first, with all reasons. A file is accepted as a whole or not at all."""

    def inbox_problems(self) -> list[FileProblemView]:
        """Return all refused files of the inbox, the last one refused first."""
        return list(all_items(lambda cursor, limit: self.inbox_page(cursor=cursor, limit=limit)))
