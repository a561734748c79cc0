"""What became of branches is found without a look at every event."""

import sqlalchemy as sa
from alembic import op

revision = "0021_settled_branches"
down_revision = "0020_tenants"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    where = sa.text("kind IN ('merged', 'discarded')")
    op.create_index("ix_event_settled", "event", ["kind", "id"], sqlite_where=where, postgresql_where=where)
