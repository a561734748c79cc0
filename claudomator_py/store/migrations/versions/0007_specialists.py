"""Specialists, and the full text that they are found by."""

import sqlalchemy as sa
from alembic import op

revision = "0007_specialists"
down_revision = "0006_granted_tools"

# The text stays where it is; the triggers tell the index, in the words of SQLite's own documentation of FTS5.
_SQLITE = (
    """
    CREATE VIRTUAL TABLE specialist_text USING fts5(
        title, body, content='specialist_skill', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TRIGGER specialist_text_added AFTER INSERT ON specialist_skill BEGIN
        INSERT INTO specialist_text (rowid, title, body) VALUES (new.id, new.title, new.body);
    END
    """,
    """
    CREATE TRIGGER specialist_text_removed AFTER DELETE ON specialist_skill BEGIN
        INSERT INTO specialist_text (specialist_text, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
    END
    """,
    """
    CREATE TRIGGER specialist_text_changed AFTER UPDATE ON specialist_skill BEGIN
        INSERT INTO specialist_text (specialist_text, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
        INSERT INTO specialist_text (rowid, title, body) VALUES (new.id, new.title, new.body);
    END
    """,
)
_POSTGRESQL = (
    "CREATE INDEX specialist_text ON specialist_skill USING gin (to_tsvector('english', title || ' ' || body))",
)


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    unrouted = sa.text("state = 'QUEUED' AND constraints IS NULL")
    in_order = ["state", "rank_ms", "created_ms", "id"]
    op.create_index("ix_task_unrouted", "task", in_order, sqlite_where=unrouted, postgresql_where=unrouted)
    op.create_table(
        "embedding",
        sa.Column("encoder", sa.String(), nullable=False),
        sa.Column("text_hash", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("encoder", "text_hash", name=op.f("pk_embedding")),
    )
    op.create_table(
        "specialist",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("creator", sa.String(), nullable=False),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("file_path", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("card", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("shipped", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.Column("removed_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_specialist")),
    )
    op.create_table(
        "specialist_grant",
        sa.Column("specialist_id", sa.String(), nullable=False),
        sa.Column("grantee", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["specialist_id"], ["specialist.id"], name=op.f("fk_specialist_grant_specialist_id")),
        sa.PrimaryKeyConstraint("specialist_id", "grantee", name=op.f("pk_specialist_grant")),
    )
    op.create_index("ix_grant_grantee", "specialist_grant", ["grantee"])
    op.create_table(
        "specialist_skill",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("specialist_id", sa.String(), nullable=False),
        sa.Column("skill", sa.String(), nullable=True),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["specialist_id"], ["specialist.id"], name=op.f("fk_specialist_skill_specialist_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_specialist_skill")),
    )
    op.create_index("ix_specialist_skill", "specialist_skill", ["specialist_id"])
    for statement in _POSTGRESQL if op.get_bind().dialect.name == "postgresql" else _SQLITE:
        op.execute(statement)
