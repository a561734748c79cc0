"""Nights."""

import sqlalchemy as sa
from alembic import op

revision = "0002_nights"
down_revision = "0001_first"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.create_table(
        "remembered",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_remembered")),
    )
    with op.batch_alter_table("decision", schema=None) as batch_op:
        batch_op.create_index("ix_decision_snapshot", ["snapshot_hash"], unique=False)

    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("thread", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("over_budget", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("windows", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("windows_ms", sa.BigInteger(), nullable=True))
        batch_op.create_index("ix_run_conversation", ["conversation_id", "started_ms"], unique=False)
        batch_op.create_index(
            "ix_run_scratch",
            ["scratch_of"],
            unique=False,
            sqlite_where=sa.text("scratch_of IS NOT NULL"),
            postgresql_where=sa.text("scratch_of IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_run_spent",
            ["started_ms", "agent", "state", "live", "input_tokens", "output_tokens", "cost_usd"],
            unique=False,
            sqlite_where=sa.text("state <> 'revoked'"),
            postgresql_where=sa.text("state <> 'revoked'"),
        )
        batch_op.create_index(
            "ix_run_windows",
            ["kind", "account", "windows_ms"],
            unique=False,
            sqlite_where=sa.text("windows_ms IS NOT NULL"),
            postgresql_where=sa.text("windows_ms IS NOT NULL"),
        )
        batch_op.create_index(
            "uq_run_thread", ["thread"], unique=True, sqlite_where=sa.text("live = 1"), postgresql_where=sa.text("live")
        )

    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.add_column(sa.Column("thread", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("asks", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("kept_until_ms", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("approved_ms", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("leave", sa.JSON(none_as_null=True), nullable=True))
        batch_op.create_index(
            "ix_task_kept",
            ["kept_until_ms"],
            unique=False,
            sqlite_where=sa.text("kept_until_ms IS NOT NULL"),
            postgresql_where=sa.text("kept_until_ms IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_task_thread",
            ["state", "thread"],
            unique=False,
            sqlite_where=sa.text("thread IS NOT NULL"),
            postgresql_where=sa.text("thread IS NOT NULL"),
        )
