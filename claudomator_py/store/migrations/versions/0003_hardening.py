"""Hardening."""

import sqlalchemy as sa
from alembic import op

revision = "0003_hardening"
down_revision = "0002_nights"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("check_result", sa.JSON(none_as_null=True), nullable=True))
