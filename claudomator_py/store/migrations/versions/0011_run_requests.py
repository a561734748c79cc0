"""What a run asks for while it lives: questions, tasks beside its own; and what it says of its progress."""

import sqlalchemy as sa
from alembic import op

revision = "0011_run_requests"
down_revision = "0010_approvals"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("run", sa.Column("asked", sa.JSON(), nullable=True))
    op.add_column("run", sa.Column("progress", sa.JSON(), nullable=True))
    op.add_column("task", sa.Column("parent_run", sa.String(), nullable=True))
    made = sa.text("parent_run IS NOT NULL")
    op.create_index("ix_task_parent", "task", ["parent_run"], sqlite_where=made, postgresql_where=made)
