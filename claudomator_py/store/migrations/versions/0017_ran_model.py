"""Runs say which model their agents' programs ran, so that a limit of it is known to be on those that named none."""

import sqlalchemy as sa
from alembic import op

revision = "0017_ran_model"
down_revision = "0016_context"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("ran_model", sa.String(), nullable=True))
    chosen = sa.text("model IS NULL AND ran_model IS NOT NULL")
    op.create_index(
        "ix_run_default_model", "run", ["agent", "started_ms"], sqlite_where=chosen, postgresql_where=chosen
    )
