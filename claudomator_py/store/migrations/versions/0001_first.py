"""First."""

import sqlalchemy as sa
from alembic import op

revision = "0001_first"
down_revision = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.create_table(
        "answered_request",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("answer", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answered_request")),
        sa.UniqueConstraint("key", name=op.f("uq_answered_request_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_answered_created", "answered_request", ["created_ms"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_task", "event", ["task_id", "id"], unique=False)
    op.create_table(
        "hold",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("agent", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=True),
        sa.Column("account", sa.String(), nullable=True),
        sa.Column("family", sa.String(), nullable=True),
        sa.Column("window", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("until_ms", sa.BigInteger(), nullable=True),
        sa.Column("provenance", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("released_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hold")),
    )
    op.create_index(
        "ix_hold_open",
        "hold",
        ["until_ms"],
        unique=False,
        sqlite_where=sa.text("released_ms IS NULL"),
        postgresql_where=sa.text("released_ms IS NULL"),
    )
    op.create_table(
        "inbox_file",
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("accepted_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_inbox_file")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("notice", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("target", "event_id", name="uq_outbox_event"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_outbox_pending",
        "outbox",
        ["target", "next_ms"],
        unique=False,
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_index("ix_outbox_state", "outbox", ["state", "id"], unique=False)
    op.create_table(
        "outbox_cursor",
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("target", name=op.f("pk_outbox_cursor")),
    )
    op.create_table(
        "schedule",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("cron", sa.String(), nullable=False),
        sa.Column("timezone", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("file_path", sa.String(), nullable=True),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("paused_ms", sa.BigInteger(), nullable=True),
        sa.Column("gone_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule")),
    )
    op.create_index(
        "uq_schedule_name",
        "schedule",
        ["name"],
        unique=True,
        sqlite_where=sa.text("gone_ms IS NULL"),
        postgresql_where=sa.text("gone_ms IS NULL"),
    )
    op.create_table(
        "snapshot",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_snapshot")),
    )
    op.create_table(
        "switch",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_switch")),
    )
    op.create_table(
        "task",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("next_revision", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("until_ms", sa.BigInteger(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("rank_ms", sa.BigInteger(), nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("dir_key", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=True),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("file_path", sa.String(), nullable=True),
        sa.Column("last_run_id", sa.String(), nullable=True),
        sa.Column("cancel_requested_ms", sa.BigInteger(), nullable=True),
        sa.Column("restart_requested", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("resume", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
    )
    op.create_index("ix_task_created", "task", ["created_ms", "id"], unique=False)
    op.create_index(
        "ix_task_due",
        "task",
        ["until_ms"],
        unique=False,
        sqlite_where=sa.text("state = 'WAITING'"),
        postgresql_where=sa.text("state = 'WAITING'"),
    )
    op.create_index(
        "ix_task_intent",
        "task",
        ["id"],
        unique=False,
        sqlite_where=sa.text("cancel_requested_ms IS NOT NULL OR restart_requested IS NOT NULL"),
        postgresql_where=sa.text("cancel_requested_ms IS NOT NULL OR restart_requested IS NOT NULL"),
    )
    op.create_index(
        "ix_task_lane",
        "task",
        ["lane", "rank_ms"],
        unique=False,
        sqlite_where=sa.text("state = 'QUEUED'"),
        postgresql_where=sa.text("state = 'QUEUED'"),
    )
    op.create_index("ix_task_name", "task", ["name", "created_ms"], unique=False)
    op.create_index(
        "ix_task_runnable",
        "task",
        ["rank_ms", "created_ms", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'QUEUED'"),
        postgresql_where=sa.text("state = 'QUEUED'"),
    )
    op.create_index(
        "ix_task_running",
        "task",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state = 'RUNNING'"),
        postgresql_where=sa.text("state = 'RUNNING'"),
    )
    op.create_index("ix_task_state", "task", ["state", "created_ms", "id"], unique=False)
    op.create_table(
        "tier_answer",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_tier_answer")),
    )
    op.create_table(
        "classification",
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("cache_key", sa.String(), nullable=False),
        sa.Column("asked_ms", sa.BigInteger(), nullable=False),
        sa.Column("deadline_ms", sa.BigInteger(), nullable=False),
        sa.Column("answered_ms", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.String(), nullable=True),
        sa.Column("tier", sa.String(), nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("detail", sa.String(), nullable=True),
        sa.Column("said_agent", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_classification_task_id")),
        sa.PrimaryKeyConstraint("task_id", "generation", name=op.f("pk_classification")),
    )
    op.create_index(
        "ix_classification_answered",
        "classification",
        ["source", "cause"],
        unique=False,
        sqlite_where=sa.text("source IS NOT NULL"),
        postgresql_where=sa.text("source IS NOT NULL"),
    )
    op.create_index(
        "ix_classification_open",
        "classification",
        ["deadline_ms"],
        unique=False,
        sqlite_where=sa.text("answered_ms IS NULL"),
        postgresql_where=sa.text("answered_ms IS NULL"),
    )
    op.create_table(
        "inbox_document",
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("schedule_id", sa.String(), nullable=True),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("gone_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["schedule_id"], ["schedule.id"], name=op.f("fk_inbox_document_schedule_id")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_inbox_document_task_id")),
        sa.PrimaryKeyConstraint("path", "name", name=op.f("pk_inbox_document")),
    )
    op.create_index("ix_document_name", "inbox_document", ["name"], unique=False)
    op.create_index("ix_document_task", "inbox_document", ["task_id"], unique=False)
    op.create_table(
        "run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("tier", sa.String(), nullable=True),
        sa.Column("dir_key", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=True),
        sa.Column("resumes", sa.String(), nullable=True),
        sa.Column("prior", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scratch_of", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("check_seq", sa.Integer(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("answered_ms", sa.BigInteger(), nullable=True),
        sa.Column("warned_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("outcome", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("ended_as", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_run_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("task_id", "generation", "attempt", "seq", name="uq_run_identity"),
    )
    op.create_index(
        "ix_run_answered",
        "run",
        ["started_ms"],
        unique=False,
        sqlite_where=sa.text("answered_ms IS NOT NULL"),
        postgresql_where=sa.text("answered_ms IS NOT NULL"),
    )
    op.create_index(
        "ix_run_ended",
        "run",
        ["agent", "ended_as", "reason", "started_ms", "ended_ms", "input_tokens", "output_tokens", "cost_usd"],
        unique=False,
        sqlite_where=sa.text("ended_as IS NOT NULL"),
        postgresql_where=sa.text("ended_as IS NOT NULL"),
    )
    op.create_index("ix_run_task", "run", ["task_id", "started_ms"], unique=False)
    op.create_index(
        "ix_run_warned",
        "run",
        ["warned_until_ms"],
        unique=False,
        sqlite_where=sa.text("warned_until_ms IS NOT NULL"),
        postgresql_where=sa.text("warned_until_ms IS NOT NULL"),
    )
    op.create_index(
        "uq_run_live",
        "run",
        ["task_id"],
        unique=True,
        sqlite_where=sa.text("live = 1"),
        postgresql_where=sa.text("live"),
    )
    op.create_table(
        "schedule_fire",
        sa.Column("schedule_id", sa.String(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("skipped", sa.String(), nullable=True),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["schedule_id"], ["schedule.id"], name=op.f("fk_schedule_fire_schedule_id")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_schedule_fire_task_id")),
        sa.PrimaryKeyConstraint("schedule_id", "due_ms", name=op.f("pk_schedule_fire")),
    )
    op.create_index("ix_fire_task", "schedule_fire", ["task_id"], unique=False)
    op.create_table(
        "task_dependency",
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("depends_on_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["depends_on_id"], ["task.id"], name=op.f("fk_task_dependency_depends_on_id")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_task_dependency_task_id")),
        sa.PrimaryKeyConstraint("task_id", "name", name=op.f("pk_task_dependency")),
    )
    op.create_index("ix_dependency_bound", "task_dependency", ["depends_on_id"], unique=False)
    op.create_index(
        "ix_dependency_unbound",
        "task_dependency",
        ["name"],
        unique=False,
        sqlite_where=sa.text("depends_on_id IS NULL"),
        postgresql_where=sa.text("depends_on_id IS NULL"),
    )
    op.create_table(
        "task_revision",
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("dir_key", sa.String(), nullable=False),
        sa.Column("derived_from", sa.Integer(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_task_revision_task_id")),
        sa.PrimaryKeyConstraint("task_id", "revision", name=op.f("pk_task_revision")),
    )
    op.create_table(
        "decision",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("snapshot_hash", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_decision_run_id")),
        sa.ForeignKeyConstraint(["snapshot_hash"], ["snapshot.hash"], name=op.f("fk_decision_snapshot_hash")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_decision")),
    )
    op.create_index("ix_decision_task", "decision", ["task_id", "at_ms"], unique=False)
