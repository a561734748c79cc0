"""Labels count once."""

import sqlalchemy as sa
from alembic import op

revision = "0019_labels_count_once"
down_revision = "0018_admitted_cards"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    with op.batch_alter_table("label", schema=None) as batch_op:
        batch_op.add_column(sa.Column("counted", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("counted_as", sa.Integer(), nullable=True))
    op.execute(
        "UPDATE label SET counted = label.verdict, counted_as = numbered.number FROM ("
        "SELECT decision_id, row_number() OVER ("
        "PARTITION BY organisation, specialist ORDER BY learned_ms, at_ms, decision_id) AS number FROM label "
        "WHERE learned_ms IS NOT NULL AND forgotten_ms IS NULL AND verdict <> 'neutral' AND specialist IS NOT NULL"
        ") AS numbered WHERE numbered.decision_id = label.decision_id"
    )
