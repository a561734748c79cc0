"""Tasks as they are shown, and what can be asked about them. Field order is the order of the JSON."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import Shown
from claudomator_py.domain.fields import Strict
from claudomator_py.domain.lifecycle import ENDED, StateName
from claudomator_py.domain.outcome import Tokens
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.routing import ReachOrigin, ReachSource
from claudomator_py.domain.shape import Instant, Page, View, all_items
from claudomator_py.domain.task import TaskSpec
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
    JsonBody,
    Key,
    Limit,
    Links,
    PathText,
    QueryFields,
    TaskDocument,
    Version,
    operation,
)

PriorityLabel = Literal["low", "normal", "high", "urgent"]
Action = Literal["cancel", "restart", "restart_force", "answer", "approve", "reject"]


def editing_refused(name: str, state: str) -> tuple[str, str] | None:
    """Return why the content of a task in that state is not replaced while it waits, and a remedy; None: it is."""
    if state == "RUNNING":
        return f"{name} runs.", "Edit it on its page, or cancel it first."
    if state in ENDED:
        return f"{name} is {state} already.", "Edit it on its page, which runs it again, or submit a new one."
    return None


class DependencyView(View):
    """A name that a task depends on; the task is known once a task of that name was seen."""

    name: str
    task_id: str | None = None
    state: StateName | None = None


class WorktreeView(View):
    """A task's work tree, on its branch."""

    path: str
    standing: TreeStanding
    commits: int = 0
    """Since it was made."""
    changed: int = 0
    """Files that are not committed."""
    detail: str = ""
    """``standing`` in words."""
    seen_at: Instant | None = None
    """When all this was so: after the last run in it, or when a cleanup last looked; null: not yet."""


class TaskView(View):
    """A task. Agent, tier, model, branch and specialist are those of its last run, else what is asked for."""

    id: str
    name: str
    version: int
    state: StateName
    phase: str | None = None
    reason: str | None = None
    """Why it waits or failed."""
    reason_text: str | None = None
    """The same in words, with all that its agent said of it; of one that is done, what to know of its success."""
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
    """Used up in this generation."""
    runs: int = 0
    """How many there were in all."""
    result_text: str | None = None
    tokens: Tokens = Tokens()
    """Summed over its runs."""
    cost_usd: float | None = None
    """Summed over its runs."""
    created_at: Instant
    updated_at: Instant
    available_actions: tuple[Action, ...] = ()
    fees_usd: float | None = None
    """The part of the cost which cards of its specialists ask for."""
    asks: InputView | None = None
    """What a person is asked while it needs input."""
    generation: int = 1
    revision: int = 1
    started_at: Instant | None = None
    """When its last run began."""
    depends_on: tuple[DependencyView, ...] = ()
    """The one that it continues included."""
    continues: DependencyView | None = None
    """The task that it continues."""
    thread: str | None = None
    """The id of the task that began the thread, once that is known."""
    source: str = "api"
    """``file``, ``api``, ``schedule`` or ``run``."""
    file_path: str | None = None
    reason_short: str | None = None
    """The reason in a clause, for lists; null where the reason says enough."""
    blocked: Shown = None
    """What it waits for, as a code with its parameters."""
    agent_hint: str | None = None
    """The agent that its content names."""
    holds: tuple[HoldView, ...] = ()
    """Those that keep it queued, of each agent that it could run on."""
    budget: BudgetView | None = None
    """What it may spend and has spent, in all generations; null if it has none."""
    worktree: WorktreeView | None = None
    """How that of its last run stands, once it does not run; absent in lists."""
    spec: dict[str, object] | None = None
    """The content as a task file would write it; absent in lists."""
    creator: str = OPERATOR.id
    """Who made it: the name of a token, ``operator``, or ``inbox`` for a file."""
    organisation: str | None = None
    """Whose it is, if anybody's in particular."""
    parent_run: str | None = None
    """The run that created it, if one did."""
    context: str | None = None
    """What its creator calls the conversation that it belongs to."""
    progress: RunProgressView | None = None
    """What its live run said last of how far it is."""
    warnings: tuple[str, ...] = ()
    """What it asks for and nobody can give it, while it has yet to run."""
    denials: int = 0
    """Tool calls that its last run was denied."""
    changes: str | None = None
    """What its last run changed, in one line; null: that is not known."""
    is_doubtful: bool = False
    """Whether its last run succeeded and changed nothing, although its result says that it did."""
    reach: Reach | None = None
    """How far its runs may act; null: nobody says."""
    reach_source: ReachSource | None = None
    """Who says how far."""
    reach_rule: str | None = None
    """Which rule says how far."""

    @property
    def reach_origin(self) -> ReachOrigin | None:
        """How far its runs may act, and who says so; None: nobody does."""
        if self.reach is None or self.reach_source is None:
            return None
        return ReachOrigin(reach=self.reach, source=self.reach_source, rule=self.reach_rule)


class WhyView(View):
    """Why a task is where it is."""

    task: TaskView
    sentences: tuple[str, ...]
    """For people."""
    routing: RouteView | None = None
    """Who does it, and why; null: nobody was looked for."""
    decisions: tuple[DecisionView, ...] = ()
    """The newest first."""
    events: tuple[EventView, ...] = ()
    """In order."""


class AnswerRequest(Strict):
    """A person's answer. The agent receives it in the conversation in which it asked."""

    text: str = Field(min_length=1, max_length=20_000, pattern=r"\S", description="The answer, in plain words.")


class ApproveRequest(Strict):
    """What a person allows."""

    tools: tuple[Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00-\x1f\x7f]+$")], ...] = Field(
        default=(),
        max_length=100,
        description="Rules to allow instead of those that the denied calls need, as the agent's CLI writes them.",
    )
    reason: str | None = Field(default=None, max_length=2_000, description="Reason to store with the task.")
    specialist: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Who is to do a task that has not begun; nobody is asked that then."
    )


class RejectRequest(Strict):
    """Why a task is rejected."""

    reason: str | None = Field(default=None, max_length=2_000, description="Reason to store with the task.")


Ref = Annotated[str, PathText("A task's id, a unique prefix of it, or its name.")]
_LINKED = {
    "getTask": "The task as it is now",
    "explainTask": "Why it is in its state",
    "listRuns": "Its runs",
    "editTask": "Other content for it, before it runs",
    "cancelTask": "Its end",
    "restartTask": "A new generation of it",
    "answerTask": "The answer to its question",
    "approveTask": "Approve what it asks for",
    "rejectTask": "Reject it, if it needs input",
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
        tagged=True,
    )
    def submit(self, spec: Annotated[TaskSpec, TaskDocument(_SUBMITTED)], *, idempotency_key: Key = None) -> TaskView:
        """Accept a task, as a task file would write it. It is durable once this answers."""

    @operation(
        "GET /v1/tasks",
        "listTasks",
        READ,
        "List tasks, newest first",
        links=Links("ref", "$response.body#/items/0/id", _LINKED),
    )
    def tasks(
        self,
        wanted: Annotated[TaskFilter | None, QueryFields()] = None,
        *,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[TaskView]:
        """A part of the list; all conditions count together. Tasks that come meanwhile move nothing in later parts."""

    def all_tasks(self, wanted: TaskFilter | None = None) -> Iterator[TaskView]:
        """Return the whole list, newest first, fetched as it is read."""
        return all_items(lambda cursor, limit: self.tasks(wanted, cursor=cursor, limit=limit))

    @operation(
        "GET /v1/tasks/{ref}",
        "getTask",
        READ_OWN,
        "One task",
        refuses=(404, 409),
        tagged=True,
        conditional=True,
    )
    def task(self, ref: Ref) -> TaskView:
        """The task with its content. With If-None-Match, 304 says that it has not been changed since."""

    @operation(
        "PUT /v1/tasks/{ref}",
        "editTask",
        OPERATE,
        "Edit a task that waits",
        refuses=(404, 409),
        tagged=True,
    )
    def edit(
        self, ref: Ref, spec: Annotated[TaskSpec, TaskDocument(_EDITED)], *, if_version: Version = None
    ) -> TaskView:
        """Give it other content under the same name, as a task file would write it. Who does it is decided again. 409
        for one that runs or has ended."""

    @operation(
        "POST /v1/tasks/{ref}/cancel",
        "cancelTask",
        OPERATE,
        "Cancel a task",
        status=202,
        refuses=(404, 409),
        answer_note=_LATER,
        links=_NEXT,
        tagged=True,
    )
    def cancel(self, ref: Ref, *, if_version: Version = None, idempotency_key: Key = None) -> TaskView:
        """Ask for its end. A running task ends a little later, when its agent has; 409 for one that has ended."""

    @operation(
        "POST /v1/tasks/{ref}/restart",
        "restartTask",
        OPERATE,
        "Restart a task: the whole decision is made again",
        status=202,
        refuses=(404, 409),
        answer_note=_LATER,
        location="/v1/tasks/{id}",
        links=_NEXT,
        tagged=True,
    )
    def restart(
        self,
        ref: Ref,
        wanted: Annotated[RestartRequest | None, JsonBody(_RESTARTED)] = None,
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """Begin a new generation. What the task pins stays pinned unless the body says otherwise.

        409 for a queued task, which starts by itself, and for a running one unless `force` is true.
        """

    @operation(
        "POST /v1/tasks/{ref}/answer",
        "answerTask",
        OPERATE,
        "Answer what its agent asks",
        status=202,
        refuses=(404, 409),
        answer_note="Accepted; the agent will continue with the answer",
        links=_NEXT,
        tagged=True,
    )
    def answer(
        self,
        ref: Ref,
        wanted: Annotated[AnswerRequest, JsonBody(_ANSWERED)],
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """The agent continues the conversation in which it asked; no attempt is used up. 409 if it asks nothing."""

    @operation(
        "POST /v1/tasks/{ref}/approve",
        "approveTask",
        OPERATE,
        "Allow what it asks for",
        status=202,
        refuses=(404, 409),
        answer_note="Accepted; the task will continue",
        links=_NEXT,
        tagged=True,
    )
    def approve(
        self,
        ref: Ref,
        wanted: Annotated[ApproveRequest | None, JsonBody(_APPROVED)] = None,
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """Its first run, or the tools that its agent was denied: for this content, until it is restarted.

        409 if it asks for no approval, 422 for what its agent cannot be configured to allow.
        """

    @operation(
        "POST /v1/tasks/{ref}/reject",
        "rejectTask",
        OPERATE,
        "Reject a task that needs input, which ends it",
        status=202,
        refuses=(404, 409),
        answer_note="Done: it has failed, with reason `rejected`",
        links=_NEXT,
        tagged=True,
    )
    def reject(
        self,
        ref: Ref,
        wanted: Annotated[RejectRequest | None, JsonBody(_REJECTED)] = None,
        *,
        if_version: Version = None,
        idempotency_key: Key = None,
    ) -> TaskView:
        """It fails, and what depends on it. 409 if it asks nothing."""

    @operation("GET /v1/tasks/{ref}/why", "explainTask", READ, "Why it is so", refuses=(404, 409))
    def why(self, ref: Ref) -> WhyView:
        """Why the task is where it is, in sentences, with the decisions and events behind them."""

    @operation(
        "GET /v1/tasks/{ref}/runs",
        "listRuns",
        READ,
        "A task's runs",
        refuses=(404, 409),
        links=Links("run_id", "$response.body#/items/0/id", {"getRun": "The oldest run", "readLog": "Its output"}),
    )
    def runs(self, ref: Ref) -> list[RunView]:
        """All runs of the task, oldest first."""


_SAID = {"WAITING": "wait", "QUEUED": "wait", "FAILED": "failed", "NEEDS_INPUT": "ask"}
"""What tasks in such a state are said to do, if several are one line."""


def said_together(task: TaskView) -> str | None:
    """Return what a task is said to do where it is one of several with the same reason; None: it stands by itself, as
    a question does, to which there is an answer of its own."""
    return None if task.asks is not None and task.asks.kind == "question" else _SAID.get(task.state)
