"""Labels of decisions, and how specialists have done."""

import sqlalchemy as sa
from alembic import op

revision = "0008_learning"
down_revision = "0007_specialists"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.create_table(
        "label",
        sa.Column("decision_id", sa.String(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("organisation", sa.String(), nullable=False),
        sa.Column("specialist", sa.String(), nullable=True),
        sa.Column("wanted", sa.String(), nullable=True),
        sa.Column("topic", sa.String(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("answer_chars", sa.Integer(), nullable=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("learned_ms", sa.BigInteger(), nullable=True),
        sa.Column("forgotten_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("decision_id", name=op.f("pk_label")),
    )
    op.create_index("ix_label_task", "label", ["task_id"])
    op.create_index("ix_label_at", "label", ["organisation", "at_ms"])
    unlearned = sa.text("learned_ms IS NULL")
    op.create_index("ix_label_unlearned", "label", ["at_ms"], sqlite_where=unlearned, postgresql_where=unlearned)
    op.create_table(
        "standing",
        sa.Column("organisation", sa.String(), nullable=False),
        sa.Column("specialist", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("performance", sa.Float(), nullable=False),
        sa.Column("positive", sa.Integer(), nullable=False),
        sa.Column("negative", sa.Integer(), nullable=False),
        sa.Column("last_success_ms", sa.BigInteger(), nullable=True),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "specialist", "topic", name=op.f("pk_standing")),
    )
