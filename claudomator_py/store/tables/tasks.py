"""Tables of tasks, their revisions and dependencies, their runs, and events."""

from typing import Any

from sqlalchemy import BigInteger, Column, Computed, Index, String, UniqueConstraint
from sqlmodel import Field

from claudomator_py.store.tables.columns import (
    Row,
    RowNumber,
    by_operator,
    json_column,
    partial_index,
    shown_json_column,
    shown_text_column,
)

TENANT = (
    "CASE WHEN organisation IS NOT NULL THEN 'org:' || organisation "
    "WHEN creator IN ('operator', 'inbox') THEN '' ELSE 'by:' || creator END"
)
"""The SQL for ``domain.principal.tenant_of``."""
_DECIDING = ("tier", "asked_tier", "failed_on", "failed_for", "constraints")
LANE = " || ".join(("eligibility", *(f"'|' || coalesce({column}, '')" for column in _DECIDING)))
LANE += f" || coalesce(nullif('|' || {TENANT}, '|'), '')"
_IN_ORDER = ("rank_ms", "created_ms", "id")
MAX_DEMAND = 500
DEMAND = f"CASE WHEN length(constraints) > {MAX_DEMAND} THEN '-' ELSE coalesce(constraints, '') END"
"""The SQL for the constraints as part of a demand. Longer ones do not stand in an index twice, as PostgreSQL limits the
size of its rows: tasks with these are looked at lane by lane."""
_DEMANDED = ("hint", "demand")
_QUEUED = "state = 'QUEUED'"
SETTLED = "kind IN ('merged', 'discarded')"
"""Events about settled branches, few among very many."""
ENDED = "state = 'CANCELLED' OR state = 'COMPLETED' OR state = 'FAILED'"


class Task(Row):
    """A task and its state."""

    __tablename__ = "task"
    __table_args__ = (
        # The state comes first, although it is constant: otherwise SQLite prefers the index on the state.
        partial_index("ix_task_lane", "state", "lane", *_IN_ORDER, "dir_key", "thread", where=_QUEUED),
        partial_index("ix_task_place", "state", *_DEMANDED, "tenant", "lane", "dir_key", "id", where=_QUEUED),
        partial_index("ix_task_turn", "state", *_IN_ORDER, where=_QUEUED),
        partial_index("ix_task_demand", "state", *_DEMANDED, *_IN_ORDER, where=_QUEUED),
        # Covers the query: otherwise SQLite may prefer the index on the state, and read every queued task.
        partial_index("ix_task_begun", "state", "reason", "thread", *_IN_ORDER, "seq", where="seq > 0"),
        partial_index("ix_task_due", "state", "until_ms", where="state = 'WAITING'"),
        partial_index("ix_task_expiring", "state", "until_ms", where="state = 'NEEDS_INPUT' AND until_ms IS NOT NULL"),
        partial_index("ix_task_unrouted", "state", *_IN_ORDER, where="state = 'QUEUED' AND constraints IS NULL"),
        partial_index("ix_task_running", "id", where="state = 'RUNNING'"),
        partial_index("ix_task_thread", "state", "thread", where="thread IS NOT NULL"),
        partial_index("ix_task_kept", "state", "kept_until_ms", "dir_key", "id", where="kept_until_ms IS NOT NULL"),
        partial_index("ix_task_intent", "id", where="cancel_requested_ms IS NOT NULL OR restart_requested IS NOT NULL"),
        Index("ix_task_name", "name", "created_ms"),
        Index("ix_task_created", "created_ms", "id"),
        Index("ix_task_state", "state", "created_ms", "id"),
        # An OR of states, as SQLite recognises only this form as implied by a condition on one of them.
        partial_index("ix_task_ended", "state", "updated_ms", "id", where=ENDED),
        partial_index("ix_task_specialist", "specialist", "created_ms", "id", where="specialist IS NOT NULL"),
        partial_index("ix_task_parent", "parent_run", where="parent_run IS NOT NULL"),
        partial_index("ix_task_context", "creator", "context", "created_ms", "id", where="context IS NOT NULL"),
        partial_index("ix_task_organisation", "organisation", "created_ms", "id", where="organisation IS NOT NULL"),
    )

    id: str = Field(primary_key=True)
    name: str
    version: int = 1
    """Incremented by every change; planned actions and edits compare and swap on it."""
    generation: int = 1
    """Incremented by a restart and by changed content."""
    attempt: int = 0
    """Attempts used in this generation."""
    seq: int = 0
    """Runs started in this generation."""
    revision: int = 1
    """The revision of the spec that this generation runs."""
    next_revision: int | None = None
    """A revision that arrived while it was running."""
    state: str
    phase: str | None = None
    reason: str | None = None
    until_ms: int | None = Field(default=None, sa_type=BigInteger)
    priority: int
    rank_ms: int = Field(sa_type=BigInteger)
    """The queue's order, see ``domain.lifecycle.rank``."""
    eligibility: str
    """What its spec and conversation require of agents, as text, see ``scheduler.lanes``."""
    hint: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """The agent it asks for, as text, see ``scheduler.lanes``; the same for all tasks of a lane."""
    asked_tier: str | None = None
    """The state of the question about its tier in this generation: ``open``, ``default`` or the tier; None: not
    asked."""
    failed_on: str | None = None
    """The agent on which its last run did not get its model."""
    failed_for: str | None = None
    """Why the last run did not get its model."""
    tenant: str | None = Field(default=None, sa_column=Column(String, Computed(TENANT)))
    """The party that slots are shared among: an organisation, or a creator without one; empty for the operator."""
    lane: str | None = Field(default=None, sa_column=Column(String, Computed(LANE)))
    """Eligibility, tiers, failed model, constraints and tenant as one text. The same limits and slots block all tasks
    of a lane, whatever their directories."""
    demand: str | None = Field(default=None, sa_column=Column(String, Computed(DEMAND)))
    """The constraints, empty without any, see ``scheduler.lanes``; the same for all tasks of a lane."""
    dir_key: str
    """The directory that one run at a time may use; empty for a scratch folder."""
    tier: str | None = None
    """Kept over retries."""
    tags: list[str] = Field(sa_column=json_column(items=str))
    source: str
    file_path: str | None = None
    last_run_id: str | None = None
    cancel_requested_ms: int | None = Field(default=None, sa_type=BigInteger)
    restart_requested: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    resume: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    """The conversation that its next run continues, see ``domain.run.ResumedConversation``; None: a
    fresh one."""
    thread: str | None = None
    """The task that began the thread which this one continues, once that is known; None: its own."""
    context: str | None = None
    """The creator's own name of the conversation that it belongs to, if any."""
    asks: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """The current or last request to a person, see ``domain.inputs.InputRequest``."""
    kept_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """Until then its directory is kept for it while it does not run."""
    approved_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When a person approved this content in this generation."""
    granted_tools: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    """Tools that a person has allowed in addition in this generation, see ``domain.inputs.ToolGrant``."""
    creator: str = by_operator()
    """The principal who created it."""
    organisation: str | None = None
    """The organisation that owns it, if any."""
    specialist: str | None = None
    """The id of the specialist that does it; None: not routed yet, or no specialist."""
    skill: str | None = None
    """The id of the skill that the specialist uses."""
    risk: str | None = None
    """See ``domain.routing.Risk``; None: not assessed."""
    channel: str | None = None
    """The channel of the message that it was created from."""
    parent_run: str | None = None
    """The run that created it, if any."""
    constraints: str | None = None
    """Constraints of routing and policy in this generation, as ``domain.routing.Constraints`` writes them; part of its
    lane; None: not routed yet."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)


class TaskRevision(Row):
    """A revision of a task's spec, as parsed."""

    __tablename__ = "task_revision"

    task_id: str = Field(primary_key=True, foreign_key="task.id")
    revision: int = Field(primary_key=True)
    spec: dict[str, Any] = Field(sa_column=json_column())
    content_hash: str
    dir_key: str
    derived_from: int | None = None
    """The revision from which a restart derived this one."""
    created_ms: int = Field(sa_type=BigInteger)


class TaskDependency(Row):
    """A name that a task depends on, and the task to which it was bound at the first match."""

    __tablename__ = "task_dependency"
    __table_args__ = (
        Index("ix_dependency_bound", "depends_on_id"),
        partial_index("ix_dependency_unbound", "name", where="depends_on_id IS NULL"),
    )

    task_id: str = Field(primary_key=True, foreign_key="task.id")
    name: str = Field(primary_key=True)
    depends_on_id: str | None = Field(default=None, foreign_key="task.id")


_SUMMED = ("agent", "ended_as", "reason", "started_ms", "ended_ms", "input_tokens", "output_tokens", "cost_usd")

_SPENT = ("started_ms", "agent", "state", "live", "input_tokens", "output_tokens", "cost_usd", "in_vain")


class Run(Row):
    """One attempt at a task."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("task_id", "generation", "attempt", "seq", name="uq_run_identity"),
        # As SQLAlchemy renders the condition: SQLite uses the index only for a condition written like its own.
        partial_index("uq_run_live", "task_id", where="live = 1", on_postgresql="live", unique=True),
        partial_index("uq_run_thread", "thread", where="live = 1", on_postgresql="live", unique=True),
        Index("ix_run_conversation", "conversation_id", "started_ms"),
        partial_index("ix_run_scratch", "scratch_of", where="scratch_of IS NOT NULL"),
        Index("ix_run_task", "task_id", "started_ms"),
        # The condition excludes few rows, but without it SQLite would use the index for queries ordered by start.
        partial_index("ix_run_spent", *_SPENT, where="state <> 'revoked'"),
        partial_index("ix_run_windows", "kind", "account", "windows_ms", where="windows_ms IS NOT NULL"),
        partial_index("ix_run_warned", "warned_until_ms", where="warned_until_ms IS NOT NULL"),
        partial_index("ix_run_answered", "started_ms", where="answered_ms IS NOT NULL"),
        partial_index("ix_run_default_model", "agent", "started_ms", where="model IS NULL AND ran_model IS NOT NULL"),
        partial_index("ix_run_end", "ended_ms", where="ended_ms IS NOT NULL"),
        partial_index("ix_run_ended", *_SUMMED, where="ended_as IS NOT NULL"),
    )

    id: str = Field(primary_key=True)
    task_id: str = Field(foreign_key="task.id")
    generation: int
    attempt: int
    seq: int
    revision: int
    agent: str
    kind: str
    account: str = "default"
    """The account of its kind whose quota it uses."""
    model: str | None = None
    """The requested model; None: the agent chose."""
    ran_model: str | None = None
    """The model that it ran on, as its agent reported it; for a live run, the agent's last choice."""
    tier: str | None = None
    dir_key: str
    conversation_id: str | None = None
    """The agent's id of the conversation, if known; None for an ended run: it cannot be continued."""
    resumes: str | None = None
    """The run whose conversation it continues."""
    asked: list[str] | None = Field(default=None, sa_column=shown_json_column(items=str, nullable=True))
    """Its questions to a person, asked once it has ended, see ``domain.requests.QuestionRequest``."""
    progress: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """Its last report of progress, as ``domain.requests.Progress``."""
    prior: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    """The usage of the conversation before this run, as ``domain.run.Usage``."""
    scratch_of: str | None = None
    """The run whose scratch folder it works in, if it needs one; None: its own."""
    thread: str | None = None
    """The task that began the thread; a thread has at most one live run."""
    state: str
    """``starting`` (committed, perhaps not spawned), ``running``, ``checking``, ``ended``, ``revoked`` (given up
    before it started; it cost nothing)."""
    live: bool
    """Whether it has not ended, as far as is known; a task has at most one live run."""
    check_seq: int = 0
    """How often the check was begun. For a live run, the current step: 0 is the agent, other numbers are checks."""
    started_ms: int = Field(sa_type=BigInteger)
    answered_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When its model was first seen to answer; None: not yet, or nothing needed to know."""
    warned_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """The reset time of a limit that its account was near."""
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)
    exit_code: int | None = None
    check_result: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """Its check, once begun, as ``domain.run.CheckResult``; None: there was none."""
    outcome: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    ended_as: str | None = None
    """The outcome's status, or ``revoked``; None while live. Status, reason, tokens and dollars repeat values of the
    outcome, so that a hundred thousand runs can be summed from an index. For a live run, tokens and dollars are the
    last known usage, which is only read if a budget needs it."""
    reason: str | None = None
    input_tokens: int | None = Field(default=None, sa_type=BigInteger)
    output_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cost_usd: float | None = None
    in_vain: bool | None = None
    """Whether it met a known limit or an outage before its model answered, and so does not count for budgets."""
    over_budget: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    """The spent budget for which it is being, or was, stopped: ``domain.budget.SpentBudget`` as JSON; plain text in
    rows of earlier versions."""
    windows: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """The last reported use of its account's windows, by name, as ``domain.budget.WindowUse``."""
    windows_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When that was recorded."""
    specialist: str | None = None
    """The task's specialist at the start. This and the following columns repeat values that the task had then: they
    attribute costs even after it is routed again."""
    skill: str | None = None
    risk: str | None = None
    channel: str | None = None
    creator: str = by_operator()
    organisation: str | None = None


class Event(Row):
    """An event; append-only. The single writer assigns ids, so none becomes visible after a greater one."""

    __tablename__ = "event"
    # Without AUTOINCREMENT, SQLite reuses ids of deleted rows, and resuming readers would miss events.
    __table_args__ = (
        Index("ix_event_task", "task_id", "id"),
        partial_index("ix_event_by", "by", "id", where='"by" IS NOT NULL'),
        partial_index("ix_event_settled", "kind", "id", where=SETTLED),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    at_ms: int = Field(sa_type=BigInteger)
    task_id: str | None = None
    run_id: str | None = None
    kind: str
    by: str | None = None
    """The principal whose request caused it; None: the daemon itself."""
    data: dict[str, Any] = Field(sa_column=shown_json_column())
