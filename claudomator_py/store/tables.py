"""The tables. Times are epoch milliseconds; JSON columns hold values of ``core`` as pydantic dumps them.
Columns that people may see are of the types of ``store.shown``: what is written to them is without secrets.

State, counts and limits are always queried from these rows; nothing is counted up and down.
"""

from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Computed, Index, Integer, String, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.store.shown import ShownJson, ShownText

RowNumber: Any = BigInteger().with_variant(Integer, "sqlite")

SQLModel.metadata.naming_convention = {
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
}


def _json(*, nullable: bool = False) -> Any:
    return Column(JSON(none_as_null=True), nullable=nullable)


def _shown_json(*, nullable: bool = False) -> Any:
    return Column(ShownJson(), nullable=nullable)


def _shown_text(*, nullable: bool = False) -> Any:
    return Column(ShownText(), nullable=nullable)


def _by_operator() -> Any:
    """Rows of before there were principals were all made by the operator."""
    return Field(default=OPERATOR.id, sa_column_kwargs={"server_default": OPERATOR.id})


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


LANE = "eligibility || " + " || ".join(
    f"'|' || coalesce({column}, '')" for column in ("tier", "asked_tier", "failed_on", "failed_for")
)
_IN_ORDER = ("rank_ms", "created_ms", "id")


class Task(SQLModel, table=True):
    """What an operator wants, and where it stands."""

    __tablename__ = "task"
    __table_args__ = (
        # The state comes first although it is the same in all: else SQLite takes the index on the state alone.
        _partial("ix_task_lane", "state", "lane", *_IN_ORDER, "dir_key", "thread", where="state = 'QUEUED'"),
        _partial("ix_task_place", "state", "lane", "dir_key", "id", where="state = 'QUEUED'"),
        _partial("ix_task_begun", "state", "reason", "thread", *_IN_ORDER, where="seq > 0"),
        _partial("ix_task_due", "state", "until_ms", where="state = 'WAITING'"),
        _partial("ix_task_running", "id", where="state = 'RUNNING'"),
        _partial("ix_task_thread", "state", "thread", where="thread IS NOT NULL"),
        _partial("ix_task_kept", "state", "kept_until_ms", "dir_key", "id", where="kept_until_ms IS NOT NULL"),
        _partial("ix_task_intent", "id", where="cancel_requested_ms IS NOT NULL OR restart_requested IS NOT NULL"),
        Index("ix_task_name", "name", "created_ms"),
        Index("ix_task_created", "created_ms", "id"),
        Index("ix_task_state", "state", "created_ms", "id"),
        _partial("ix_task_organisation", "organisation", "created_ms", "id", where="organisation IS NOT NULL"),
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
    """The queue's order, see ``domain.readiness.rank``."""
    eligibility: str
    """What its content and its conversation say of the agents that can take it, see ``scheduler.lanes``."""
    asked_tier: str | None = None
    """What came of the question for its tier in this generation: ``open``, ``default`` or the tier; None: it was
    not asked."""
    failed_on: str | None = None
    """The agent on which its last run did not get its model, and why."""
    failed_for: str | None = None
    """See ``failed_on``."""
    lane: str | None = Field(default=None, sa_column=Column(String, Computed(LANE)))
    """Eligibility, tiers, failed model and constraints in one text. Tasks of one lane are held back by the same limits
    and slots, wherever they work."""
    dir_key: str
    """The directory that one run at a time may use; empty for a scratch folder."""
    tier: str | None = None
    """Kept over retries."""
    tags: list[str] = Field(sa_column=_json())
    source: str
    file_path: str | None = None
    last_run_id: str | None = None
    cancel_requested_ms: int | None = Field(default=None, sa_type=BigInteger)
    restart_requested: dict[str, Any] | None = Field(default=None, sa_column=_json(nullable=True))
    resume: dict[str, Any] | None = Field(default=None, sa_column=_json(nullable=True))
    """The conversation that its next run continues, see ``domain.conversation.ConversationRef``; None: a fresh
    one."""
    thread: str | None = None
    """The task that began the thread which this one continues, once that is known; None: its own."""
    asks: dict[str, Any] | None = Field(default=None, sa_column=_shown_json(nullable=True))
    """What a person is asked, or was asked last, see ``domain.inputs.InputRequest``."""
    kept_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """Until then its directory is kept for it although it does not run."""
    approved_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When a person approved this content in this generation."""
    granted_tools: dict[str, Any] | None = Field(default=None, sa_column=_json(nullable=True))
    """What a person allows it in addition in this generation, see ``domain.inputs.ToolGrant``."""
    creator: str = _by_operator()
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
    constraints: str | None = None
    """What routing and policy leave open of agents and tiers in this generation, as ``domain.routing.Constraints``
    writes it; part of its lane; None: everything."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)


class TaskRevision(SQLModel, table=True):
    """One version of a task's content, as parsed."""

    __tablename__ = "task_revision"

    task_id: str = Field(primary_key=True, foreign_key="task.id")
    revision: int = Field(primary_key=True)
    spec: dict[str, Any] = Field(sa_column=_json())
    content_hash: str
    dir_key: str
    derived_from: int | None = None
    """The revision that a restart made this one out of."""
    created_ms: int = Field(sa_type=BigInteger)


class TaskDependency(SQLModel, table=True):
    """A name that a task depends on, and the task it was bound to at first match."""

    __tablename__ = "task_dependency"
    __table_args__ = (
        Index("ix_dependency_bound", "depends_on_id"),
        _partial("ix_dependency_unbound", "name", where="depends_on_id IS NULL"),
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


class Run(SQLModel, table=True):
    """One attempt at a task."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("task_id", "generation", "attempt", "seq", name="uq_run_identity"),
        # As each database is asked: SQLite uses the index only for a condition that is written like this one.
        Index("uq_run_live", "task_id", unique=True, sqlite_where=text("live = 1"), postgresql_where=text("live")),
        Index("uq_run_thread", "thread", unique=True, sqlite_where=text("live = 1"), postgresql_where=text("live")),
        Index("ix_run_conversation", "conversation_id", "started_ms"),
        _partial("ix_run_scratch", "scratch_of", where="scratch_of IS NOT NULL"),
        Index("ix_run_task", "task_id", "started_ms"),
        # All but the least: else it would be taken for what is asked in the order of beginning.
        _partial("ix_run_spent", *_SPENT, where="state <> 'revoked'"),
        _partial("ix_run_windows", "kind", "account", "windows_ms", where="windows_ms IS NOT NULL"),
        _partial("ix_run_warned", "warned_until_ms", where="warned_until_ms IS NOT NULL"),
        _partial("ix_run_answered", "started_ms", where="answered_ms IS NOT NULL"),
        _partial("ix_run_ended", *_SUMMED, where="ended_as IS NOT NULL"),
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
    tier: str | None = None
    dir_key: str
    conversation_id: str | None = None
    """What its agent calls its conversation, as far as is known; of an ended run, None says that no later run can
    go on in it."""
    resumes: str | None = None
    """The run whose conversation it continues."""
    prior: dict[str, Any] | None = Field(default=None, sa_column=_json(nullable=True))
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
    """How often the check was begun; 0 before the first."""
    started_ms: int = Field(sa_type=BigInteger)
    answered_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When its model was first seen to answer, as far as anybody had to know."""
    warned_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    """Its account was near a limit then, which resets at that time."""
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)
    exit_code: int | None = None
    check_result: dict[str, Any] | None = Field(default=None, sa_column=_shown_json(nullable=True))
    """Its check, from when that was begun, as ``domain.run.CheckResult``; None: there was none."""
    outcome: dict[str, Any] | None = Field(default=None, sa_column=_shown_json(nullable=True))
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
    over_budget: str | None = Field(default=None, sa_column=_shown_text(nullable=True))
    """Why it is being stopped, or was: it used up a budget."""
    windows: dict[str, Any] | None = Field(default=None, sa_column=_shown_json(nullable=True))
    """What its account's windows were used up to when it last said so, by name, as ``domain.budget.WindowUse``."""
    windows_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When that was noted."""
    specialist: str | None = None
    """Those of its task when it was started, so that what runs cost can be attributed without their tasks, which
    may be routed anew since."""
    skill: str | None = None
    """See ``specialist``."""
    risk: str | None = None
    """See ``specialist``."""
    channel: str | None = None
    """See ``specialist``."""
    creator: str = _by_operator()
    """See ``specialist``."""
    organisation: str | None = None
    """See ``specialist``."""


class Event(SQLModel, table=True):
    """What happened, append-only. The id is given under the one writer, so none becomes visible late."""

    __tablename__ = "event"
    # Without AUTOINCREMENT SQLite gives the ids of deleted rows again, and readers that resume would miss events.
    __table_args__ = (
        Index("ix_event_task", "task_id", "id"),
        _partial("ix_event_by", "by", "id", where='"by" IS NOT NULL'),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    at_ms: int = Field(sa_type=BigInteger)
    task_id: str | None = None
    run_id: str | None = None
    kind: str
    by: str | None = None
    """The principal whose request caused it; None: the daemon itself."""
    data: dict[str, Any] = Field(sa_column=_shown_json())


class Snapshot(SQLModel, table=True):
    """What a tick that acted had observed, addressed by its content."""

    __tablename__ = "snapshot"

    hash: str = Field(primary_key=True)
    data: dict[str, Any] = Field(sa_column=_json())
    created_ms: int = Field(sa_type=BigInteger)


class Decision(SQLModel, table=True):
    """Something that was decided: written once and never changed. What is decided otherwise later is another row.

    specialist, skill, topic, confidence (0 to 1), latency_ms, cost_usd (US dollars) repeat what the record says, for
    sums: None where the decision is about no such thing, took no time worth telling, or cost nothing.
    """

    __tablename__ = "decision"
    __table_args__ = (
        Index("ix_decision_task", "task_id", "kind", "at_ms"),
        Index("ix_decision_run", "run_id"),
        Index("ix_decision_at", "kind", "at_ms"),
        Index("ix_decision_snapshot", "snapshot_hash"),
        _partial("uq_decision_placement", "run_id", where="kind = 'placement'", unique=True),
        _partial("uq_decision_supersedes", "supersedes", where="supersedes IS NOT NULL", unique=True),
    )

    id: str = Field(primary_key=True)
    kind: str
    """What was decided, see ``scheduler.decision.DecisionKind``."""
    task_id: str | None = None
    """For which task; None: for none, as nobody is to answer a message."""
    generation: int | None = None
    """See ``task_id``."""
    run_id: str | None = Field(default=None, foreign_key="run.id")
    """The run that it started, where it did."""
    supersedes: str | None = None
    """The decision that stood in its place until then, which may have been removed for its age; None: the first."""
    by: str | None = None
    """The principal who decided; None: the daemon."""
    organisation: str | None = None
    """That of the task or the channel."""
    at_ms: int = Field(sa_type=BigInteger)
    input_ref: str | None = None
    """What was decided on, by reference and never in words: ``task:<id>/<revision>``."""
    snapshot_hash: str | None = Field(default=None, foreign_key="snapshot.hash")
    """What the tick had observed; None: it was not decided in a tick."""
    specialist: str | None = None
    skill: str | None = None
    topic: str | None = None
    """The normalised subject area of the task."""
    confidence: float | None = None
    latency_ms: int | None = Field(default=None, sa_type=BigInteger)
    cost_usd: float | None = None
    data: dict[str, Any] = Field(sa_column=_shown_json())
    """The record, see ``scheduler.decision``."""


class Hold(SQLModel, table=True):
    """A reason not to start anything on a bucket, until a time or until it is released."""

    __tablename__ = "hold"
    __table_args__ = (_partial("ix_hold_open", "until_ms", where="released_ms IS NULL"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    agent: str | None = None
    """That agent alone; else kind and account say on whose quota it is."""
    kind: str | None = None
    account: str | None = None
    family: str | None = None
    """See ``domain.limits``."""
    window: str | None = None
    """See ``family``."""
    reason: str | None = None
    until_ms: int | None = Field(default=None, sa_type=BigInteger)
    provenance: str
    source: str = Field(sa_column=_shown_text())
    run_id: str | None = None
    created_ms: int = Field(sa_type=BigInteger)
    released_ms: int | None = Field(default=None, sa_type=BigInteger)
    doubted_ms: int | None = Field(default=None, sa_type=BigInteger)
    """See ``family``."""
    met: int | None = None
    """How many runs have met it."""
    met_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When the last of them ended."""


class Classification(SQLModel, table=True):
    """One question for a tier, at most one a generation."""

    __tablename__ = "classification"
    __table_args__ = (
        _partial("ix_classification_open", "deadline_ms", where="answered_ms IS NULL"),
        _partial("ix_classification_answered", "source", "cause", where="source IS NOT NULL"),
    )

    task_id: str = Field(primary_key=True, foreign_key="task.id")
    generation: int = Field(primary_key=True)
    agent: str
    """The tentative pick it was asked for."""
    model: str
    cache_key: str
    asked_ms: int = Field(sa_type=BigInteger)
    deadline_ms: int = Field(sa_type=BigInteger)
    """Past it the task starts without an answer; kept here so that a crash does not begin the wait again."""
    answered_ms: int | None = Field(default=None, sa_type=BigInteger)
    source: str | None = None
    """``classifier``, ``cache`` or ``default``, once answered."""
    tier: str | None = None
    cause: str | None = None
    """Why it is a default."""
    detail: str | None = Field(default=None, sa_column=_shown_text(nullable=True))
    said_agent: str | None = Field(default=None, sa_column=_shown_text(nullable=True))
    """What the answer said of the agent; recorded, and never acted on."""


class TierAnswer(SQLModel, table=True):
    """The cache of answers, by the hash of all that an answer depends on."""

    __tablename__ = "tier_answer"

    key: str = Field(primary_key=True)
    tier: str
    reason: str = Field(sa_column=_shown_text())
    created_ms: int = Field(sa_type=BigInteger)


class InboxFile(SQLModel, table=True):
    """A file of the inbox as it was when it was last accepted."""

    __tablename__ = "inbox_file"

    path: str = Field(primary_key=True)
    mtime_ns: int = Field(sa_type=BigInteger)
    size: int = Field(sa_type=BigInteger)
    inode: int = Field(sa_type=BigInteger)
    accepted_ms: int = Field(sa_type=BigInteger)


class InboxDocument(SQLModel, table=True):
    """A document's identity, (path, name), the task or schedule it became and the content that it was last given."""

    __tablename__ = "inbox_document"
    __table_args__ = (Index("ix_document_task", "task_id"), Index("ix_document_name", "name"))

    path: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    task_id: str | None = Field(default=None, foreign_key="task.id")
    schedule_id: str | None = Field(default=None, foreign_key="schedule.id")
    content_hash: str
    gone_ms: int | None = Field(default=None, sa_type=BigInteger)


class Schedule(SQLModel, table=True):
    """A recurring task."""

    __tablename__ = "schedule"
    __table_args__ = (
        _partial("uq_schedule_name", "name", where="gone_ms IS NULL AND organisation IS NULL", unique=True),
        _partial(
            "uq_schedule_organisation_name",
            "organisation",
            "name",
            where="gone_ms IS NULL AND organisation IS NOT NULL",
            unique=True,
        ),
    )

    id: str = Field(primary_key=True)
    name: str
    spec: dict[str, Any] = Field(sa_column=_json())
    """The content, as parsed; its tasks are made of it."""
    cron: str
    """Its times, the zone written down even where the content leaves it to the machine."""
    timezone: str
    """See ``cron``."""
    source: str
    file_path: str | None = None
    """The file that it follows; None: made through the API, or of a file that was moved away."""
    last_ms: int = Field(sa_type=BigInteger)
    """Up to here its times are dealt with."""
    paused_ms: int | None = Field(default=None, sa_type=BigInteger)
    gone_ms: int | None = Field(default=None, sa_type=BigInteger)
    """It has ended, and its name is free."""
    creator: str = _by_operator()
    """As those of a task, and of the tasks that are made of it."""
    organisation: str | None = None
    """See ``creator``."""
    created_ms: int = Field(sa_type=BigInteger)
    updated_ms: int = Field(sa_type=BigInteger)


class ScheduleFire(SQLModel, table=True):
    """A time of a schedule that was dealt with, once: the task that was made, or why none was (skipped)."""

    __tablename__ = "schedule_fire"
    __table_args__ = (Index("ix_fire_task", "task_id"),)

    schedule_id: str = Field(primary_key=True, foreign_key="schedule.id")
    due_ms: int = Field(primary_key=True, sa_type=BigInteger)
    task_id: str | None = Field(default=None, foreign_key="task.id")
    skipped: str | None = None
    by: str
    at_ms: int = Field(sa_type=BigInteger)


class AnsweredRequest(SQLModel, table=True):
    """What a request with an idempotency key was answered, written in the transaction of the change that it made."""

    __tablename__ = "answered_request"
    __table_args__ = (
        UniqueConstraint("principal", "key", name="uq_answered_request_key"),
        Index("ix_answered_created", "created_ms"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    principal: str = _by_operator()
    """Who sent it; the keys of one say nothing of another's."""
    key: str
    fingerprint: str
    answer: dict[str, Any] = Field(sa_column=_shown_json())
    created_ms: int = Field(sa_type=BigInteger)


class Switch(SQLModel, table=True):
    """What an operator has switched on, by name; a row that is there means on. ``drain``: nothing is started."""

    __tablename__ = "switch"

    name: str = Field(primary_key=True)
    since_ms: int = Field(sa_type=BigInteger)
    reason: str | None = Field(default=None, sa_column=_shown_text(nullable=True))


class Outbox(SQLModel, table=True):
    """A notice on its way to one target: ``pending``, ``delivered``, or ``dead``, which an operator may send again."""

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("target", "event_id", name="uq_outbox_event"),
        _partial("ix_outbox_pending", "target", "next_ms", where="state = 'pending'"),
        Index("ix_outbox_state", "state", "id"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    target: str
    event_id: int = Field(sa_type=BigInteger)
    notice: dict[str, Any] = Field(sa_column=_shown_json())
    state: str = "pending"
    attempts: int = 0
    next_ms: int = Field(sa_type=BigInteger)
    error: str | None = Field(default=None, sa_column=_shown_text(nullable=True))
    created_ms: int = Field(sa_type=BigInteger)
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)


class OutboxCursor(SQLModel, table=True):
    """The last event that was looked at for a target."""

    __tablename__ = "outbox_cursor"

    target: str = Field(primary_key=True)
    event_id: int = Field(sa_type=BigInteger)


class ApiToken(SQLModel, table=True):
    """A token that was given out."""

    __tablename__ = "api_token"
    __table_args__ = (UniqueConstraint("name"), UniqueConstraint("hash"))

    id: str = Field(primary_key=True)
    name: str
    """The principal's id, never given twice."""
    hash: str
    """SHA-256 of the token, in hex."""
    role: str
    """The principal's."""
    organisation: str | None = None
    """See ``role``."""
    creator: str
    """Who made it."""
    created_ms: int = Field(sa_type=BigInteger)
    expires_ms: int | None = Field(default=None, sa_type=BigInteger)
    revoked_ms: int | None = Field(default=None, sa_type=BigInteger)
    used_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When it was last seen, to within an hour."""


class BrowserSession(SQLModel, table=True):
    """A browser that is logged in."""

    __tablename__ = "browser_session"
    __table_args__ = (UniqueConstraint("hash"),)

    id: str = Field(primary_key=True)
    hash: str
    """SHA-256 of what is in its cookie, in hex."""
    principal: str
    """Whose it is, by its id."""
    host: str
    """The only name by which the cookie counts."""
    issuer: str
    """A digest of the operator's token at that time; the session ends with that."""
    browser: str
    created_ms: int = Field(sa_type=BigInteger)
    used_ms: int = Field(sa_type=BigInteger)
    """When it was last seen, to within minutes."""
    expires_ms: int = Field(sa_type=BigInteger)
    """When it ends unless it is used."""
    ended_ms: int | None = Field(default=None, sa_type=BigInteger)


class Remembered(SQLModel, table=True):
    """What has to be known of rows that were removed for their age, and where the daemon works, by name."""

    __tablename__ = "remembered"

    name: str = Field(primary_key=True)
    data: dict[str, Any] = Field(sa_column=_json())


TASK = SQLModel.metadata.tables["task"]
TASK_REVISION = SQLModel.metadata.tables["task_revision"]
TASK_DEPENDENCY = SQLModel.metadata.tables["task_dependency"]
RUN = SQLModel.metadata.tables["run"]
EVENT = SQLModel.metadata.tables["event"]
SNAPSHOT = SQLModel.metadata.tables["snapshot"]
DECISION = SQLModel.metadata.tables["decision"]
HOLD = SQLModel.metadata.tables["hold"]
SCHEDULE = SQLModel.metadata.tables["schedule"]
SCHEDULE_FIRE = SQLModel.metadata.tables["schedule_fire"]
INBOX_FILE = SQLModel.metadata.tables["inbox_file"]
INBOX_DOCUMENT = SQLModel.metadata.tables["inbox_document"]
CLASSIFICATION = SQLModel.metadata.tables["classification"]
TIER_ANSWER = SQLModel.metadata.tables["tier_answer"]
ANSWERED_REQUEST = SQLModel.metadata.tables["answered_request"]
SWITCH = SQLModel.metadata.tables["switch"]
OUTBOX = SQLModel.metadata.tables["outbox"]
OUTBOX_CURSOR = SQLModel.metadata.tables["outbox_cursor"]
API_TOKEN = SQLModel.metadata.tables["api_token"]
BROWSER_SESSION = SQLModel.metadata.tables["browser_session"]
REMEMBERED = SQLModel.metadata.tables["remembered"]
