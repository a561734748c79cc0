"""Principals."""

import sqlalchemy as sa
from alembic import op

revision = "0004_principals"
down_revision = "0003_hardening"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.create_table(
        "api_token",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.Column("creator", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.Column("revoked_ms", sa.BigInteger(), nullable=True),
        sa.Column("used_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_api_token_hash")),
        sa.UniqueConstraint("name", name=op.f("uq_api_token_name")),
    )
    op.create_table(
        "browser_session",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("principal", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("browser", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("used_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_browser_session")),
        sa.UniqueConstraint("hash", name=op.f("uq_browser_session_hash")),
    )
    with op.batch_alter_table("answered_request", schema=None) as batch_op:
        batch_op.add_column(sa.Column("principal", sa.String(), nullable=False, server_default="operator"))
        batch_op.drop_constraint(batch_op.f("uq_answered_request_key"), type_="unique")
        batch_op.create_unique_constraint("uq_answered_request_key", ["principal", "key"])

    with op.batch_alter_table("event", schema=None) as batch_op:
        batch_op.add_column(sa.Column("by", sa.String(), nullable=True))
        batch_op.create_index(
            "ix_event_by",
            ["by", "id"],
            unique=False,
            sqlite_where=sa.text('"by" IS NOT NULL'),
            postgresql_where=sa.text('"by" IS NOT NULL'),
        )

    with op.batch_alter_table("schedule", schema=None) as batch_op:
        batch_op.add_column(sa.Column("creator", sa.String(), nullable=False, server_default="operator"))
        batch_op.add_column(sa.Column("organisation", sa.String(), nullable=True))
        batch_op.drop_index("uq_schedule_name")
        batch_op.create_index(
            "uq_schedule_name",
            ["name"],
            unique=True,
            sqlite_where=sa.text("gone_ms IS NULL AND organisation IS NULL"),
            postgresql_where=sa.text("gone_ms IS NULL AND organisation IS NULL"),
        )
        batch_op.create_index(
            "uq_schedule_organisation_name",
            ["organisation", "name"],
            unique=True,
            sqlite_where=sa.text("gone_ms IS NULL AND organisation IS NOT NULL"),
            postgresql_where=sa.text("gone_ms IS NULL AND organisation IS NOT NULL"),
        )

    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.add_column(sa.Column("creator", sa.String(), nullable=False, server_default="operator"))
        batch_op.add_column(sa.Column("organisation", sa.String(), nullable=True))
        batch_op.create_index(
            "ix_task_organisation",
            ["organisation", "created_ms", "id"],
            unique=False,
            sqlite_where=sa.text("organisation IS NOT NULL"),
            postgresql_where=sa.text("organisation IS NOT NULL"),
        )
