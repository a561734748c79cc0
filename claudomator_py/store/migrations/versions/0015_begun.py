"""Who has a turn in a thread is read from the index of begun tasks alone, whichever order the indexes were made in."""

import sqlalchemy as sa
from alembic import op

revision = "0015_begun"
down_revision = "0014_hints"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    begun = sa.text("seq > 0")
    columns = ["state", "reason", "thread", "rank_ms", "created_ms", "id", "seq"]
    op.drop_index("ix_task_begun", table_name="task")
    op.create_index("ix_task_begun", "task", columns, sqlite_where=begun, postgresql_where=begun)
