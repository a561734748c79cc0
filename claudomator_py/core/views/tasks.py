"""Tasks, and which of them to list."""

from typing import Literal

from pydantic import Field

from claudomator_py.core.agent import Tier
from claudomator_py.core.outcome import Tokens
from claudomator_py.core.principal import OPERATOR
from claudomator_py.core.view import Instant, StateName, View
from claudomator_py.core.views.agents import HoldView
from claudomator_py.core.views.budgets import BudgetView
from claudomator_py.core.views.outcomes import InputView
from claudomator_py.core.worktree import TreeStanding

PriorityLabel = Literal["low", "normal", "high", "urgent"]
Action = Literal["cancel", "restart", "restart_force", "answer", "approve", "reject"]


class DependencyView(View):
    """A name that a task depends on; the task is known once a task of that name was seen."""

    name: str
    task_id: str | None = None
    state: StateName | None = None


class WorktreeView(View):
    """A task's work tree, on its branch. commits: since it was made. changed: files that are not committed.

    standing: ``unchanged``, ``merged``, ``ahead``, ``dirty``, ``locked``, ``gone`` or ``unknown``; detail: in words.
    seen_at: when all this was so: after the last run in it, or when a cleanup last looked; None: not yet.
    """

    path: str
    standing: TreeStanding
    commits: int = 0
    changed: int = 0
    detail: str = ""
    seen_at: Instant | None = None


class TaskView(View):
    """A task. reason: why it waits or failed; reason_text: the same in words, with all that its agent said of it;
    reason_short: in a clause, for lists; None where the reason says enough. attempts: used up in this generation. asks:
    what a person is asked while it needs input. agent_hint: the agent that its content names. agent, tier, model,
    branch and specialist are those of its last run, else what is asked for. runs: how many there were in all. tokens
    and cost_usd: summed over its runs. budget: what it may spend and has spent, in all generations; None if it has
    none. started_at: that of its last run. source: ``file`` or ``api``. depends_on: with the task that it continues.
    continues: that task; thread: the id of the one that began the thread, once that is known. holds: those that keep it
    queued, of each agent that it could run on. worktree: how that of its last run stands, once it does not run. Both it
    and spec, the content as a task file would write it, are absent in lists. warnings: what it asks for and nobody can
    give it, while it has yet to run. creator: who made it: the name of a token, `operator`, or `inbox` for a file.
    organisation: whose it is, if anybody's in particular.
    """

    id: str
    name: str
    version: int
    state: StateName
    phase: str | None = None
    reason: str | None = None
    reason_text: str | None = None
    waiting_until: Instant | None = None
    priority: PriorityLabel
    tags: tuple[str, ...] = ()
    working_dir: str | None = None
    branch: str | None = None
    specialist: str | None = None
    agent: str | None = None
    tier: Tier | None = None
    model: str | None = None
    attempts: int = 0
    runs: int = 0
    result_text: str | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    created_at: Instant
    updated_at: Instant
    available_actions: tuple[Action, ...] = ()
    asks: InputView | None = None
    generation: int = 1
    revision: int = 1
    started_at: Instant | None = None
    depends_on: tuple[DependencyView, ...] = ()
    continues: DependencyView | None = None
    thread: str | None = None
    source: str = "api"
    file_path: str | None = None
    reason_short: str | None = None
    agent_hint: str | None = None
    holds: tuple[HoldView, ...] = ()
    budget: BudgetView | None = None
    worktree: WorktreeView | None = None
    spec: dict[str, object] | None = None
    creator: str = OPERATOR.id
    organisation: str | None = None
    warnings: tuple[str, ...] = ()


class TaskFilter(View):
    """Which tasks to list, all conditions together; None: any."""

    state: StateName | None = Field(default=None, description="Only tasks in this state.")
    name: str | None = Field(default=None, description="Only tasks of this name.")
    text: str | None = Field(default=None, max_length=200, description="Only tasks with this in their name.")
    tag: str | None = Field(default=None, description="Only tasks with this tag.")
    agent: str | None = Field(default=None, description="Only tasks whose last run was on this agent.")
    creator: str | None = Field(default=None, max_length=100, description="Only tasks made by this name.")
    source: str | None = Field(default=None, description="Only tasks from here: `file`, `api` or `schedule`.")
