"""Hardening."""

import json
import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003_hardening"
down_revision = "0002_nights"

_LANE = (
    "eligibility || '|' || coalesce(tier, '') || '|' || coalesce(asked_tier, '')"
    " || '|' || coalesce(failed_on, '') || '|' || coalesce(failed_for, '')"
)
_INDEXES = (
    ("ix_task_lane", ["state", "lane", "rank_ms", "created_ms", "id", "dir_key", "thread"], "state = 'QUEUED'"),
    ("ix_task_place", ["state", "lane", "dir_key", "id"], "state = 'QUEUED'"),
    ("ix_task_begun", ["state", "reason", "thread", "rank_ms", "created_ms", "id"], "seq > 0"),
    ("ix_task_due", ["state", "until_ms"], "state = 'WAITING'"),
    ("ix_task_kept", ["state", "kept_until_ms", "dir_key", "id"], "kept_until_ms IS NOT NULL"),
)
_ASKED = """
    UPDATE task SET asked_tier = (
        SELECT CASE WHEN c.answered_ms IS NULL THEN 'open' ELSE coalesce(c.tier, 'default') END
        FROM classification c WHERE c.task_id = task.id AND c.generation = task.generation
    )
"""
_FAILED = """
    UPDATE task SET {column} = (
        SELECT run.{value} FROM run
        WHERE run.id = task.last_run_id AND run.reason IN ('overloaded', 'invalid_model')
    )
    WHERE seq > 0
"""
_CONTENTS = """
    SELECT task.id, task.resume, task_revision.spec FROM task
    JOIN task_revision ON task_revision.task_id = task.id AND task_revision.revision = task.revision
    WHERE task.state IN ('WAITING', 'QUEUED', 'RUNNING', 'NEEDS_INPUT')
"""
_PLAIN_TOOL = re.compile(r"[\w*-]+")
_ELIGIBLE = "UPDATE task SET eligibility = :eligibility WHERE id = :id"


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
    _part_lanes_from_directories()


def _part_lanes_from_directories() -> None:
    """What was the lane becomes the part of it that only content and conversation decide; the rest is columns."""
    for name in ("ix_task_lane", "ix_task_runnable", "ix_task_due", "ix_task_kept"):
        op.drop_index(name, table_name="task")
    op.execute("ALTER TABLE task RENAME COLUMN lane TO eligibility")
    for column in ("asked_tier", "failed_on", "failed_for"):
        op.add_column("task", sa.Column(column, sa.String(), nullable=True))
    op.execute(_ASKED)
    for column, value in (("failed_on", "agent"), ("failed_for", "reason")):
        op.execute(_FAILED.format(column=column, value=value))
    connection = op.get_bind()
    for row in connection.execute(sa.text(_CONTENTS)).all():
        found = _eligibility(row.spec, row.resume)
        if found is not None:
            connection.execute(sa.text(_ELIGIBLE), {"id": row.id, "eligibility": found})
    # SQLite adds no column to a table that it would have to store; PostgreSQL has no index on one that it does not.
    stored = True if connection.dialect.name == "postgresql" else None
    op.add_column("task", sa.Column("lane", sa.String(), sa.Computed(_LANE, persisted=stored)))
    for name, columns, where in _INDEXES:
        op.create_index(name, "task", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _eligibility(spec: Any, resume: Any) -> str | None:
    """The eligibility as it was reckoned at this revision, on plain values: what reckons it later follows other rules.

    None: what was written long ago is not understood, and the task keeps a lane of its own.
    """
    try:
        content = json.loads(spec) if isinstance(spec, str) else spec
        told = json.loads(resume) if isinstance(resume, str) else resume
        hint = content.get("agent", {})
        parts: list[object] = [hint.get("type"), hint.get("strict", False), hint.get("tier"), hint.get("model")]
        if demanded := _demands(content):
            parts.append(demanded)
        if told is not None and not told.get("given_up", False):
            parts.append({"conversation": _held(told, content)})
        return json.dumps(parts, separators=(",", ":"))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _demands(content: dict[str, Any]) -> dict[str, object]:
    permissions, folders, env = content.get("permissions", {}), content.get("add_dirs", []), content.get("env", {})
    mode, sandbox = permissions.get("mode", "default"), env.get("IS_SANDBOX")
    variables = [] if sandbox is None else [f"IS_SANDBOX={'1' if sandbox == '1' else 'other'}"]
    budget = content.get("budget", {})
    found: dict[str, object] = {
        "mode": None if mode == "default" else mode,
        "allowed_tools": _shape(permissions.get("allowed_tools", [])),
        "disallowed_tools": _shape(permissions.get("disallowed_tools", [])),
        "max_turns": content.get("max_turns") is not None,
        "add_dirs": _shape(folders),
        "folder_patterns": any("*" in folder or "?" in folder for folder in folders),
        "budget": [unit for unit in ("usd", "tokens") if budget.get(unit) is not None],
        "env": [*variables, *(name for name in ("OPENCODE_PERMISSION",) if name in env)],
    }
    return {name: shape for name, shape in found.items() if shape}


def _shape(words: Sequence[str]) -> str:
    if not words:
        return ""
    plain = "plain" if all(_PLAIN_TOOL.fullmatch(word) for word in words) else "qualified"
    return f"{plain}, with commas" if any("," in word for word in words) else plain


def _held(told: dict[str, Any], content: dict[str, Any]) -> list[object]:
    yields = None
    if told.get("follows") is not None:
        yields = "limited" if content.get("on_limit", "failover") == "failover" else "unable"
    return [told["agent"], told["kind"], told.get("optional", False), yields]
