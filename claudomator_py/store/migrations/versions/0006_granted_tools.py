"""The tools that a person granted a task, under a name that says so."""

import sqlalchemy as sa
from alembic import op

revision = "0006_granted_tools"
down_revision = "0005_decisions"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    # Said in SQL, which both databases take: alembic would copy the whole table on SQLite.
    op.execute(sa.text('ALTER TABLE task RENAME COLUMN "leave" TO granted_tools'))
