"""Channels, who takes part, what is written there and who is to answer it."""

import sqlalchemy as sa
from alembic import op

revision = "0009_channels"
down_revision = "0008_learning"

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.create_table(
        "channel",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("primary_agent", sa.String(), nullable=True),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("creator", sa.String(), nullable=False),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel")),
    )
    alone, shared = sa.text("organisation IS NULL"), sa.text("organisation IS NOT NULL")
    op.create_index("uq_channel_name", "channel", ["name"], unique=True, sqlite_where=alone, postgresql_where=alone)
    op.create_index(
        "uq_channel_organisation_name",
        "channel",
        ["organisation", "name"],
        unique=True,
        sqlite_where=shared,
        postgresql_where=shared,
    )
    op.create_table(
        "channel_member",
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("username", sa.String(), nullable=True),
        sa.Column("display_name", sa.String(), nullable=True),
        sa.Column("muted_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("joined_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("channel_id", "id", name=op.f("pk_channel_member")),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_channel_member_channel_id")),
    )
    op.create_table(
        "channel_message",
        sa.Column("id", _ROW_NUMBER, nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("reply_to", _ROW_NUMBER, nullable=True),
        sa.Column("attachments", sa.JSON(), nullable=False),
        sa.Column("hops", sa.Integer(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("decision", sa.JSON(), nullable=False),
        sa.Column("shadow", sa.JSON(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("marked_by", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel_message")),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_channel_message_channel_id")),
    )
    op.create_index("ix_message_channel", "channel_message", ["channel_id", "id"])
    op.create_index("ix_message_reason", "channel_message", ["channel_id", "reason", "created_ms"])
    external = sa.text("external_id IS NOT NULL")
    op.create_index(
        "uq_message_external",
        "channel_message",
        ["channel_id", "external_id"],
        unique=True,
        sqlite_where=external,
        postgresql_where=external,
    )
    op.create_table(
        "channel_answer",
        sa.Column("message_id", _ROW_NUMBER, nullable=False),
        sa.Column("specialist", sa.String(), nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("skipped", sa.String(), nullable=True),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("given_id", _ROW_NUMBER, nullable=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("message_id", "specialist", name=op.f("pk_channel_answer")),
        sa.ForeignKeyConstraint(["message_id"], ["channel_message.id"], name=op.f("fk_channel_answer_message_id")),
    )
    op.create_index("ix_answer_member", "channel_answer", ["channel_id", "specialist", "at_ms"])
    op.create_index("ix_answer_given", "channel_answer", ["given_id"])
    asked = sa.text("state = 'asked'")
    op.create_index("ix_answer_open", "channel_answer", ["task_id"], sqlite_where=asked, postgresql_where=asked)
