"""The tasks that ended last are found without sorting all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0013_ended"
down_revision = "0012_replay"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    ended = sa.text("state = 'CANCELLED' OR state = 'COMPLETED' OR state = 'FAILED'")
    op.create_index("ix_task_ended", "task", ["state", "updated_ms", "id"], sqlite_where=ended, postgresql_where=ended)
