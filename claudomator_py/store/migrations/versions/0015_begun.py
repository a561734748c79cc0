"""The whole schema as it was before the first release: what every database begins with, and no older one exists."""

import sqlalchemy as sa
from alembic import op

revision = "0015_begun"
down_revision = None

_LANE = (
    "eligibility || '|' || coalesce(tier, '') || '|' || coalesce(asked_tier, '')"
    " || '|' || coalesce(failed_on, '') || '|' || coalesce(failed_for, '') || '|' || coalesce(constraints, '')"
)

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
    """Bring the schema here from nothing."""
    postgresql = op.get_bind().dialect.name == "postgresql"
    stored = True if postgresql else None  # PostgreSQL has no index on a column that it does not store.
    op.create_table(
        "answered_request",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("principal", sa.String(), server_default="operator", nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("answer", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answered_request")),
        sa.UniqueConstraint("principal", "key", name="uq_answered_request_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_answered_created", "answered_request", ["created_ms"])
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
    op.create_table(
        "channel",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("primary_agent", sa.String(), nullable=True),
        sa.Column("settings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("creator", sa.String(), nullable=False),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel")),
    )
    _index("uq_channel_name", "channel", ["name"], "organisation IS NULL", unique=True)
    _index("uq_channel_organisation_name", "channel", ["organisation", "name"], "organisation IS NOT NULL", unique=True)
    op.create_table(
        "decision",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("generation", sa.Integer(), nullable=True),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("supersedes", sa.String(), nullable=True),
        sa.Column("by", sa.String(), nullable=True),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("input_ref", sa.String(), nullable=True),
        sa.Column("snapshot_hash", sa.String(), nullable=True),
        sa.Column("specialist", sa.String(), nullable=True),
        sa.Column("skill", sa.String(), nullable=True),
        sa.Column("topic", sa.String(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("latency_ms", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
    )
    op.create_index("ix_decision_at", "decision", ["kind", "at_ms"])
    op.create_index("ix_decision_run", "decision", ["run_id"])
    op.create_index("ix_decision_snapshot", "decision", ["snapshot_hash"])
    op.create_index("ix_decision_task", "decision", ["task_id", "kind", "at_ms"])
    op.create_index("ix_decision_time", "decision", ["at_ms", "id"])
    _index("uq_decision_placement", "decision", ["run_id"], "kind = 'placement'", unique=True)
    _index("uq_decision_supersedes", "decision", ["supersedes"], "supersedes IS NOT NULL", unique=True)
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
        "event",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=True),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sqlite_autoincrement=True,
    )
    _index("ix_event_by", "event", ["by", "id"], '"by" IS NOT NULL')
    op.create_index("ix_event_task", "event", ["task_id", "id"])
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
        sa.Column("doubted_ms", sa.BigInteger(), nullable=True),
        sa.Column("met", sa.Integer(), nullable=True),
        sa.Column("met_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hold")),
    )
    _index("ix_hold_open", "hold", ["until_ms"], "released_ms IS NULL")
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
    op.create_index("ix_label_at", "label", ["organisation", "at_ms"])
    op.create_index("ix_label_task", "label", ["task_id"])
    _index("ix_label_unlearned", "label", ["at_ms"], "learned_ms IS NULL")
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
    _index("ix_outbox_pending", "outbox", ["target", "next_ms"], "state = 'pending'")
    op.create_index("ix_outbox_state", "outbox", ["state", "id"])
    op.create_table(
        "outbox_cursor",
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("target", name=op.f("pk_outbox_cursor")),
    )
    op.create_table(
        "remembered",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_remembered")),
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
        sa.Column("creator", sa.String(), server_default="operator", nullable=False),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule")),
    )
    _index("uq_schedule_name", "schedule", ["name"], "gone_ms IS NULL AND organisation IS NULL", unique=True)
    _index(
        "uq_schedule_organisation_name",
        "schedule",
        ["organisation", "name"],
        "gone_ms IS NULL AND organisation IS NOT NULL",
        unique=True,
    )
    op.create_table(
        "snapshot",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_snapshot")),
    )
    op.create_index("ix_snapshot_created", "snapshot", ["created_ms"])
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
        sa.Column("eligibility", sa.String(), nullable=False),
        sa.Column("hint", sa.String(), server_default="", nullable=False),
        sa.Column("asked_tier", sa.String(), nullable=True),
        sa.Column("failed_on", sa.String(), nullable=True),
        sa.Column("failed_for", sa.String(), nullable=True),
        sa.Column("lane", sa.String(), sa.Computed(_LANE, persisted=stored), nullable=True),
        sa.Column("dir_key", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=True),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("file_path", sa.String(), nullable=True),
        sa.Column("last_run_id", sa.String(), nullable=True),
        sa.Column("cancel_requested_ms", sa.BigInteger(), nullable=True),
        sa.Column("restart_requested", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("resume", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("thread", sa.String(), nullable=True),
        sa.Column("asks", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("kept_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("approved_ms", sa.BigInteger(), nullable=True),
        sa.Column("granted_tools", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("creator", sa.String(), server_default="operator", nullable=False),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.Column("specialist", sa.String(), nullable=True),
        sa.Column("skill", sa.String(), nullable=True),
        sa.Column("risk", sa.String(), nullable=True),
        sa.Column("channel", sa.String(), nullable=True),
        sa.Column("parent_run", sa.String(), nullable=True),
        sa.Column("constraints", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
    )
    _index("ix_task_begun", "task", ["state", "reason", "thread", "rank_ms", "created_ms", "id", "seq"], "seq > 0")
    op.create_index("ix_task_created", "task", ["created_ms", "id"])
    _index("ix_task_due", "task", ["state", "until_ms"], "state = 'WAITING'")
    _index(
        "ix_task_ended",
        "task",
        ["state", "updated_ms", "id"],
        "state = 'CANCELLED' OR state = 'COMPLETED' OR state = 'FAILED'",
    )
    _index("ix_task_expiring", "task", ["state", "until_ms"], "state = 'NEEDS_INPUT' AND until_ms IS NOT NULL")
    _index("ix_task_intent", "task", ["id"], "cancel_requested_ms IS NOT NULL OR restart_requested IS NOT NULL")
    _index("ix_task_kept", "task", ["state", "kept_until_ms", "dir_key", "id"], "kept_until_ms IS NOT NULL")
    _index(
        "ix_task_lane",
        "task",
        ["state", "lane", "rank_ms", "created_ms", "id", "dir_key", "thread"],
        "state = 'QUEUED'",
    )
    op.create_index("ix_task_name", "task", ["name", "created_ms"])
    _index("ix_task_organisation", "task", ["organisation", "created_ms", "id"], "organisation IS NOT NULL")
    _index("ix_task_parent", "task", ["parent_run"], "parent_run IS NOT NULL")
    _index("ix_task_place", "task", ["state", "hint", "lane", "dir_key", "id"], "state = 'QUEUED'")
    _index("ix_task_running", "task", ["id"], "state = 'RUNNING'")
    _index("ix_task_specialist", "task", ["specialist", "created_ms", "id"], "specialist IS NOT NULL")
    op.create_index("ix_task_state", "task", ["state", "created_ms", "id"])
    _index("ix_task_thread", "task", ["state", "thread"], "thread IS NOT NULL")
    _index(
        "ix_task_unrouted", "task", ["state", "rank_ms", "created_ms", "id"], "state = 'QUEUED' AND constraints IS NULL"
    )
    op.create_table(
        "tier_answer",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_tier_answer")),
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
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_channel_member_channel_id")),
        sa.PrimaryKeyConstraint("channel_id", "id", name=op.f("pk_channel_member")),
    )
    op.create_table(
        "channel_message",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("reply_to", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("attachments", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("hops", sa.Integer(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("decision", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("shadow", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("marked_by", sa.String(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["channel_id"], ["channel.id"], name=op.f("fk_channel_message_channel_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel_message")),
    )
    op.create_index("ix_message_channel", "channel_message", ["channel_id", "id"])
    op.create_index("ix_message_reason", "channel_message", ["channel_id", "reason", "created_ms"])
    _index(
        "uq_message_external", "channel_message", ["channel_id", "external_id"], "external_id IS NOT NULL", unique=True
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
    _index("ix_classification_answered", "classification", ["source", "cause"], "source IS NOT NULL")
    _index("ix_classification_open", "classification", ["deadline_ms"], "answered_ms IS NULL")
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
    op.create_index("ix_document_name", "inbox_document", ["name"])
    op.create_index("ix_document_task", "inbox_document", ["task_id"])
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
        sa.Column("asked", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("prior", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scratch_of", sa.String(), nullable=True),
        sa.Column("thread", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("check_seq", sa.Integer(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("answered_ms", sa.BigInteger(), nullable=True),
        sa.Column("warned_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("check_result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("outcome", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("ended_as", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("in_vain", sa.Boolean(), nullable=True),
        sa.Column("over_budget", sa.String(), nullable=True),
        sa.Column("windows", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("windows_ms", sa.BigInteger(), nullable=True),
        sa.Column("specialist", sa.String(), nullable=True),
        sa.Column("skill", sa.String(), nullable=True),
        sa.Column("risk", sa.String(), nullable=True),
        sa.Column("channel", sa.String(), nullable=True),
        sa.Column("creator", sa.String(), server_default="operator", nullable=False),
        sa.Column("organisation", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_run_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("task_id", "generation", "attempt", "seq", name="uq_run_identity"),
    )
    _index("ix_run_answered", "run", ["started_ms"], "answered_ms IS NOT NULL")
    op.create_index("ix_run_conversation", "run", ["conversation_id", "started_ms"])
    _index(
        "ix_run_ended",
        "run",
        ["agent", "ended_as", "reason", "started_ms", "ended_ms", "input_tokens", "output_tokens", "cost_usd"],
        "ended_as IS NOT NULL",
    )
    _index("ix_run_scratch", "run", ["scratch_of"], "scratch_of IS NOT NULL")
    _index(
        "ix_run_spent",
        "run",
        ["started_ms", "agent", "state", "live", "input_tokens", "output_tokens", "cost_usd", "in_vain"],
        "state <> 'revoked'",
    )
    op.create_index("ix_run_task", "run", ["task_id", "started_ms"])
    _index("ix_run_warned", "run", ["warned_until_ms"], "warned_until_ms IS NOT NULL")
    _index("ix_run_windows", "run", ["kind", "account", "windows_ms"], "windows_ms IS NOT NULL")
    _index("uq_run_live", "run", ["task_id"], "live = 1", unique=True)
    _index("uq_run_thread", "run", ["thread"], "live = 1", unique=True)
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
    op.create_index("ix_fire_task", "schedule_fire", ["task_id"])
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
    op.create_table(
        "task_dependency",
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("depends_on_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["depends_on_id"], ["task.id"], name=op.f("fk_task_dependency_depends_on_id")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_task_dependency_task_id")),
        sa.PrimaryKeyConstraint("task_id", "name", name=op.f("pk_task_dependency")),
    )
    op.create_index("ix_dependency_bound", "task_dependency", ["depends_on_id"])
    _index("ix_dependency_unbound", "task_dependency", ["name"], "depends_on_id IS NULL")
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
        "channel_answer",
        sa.Column("message_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("specialist", sa.String(), nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("skipped", sa.String(), nullable=True),
        sa.Column("task_id", sa.String(), nullable=True),
        sa.Column("given_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["message_id"], ["channel_message.id"], name=op.f("fk_channel_answer_message_id")),
        sa.PrimaryKeyConstraint("message_id", "specialist", name=op.f("pk_channel_answer")),
    )
    op.create_index("ix_answer_given", "channel_answer", ["given_id"])
    op.create_index("ix_answer_member", "channel_answer", ["channel_id", "specialist", "at_ms"])
    _index("ix_answer_open", "channel_answer", ["task_id"], "state = 'asked'")
    for statement in _POSTGRESQL if postgresql else _SQLITE:
        op.execute(statement)


def _index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    """Make an index of the rows for which the condition holds."""
    here = where.removesuffix(" = 1")  # PostgreSQL compares no truth with a number.
    op.create_index(name, table, columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(here))
