"""Nights."""

import sqlalchemy as sa
from alembic import op

revision = "0002_nights"
down_revision = "0001_first"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("thread", sa.String(), nullable=True))
        batch_op.create_index("ix_run_conversation", ["conversation_id", "started_ms"], unique=False)
        batch_op.create_index(
            "uq_run_thread", ["thread"], unique=True, sqlite_where=sa.text("live = 1"), postgresql_where=sa.text("live")
        )

    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.add_column(sa.Column("thread", sa.String(), nullable=True))
