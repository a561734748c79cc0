"""Tasks, their content, what they depend on, their runs, and the events of all of them."""

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
"""As ``domain.principal.tenant_of`` says it."""
_DECIDING = ("tier", "asked_tier", "failed_on", "failed_for", "constraints")
LANE = " || ".join(("eligibility", *(f"'|' || coalesce({column}, '')" for column in _DECIDING)))
LANE += f" || coalesce(nullif('|' || {TENANT}, '|'), '')"
_IN_ORDER = ("rank_ms", "created_ms", "id")
SETTLED = "kind IN ('merged', 'discarded')"
"""What became of branches: few events among very many."""
ENDED = "state = 'CANCELLED' OR state = 'COMPLETED' OR state = 'FAILED'"


class Task(Row):
    """What an operator wants, and where it stands."""

    __tablename__ = "task"
    __table_args__ = (
        # The state comes first although it is the same in all: else SQLite takes the index on the state alone.
        partial_index("ix_task_lane", "state", "lane", *_IN_ORDER, "dir_key", "thread", where="state = 'QUEUED'"),
        partial_index("ix_task_place", "state", "tenant", "hint", "lane", "dir_key", "id", where="state = 'QUEUED'"),
        # With all that is asked for: else SQLite may take the index on the state, and read every queued task.
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
        # Each state by itself, and the condition written so: that is how SQLite knows that it may be used.
        partial_index("ix_task_ended", "state", "updated_ms", "id", where=ENDED),
        partial_index("ix_task_specialist", "specialist", "created_ms", "id", where="specialist IS NOT NULL"),
        partial_index("ix_task_parent", "parent_run", where="parent_run IS NOT NULL"),
        partial_index("ix_task_context", "creator", "context", "created_ms", "id", where="context IS NOT NULL"),
        partial_index("ix_task_organisation", "organisation", "created_ms", "id", where="organisation IS NOT NULL"),
    )

    id: str = Field(primary_key=True)
    name: str
    version: int = 1
    """Raised by every change; planned actions and edits compare and swap on it."""
    generation: int = 1
    """Raised by a restart and by changed content."""
    attempt: int = 0
    """Attempts used up in this generation."""
    seq: int = 0
    """Runs started in this generation."""
    revision: int = 1
    """The content this generation runs."""
    next_revision: int | None = None
    """Content that arrived while it was running."""
    state: str
    phase: str | None = None
    reason: str | None = None
    until_ms: int | None = Field(default=None, sa_type=BigInteger)
    priority: int
    rank_ms: int = Field(sa_type=BigInteger)
    """The queue's order, see ``domain.lifecycle.rank``."""
    eligibility: str
    """What its content and its conversation say of the agents that can take it, see ``scheduler.lanes``."""
    hint: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """Which agent it asks for, in one text, see ``scheduler.lanes``. Tasks of one lane have the same."""
    asked_tier: str | None = None
    """What came of the question for its tier in this generation: ``open``, ``default`` or the tier; None: it was
    not asked."""
    failed_on: str | None = None
    """The agent on which its last run did not get its model, and why."""
    failed_for: str | None = None
    """See ``failed_on``."""
    tenant: str | None = Field(default=None, sa_column=Column(String, Computed(TENANT)))
    """With whom it shares slots: an organisation, or a creator without one; empty for the operator's own."""
    lane: str | None = Field(default=None, sa_column=Column(String, Computed(LANE)))
    """Eligibility, tiers, failed model, constraints and tenant in one text. Tasks of one lane are held back by the same
    limits and slots, wherever they work."""
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
    """The conversation that its next run continues, see ``domain.conversation.ConversationRef``; None: a fresh
    one."""
    thread: str | None = None
    """The task that began the thread which this one continues, once that is known; None: its own."""
    context: str | None = None
    """What its creator calls the conversation that it belongs to; None: it has no name of theirs."""
    asks: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """What a person is asked, or was asked last, see ``domain.inputs.InputRequest``."""
    kept_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """Until then its directory is kept for it although it does not run."""
    approved_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When a person approved this content in this generation."""
    granted_tools: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    """What a person allows it in addition in this generation, see ``domain.inputs.ToolGrant``."""
    creator: str = by_operator()
    """The principal who made it."""
    organisation: str | None = None
    """The organisation that it belongs to; None: none."""
    specialist: str | None = None
    """Who does it, and what they are asked for, by the ids of their cards, once it is routed; None: nobody in
    particular."""
    skill: str | None = None
    """See ``specialist``."""
    risk: str | None = None
    """How much harm it could do, see ``domain.routing.Risk``; None: nobody has judged it."""
    channel: str | None = None
    """The channel of the message that it was made of."""
    parent_run: str | None = None
    """The run that made it; None: none did."""
    constraints: str | None = None
    """What routing and policy say of agents and tiers in this generation, as ``domain.routing.Constraints`` writes it;
    part of its lane; None: it is not routed."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)


class TaskRevision(Row):
    """One version of a task's content, as parsed."""

    __tablename__ = "task_revision"

    task_id: str = Field(primary_key=True, foreign_key="task.id")
    revision: int = Field(primary_key=True)
    spec: dict[str, Any] = Field(sa_column=json_column())
    content_hash: str
    dir_key: str
    derived_from: int | None = None
    """The revision that a restart made this one out of."""
    created_ms: int = Field(sa_type=BigInteger)


class TaskDependency(Row):
    """A name that a task depends on, and the task it was bound to at first match."""

    __tablename__ = "task_dependency"
    __table_args__ = (
        Index("ix_dependency_bound", "depends_on_id"),
        partial_index("ix_dependency_unbound", "name", where="depends_on_id IS NULL"),
    )

    task_id: str = Field(primary_key=True, foreign_key="task.id")
    name: str = Field(primary_key=True)
    depends_on_id: str | None = Field(default=None, foreign_key="task.id")


_SUMMED = (
    "agent",
    "ended_as",
    "reason",
    "started_ms",
    "ended_ms",
    "input_tokens",
    "output_tokens",
    "cost_usd",
)

_SPENT = ("started_ms", "agent", "state", "live", "input_tokens", "output_tokens", "cost_usd", "in_vain")


class Run(Row):
    """One attempt at a task."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("task_id", "generation", "attempt", "seq", name="uq_run_identity"),
        # As each database is asked: SQLite uses the index only for a condition that is written like this one.
        partial_index("uq_run_live", "task_id", where="live = 1", on_postgresql="live", unique=True),
        partial_index("uq_run_thread", "thread", where="live = 1", on_postgresql="live", unique=True),
        Index("ix_run_conversation", "conversation_id", "started_ms"),
        partial_index("ix_run_scratch", "scratch_of", where="scratch_of IS NOT NULL"),
        Index("ix_run_task", "task_id", "started_ms"),
        # All but the least: else it would be taken for what is asked in the order of beginning.
        partial_index("ix_run_spent", *_SPENT, where="state <> 'revoked'"),
        partial_index("ix_run_windows", "kind", "account", "windows_ms", where="windows_ms IS NOT NULL"),
        partial_index("ix_run_warned", "warned_until_ms", where="warned_until_ms IS NOT NULL"),
        partial_index("ix_run_answered", "started_ms", where="answered_ms IS NOT NULL"),
        partial_index("ix_run_default_model", "agent", "started_ms", where="model IS NULL AND ran_model IS NOT NULL"),
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
    """Whose quota it draws on, among those of its kind."""
    model: str | None = None
    """The one that it asked for; None: its agent chose."""
    ran_model: str | None = None
    """What its agent's program called the one that it ran on; of a live run, what its agent chose last."""
    tier: str | None = None
    dir_key: str
    conversation_id: str | None = None
    """What its agent calls its conversation, as far as is known; of an ended run, None says that no later run can
    continue in it."""
    resumes: str | None = None
    """The run whose conversation it continues."""
    asked: list[str] | None = Field(default=None, sa_column=shown_json_column(items=str, nullable=True))
    """What it asks a person, who is asked once it has ended, see ``domain.requests.QuestionRequest``."""
    progress: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """How far it said last that it is, as ``domain.requests.Progress``."""
    prior: dict[str, Any] | None = Field(default=None, sa_column=json_column(nullable=True))
    """What that conversation had used before, as ``domain.conversation.Usage``."""
    scratch_of: str | None = None
    """The run whose scratch folder it works in, if it needs one; None: its own."""
    thread: str | None = None
    """The task that began the thread, this run's own or the one that it continues; one live run a thread."""
    state: str
    """``starting`` (committed, perhaps not spawned), ``running``, ``checking``, ``ended``, ``revoked`` (given up
    before it started; it cost nothing)."""
    live: bool
    """It has not ended, as far as is known; one live run a task."""
    check_seq: int = 0
    """How often the check was begun. Of a live run that is its step: 0 is the agent, any other that check."""
    started_ms: int = Field(sa_type=BigInteger)
    answered_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When its model was first seen to answer, as far as anybody had to know."""
    warned_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """Its account was near a limit then, which resets at that time."""
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)
    exit_code: int | None = None
    check_result: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """Its check, from when that was begun, as ``domain.run.CheckResult``; None: there was none."""
    outcome: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    ended_as: str | None = None
    """The outcome's status, or ``revoked``; None while live. It, the reason, tokens and dollars repeat what the
    outcome says, so that a hundred thousand runs are summed from one index, and none of their texts is read. Tokens
    and dollars of a live run are what it had used when somebody looked, as far as a budget made them look."""
    reason: str | None = None
    input_tokens: int | None = Field(default=None, sa_type=BigInteger)
    output_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cost_usd: float | None = None
    in_vain: bool | None = None
    """Before its model said anything it met a limit that was known by then, or an outage, and counts as no run of a
    budget."""
    over_budget: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    """Why it is being stopped, or was: the budget that it used up, as ``domain.budget.SpentBudget`` in JSON; words in
    rows of earlier versions."""
    windows: dict[str, Any] | None = Field(default=None, sa_column=shown_json_column(nullable=True))
    """What its account's windows were used up to when it last said so, by name, as ``domain.budget.WindowUse``."""
    windows_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When that was noted."""
    specialist: str | None = None
    """Those of its task when it was started, so that what runs cost can be attributed without their tasks, which
    may be routed again since."""
    skill: str | None = None
    """See ``specialist``."""
    risk: str | None = None
    """See ``specialist``."""
    channel: str | None = None
    """See ``specialist``."""
    creator: str = by_operator()
    """See ``specialist``."""
    organisation: str | None = None
    """See ``specialist``."""


class Event(Row):
    """What happened, append-only. The id is given under the one writer, so none becomes visible late."""

    __tablename__ = "event"
    # Without AUTOINCREMENT SQLite gives the ids of deleted rows again, and readers that resume would miss events.
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
