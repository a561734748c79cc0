"""What the scheduler has seen and decided, and what its decisions depend on: holds and answers for tiers."""

from typing import Any

from sqlalchemy import BigInteger, Column, Index, LargeBinary
from sqlmodel import Field

from claudomator_py.store.tables.columns import (
    Row,
    RowNumber,
    partial_index,
    shown_json_column,
    shown_text_column,
)


class SnapshotRow(Row):
    """What a tick that acted had observed, addressed by its content."""

    __tablename__ = "snapshot"

    __table_args__ = (Index("ix_snapshot_created", "created_ms"),)

    hash: str = Field(primary_key=True)
    packed: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    """Its canonical JSON, compressed by zlib."""
    created_ms: int = Field(sa_type=BigInteger)


class Decision(Row):
    """Something that was decided: written once and never changed. What is decided otherwise later is another row.

    specialist, skill, topic, confidence (0 to 1), latency_ms, cost_usd (US dollars) repeat what the record says, for
    sums: None where the decision is about no such thing, took no time worth telling, or cost nothing.
    """

    __tablename__ = "decision"
    __table_args__ = (
        Index("ix_decision_task", "task_id", "kind", "at_ms"),
        Index("ix_decision_run", "run_id"),
        Index("ix_decision_at", "kind", "at_ms"),
        Index("ix_decision_time", "at_ms", "id"),
        Index("ix_decision_snapshot", "snapshot_hash"),
        partial_index("uq_decision_placement", "run_id", where="kind = 'placement'", unique=True),
        partial_index("uq_decision_supersedes", "supersedes", where="supersedes IS NOT NULL", unique=True),
    )

    id: str = Field(primary_key=True)
    kind: str
    """What was decided, see ``scheduler.decision.DecisionKind``."""
    task_id: str | None = None
    """For which task; None: for none, as nobody is to answer a message."""
    generation: int | None = None
    """See ``task_id``."""
    run_id: str | None = None
    """The run that it started, where it did; a decision may outlive it."""
    supersedes: str | None = None
    """The decision that stood in its place until then, which may have been removed for its age; None: the first."""
    by: str | None = None
    """The principal who decided; None: the daemon."""
    organisation: str | None = None
    """That of the task or the channel."""
    at_ms: int = Field(sa_type=BigInteger)
    input_ref: str | None = None
    """What was decided on, by reference and never in words: ``task:<id>/<revision>``."""
    snapshot_hash: str | None = None
    """What the tick had observed, which may have been removed for its age; None: it was not decided in a tick."""
    specialist: str | None = None
    skill: str | None = None
    topic: str | None = None
    """The normalised subject area of the task."""
    confidence: float | None = None
    latency_ms: int | None = Field(default=None, sa_type=BigInteger)
    cost_usd: float | None = None
    data: dict[str, Any] = Field(sa_column=shown_json_column())
    """The record, see ``scheduler.decision``."""


class HoldRow(Row):
    """A reason not to start anything on a bucket, until a time or until it is released."""

    __tablename__ = "hold"
    __table_args__ = (partial_index("ix_hold_open", "until_ms", where="released_ms IS NULL"),)

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
    source: str = Field(sa_column=shown_text_column())
    run_id: str | None = None
    created_ms: int = Field(sa_type=BigInteger)
    released_ms: int | None = Field(default=None, sa_type=BigInteger)
    doubted_ms: int | None = Field(default=None, sa_type=BigInteger)
    """See ``family``."""
    met: int | None = None
    """How many runs have met it."""
    met_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When the last of them ended."""


class ClassificationRow(Row):
    """One question for a tier, at most one a generation."""

    __tablename__ = "classification"
    __table_args__ = (
        partial_index("ix_classification_open", "deadline_ms", where="answered_ms IS NULL"),
        partial_index("ix_classification_answered", "source", "cause", where="source IS NOT NULL"),
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
    detail: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    said_agent: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    """What the answer said of the agent; recorded, and never acted on."""


class TierAnswer(Row):
    """The cache of answers, by the hash of all that an answer depends on."""

    __tablename__ = "tier_answer"

    key: str = Field(primary_key=True)
    tier: str
    reason: str = Field(sa_column=shown_text_column())
    created_ms: int = Field(sa_type=BigInteger)
