"""Decisions."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005_decisions"
down_revision = "0004_principals"

_DECISIONS = uuid.UUID("0d0f5a52-5f0e-5c38-9c4e-6f6d0a1b7e55")
_BATCH_SIZE = 1_000
_LANE = (
    "eligibility || '|' || coalesce(tier, '') || '|' || coalesce(asked_tier, '')"
    " || '|' || coalesce(failed_on, '') || '|' || coalesce(failed_for, '') || '|' || coalesce(constraints, '')"
)
_LANE_INDEXES = (
    ("ix_task_lane", ["state", "lane", "rank_ms", "created_ms", "id", "dir_key", "thread"]),
    ("ix_task_place", ["state", "lane", "dir_key", "id"]),
)
_OF_TASKS = ("specialist", "skill", "risk", "channel")
_ATTRIBUTED = """
    UPDATE run SET
        creator = (SELECT task.creator FROM task WHERE task.id = run.task_id),
        organisation = (SELECT task.organisation FROM task WHERE task.id = run.task_id)
    WHERE EXISTS (
        SELECT 1 FROM task WHERE task.id = run.task_id
        AND (task.creator <> run.creator OR task.organisation IS NOT NULL)
    )
"""
_DECIDED = """
    SELECT decision.run_id, decision.task_id, run.generation, run.revision, run.organisation
    FROM decision JOIN run ON run.id = decision.run_id
    ORDER BY decision.task_id, run.generation, run.seq
"""
_TOLD = """
    UPDATE decision SET
        id = :id, generation = :generation, supersedes = :supersedes,
        input_ref = :input_ref, organisation = :organisation
    WHERE run_id = :run_id
"""


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    for column in (*_OF_TASKS, "constraints"):
        op.add_column("task", sa.Column(column, sa.String(), nullable=True))
    _put_constraints_in_lanes()
    for column in _OF_TASKS:
        op.add_column("run", sa.Column(column, sa.String(), nullable=True))
    op.add_column("run", sa.Column("creator", sa.String(), nullable=False, server_default="operator"))
    op.add_column("run", sa.Column("organisation", sa.String(), nullable=True))
    op.execute(_ATTRIBUTED)
    _part_decisions_from_runs()


def _put_constraints_in_lanes() -> None:
    for name, _ in _LANE_INDEXES:
        op.drop_index(name, table_name="task")
    op.drop_column("task", "lane")
    # SQLite adds no column to a table that it would have to store; PostgreSQL has no index on one that it does not.
    stored = True if op.get_bind().dialect.name == "postgresql" else None
    op.add_column("task", sa.Column("lane", sa.String(), sa.Computed(_LANE, persisted=stored)))
    where = sa.text("state = 'QUEUED'")
    for name, columns in _LANE_INDEXES:
        op.create_index(name, "task", columns, sqlite_where=where, postgresql_where=where)


def _part_decisions_from_runs() -> None:
    """Every decision there is placed a run: it gets an id of its own, and supersedes the one on its task before it."""
    for name in ("id", "input_ref", "supersedes", "by", "organisation", "specialist", "skill", "topic"):
        op.add_column("decision", sa.Column(name, sa.String(), nullable=True))
    op.add_column("decision", sa.Column("kind", sa.String(), nullable=False, server_default="placement"))
    op.add_column("decision", sa.Column("generation", sa.Integer(), nullable=True))
    op.add_column("decision", sa.Column("confidence", sa.Float(), nullable=True))
    op.add_column("decision", sa.Column("latency_ms", sa.BigInteger(), nullable=True))
    op.add_column("decision", sa.Column("cost_usd", sa.Float(), nullable=True))
    op.execute("UPDATE decision SET confidence = 1.0")  # what every one of them said
    connection = op.get_bind()
    for batch in _batches(list(_told(connection.execute(sa.text(_DECIDED)).all()))):
        connection.execute(sa.text(_TOLD), batch)
    with op.batch_alter_table("decision", schema=None) as batch_op:
        batch_op.drop_index("ix_decision_task")
        batch_op.drop_constraint("pk_decision", type_="primary")
        batch_op.alter_column("id", existing_type=sa.String(), nullable=False)
        batch_op.alter_column("kind", existing_type=sa.String(), server_default=None)
        batch_op.alter_column("task_id", existing_type=sa.String(), nullable=True)
        batch_op.alter_column("run_id", existing_type=sa.String(), nullable=True)
        batch_op.alter_column("snapshot_hash", existing_type=sa.String(), nullable=True)
        batch_op.create_primary_key("pk_decision", ["id"])
    op.create_index("ix_decision_task", "decision", ["task_id", "kind", "at_ms"])
    op.create_index("ix_decision_run", "decision", ["run_id"])
    op.create_index("ix_decision_at", "decision", ["kind", "at_ms"])
    for name, column, where in (
        ("uq_decision_placement", "run_id", "kind = 'placement'"),
        ("uq_decision_supersedes", "supersedes", "supersedes IS NOT NULL"),
    ):
        condition = sa.text(where)
        op.create_index(name, "decision", [column], unique=True, sqlite_where=condition, postgresql_where=condition)


def _told(rows: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """rows: in the order in which they were decided, those of a task together."""
    task_id = before = None
    for row in rows:
        decision_id = str(uuid.uuid5(_DECISIONS, f"placement/{row.run_id}"))
        yield {
            "run_id": row.run_id,
            "id": decision_id,
            "generation": row.generation,
            "supersedes": before if row.task_id == task_id else None,
            "input_ref": f"task:{row.task_id}/{row.revision}",
            "organisation": row.organisation,
        }
        task_id, before = row.task_id, decision_id


def _batches(values: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(values), _BATCH_SIZE):
        yield values[start : start + _BATCH_SIZE]
