"""Indexes of queued tasks by what they demand of agents, and in the queue's order."""

import sqlalchemy as sa
from alembic import op

revision = "0022_demands"
down_revision = "0021_settled_branches"

_DEMAND = "CASE WHEN length(constraints) > 500 THEN '-' ELSE coalesce(constraints, '') END"
_INDEXES = (
    ("ix_task_place", ["state", "hint", "demand", "tenant", "lane", "dir_key", "id"]),
    ("ix_task_turn", ["state", "rank_ms", "created_ms", "id"]),
    ("ix_task_demand", ["state", "hint", "demand", "rank_ms", "created_ms", "id"]),
)


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.drop_index("ix_task_place", table_name="task")
    # SQLite adds no column to a table that it would have to store; PostgreSQL has no index on one that it does not.
    stored = True if op.get_bind().dialect.name == "postgresql" else None
    op.add_column("task", sa.Column("demand", sa.String(), sa.Computed(_DEMAND, persisted=stored)))
    where = sa.text("state = 'QUEUED'")
    for name, columns in _INDEXES:
        op.create_index(name, "task", columns, sqlite_where=where, postgresql_where=where)
