"""What a task's creator calls the conversation that it belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0016_context"
down_revision = "0015_begun"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("task", sa.Column("context", sa.String(), nullable=True))
    columns, named = ["creator", "context", "created_ms", "id"], sa.text("context IS NOT NULL")
    op.create_index("ix_task_context", "task", columns, sqlite_where=named, postgresql_where=named)
