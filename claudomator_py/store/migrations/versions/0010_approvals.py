"""What a person has to do by a time."""

import sqlalchemy as sa
from alembic import op

revision = "0010_approvals"
down_revision = "0009_channels"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    expiring = sa.text("state = 'NEEDS_INPUT' AND until_ms IS NOT NULL")
    op.create_index("ix_task_expiring", "task", ["state", "until_ms"], sqlite_where=expiring, postgresql_where=expiring)
