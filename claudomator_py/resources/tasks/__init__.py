"""Views of tasks, and the operations on them. The order of fields is the order in JSON."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.fields import Strict
from claudomator_py.domain.lifecycle import ENDED, KnownState, StateName, WaitReason
from claudomator_py.domain.outcome import Reason, Tokens
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.routing import ReachOrigin, ReachSource
from claudomator_py.domain.shape import Instant, Page, View, all_items
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.wording import Known
from claudomator_py.domain.worktree import TreeStanding
from claudomator_py.resources.agents import BudgetView, HoldView
from claudomator_py.resources.decisions import DecisionView
from claudomator_py.resources.events import EventView
from claudomator_py.resources.routing import RouteView
from claudomator_py.resources.runs import InputView, RunProgressView, RunView
from claudomator_py.surface import (
    OPERATE,
    READ,
    READ_OWN,
    Calls,
    Cursor,
    InPath,
    JsonBody,
    Key,
    Limit,
    Links,
    QueryFields,
    TaskDocument,
    Version,
    operation,
)

PriorityLabel = Literal["low", "normal", "high", "urgent"]
Action = Literal["cancel", "restart", "restart_force", "answer", "approve", "reject"]


def editing_refused(name: str, state: str) -> tuple[str, str] | None:
    """Return why a task in that state cannot be edited in place, and a remedy; None if it can."""
    if state == "RUNNING":
        return f"{name} is running.", "Edit it on its page, or cancel it first."
    if state in ENDED:
        return f"{name} is {state} already.", "Edit it on its page, which runs it again, or submit a new task."
    return None


class DependencyView(View):
    """A dependency by name, and the task of that name once it exists."""

    name: str
    task_id: str | None = None
    state: KnownState = None


class WorktreeView(View):
    """The work tree of a task, on its branch."""

    path: str
    standing: TreeStanding
    commits: int = 0
    """Number of commits since it was created."""
    changed: int = 0
    """Number of uncommitted files."""
    detail: str = ""
    """``standing`` in words."""
    seen_at: Instant | None = None
    """When this was recorded: after the last run, or by a cleanup; null if not yet."""


class TaskView(View):
    """A task. Agent, tier, model, branch and specialist are those of its last run, or else the requested ones."""

    id: str
    name: str
    version: int
    state: StateName
    phase: str | None = None
    reason: str | None = None
    """Why it waits or failed."""
    reason_text: str | None = None
    """The reason in words, with its agent's message. For a completed task, a note on its success."""
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
    """Attempts used in this generation."""
    runs: int = 0
    """Number of runs in all generations."""
    result_text: str | None = None
    tokens: Tokens = Tokens()
    """Sum over its runs."""
    cost_usd: float | None = None
    """Sum over its runs."""
    created_at: Instant
    updated_at: Instant
    available_actions: tuple[Action, ...] = ()
    fees_usd: float | None = None
    """Fees of its specialists, which the cost includes."""
    unpriced: int = 0
    """Number of its ended runs whose cost is not known, and which the cost lacks."""
    asks: InputView | None = None
    """The request for a person's input, while it needs any."""
    generation: int = 1
    revision: int = 1
    started_at: Instant | None = None
    """Start of its last run."""
    depends_on: tuple[DependencyView, ...] = ()
    """Its dependencies, including the task that it continues."""
    continues: DependencyView | None = None
    """The task that it continues."""
    thread: str | None = None
    """Id of the first task of its thread, once known."""
    source: str = "api"
    """``file``, ``api``, ``schedule`` or ``run``."""
    file_path: str | None = None
    reason_short: str | None = None
    """The reason as a clause, for lists; null if the reason code is enough."""
    blocked: Known[Blocked] = None
    """What it waits for, as a code with parameters."""
    agent_hint: str | None = None
    """The agent that its content names."""
    holds: tuple[HoldView, ...] = ()
    """Holds on agents that it could run on, which keep it queued."""
    budget: BudgetView | None = None
    """Its budget, and its spending in all generations; null if it has no budget."""
    worktree: WorktreeView | None = None
    """The work tree of its last run, unless it is running; absent in lists."""
    spec: dict[str, object] | None = None
    """Its content as in a task file; absent in lists."""
    creator: str = OPERATOR.id
    """Who created it: the name of a token, ``operator``, or ``inbox`` for a file."""
    organisation: str | None = None
    """The organisation that it belongs to, if any."""
    parent_run: str | None = None
    """The run that created it, if any."""
    context: str | None = None
    """Its creator's name for the conversation that it belongs to."""
    progress: RunProgressView | None = None
    """The latest progress report of its live run."""
    warnings: tuple[str, ...] = ()
    """Requests in its content that no agent can meet, before it has run."""
    denials: int = 0
    """Number of tool calls that its last run was denied."""
    changes: str | None = None
    """What its runs since the last restart changed, in one line; null if unknown."""
    is_doubtful: bool = False
    """True if its last run succeeded, although something speaks against its result: its text, a check that it changed,
    tests that it deleted or skipped, or that nothing was changed."""
    reach: Reach | None = None
    """How far its runs may act; null if not limited."""
    reach_source: ReachSource | None = None
    """Where the reach was set."""
    reach_rule: str | None = None
    """The rule that sets the reach, if one does."""

    @property
    def reach_origin(self) -> ReachOrigin | None:
        """Its reach and where that was set; None if it has none."""
        if self.reach is None or self.reach_source is None:
            return None
        return ReachOrigin(reach=self.reach, source=self.reach_source, rule=self.reach_rule)


class WhyView(View):
    """Why a task is in its state."""

    task: TaskView
    sentences: tuple[str, ...]
    """Explanation for people."""
    routing: RouteView | None = None
    """Its route, and the reason; null if it was not routed."""
    decisions: tuple[DecisionView, ...] = ()
    """Placement decisions, newest first."""
    events: tuple[EventView, ...] = ()
    """Its events, in order."""


class AnswerRequest(Strict):
    """A person's answer. The agent receives it in the conversation in which it asked."""

    text: str = Field(min_length=1, max_length=20_000, pattern=r"\S", description="The answer, in plain words.")


class ApproveRequest(Strict):
    """A person's approval."""

    tools: tuple[Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00-\x1f\x7f]+$")], ...] = Field(
        default=(),
        max_length=100,
        description="Rules to allow, in the syntax of the agent's CLI. Default: those that the denied calls need.",
    )
    reason: str | None = Field(default=None, max_length=2_000, description="Reason to store with the task.")
    specialist: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="The specialist for a task that has not begun; nobody is asked for it again."
    )


class RejectRequest(Strict):
    """A rejection."""

    reason: str | None = Field(default=None, max_length=2_000, description="Reason to store with the task.")


Ref = Annotated[str, InPath("A task's id, a unique prefix of it, or its name.", ambiguous=True)]
_LINKED = {
    "getTask": "Get the current task",
    "explainTask": "Explain its state",
    "listRuns": "List its runs",
    "editTask": "Edit it before it runs",
    "cancelTask": "Cancel it",
    "restartTask": "Restart it",
    "answerTask": "Answer its question",
    "approveTask": "Approve its request",
    "rejectTask": "Reject it if it needs input",
}
_NEXT = Links("ref", "$response.body#/id", _LINKED)
_LATER = "Requested: it may take effect a little later"
_SUBMITTED = {
    "the_least": {"name": "update-changelog", "instructions": "Bring CHANGELOG.md up to date with the commits."},
    "with_a_check": {
        "name": "fix-login-redirect",
        "instructions": "The login page redirects to /home twice. Find out why and fix it.",
        "priority": "high",
        "agent": {"tier": "powerful"},
        "timeout": "45m",
        "retry": {"max_attempts": 2, "backoff": "1m"},
        "check": ["make test"],
        "tags": ["shop", "login"],
    },
    "after_another": {
        "name": "describe-login",
        "instructions": "Describe in docs/login.md how the login works now.",
        "depends_on": ["fix-login-redirect"],
    },
}
_EDITED = {"another_wording": {"name": "describe-login", "instructions": "Describe in docs/login.md how it works."}}
_RESTARTED = {
    "as_it_was": {},
    "with_a_stronger_model": {"tier": "powerful", "reason": "The small model did not find the cause."},
    "by_force": {"force": True},
}
_ANSWERED = {"in_words": {"text": "Blue, as on the old page."}}
_APPROVED = {"what_it_asks_for": {}, "something_else": {"tools": ["Bash(npm run build)", "Bash(npm test)"]}}
_REJECTED = {"without_a_reason": {}, "with_a_reason": {"reason": "Not on a Friday."}}


class TaskCalls(Calls):
    """Every operation on tasks, as the client calls it."""

    @operation(
        "POST /v1/tasks",
        "submitTask",
        OPERATE,
        "Submit a task",
        status=201,
        answer_note="Accepted: it is durable",
        location="/v1/tasks/{id}",
        links=_NEXT,
    )
    def submit(self, spec: Annotated[TaskSpec, TaskDocument(_SUBMITTED)], *, idempotency_key: Key = None) -> TaskView:
        """Accept a task with the fields of a task file. It is durable when the response arrives."""

    @operation(
        "GET /v1/tasks",
        "listTasks",
        READ,
        "List tasks, newest first",
        links=Links("ref", "$response.body#/items/0/id", _LINKED),
    )
    def tasks(
        self, wanted: Annotated[TaskFilter | None, QueryFields()] = None, *, cursor: Cursor = None, limit: Limit = 50
    ) -> Page[TaskView]:
        """Return a page of the tasks that match all conditions. New tasks do not shift later pages."""

    def all_tasks(self, wanted: TaskFilter | None = None) -> Iterator[TaskView]:
        """Yield all tasks, newest first, fetching pages on demand."""
        return all_items(lambda cursor, limit: self.tasks(wanted, cursor=cursor, limit=limit))

    @operation("GET /v1/tasks/{ref}", "getTask", READ_OWN, "One task")
    def task(self, ref: Ref) -> TaskView:
        """Return the task with its content. With If-None-Match, 304 means that it is unchanged."""

    @operation("PUT /v1/tasks/{ref}", "editTask", OPERATE, "Edit a waiting task")
    def edit(
        self, ref: Ref, spec: Annotated[TaskSpec, TaskDocument(_EDITED)], *, if_version: Version = None
    ) -> TaskView:
        """Replace its content, under the same name. It is routed again. 409 if it is running or has ended."""

    @operation(
        "POST /v1/tasks/{ref}/cancel",
        "cancelTask",
        OPERATE,
        "Cancel a task",
        status=202,
        answer_note=_LATER,
        links=_NEXT,
    )
    def cancel(self, ref: Ref, *, if_version: Version = None, idempotency_key: Key = None) -> TaskView:
        """Request the end of a task. A running task ends a little later, with its agent. 409 if it has ended."""

    @operation(
        "POST /v1/tasks/{ref}/restart",
        "restartTask",
        OPERATE,
        "Restart a task, with all decisions repeated",
        status=202,
        answer_note=_LATER,
        location="/v1/tasks/{id}",
        links=_NEXT,
    )
    def restart(
        self,
        ref: Ref,
        wanted: Annotated[RestartRequest | None, JsonBody(_RESTARTED)] = None,
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """Begin a new generation. What the task pins stays pinned unless the body changes it.

        409 for a queued task, which starts by itself, and for a running task unless `force` is true.
        """

    @operation(
        "POST /v1/tasks/{ref}/answer",
        "answerTask",
        OPERATE,
        "Answer an agent's question",
        status=202,
        answer_note="Accepted; the agent will continue with the answer",
        links=_NEXT,
    )
    def answer(
        self,
        ref: Ref,
        wanted: Annotated[AnswerRequest, JsonBody(_ANSWERED)],
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """Answer the agent's question, which continues its conversation and uses no attempt. 409 if there is no
        question."""

    @operation(
        "POST /v1/tasks/{ref}/approve",
        "approveTask",
        OPERATE,
        "Approve a task's request",
        status=202,
        answer_note="Accepted; the task will continue",
        links=_NEXT,
    )
    def approve(
        self,
        ref: Ref,
        wanted: Annotated[ApproveRequest | None, JsonBody(_APPROVED)] = None,
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """Approve its first run, or the tools that its agent was denied, for this content and until a restart.

        409 if it asks for no approval, 422 if its agent cannot be configured to allow the tools.
        """

    @operation(
        "POST /v1/tasks/{ref}/reject",
        "rejectTask",
        OPERATE,
        "Reject a task that needs input, which ends it",
        status=202,
        answer_note="Done: it has failed, with reason `rejected`",
        links=_NEXT,
    )
    def reject(
        self,
        ref: Ref,
        wanted: Annotated[RejectRequest | None, JsonBody(_REJECTED)] = None,
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """Fail the task and the tasks that depend on it. 409 if it does not need input."""

    @operation("GET /v1/tasks/{ref}/why", "explainTask", READ, "Explain a task's state")
    def why(self, ref: Ref) -> WhyView:
        """Explain in sentences why the task is in its state, with the underlying decisions and events."""

    @operation(
        "GET /v1/tasks/{ref}/runs",
        "listRuns",
        READ,
        "A task's runs",
        links=Links("run_id", "$response.body#/items/0/id", {"getRun": "The oldest run", "readLog": "Its output"}),
    )
    def runs(self, ref: Ref) -> list[RunView]:
        """Return all runs of the task, oldest first."""


_VERBS = {"WAITING": "wait", "QUEUED": "wait", "FAILED": "failed", "NEEDS_INPUT": "ask"}
"""Verb of a folded line, by state."""


def said_together(task: TaskView) -> str | None:
    """Return the verb for a folded line of such tasks; None if the task cannot be folded, like a question, which needs
    its own answer."""
    return None if task.asks is not None and task.asks.kind == "question" else _VERBS.get(task.state)


_OF_DEPENDENCIES = {
    Reason.DEPENDENCY_FAILED.value: "A task that it depends on did not complete.",
    WaitReason.DEPENDENCY.value: "A task that it depends on has not completed.",
}


def wider_reason(task: TaskView) -> str | None:
    """Return the reason without the names in it, as one of several tasks, each with other names; None if it has no
    such names."""
    return _OF_DEPENDENCIES.get(task.reason or "")
