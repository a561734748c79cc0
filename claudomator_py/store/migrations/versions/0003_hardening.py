"""Hardening."""

import sqlalchemy as sa
from alembic import op

revision = "0003_hardening"
down_revision = "0002_nights"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("check_result", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("in_vain", sa.Boolean(), nullable=True))
        batch_op.drop_index("ix_run_spent")
        batch_op.create_index(
            "ix_run_spent",
            ["started_ms", "agent", "state", "live", "input_tokens", "output_tokens", "cost_usd", "in_vain"],
            unique=False,
            sqlite_where=sa.text("state <> 'revoked'"),
            postgresql_where=sa.text("state <> 'revoked'"),
        )

    with op.batch_alter_table("hold", schema=None) as batch_op:
        batch_op.add_column(sa.Column("doubted_ms", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("met", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("met_ms", sa.BigInteger(), nullable=True))
