"""Decisions outlive what they are about, and snapshots are compressed."""

import json
import zlib
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0012_replay"
down_revision = "0011_run_requests"

_BATCH_SIZE = 200


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    with op.batch_alter_table("decision", schema=None) as batch_op:
        batch_op.drop_constraint("fk_decision_run_id", type_="foreignkey")
        batch_op.drop_constraint("fk_decision_snapshot_hash", type_="foreignkey")
    op.create_index("ix_decision_time", "decision", ["at_ms", "id"])
    op.add_column("snapshot", sa.Column("packed", sa.LargeBinary(), nullable=True))
    _pack()
    with op.batch_alter_table("snapshot", schema=None) as batch_op:
        batch_op.alter_column("packed", existing_type=sa.LargeBinary(), nullable=False)
        batch_op.drop_column("data")
    op.create_index("ix_snapshot_created", "snapshot", ["created_ms"])


def _pack() -> None:
    """As ``store.decision_rows.PackedSnapshot`` writes it, under the address that it has."""
    connection = op.get_bind()
    stored = sa.table(
        "snapshot", sa.column("hash"), sa.column("data", sa.JSON()), sa.column("packed", sa.LargeBinary())
    )
    unpacked = sa.select(stored.c.hash, stored.c.data).where(stored.c.packed.is_(None)).limit(_BATCH_SIZE)
    change = stored.update().where(stored.c.hash == sa.bindparam("address")).values(packed=sa.bindparam("content"))
    while rows := connection.execute(unpacked).all():
        connection.execute(change, [{"address": row.hash, "content": _packed(row.data)} for row in rows])


def _packed(data: Any) -> bytes:
    return zlib.compress(json.dumps(data, sort_keys=True, separators=(",", ":")).encode(), 1)
