"""The shapes and operation of the report. Field order is the order of the JSON."""

from typing import Annotated

from pydantic import Field

from claudomator_py.domain.fields import Strict
from claudomator_py.domain.requests import Time
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.wording import TaskRef
from claudomator_py.resources.overview import FileProblemView
from claudomator_py.resources.tasks import TaskView
from claudomator_py.surface import READ, Calls, QueryFields, operation

MAX_NAMES = 20
"""The most tasks named by a group, and the most branches named by a repository."""

SCRATCH = "scratch directories"
"""Stands for the directories that runs had to themselves."""


class ReportSpan(Strict):
    """The span of a report."""

    since: Time | None = Field(None, description="From this time on. Default: twelve hours before `until`.")
    until: Time | None = Field(None, description="Up to this time. Default: now.")


class TaskGroup(View):
    """Tasks that are where they are for the same reason."""

    reason: str | None
    """The reason code, such as ``check_failed``."""
    text: str
    """The reason in words, with what was said about the first of them."""
    until: Instant | None = None
    """When the first of them continues by itself; null: unknown, or it does not."""
    count: int
    tasks: tuple[TaskRef, ...]
    """The first 20."""


class BranchChange(View):
    """A branch that was created, moved or deleted."""

    name: str
    change: str
    """``made``, ``moved`` or ``deleted``."""
    since: str | None = None
    """What somebody has done with it since, such as ``merged into main`` or ``discarded``; null: nothing."""

    @property
    def words(self) -> str:
        """Return its name, and what became of it unless it is a new one that is still there: ``fix-login (merged into
        main)``."""
        parts = [part for part in (self.change if self.change != "made" else None, self.since) if part]
        return f"{self.name} ({', '.join(parts)})" if parts else self.name


class RepositoryReport(View):
    """What runs did in one repository, or in one directory outside of repositories."""

    path: str
    runs: int
    tasks: int
    commits: int
    """Each counted once, however many runs saw it."""
    files: int
    added: int
    """Lines added in all files, summed over the runs: a line that two runs wrote counts twice."""
    removed: int
    """Lines removed, likewise."""
    branches: tuple[BranchChange, ...]
    """The first 20."""
    more_branches: int = 0
    """How many more branches there are."""
    uncommitted: int
    """Files that these runs left uncommitted or untracked, as of the last run in each work tree."""
    fault: str | None = None
    """Why the record of one of these runs is incomplete, such as a repository that was deleted."""
    cost_usd: float | None = None
    """The cost of these runs, as far as reported; null: none did."""
    unpriced: int = 0
    """Number of these runs of unknown cost."""
    last_at: Instant | None = None
    """When the last of these runs ended."""


class MissedTime(View):
    """A scheduled time for which no task was created."""

    schedule: str
    due_at: Instant
    why: str


class DoubtfulTask(TaskRef):
    """A completed task whose result gives reason to doubt that it is done."""

    changes: str
    """What it changed, with the doubt: ``no changes (its result ends with a question)``."""


class ReportView(View):
    """What happened in a span of time, and what is open now."""

    since: Instant
    until: Instant
    headline: str
    """The report in one line."""
    completed: int
    """Tasks that completed in the span and were not restarted since; likewise the next two."""
    failed: int
    cancelled: int
    unchanged: int
    """The completed tasks that changed nothing in a repository."""
    doubtful: int
    """The completed tasks against whose result something speaks; see ``is_doubtful`` of a task. 200 are
    examined, those without changes first."""
    doubtful_tasks: tuple[DoubtfulTask, ...]
    """The first 20 of the doubtful tasks."""
    runs: int
    """Runs that ended in the span."""
    cost_usd: float | None
    """The cost of these runs, as far as reported; null: none did."""
    unpriced: int
    """How many of these runs did not report their cost."""
    tokens: int
    starts: tuple[Instant, ...]
    """When the daemon started in the span; empty for callers that see only their own tasks."""
    limits: int
    """Runs ended by a limit."""
    limits_flowed_around: int
    """Those of them whose task another agent continued in the span."""
    repositories: tuple[RepositoryReport, ...]
    """Those that were changed, the ones with the most commits first."""
    failures: tuple[TaskGroup, ...]
    """The largest group first."""
    missed: tuple[MissedTime, ...]
    """Scheduled times for which no task was created, latest first, at most 50."""
    needs_you: tuple[TaskView, ...]
    """What needs a person now, the longest waiting first, at most 50."""
    needs_you_total: int
    held: tuple[str, ...] = ()
    """Agents on which nothing starts until a person releases them, a sentence each; empty for callers that see only
    their own tasks."""
    refused: tuple[FileProblemView, ...]
    """Files of the inbox that are refused now, the last one refused first, at most 50; empty for callers that see only
    their own tasks."""
    refused_total: int
    running: int
    """Now."""
    waiting: int
    """Waiting and queued tasks now."""
    queued: int
    """Those of them that wait for nothing but an agent."""
    waits: tuple[TaskGroup, ...]
    """Why the next 50 of them wait, the largest group first."""
    trouble: tuple[str, ...]
    """What keeps the daemon from working now."""
    warnings: tuple[str, ...]
    """What else is wrong now, without keeping anything from running."""


class ReportCalls(Calls):
    """The operation on reports, as the client calls it."""

    @operation("GET /v1/report", "getReport", READ, "What happened, and what is left")
    def report(self, span: Annotated[ReportSpan | None, QueryFields()] = None) -> ReportView:
        """What `claudomator report` shows: what was done and what failed, by repository and by reason, what it cost,
        what needs a person, and what waits for what."""
