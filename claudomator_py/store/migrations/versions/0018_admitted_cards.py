"""Which cards an administrator has admitted to the work of others: those that come from the daemon's own side."""

import sqlalchemy as sa
from alembic import op

revision = "0018_admitted_cards"
down_revision = "0017_ran_model"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("specialist", sa.Column("admitted_hash", sa.String(), nullable=True))
    op.add_column("specialist", sa.Column("admitted_by", sa.String(), nullable=True))
    op.execute(
        "UPDATE specialist SET admitted_hash = content_hash, admitted_by = creator"
        " WHERE source IN ('shipped', 'file') OR creator = 'operator'"
    )
