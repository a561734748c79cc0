"""Runs that ended in a span of time are found without a look at all that began in the month before it."""

import sqlalchemy as sa
from alembic import op

revision = "0023_run_ends"
down_revision = "0022_demands"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    where = sa.text("ended_ms IS NOT NULL")
    op.create_index("ix_run_end", "run", ["ended_ms"], sqlite_where=where, postgresql_where=where)
