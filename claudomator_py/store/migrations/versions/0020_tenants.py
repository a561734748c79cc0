"""With whom a task shares slots: part of its lane, and first in the index by which lanes are found."""

import sqlalchemy as sa
from alembic import op

revision = "0020_tenants"
down_revision = "0019_labels_count_once"

_TENANT = (
    "CASE WHEN organisation IS NOT NULL THEN 'org:' || organisation "
    "WHEN creator IN ('operator', 'inbox') THEN '' ELSE 'by:' || creator END"
)
_LANE = (
    "eligibility || '|' || coalesce(tier, '') || '|' || coalesce(asked_tier, '')"
    " || '|' || coalesce(failed_on, '') || '|' || coalesce(failed_for, '') || '|' || coalesce(constraints, '')"
    f" || coalesce(nullif('|' || {_TENANT}, '|'), '')"
)
_INDEXES = (
    ("ix_task_lane", ["state", "lane", "rank_ms", "created_ms", "id", "dir_key", "thread"]),
    ("ix_task_place", ["state", "tenant", "hint", "lane", "dir_key", "id"]),
)


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    for name, _ in _INDEXES:
        op.drop_index(name, table_name="task")
    op.drop_column("task", "lane")
    # SQLite adds no column to a table that it would have to store; PostgreSQL has no index on one that it does not.
    stored = True if op.get_bind().dialect.name == "postgresql" else None
    for name, text in (("tenant", _TENANT), ("lane", _LANE)):
        op.add_column("task", sa.Column(name, sa.String(), sa.Computed(text, persisted=stored)))
    where = sa.text("state = 'QUEUED'")
    for name, columns in _INDEXES:
        op.create_index(name, "task", columns, sqlite_where=where, postgresql_where=where)
