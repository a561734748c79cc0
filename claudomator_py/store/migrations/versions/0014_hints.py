"""Queued tasks that ask for one agent are together, and so are those of one specialist."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0014_hints"
down_revision = "0013_ended"

_UNENDED = "state IN ('WAITING', 'QUEUED', 'RUNNING', 'NEEDS_INPUT')"


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("task", sa.Column("hint", sa.String(), nullable=False, server_default=""))
    connection = op.get_bind()
    kinds = f"SELECT DISTINCT eligibility FROM task WHERE {_UNENDED}"  # noqa: S608 - a constant of this file
    found = connection.execute(sa.text(kinds)).scalars().all()
    for eligibility in found:
        if hint := _hint(eligibility):
            update = f"UPDATE task SET hint = :hint WHERE eligibility = :eligibility AND {_UNENDED}"  # noqa: S608 - likewise
            connection.execute(sa.text(update), {"hint": hint, "eligibility": eligibility})
    op.drop_index("ix_task_place", table_name="task")
    _index("ix_task_place", ["state", "hint", "lane", "dir_key", "id"], "state = 'QUEUED'")
    _index("ix_task_specialist", ["specialist", "created_ms", "id"], "specialist IS NOT NULL")


def _index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "task", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _hint(eligibility: str) -> str:
    """As it was reckoned at this revision; empty: none that keeps the task waiting, or one that is not understood."""
    try:
        agent_type, strict, *rest = json.loads(eligibility)
    except (TypeError, ValueError):
        return ""
    goes_on = any(isinstance(part, dict) and "conversation" in part for part in rest)
    return "" if goes_on else json.dumps([agent_type, strict], separators=(",", ":"))
