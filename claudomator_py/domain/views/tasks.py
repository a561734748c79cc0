"""Tasks, and which of them to list."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from claudomator_py.acts.reach import Reach
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.blocked import Shown
from claudomator_py.domain.budget import Budget
from claudomator_py.domain.decision import Classification, Versions
from claudomator_py.domain.fields import Flag
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.outcome import Reason, Tokens
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.rationale import ShownRationale
from claudomator_py.domain.routing import Constraints, ReachOrigin, ReachSource
from claudomator_py.domain.stand_in import ShownFallback, ShownStandIn
from claudomator_py.domain.task import Instant as GivenInstant
from claudomator_py.domain.views.agents import BudgetView, HoldView
from claudomator_py.domain.views.base import EventView, Instant, View
from claudomator_py.domain.views.routing import PolicyCheckView, RouteView
from claudomator_py.domain.views.runs import InputView, RunProgressView
from claudomator_py.domain.worktree import TreeStanding

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
    """A task. reach: how far its runs may act; None: nobody says. reach_source: who says so; reach_rule: which rule.
    reason: why it waits or failed; reason_text: the same in words, with all that its agent said of it, and
    of one that is done, what to know of its success; reason_short: in a clause, for lists; None where the reason says
    enough. blocked: what it waits for, as a code with its parameters. attempts: used up in this generation. asks:
    what a person is asked while it needs input. agent_hint: the agent that its content names. agent, tier, model,
    branch and specialist are those of its last run, else what is asked for. runs: how many there were in all.
    denials: tool calls that its last run was denied. tokens and cost_usd: summed over its runs. fees_usd: the
    part of that cost which cards of its specialists ask for. budget: what it may
    spend and has spent, in all generations; None if it has none. started_at: that of its last run. source: ``file``,
    ``api``, ``schedule`` or ``run``; parent_run: the run that created it, in the last case. context: what its creator
    calls the conversation that it belongs to. progress: what its live run said last of how far it is. depends_on:
    with the task that it continues. continues: that task; thread: the id of the one that began the thread, once that
    is known. holds: those that keep it queued, of each agent that it could run on. worktree: how that of its last run
    stands, once it does not run. Both it and spec, the content as a task file would write it, are absent in lists.
    warnings: what it asks for and nobody can give it, while it has yet to run. creator: who made it: the name of a
    token, `operator`, or `inbox` for a file. organisation: whose it is, if anybody's in particular.
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
    fees_usd: float | None = None
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
    blocked: Shown = None
    agent_hint: str | None = None
    holds: tuple[HoldView, ...] = ()
    budget: BudgetView | None = None
    worktree: WorktreeView | None = None
    spec: dict[str, object] | None = None
    creator: str = OPERATOR.id
    organisation: str | None = None
    parent_run: str | None = None
    context: str | None = None
    progress: RunProgressView | None = None
    warnings: tuple[str, ...] = ()
    denials: int = 0
    reach: Reach | None = None
    reach_source: ReachSource | None = None
    reach_rule: str | None = None

    @property
    def reach_origin(self) -> ReachOrigin | None:
        """How far its runs may act, and who says so; None: nobody does."""
        if self.reach is None or self.reach_source is None:
            return None
        return ReachOrigin(reach=self.reach, source=self.reach_source, rule=self.reach_rule)


class TaskFilter(View):
    """Which tasks to list, all conditions together; None: any."""

    state: StateName | None = Field(default=None, description="Only tasks in this state.")
    name: str | None = Field(default=None, description="Only tasks of this name.")
    text: str | None = Field(default=None, max_length=200, description="Only tasks whose name contains this.")
    tag: str | None = Field(default=None, description="Only tasks with this tag.")
    agent: str | None = Field(default=None, description="Only tasks whose last run was on this agent.")
    specialist: str | None = Field(
        default=None, max_length=128, description="Only tasks for this specialist, by its id."
    )
    creator: str | None = Field(default=None, max_length=100, description="Only tasks submitted by this principal.")
    source: str | None = Field(
        default=None, description="Only tasks from this source: `file`, `api`, `schedule` or `run`."
    )


class Standing(View):
    """A part of all tasks: those in a state, of which the rest is true as well."""

    state: StateName
    begun: bool | None = None
    """Whether anything of them has run; None: either."""
    rejected: bool | None = None
    """Whether that is their reason; None: either."""

    def holds(self, task: TaskView) -> bool:
        """Return whether the task is one of these."""
        return (
            task.state == self.state
            and self.begun in (None, task.runs > 0)
            and self.rejected in (None, task.reason == Reason.REJECTED)
        )


class LatestFilter(View):
    """Which tasks to list by their latest change, all conditions together; None: any."""

    context: str | None = None
    """Of the conversation that whoever asks calls so, or that the task of this id began."""
    standings: tuple[Standing, ...] | None = None
    """In one of these."""
    since_ms: int | None = None
    """Changed then or later, in epoch milliseconds."""


class CandidateView(View):
    """An agent as a decision saw it. rejected: why it was not picked, as a code with its parameters; rejected_because:
    the same in words; None for the one that was.
    """

    agent: str
    active: int
    max_concurrent: int
    limited: bool = False
    limited_until: Instant | None = None
    eligible: bool
    rejected_because: str | None = None
    rejected: Shown = None


class ClassificationView(Classification, View):
    """Where the tier came from. cause: why it is no answer; reason: the classifier's own words, or its fault.

    asked_about: the agent that was picked when it was asked. said_agent: the one that the answer spoke of, if that was
    another; it changes nothing. clamped_from: the tier that it would be without its constraints' floor or ceiling.
    """


class VersionsView(Versions, View):
    """By what it was decided; None: not involved. configuration, policy, registry and calibration are hashes."""


class ConstraintsView(Constraints, View):
    """What routing and policy had left open; None: any."""


class DecisionView(View):
    """Why a run was started where it was: a decision is never changed, and a later one supersedes it.

    route, risk, intent, topic, required_capabilities, policy_checks: as they were decided before, with who does it.
    kind: what was decided. generation: that of the task. supersedes: the id of the decision that stood until then,
    which may have been removed for its age. overridden_model: the model that the task pins, where its constraints do
    not allow it. confidence: 0 to 1; threshold: the least with which it would have been decided so. latency_ms,
    cost_usd: what deciding took; None: nothing worth telling. unfenced: why its run is not kept within the default
    reach, in a clause; None: it is, or need not be. reason: why, in words; rationale and stands_in: the same
    as values. fallback: why it was decided for what should not have been, in words; fallback_code: the same as a code.
    """

    id: str = ""
    kind: str = "placement"
    generation: int = 1
    supersedes: str | None = None
    route: str
    specialist: str | None = None
    agent: str
    tier: Tier | None = None
    model: str | None = None
    confidence: float | None = None
    reason: str
    rationale: ShownRationale = None
    stands_in: ShownStandIn = None
    risk: str | None = None
    required_capabilities: tuple[str, ...] = ()
    policy_checks: tuple[PolicyCheckView, ...] = ()
    fallback: str | None = None
    fallback_code: ShownFallback = None
    classification: ClassificationView
    candidates: tuple[CandidateView, ...] = ()
    overridden_hint: str | None = None
    overridden_model: str | None = None
    skill: str | None = None
    intent: str | None = None
    topic: str | None = None
    threshold: float | None = None
    constraints: ConstraintsView = ConstraintsView()
    unfenced: str | None = None
    versions: VersionsView = VersionsView()
    latency_ms: int | None = None
    cost_usd: float | None = None
    run_id: str
    at: Instant


class WhyView(View):
    """Why a task is where it is: sentences for people, newest decision first, and the events in order.

    routing: who does it, and why; null: nobody was looked for.
    """

    task: TaskView
    sentences: tuple[str, ...]
    routing: RouteView | None = None
    decisions: tuple[DecisionView, ...] = ()
    events: tuple[EventView, ...] = ()


class DrainRequest(View):
    """Why nothing is to be started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str | None = Field(default=None, max_length=2_000)


Family = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class HoldRequest(View):
    """Nothing is to be started on an agent. until: None: until it is released. family: only on its models of it.

    account: nor on the others that draw on its account.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    until: GivenInstant | None = Field(default=None, description="RFC 3339, with an offset. Default: until released.")
    family: Family | None = Field(
        default=None, description="Only models of this family, such as `opus`, or this one model. Default: all models."
    )
    account: Flag = Field(default=False, description="Also hold all agents of its kind on the same account.")
    reason: str | None = Field(default=None, max_length=500, description="Reason to show to others.")


class ReleaseRequest(View):
    """Which holds of an agent are to end. family: only those on this family of models; None: all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: Family | None = Field(default=None, description="Only holds on this family of models. Default: all holds.")


class RestartRequest(View):
    """What a restart changes. What the task's content pins stays pinned where a field is None.

    budget: what it names replaces what the content has. force: a running task is cancelled first. resume: continue
    the last conversation instead of a fresh one, on the agent that has it. reason: stored with the task; a continued
    conversation receives it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str | None = None
    specialist: str | None = None
    tier: Tier | None = None
    model: str | None = None
    budget: Budget | None = None
    force: Flag = False
    resume: Flag = False
    reason: str | None = Field(default=None, max_length=2_000)

    @property
    def pins(self) -> bool:
        """Whether it changes what the task's content says."""
        return any(one is not None for one in (self.agent, self.specialist, self.tier, self.model, self.budget))


class AnswerRequest(View):
    """A person's answer. The agent receives it in the conversation in which it asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=20_000, pattern=r"\S", description="The answer, in plain words.")


class ApproveRequest(View):
    """What a person allows. tools: instead of what each denied call needs, these, as the agent's CLI names them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: tuple[Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00-\x1f\x7f]+$")], ...] = Field(
        default=(),
        max_length=100,
        description="Rules to allow instead of those that the denied calls need, as the agent's CLI writes them.",
    )
    reason: str | None = Field(default=None, max_length=2_000, description="Reason to store with the task.")
    specialist: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Who is to do a task that has not begun; nobody is asked that then."
    )


class RejectRequest(View):
    """Why a task is rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str | None = Field(default=None, max_length=2_000, description="Reason to store with the task.")
