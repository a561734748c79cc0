"""Tables of snapshots and decisions, and of what decisions depend on: holds and answers about tiers."""

from typing import Any

from sqlalchemy import BigInteger, Column, Index, LargeBinary
from sqlmodel import Field

from claudomator_py.store.tables.columns import Row, RowNumber, partial_index, shown_json_column, shown_text_column


class SnapshotRow(Row):
    """The snapshot of a tick that acted, addressed by its content."""

    __tablename__ = "snapshot"

    __table_args__ = (Index("ix_snapshot_created", "created_ms"),)

    hash: str = Field(primary_key=True)
    packed: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    """Its canonical JSON, compressed by zlib."""
    created_ms: int = Field(sa_type=BigInteger)


class Decision(Row):
    """A decision. Rows are immutable; a later decision is another row.

    specialist, skill, topic, confidence (0 to 1), latency_ms and cost_usd (US dollars) repeat values of the record for
    sums: None if the decision has no such value.
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
    """See ``scheduler.records.DecisionKind``."""
    task_id: str | None = None
    """The task, or None for a decision without one, such as that nobody answers a message."""
    generation: int | None = None
    """The task's generation that it is about."""
    run_id: str | None = None
    """The run that it started, if any; a decision may outlive it."""
    supersedes: str | None = None
    """The former decision on the same question, which retention may have removed; None: this is the first."""
    by: str | None = None
    """The principal who decided; None: the daemon."""
    organisation: str | None = None
    """The organisation of the task or channel."""
    at_ms: int = Field(sa_type=BigInteger)
    input_ref: str | None = None
    """A reference to the input, such as ``task:<id>/<revision>``; never its text."""
    snapshot_hash: str | None = None
    """The tick's snapshot, which retention may have removed; None: it was not decided in a tick."""
    specialist: str | None = None
    skill: str | None = None
    topic: str | None = None
    """The normalised subject area of the task."""
    confidence: float | None = None
    latency_ms: int | None = Field(default=None, sa_type=BigInteger)
    cost_usd: float | None = None
    data: dict[str, Any] = Field(sa_column=shown_json_column())
    """The record, see ``scheduler.records``."""


class HoldRow(Row):
    """A hold: nothing is started on a bucket of quota, until a time or until it is released."""

    __tablename__ = "hold"
    __table_args__ = (partial_index("ix_hold_open", "until_ms", where="released_ms IS NULL"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=RowNumber)
    agent: str | None = None
    """Set for a hold on one agent; otherwise kind and account name the quota."""
    kind: str | None = None
    account: str | None = None
    family: str | None = None
    """Models that it applies to, by part of their names; None: all, see ``domain.limits.in_family``."""
    window: str | None = None
    """The account's window that is used up, if it is named."""
    reason: str | None = None
    until_ms: int | None = Field(default=None, sa_type=BigInteger)
    provenance: str
    source: str = Field(sa_column=shown_text_column())
    run_id: str | None = None
    created_ms: int = Field(sa_type=BigInteger)
    released_ms: int | None = Field(default=None, sa_type=BigInteger)
    doubted_ms: int | None = Field(default=None, sa_type=BigInteger)
    """The reset that was named and ignored as too far away, in epoch milliseconds."""
    met: int | None = None
    """How many runs have met it."""
    met_ms: int | None = Field(default=None, sa_type=BigInteger)
    """When the last of them ended."""


class ClassificationRow(Row):
    """A question about a task's tier; at most one per generation."""

    __tablename__ = "classification"
    __table_args__ = (
        partial_index("ix_classification_open", "deadline_ms", where="answered_ms IS NULL"),
        partial_index("ix_classification_answered", "source", "cause", where="source IS NOT NULL"),
    )

    task_id: str = Field(primary_key=True, foreign_key="task.id")
    generation: int = Field(primary_key=True)
    agent: str
    """The agent that was tentatively picked."""
    model: str
    cache_key: str
    asked_ms: int = Field(sa_type=BigInteger)
    deadline_ms: int = Field(sa_type=BigInteger)
    """After this time the task starts without an answer. Stored, so that a crash does not restart the wait."""
    answered_ms: int | None = Field(default=None, sa_type=BigInteger)
    source: str | None = None
    """``classifier``, ``cache`` or ``default``, once answered."""
    tier: str | None = None
    cause: str | None = None
    """Why the default was used."""
    detail: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    said_agent: str | None = Field(default=None, sa_column=shown_text_column(nullable=True))
    """The agent that the answer proposed, which is only recorded."""


class TierAnswer(Row):
    """The cache of answers, by a hash of all that an answer depends on."""

    __tablename__ = "tier_answer"

    key: str = Field(primary_key=True)
    tier: str
    reason: str = Field(sa_column=shown_text_column())
    created_ms: int = Field(sa_type=BigInteger)
