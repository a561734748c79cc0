"""The JSON shapes of the API: what anyone who asks is told. Field order is the order of the JSON.

Instants are RFC 3339 strings in UTC (see ``core.units.format_instant``); states are upper case; priorities are names.
Tokens and cost are the run's own share. A signal is a negative exit code.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field

from claudomator_py.core.agent import ModelChoice, Tier
from claudomator_py.core.budget import Budget
from claudomator_py.core.lifecycle import InputKind
from claudomator_py.core.outcome import (
    REASON_POLICIES,
    Denied,
    HoldKind,
    Outcome,
    OutcomeStatus,
    Provenance,
    Reason,
    Tokens,
)
from claudomator_py.core.problem import Problem
from claudomator_py.core.schedule_view import ScheduleView
from claudomator_py.core.task import Instant as GivenInstant
from claudomator_py.core.units import format_instant
from claudomator_py.core.view import Instant, StateName, View
from claudomator_py.core.worktree import TreeStanding

T = TypeVar("T")
PriorityLabel = Literal["low", "normal", "high", "urgent"]
Action = Literal["cancel", "restart", "restart_force", "answer", "approve", "reject"]
RunState = Literal["starting", "running", "checking", "ended", "revoked"]


class OutcomeView(View):
    """How a run ended. detail: the error in the agent's own words; limit: the window that it named.

    question: what it ended with; denied: tool calls that it was denied.
    """

    status: OutcomeStatus
    reason: Reason | None = None
    reset_at: Instant | None = None
    provenance: Provenance | None = None
    conversation_id: str | None = None
    text: str | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    detail: str | None = None
    limit: str | None = None
    question: str | None = None
    denied: tuple[Denied, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome) -> "OutcomeView":
        """The shape of an outcome."""
        return cls(
            status=outcome.status,
            reason=outcome.reason,
            reset_at=None if outcome.reset_at is None else format_instant(outcome.reset_at),
            provenance=outcome.provenance,
            conversation_id=outcome.conversation_id,
            text=outcome.text,
            tokens=outcome.tokens,
            cost_usd=outcome.cost_usd,
            detail=outcome.detail,
            limit=outcome.limit,
            question=outcome.question,
            denied=outcome.denied,
        )


class InputView(View):
    """What a person is asked. text: the question, or what leave is asked for. since: since when.

    agent, run_id: whose run asks; None: it is asked before the first run. tools: what leave is asked for; approving
    allows the ``rule`` of each. kept_until: until when its working directory is kept from others; None: it is not.
    """

    kind: InputKind
    text: str
    since: Instant
    agent: str | None = None
    run_id: str | None = None
    tools: tuple[Denied, ...] = ()
    kept_until: Instant | None = None


class DependencyView(View):
    """A name that a task depends on; the task is known once a task of that name was seen."""

    name: str
    task_id: str | None = None
    state: StateName | None = None


class WorktreeView(View):
    """A task's work tree, on its branch. commits: since it was made. changed: files that are not committed.

    standing: ``unchanged``, ``merged``, ``ahead``, ``dirty``, ``locked``, ``gone`` or ``unknown``; detail: in words.
    """

    path: str
    standing: TreeStanding
    commits: int = 0
    changed: int = 0
    detail: str = ""


class HoldView(View):
    """A reason not to start anything on a bucket: an agent, or an account that agents of a kind share.

    agent: the one that is told of. family: only its models of that family; None: all. window: the one that is used up.
    reason: None for one that an operator has put there. until: None: until it is released. source: where that was read;
    run_id: the run that met it. probing: its time is over, and more runs follow as the first ones answer; may_start:
    how many more of them may begin now. text: all of it in words that follow the agent's name.
    """

    agent: str
    bucket: str
    family: str | None = None
    window: str | None = None
    reason: Reason | None = None
    until: Instant | None = None
    provenance: Provenance
    text: str = ""
    source: str
    since: Instant
    run_id: str | None = None
    probing: bool = False
    may_start: int | None = None


class SpendingView(View):
    """What runs have used, as far as is known: tokens, input and output together, and US dollars.

    unpriced, uncounted: how many of them have ended without anybody knowing their dollars, or their tokens.
    """

    usd: float = 0.0
    tokens: int = 0
    runs: int = 0
    unpriced: int = 0
    uncounted: int = 0


class BudgetView(View):
    """What may be spent, what was, and what is left; None: no limit. text: the figures in words.

    reached: why nothing starts, once it is used up; until: when that is over, for a day or a window. window: the share
    of a window that may be used up; windows_used: what was, by name, 1 being all of it, as far as the account has said.
    """

    usd: float | None = None
    tokens: int | None = None
    runs: int | None = None
    window: str | None = None
    spent: SpendingView
    usd_left: float | None = None
    tokens_left: int | None = None
    runs_left: int | None = None
    windows_used: dict[str, float] = Field(default_factory=dict)
    text: str = ""
    reached: str | None = None
    until: Instant | None = None


class TaskView(View):
    """A task. reason: why it waits or failed; reason_text: the same in words. attempts: used up in this generation.

    asks: what a person is asked while it needs input.

    agent, tier, model, branch and specialist are those of its last run, else what is asked for. runs: how many there
    were in all. tokens and cost_usd: summed over its runs. budget: what it may spend and has spent, in all generations;
    None if it has none. started_at: that of its last run. source: ``file`` or
    ``api``. depends_on: with the task that it continues. continues: that task; thread: the id of the one that began the
    thread, once that is known. worktree: how that of its last run stands, once it does not run. Both it and spec, the
    content as a task file would write it, are absent in lists.
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
    holds: tuple[HoldView, ...] = ()
    budget: BudgetView | None = None
    worktree: WorktreeView | None = None
    spec: dict[str, object] | None = None


class RunView(View):
    """One attempt at a task. resumes: the run whose conversation it went on in; None: it began one."""

    id: str
    task_id: str
    generation: int
    attempt: int
    agent: str
    model: str | None = None
    tier: Tier | None = None
    state: RunState
    started_at: Instant
    ended_at: Instant | None = None
    exit_code: int | None = None
    outcome: OutcomeView | None = None
    resumes: str | None = None


class CandidateView(View):
    """An agent as a decision saw it. rejected_because: None for one that could have been picked."""

    agent: str
    active: int
    max_concurrent: int
    limited: bool = False
    limited_until: Instant | None = None
    eligible: bool
    rejected_because: str | None = None


class ClassificationView(View):
    """Where the tier came from. cause: why it is no answer; reason: the classifier's own words, or its fault.

    asked_about: the agent that was picked when it was asked.
    """

    source: Literal["pinned", "kept", "cache", "classifier", "default"]
    cause: str | None = None
    reason: str | None = None
    asked_about: str | None = None


class PolicyCheckView(View):
    """What one rule said about the choice."""

    rule: str
    allowed: bool
    detail: str | None = None


class DecisionView(View):
    """Why a run was started where it was."""

    route: str
    specialist: str | None = None
    agent: str
    tier: Tier | None = None
    model: str | None = None
    confidence: float | None = None
    reason: str
    risk: str | None = None
    required_capabilities: tuple[str, ...] = ()
    policy_checks: tuple[PolicyCheckView, ...] = ()
    fallback: str | None = None
    classification: ClassificationView
    candidates: tuple[CandidateView, ...] = ()
    overridden_hint: str | None = None
    run_id: str
    at: Instant


class NearLimitView(View):
    """A limit that an account was warned of. used: the share of it that was used up by then, where that is known.

    window: its name; until: when it resets; run_id: the run that was told so, and since: when that run had ended.
    """

    window: str | None = None
    used: float | None = None
    until: Instant
    since: Instant
    run_id: str


class AgentView(View):
    """A configured agent as it is now. problem: why it cannot run, with the remedy. active: its live runs.

    limited: a hold on all of its models is open; hold_reason and provenance say which, limited_until until when (None:
    until released). holds: all that are open, those on a family of models included, the longest first. near_limit: what
    its account was last warned of; it goes second until then.
    cannot_enforce: what a task may ask for and this agent cannot keep to; such a task goes to another one. spent_today:
    by the runs that began today; budget: what it may spend on a day, None if that is not limited.
    """

    name: str
    kind: str
    account: str = "default"
    program: str | None = None
    version: str | None = None
    installed: bool
    problem: str | None = None
    active: int = 0
    max_concurrent: int
    auto_select: bool = True
    limited: bool = False
    limited_until: Instant | None = None
    hold_reason: str | None = None
    provenance: Provenance | None = None
    models: dict[Tier, ModelChoice] = Field(default_factory=dict)
    default_tier: Tier
    cannot_enforce: tuple[str, ...] = ()
    holds: tuple[HoldView, ...] = ()
    near_limit: NearLimitView | None = None
    spent_today: SpendingView = SpendingView()
    budget: BudgetView | None = None


class FileProblemView(View):
    """A file of the inbox that was refused as a whole, and every reason."""

    path: str
    problems: tuple[Problem, ...]


class EventView(View):
    """Something that happened; ids rise in the order of happening."""

    id: int
    at: Instant
    task_id: str | None = None
    run_id: str | None = None
    kind: str
    data: dict[str, object] = Field(default_factory=dict)


LogKind = Literal["message", "thinking", "tool_call", "tool_result", "usage", "notice", "error", "text"]


class LogTextView(View):
    """A piece of what a run wrote, from the byte ``offset`` up to ``next_offset``, as text for people.

    Without terminal codes, and with ``[redacted]`` in the place of secrets.
    """

    offset: int
    next_offset: int
    text: str


class LogEntryView(View):
    """One thing that an agent said or did, made from the bytes from ``offset`` up to ``next_offset``.

    tool: its name, for a call and its result. at: when, as far as the agent says. omitted: characters of the text that
    were left out; the bytes have them. partial: the text goes on in the next entry of this kind.
    """

    offset: int
    next_offset: int
    kind: LogKind
    text: str
    tool: str | None = None
    at: Instant | None = None
    omitted: int = 0
    partial: bool = False


class LogPageView(View):
    """A part of a log. next_cursor: where to go on, now or when there is more. ended: nothing will follow."""

    items: tuple[LogEntryView | LogTextView, ...]
    next_cursor: str
    ended: bool


class LogEndView(View):
    """The run is over, and its log was told up to ``next_offset``. state: the run's; status: of its outcome."""

    next_offset: int
    state: RunState
    status: OutcomeStatus | None = None


class WhyView(View):
    """Why a task is where it is: sentences for people, newest decision first, and the events in order."""

    task: TaskView
    sentences: tuple[str, ...]
    decisions: tuple[DecisionView, ...] = ()
    events: tuple[EventView, ...] = ()


class BackupView(View):
    """A copy of the database. path: on the daemon's machine."""

    path: str
    bytes: int
    created_at: Instant


class Page(View, Generic[T]):
    """A part of a list. next_cursor: pass it as ``cursor`` for the next part; None at the end."""

    items: tuple[T, ...]
    next_cursor: str | None = None


class ReasonView(View):
    """What a reason code means and what follows from it; see ``core.outcome.ReasonPolicy``."""

    reason: Reason
    meaning: str
    counts_attempt: bool
    retries: bool
    escalates: bool
    hold: HoldKind
    needs_person: bool
    falls_back: bool

    @classmethod
    def of(cls, reason: Reason) -> "ReasonView":
        """The shape of a code."""
        return cls(reason=reason, **asdict(REASON_POLICIES[reason]))


class CheckView(View):
    """One thing that was looked at. remedy: what to do when it is not ok.

    blocking: whether tasks are not accepted or not started while it is not ok; else it is to be mended all the same.
    """

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    blocking: bool = True


class ReadinessView(View):
    """Whether tasks are accepted and started. Without authentication ``checks`` is empty."""

    ready: bool
    checks: tuple[CheckView, ...] = ()


class DrainView(View):
    """Whether the daemon is drained, and starts nothing new. running: live runs, which go on to their end."""

    drained: bool
    since: Instant | None = None
    reason: str | None = None
    running: int


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

    until: GivenInstant | None = Field(default=None, description="RFC 3339, with an offset; missing: until released.")
    family: Family | None = Field(
        default=None, description="Only models with this in their name, such as `opus`; missing: all."
    )
    account: bool = Field(default=False, description="All agents of its kind that draw on the same account, too.")
    reason: str | None = Field(default=None, max_length=500, description="Why; shown to whoever asks.")


class ReleaseRequest(View):
    """Which holds of an agent are to end. family: only those on this family of models; None: all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: Family | None = Field(default=None, description="Only holds on this family of models; missing: all holds.")


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


class TaskFilter(View):
    """Which tasks to list, all conditions together; None: any."""

    state: StateName | None = Field(default=None, description="Only tasks in this state.")
    name: str | None = Field(default=None, description="Only tasks of this name.")
    text: str | None = Field(default=None, max_length=200, description="Only tasks with this in their name.")
    tag: str | None = Field(default=None, description="Only tasks with this tag.")
    agent: str | None = Field(default=None, description="Only tasks whose last run was on this agent.")
    source: str | None = Field(default=None, description="Only tasks from here: `file`, `api` or `schedule`.")


class RestartRequest(View):
    """What a restart changes. What the task's content pins stays pinned where a field is None.

    budget: what it names replaces what the content has. force: a running task is cancelled first. resume: go on in the
    last conversation instead of a fresh one, on the agent that has it. reason: kept with the task; a conversation that
    goes on is told it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str | None = None
    specialist: str | None = None
    tier: Tier | None = None
    model: str | None = None
    budget: Budget | None = None
    force: bool = False
    resume: bool = False
    reason: str | None = Field(default=None, max_length=2_000)


class AnswerRequest(View):
    """What a person answers: its agent is told, in the conversation in which it asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=20_000, pattern=r"\S", description="The answer, in plain words.")


class ApproveRequest(View):
    """What a person allows. tools: instead of what each denied call needs, these, as the agent's CLI names them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: tuple[Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00-\x1f\x7f]+$")], ...] = Field(
        default=(), max_length=100, description="Instead of what each denied call needs: rules, as its CLI names them."
    )


class RejectRequest(View):
    """Why a task is rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str | None = Field(default=None, max_length=2_000, description="Why; kept with the task.")


class LoginCodeView(View):
    """A code that lets one browser in, once. path: where to take it, on the daemon's URL."""

    code: str
    path: str
    expires_at: Instant


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a run's stream from ``offset``. ended: the run is over and nothing follows ``next_offset``."""

    data: bytes
    offset: int
    next_offset: int
    ended: bool


class ProblemDetails(View):
    """A refusal as the API tells it (RFC 9457). code: its stable name; remedy: what to do next.

    problems: each fault, where a document or several fields were wrong.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    code: str
    remedy: str
    problems: tuple[Problem, ...] = ()
