"""The report as it is shown, and how it is asked for. Field order is the order of the JSON."""

from typing import Annotated

from pydantic import Field

from claudomator_py.domain.fields import Strict
from claudomator_py.domain.requests import Time
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.wording import TaskRef
from claudomator_py.resources.tasks import TaskView
from claudomator_py.surface import READ, Calls, QueryFields, operation

MAX_NAMES = 20
"""Tasks that a group names, and branches that a repository does."""

SCRATCH = "scratch folders"
"""What stands for the folders that runs had for themselves alone."""


class ReportSpan(Strict):
    """The time that a report is about."""

    since: Time | None = Field(None, description="From this time on. Default: twelve hours before its end.")
    until: Time | None = Field(None, description="Up to this time. Default: now.")


class TaskGroup(View):
    """Tasks that stand where they stand for the same reason."""

    reason: str | None
    """Its code, such as ``check_failed``."""
    text: str
    """The same in words, with what was said of the first of them."""
    until: Instant | None = None
    """When the first of them continues by itself; null: that is not known, or it does not."""
    count: int
    tasks: tuple[TaskRef, ...]
    """The first 20."""


class BranchChange(View):
    """A branch that was made, moved or deleted."""

    name: str
    change: str
    """``made``, ``moved`` or ``deleted``."""
    since: str | None = None
    """What somebody did with it since, such as ``merged into main`` or ``discarded``; null: nothing."""

    @property
    def words(self) -> str:
        """Its name, and what became of it: ``fix-login (made, merged into main)``."""
        return f"{self.name} ({', '.join(part for part in (self.change, self.since) if part)})"


class RepositoryReport(View):
    """What runs did in one repository, or in one folder without a repository."""

    path: str
    runs: int
    tasks: int
    commits: int
    """Each once, however many runs saw it."""
    files: int
    added: int
    """Lines in all of them."""
    removed: int
    """Lines, as above."""
    branches: tuple[BranchChange, ...]
    """The first 20."""
    more_branches: int = 0
    """How many are not named."""
    uncommitted: int
    """Files that a task left uncommitted, or not known to git, after its last run."""
    cost_usd: float | None = None
    """Of these runs, as far as they say; null: none does."""
    last_at: Instant | None = None
    """When the last of them ended."""


class MissedTime(View):
    """A time of a schedule for which no task was made."""

    schedule: str
    due_at: Instant
    why: str


class ReportView(View):
    """What happened in a span of time, and what stands open at present."""

    since: Instant
    until: Instant
    headline: str
    """All of it in one line."""
    completed: int
    """Tasks that ended in that time and have not been restarted; the same of the next two."""
    failed: int
    cancelled: int
    unchanged: int
    """Of the completed ones, those whose last run changed nothing in a repository."""
    doubtful: int
    """Of these, those whose result says that they changed something; looked for in the first 200."""
    doubtful_tasks: tuple[TaskRef, ...]
    """The first 20 of them."""
    runs: int
    """Runs that ended in that time."""
    cost_usd: float | None
    """Of these runs, as far as they say; null: none does."""
    unpriced: int
    """How many of these runs said nothing of what they cost."""
    tokens: int
    limits: int
    """Runs that a limit ended."""
    limits_flowed_around: int
    """Of these, those whose task another agent continued in that time."""
    repositories: tuple[RepositoryReport, ...]
    """Those with most commits first."""
    failures: tuple[TaskGroup, ...]
    """The largest group first."""
    missed: tuple[MissedTime, ...]
    """Times of schedules for which no task was made, the latest first, at most 50."""
    needs_you: tuple[TaskView, ...]
    """What needs a person at present, the latest first, at most 50."""
    needs_you_total: int
    running: int
    """At present."""
    waiting: int
    """Waiting and queued tasks at present."""
    waits: tuple[TaskGroup, ...]
    """Why the next 50 of them wait, the largest group first."""
    trouble: tuple[str, ...]
    """What keeps the daemon from working at present."""
    warnings: tuple[str, ...]
    """What else is not in order at present, and keeps nothing from running."""


class ReportCalls(Calls):
    """Every operation on reports, as the client calls it."""

    @operation("GET /v1/report", "getReport", READ, "What happened since, and what is left", refuses=(422,))
    def report(self, span: Annotated[ReportSpan | None, QueryFields()] = None) -> ReportView:
        """What `claudomator report` shows: what is done and what failed, by repository and by reason, what it cost,
        what needs a person, and what waits for what."""
