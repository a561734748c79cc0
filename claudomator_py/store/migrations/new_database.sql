CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE answered_request (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	principal VARCHAR DEFAULT 'operator' NOT NULL,
	"key" VARCHAR NOT NULL,
	fingerprint VARCHAR NOT NULL,
	answer JSON NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT uq_answered_request_key UNIQUE (principal, "key")
);
CREATE TABLE api_token (
	id VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	hash VARCHAR NOT NULL,
	role VARCHAR NOT NULL,
	organisation VARCHAR,
	creator VARCHAR NOT NULL,
	created_ms BIGINT NOT NULL,
	expires_ms BIGINT,
	revoked_ms BIGINT,
	used_ms BIGINT,
	CONSTRAINT pk_api_token PRIMARY KEY (id),
	CONSTRAINT uq_api_token_hash UNIQUE (hash),
	CONSTRAINT uq_api_token_name UNIQUE (name)
);
CREATE TABLE browser_session (
	id VARCHAR NOT NULL,
	hash VARCHAR NOT NULL,
	principal VARCHAR NOT NULL,
	host VARCHAR NOT NULL,
	issuer VARCHAR NOT NULL,
	browser VARCHAR NOT NULL,
	created_ms BIGINT NOT NULL,
	used_ms BIGINT NOT NULL,
	expires_ms BIGINT NOT NULL,
	ended_ms BIGINT,
	CONSTRAINT pk_browser_session PRIMARY KEY (id),
	CONSTRAINT uq_browser_session_hash UNIQUE (hash)
);
CREATE TABLE channel (
	id VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	version INTEGER NOT NULL,
	primary_agent VARCHAR,
	settings JSON NOT NULL,
	creator VARCHAR NOT NULL,
	organisation VARCHAR,
	created_ms BIGINT NOT NULL,
	updated_ms BIGINT NOT NULL,
	CONSTRAINT pk_channel PRIMARY KEY (id)
);
CREATE TABLE channel_answer (
	message_id INTEGER NOT NULL,
	specialist VARCHAR NOT NULL,
	channel_id VARCHAR NOT NULL,
	state VARCHAR NOT NULL,
	skipped VARCHAR,
	task_id VARCHAR,
	given_id INTEGER,
	at_ms BIGINT NOT NULL,
	CONSTRAINT pk_channel_answer PRIMARY KEY (message_id, specialist),
	CONSTRAINT fk_channel_answer_message_id FOREIGN KEY(message_id) REFERENCES channel_message (id)
);
CREATE TABLE channel_member (
	channel_id VARCHAR NOT NULL,
	id VARCHAR NOT NULL,
	role VARCHAR NOT NULL,
	username VARCHAR,
	display_name VARCHAR,
	muted_until_ms BIGINT,
	joined_ms BIGINT NOT NULL,
	CONSTRAINT pk_channel_member PRIMARY KEY (channel_id, id),
	CONSTRAINT fk_channel_member_channel_id FOREIGN KEY(channel_id) REFERENCES channel (id)
);
CREATE TABLE channel_message (
	id INTEGER NOT NULL,
	channel_id VARCHAR NOT NULL,
	author VARCHAR NOT NULL,
	role VARCHAR NOT NULL,
	content VARCHAR NOT NULL,
	reply_to INTEGER,
	attachments JSON NOT NULL,
	hops INTEGER NOT NULL,
	external_id VARCHAR,
	reason VARCHAR NOT NULL,
	decision JSON NOT NULL,
	shadow JSON,
	verdict VARCHAR,
	marked_by VARCHAR,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_channel_message PRIMARY KEY (id),
	CONSTRAINT fk_channel_message_channel_id FOREIGN KEY(channel_id) REFERENCES channel (id)
);
CREATE TABLE classification (
	task_id VARCHAR NOT NULL,
	generation INTEGER NOT NULL,
	agent VARCHAR NOT NULL,
	model VARCHAR NOT NULL,
	cache_key VARCHAR NOT NULL,
	asked_ms BIGINT NOT NULL,
	deadline_ms BIGINT NOT NULL,
	answered_ms BIGINT,
	source VARCHAR,
	tier VARCHAR,
	cause VARCHAR,
	detail VARCHAR,
	said_agent VARCHAR,
	CONSTRAINT pk_classification PRIMARY KEY (task_id, generation),
	CONSTRAINT fk_classification_task_id FOREIGN KEY(task_id) REFERENCES task (id)
);
CREATE TABLE decision (
	id VARCHAR NOT NULL,
	kind VARCHAR NOT NULL,
	task_id VARCHAR,
	generation INTEGER,
	run_id VARCHAR,
	supersedes VARCHAR,
	"by" VARCHAR,
	organisation VARCHAR,
	at_ms BIGINT NOT NULL,
	input_ref VARCHAR,
	snapshot_hash VARCHAR,
	specialist VARCHAR,
	skill VARCHAR,
	topic VARCHAR,
	confidence FLOAT,
	latency_ms BIGINT,
	cost_usd FLOAT,
	data JSON NOT NULL,
	CONSTRAINT pk_decision PRIMARY KEY (id)
);
CREATE TABLE embedding (
	encoder VARCHAR NOT NULL,
	text_hash VARCHAR NOT NULL,
	vector BLOB NOT NULL,
	dimensions INTEGER NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_embedding PRIMARY KEY (encoder, text_hash)
);
CREATE TABLE event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at_ms BIGINT NOT NULL,
	task_id VARCHAR,
	run_id VARCHAR,
	kind VARCHAR NOT NULL,
	"by" VARCHAR,
	data JSON NOT NULL
);
CREATE TABLE hold (
	id INTEGER NOT NULL,
	agent VARCHAR,
	kind VARCHAR,
	account VARCHAR,
	family VARCHAR,
	window VARCHAR,
	reason VARCHAR,
	until_ms BIGINT,
	provenance VARCHAR NOT NULL,
	source VARCHAR NOT NULL,
	run_id VARCHAR,
	created_ms BIGINT NOT NULL,
	released_ms BIGINT,
	doubted_ms BIGINT,
	met INTEGER,
	met_ms BIGINT,
	CONSTRAINT pk_hold PRIMARY KEY (id)
);
CREATE TABLE inbox_document (
	path VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	task_id VARCHAR,
	schedule_id VARCHAR,
	content_hash VARCHAR NOT NULL,
	gone_ms BIGINT,
	CONSTRAINT pk_inbox_document PRIMARY KEY (path, name),
	CONSTRAINT fk_inbox_document_schedule_id FOREIGN KEY(schedule_id) REFERENCES schedule (id),
	CONSTRAINT fk_inbox_document_task_id FOREIGN KEY(task_id) REFERENCES task (id)
);
CREATE TABLE inbox_file (
	path VARCHAR NOT NULL,
	mtime_ns BIGINT NOT NULL,
	size BIGINT NOT NULL,
	inode BIGINT NOT NULL,
	accepted_ms BIGINT NOT NULL,
	CONSTRAINT pk_inbox_file PRIMARY KEY (path)
);
CREATE TABLE label (
	decision_id VARCHAR NOT NULL,
	task_id VARCHAR NOT NULL,
	revision INTEGER NOT NULL,
	organisation VARCHAR NOT NULL,
	specialist VARCHAR,
	wanted VARCHAR,
	topic VARCHAR,
	verdict VARCHAR NOT NULL,
	rule VARCHAR NOT NULL,
	answer_chars INTEGER,
	at_ms BIGINT NOT NULL,
	learned_ms BIGINT,
	forgotten_ms BIGINT,
	counted VARCHAR,
	counted_as INTEGER,
	CONSTRAINT pk_label PRIMARY KEY (decision_id)
);
CREATE TABLE outbox (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	target VARCHAR NOT NULL,
	event_id BIGINT NOT NULL,
	notice JSON NOT NULL,
	state VARCHAR NOT NULL,
	attempts INTEGER NOT NULL,
	next_ms BIGINT NOT NULL,
	error VARCHAR,
	created_ms BIGINT NOT NULL,
	ended_ms BIGINT,
	CONSTRAINT uq_outbox_event UNIQUE (target, event_id)
);
CREATE TABLE outbox_cursor (
	target VARCHAR NOT NULL,
	event_id BIGINT NOT NULL,
	CONSTRAINT pk_outbox_cursor PRIMARY KEY (target)
);
CREATE TABLE remembered (
	name VARCHAR NOT NULL,
	data JSON NOT NULL,
	CONSTRAINT pk_remembered PRIMARY KEY (name)
);
CREATE TABLE run (
	id VARCHAR NOT NULL,
	task_id VARCHAR NOT NULL,
	generation INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	agent VARCHAR NOT NULL,
	kind VARCHAR NOT NULL,
	account VARCHAR NOT NULL,
	model VARCHAR,
	tier VARCHAR,
	dir_key VARCHAR NOT NULL,
	conversation_id VARCHAR,
	resumes VARCHAR,
	asked JSON,
	progress JSON,
	prior JSON,
	scratch_of VARCHAR,
	thread VARCHAR,
	state VARCHAR NOT NULL,
	live BOOLEAN NOT NULL,
	check_seq INTEGER NOT NULL,
	started_ms BIGINT NOT NULL,
	answered_ms BIGINT,
	warned_until_ms BIGINT,
	ended_ms BIGINT,
	exit_code INTEGER,
	check_result JSON,
	outcome JSON,
	ended_as VARCHAR,
	reason VARCHAR,
	input_tokens BIGINT,
	output_tokens BIGINT,
	cost_usd FLOAT,
	in_vain BOOLEAN,
	over_budget VARCHAR,
	windows JSON,
	windows_ms BIGINT,
	specialist VARCHAR,
	skill VARCHAR,
	risk VARCHAR,
	channel VARCHAR,
	creator VARCHAR DEFAULT 'operator' NOT NULL,
	organisation VARCHAR,
	ran_model VARCHAR,
	CONSTRAINT pk_run PRIMARY KEY (id),
	CONSTRAINT fk_run_task_id FOREIGN KEY(task_id) REFERENCES task (id),
	CONSTRAINT uq_run_identity UNIQUE (task_id, generation, attempt, seq)
);
CREATE TABLE schedule (
	id VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	spec JSON NOT NULL,
	cron VARCHAR NOT NULL,
	timezone VARCHAR NOT NULL,
	source VARCHAR NOT NULL,
	file_path VARCHAR,
	last_ms BIGINT NOT NULL,
	paused_ms BIGINT,
	gone_ms BIGINT,
	creator VARCHAR DEFAULT 'operator' NOT NULL,
	organisation VARCHAR,
	created_ms BIGINT NOT NULL,
	updated_ms BIGINT NOT NULL,
	CONSTRAINT pk_schedule PRIMARY KEY (id)
);
CREATE TABLE schedule_fire (
	schedule_id VARCHAR NOT NULL,
	due_ms BIGINT NOT NULL,
	task_id VARCHAR,
	skipped VARCHAR,
	"by" VARCHAR NOT NULL,
	at_ms BIGINT NOT NULL,
	CONSTRAINT pk_schedule_fire PRIMARY KEY (schedule_id, due_ms),
	CONSTRAINT fk_schedule_fire_schedule_id FOREIGN KEY(schedule_id) REFERENCES schedule (id),
	CONSTRAINT fk_schedule_fire_task_id FOREIGN KEY(task_id) REFERENCES task (id)
);
CREATE TABLE snapshot (
	hash VARCHAR NOT NULL,
	packed BLOB NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_snapshot PRIMARY KEY (hash)
);
CREATE TABLE specialist (
	id VARCHAR NOT NULL,
	creator VARCHAR NOT NULL,
	organisation VARCHAR,
	visibility VARCHAR NOT NULL,
	source VARCHAR NOT NULL,
	file_path VARCHAR,
	version INTEGER NOT NULL,
	card JSON NOT NULL,
	content_hash VARCHAR NOT NULL,
	shipped JSON,
	created_ms BIGINT NOT NULL,
	updated_ms BIGINT NOT NULL,
	removed_ms BIGINT,
	admitted_hash VARCHAR,
	admitted_by VARCHAR,
	CONSTRAINT pk_specialist PRIMARY KEY (id)
);
CREATE TABLE specialist_grant (
	specialist_id VARCHAR NOT NULL,
	grantee VARCHAR NOT NULL,
	"by" VARCHAR NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_specialist_grant PRIMARY KEY (specialist_id, grantee),
	CONSTRAINT fk_specialist_grant_specialist_id FOREIGN KEY(specialist_id) REFERENCES specialist (id)
);
CREATE TABLE specialist_skill (
	id INTEGER NOT NULL,
	specialist_id VARCHAR NOT NULL,
	skill VARCHAR,
	title VARCHAR NOT NULL,
	body VARCHAR NOT NULL,
	CONSTRAINT pk_specialist_skill PRIMARY KEY (id),
	CONSTRAINT fk_specialist_skill_specialist_id FOREIGN KEY(specialist_id) REFERENCES specialist (id)
);
CREATE VIRTUAL TABLE specialist_text USING fts5(
        title, body, content='specialist_skill', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
    );
CREATE TABLE standing (
	organisation VARCHAR NOT NULL,
	specialist VARCHAR NOT NULL,
	topic VARCHAR NOT NULL,
	performance FLOAT NOT NULL,
	positive INTEGER NOT NULL,
	negative INTEGER NOT NULL,
	last_success_ms BIGINT,
	updated_ms BIGINT NOT NULL,
	CONSTRAINT pk_standing PRIMARY KEY (organisation, specialist, topic)
);
CREATE TABLE switch (
	name VARCHAR NOT NULL,
	since_ms BIGINT NOT NULL,
	reason VARCHAR,
	CONSTRAINT pk_switch PRIMARY KEY (name)
);
CREATE TABLE task (
	id VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	version INTEGER NOT NULL,
	generation INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	next_revision INTEGER,
	state VARCHAR NOT NULL,
	phase VARCHAR,
	reason VARCHAR,
	until_ms BIGINT,
	priority INTEGER NOT NULL,
	rank_ms BIGINT NOT NULL,
	eligibility VARCHAR NOT NULL,
	hint VARCHAR DEFAULT '' NOT NULL,
	asked_tier VARCHAR,
	failed_on VARCHAR,
	failed_for VARCHAR,
	dir_key VARCHAR NOT NULL,
	tier VARCHAR,
	tags JSON NOT NULL,
	source VARCHAR NOT NULL,
	file_path VARCHAR,
	last_run_id VARCHAR,
	cancel_requested_ms BIGINT,
	restart_requested JSON,
	resume JSON,
	thread VARCHAR,
	asks JSON,
	kept_until_ms BIGINT,
	approved_ms BIGINT,
	granted_tools JSON,
	creator VARCHAR DEFAULT 'operator' NOT NULL,
	organisation VARCHAR,
	specialist VARCHAR,
	skill VARCHAR,
	risk VARCHAR,
	channel VARCHAR,
	parent_run VARCHAR,
	constraints VARCHAR,
	created_ms BIGINT NOT NULL,
	updated_ms BIGINT NOT NULL,
	context VARCHAR,
	tenant VARCHAR GENERATED ALWAYS AS (CASE WHEN organisation IS NOT NULL THEN 'org:' || organisation WHEN creator IN ('operator', 'inbox') THEN '' ELSE 'by:' || creator END),
	lane VARCHAR GENERATED ALWAYS AS (eligibility || '|' || coalesce(tier, '') || '|' || coalesce(asked_tier, '') || '|' || coalesce(failed_on, '') || '|' || coalesce(failed_for, '') || '|' || coalesce(constraints, '') || coalesce(nullif('|' || CASE WHEN organisation IS NOT NULL THEN 'org:' || organisation WHEN creator IN ('operator', 'inbox') THEN '' ELSE 'by:' || creator END, '|'), '')),
	demand VARCHAR GENERATED ALWAYS AS (CASE WHEN length(constraints) > 500 THEN '-' ELSE coalesce(constraints, '') END),
	CONSTRAINT pk_task PRIMARY KEY (id)
);
CREATE TABLE task_dependency (
	task_id VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	depends_on_id VARCHAR,
	CONSTRAINT pk_task_dependency PRIMARY KEY (task_id, name),
	CONSTRAINT fk_task_dependency_depends_on_id FOREIGN KEY(depends_on_id) REFERENCES task (id),
	CONSTRAINT fk_task_dependency_task_id FOREIGN KEY(task_id) REFERENCES task (id)
);
CREATE TABLE task_revision (
	task_id VARCHAR NOT NULL,
	revision INTEGER NOT NULL,
	spec JSON NOT NULL,
	content_hash VARCHAR NOT NULL,
	dir_key VARCHAR NOT NULL,
	derived_from INTEGER,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_task_revision PRIMARY KEY (task_id, revision),
	CONSTRAINT fk_task_revision_task_id FOREIGN KEY(task_id) REFERENCES task (id)
);
CREATE TABLE tier_answer (
	"key" VARCHAR NOT NULL,
	tier VARCHAR NOT NULL,
	reason VARCHAR NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_tier_answer PRIMARY KEY ("key")
);
CREATE INDEX ix_answer_given ON channel_answer (given_id);
CREATE INDEX ix_answer_member ON channel_answer (channel_id, specialist, at_ms);
CREATE INDEX ix_answer_open ON channel_answer (task_id) WHERE state = 'asked';
CREATE INDEX ix_answered_created ON answered_request (created_ms);
CREATE INDEX ix_classification_answered ON classification (source, cause) WHERE source IS NOT NULL;
CREATE INDEX ix_classification_open ON classification (deadline_ms) WHERE answered_ms IS NULL;
CREATE INDEX ix_decision_at ON decision (kind, at_ms);
CREATE INDEX ix_decision_run ON decision (run_id);
CREATE INDEX ix_decision_snapshot ON decision (snapshot_hash);
CREATE INDEX ix_decision_task ON decision (task_id, kind, at_ms);
CREATE INDEX ix_decision_time ON decision (at_ms, id);
CREATE INDEX ix_dependency_bound ON task_dependency (depends_on_id);
CREATE INDEX ix_dependency_unbound ON task_dependency (name) WHERE depends_on_id IS NULL;
CREATE INDEX ix_document_name ON inbox_document (name);
CREATE INDEX ix_document_task ON inbox_document (task_id);
CREATE INDEX ix_event_by ON event ("by", id) WHERE "by" IS NOT NULL;
CREATE INDEX ix_event_settled ON event (kind, id) WHERE kind IN ('merged', 'discarded');
CREATE INDEX ix_event_task ON event (task_id, id);
CREATE INDEX ix_fire_task ON schedule_fire (task_id);
CREATE INDEX ix_grant_grantee ON specialist_grant (grantee);
CREATE INDEX ix_hold_open ON hold (until_ms) WHERE released_ms IS NULL;
CREATE INDEX ix_label_at ON label (organisation, at_ms);
CREATE INDEX ix_label_task ON label (task_id);
CREATE INDEX ix_label_unlearned ON label (at_ms) WHERE learned_ms IS NULL;
CREATE INDEX ix_message_channel ON channel_message (channel_id, id);
CREATE INDEX ix_message_reason ON channel_message (channel_id, reason, created_ms);
CREATE INDEX ix_outbox_pending ON outbox (target, next_ms) WHERE state = 'pending';
CREATE INDEX ix_outbox_state ON outbox (state, id);
CREATE INDEX ix_run_answered ON run (started_ms) WHERE answered_ms IS NOT NULL;
CREATE INDEX ix_run_conversation ON run (conversation_id, started_ms);
CREATE INDEX ix_run_default_model ON run (agent, started_ms) WHERE model IS NULL AND ran_model IS NOT NULL;
CREATE INDEX ix_run_end ON run (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX ix_run_ended ON run (agent, ended_as, reason, started_ms, ended_ms, input_tokens, output_tokens, cost_usd) WHERE ended_as IS NOT NULL;
CREATE INDEX ix_run_scratch ON run (scratch_of) WHERE scratch_of IS NOT NULL;
CREATE INDEX ix_run_spent ON run (started_ms, agent, state, live, input_tokens, output_tokens, cost_usd, in_vain) WHERE state <> 'revoked';
CREATE INDEX ix_run_task ON run (task_id, started_ms);
CREATE INDEX ix_run_warned ON run (warned_until_ms) WHERE warned_until_ms IS NOT NULL;
CREATE INDEX ix_run_windows ON run (kind, account, windows_ms) WHERE windows_ms IS NOT NULL;
CREATE INDEX ix_snapshot_created ON snapshot (created_ms);
CREATE INDEX ix_specialist_skill ON specialist_skill (specialist_id);
CREATE INDEX ix_task_begun ON task (state, reason, thread, rank_ms, created_ms, id, seq) WHERE seq > 0;
CREATE INDEX ix_task_context ON task (creator, context, created_ms, id) WHERE context IS NOT NULL;
CREATE INDEX ix_task_created ON task (created_ms, id);
CREATE INDEX ix_task_demand ON task (state, hint, demand, rank_ms, created_ms, id) WHERE state = 'QUEUED';
CREATE INDEX ix_task_due ON task (state, until_ms) WHERE state = 'WAITING';
CREATE INDEX ix_task_ended ON task (state, updated_ms, id) WHERE state = 'CANCELLED' OR state = 'COMPLETED' OR state = 'FAILED';
CREATE INDEX ix_task_expiring ON task (state, until_ms) WHERE state = 'NEEDS_INPUT' AND until_ms IS NOT NULL;
CREATE INDEX ix_task_intent ON task (id) WHERE cancel_requested_ms IS NOT NULL OR restart_requested IS NOT NULL;
CREATE INDEX ix_task_kept ON task (state, kept_until_ms, dir_key, id) WHERE kept_until_ms IS NOT NULL;
CREATE INDEX ix_task_lane ON task (state, lane, rank_ms, created_ms, id, dir_key, thread) WHERE state = 'QUEUED';
CREATE INDEX ix_task_name ON task (name, created_ms);
CREATE INDEX ix_task_organisation ON task (organisation, created_ms, id) WHERE organisation IS NOT NULL;
CREATE INDEX ix_task_parent ON task (parent_run) WHERE parent_run IS NOT NULL;
CREATE INDEX ix_task_place ON task (state, hint, demand, tenant, lane, dir_key, id) WHERE state = 'QUEUED';
CREATE INDEX ix_task_running ON task (id) WHERE state = 'RUNNING';
CREATE INDEX ix_task_specialist ON task (specialist, created_ms, id) WHERE specialist IS NOT NULL;
CREATE INDEX ix_task_state ON task (state, created_ms, id);
CREATE INDEX ix_task_thread ON task (state, thread) WHERE thread IS NOT NULL;
CREATE INDEX ix_task_turn ON task (state, rank_ms, created_ms, id) WHERE state = 'QUEUED';
CREATE INDEX ix_task_unrouted ON task (state, rank_ms, created_ms, id) WHERE state = 'QUEUED' AND constraints IS NULL;
CREATE UNIQUE INDEX uq_channel_name ON channel (name) WHERE organisation IS NULL;
CREATE UNIQUE INDEX uq_channel_organisation_name ON channel (organisation, name) WHERE organisation IS NOT NULL;
CREATE UNIQUE INDEX uq_decision_placement ON decision (run_id) WHERE kind = 'placement';
CREATE UNIQUE INDEX uq_decision_supersedes ON decision (supersedes) WHERE supersedes IS NOT NULL;
CREATE UNIQUE INDEX uq_message_external ON channel_message (channel_id, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX uq_run_live ON run (task_id) WHERE live = 1;
CREATE UNIQUE INDEX uq_run_thread ON run (thread) WHERE live = 1;
CREATE UNIQUE INDEX uq_schedule_name ON schedule (name) WHERE gone_ms IS NULL AND organisation IS NULL;
CREATE UNIQUE INDEX uq_schedule_organisation_name ON schedule (organisation, name) WHERE gone_ms IS NULL AND organisation IS NOT NULL;
CREATE TRIGGER specialist_text_added AFTER INSERT ON specialist_skill BEGIN
        INSERT INTO specialist_text (rowid, title, body) VALUES (new.id, new.title, new.body);
    END;
CREATE TRIGGER specialist_text_changed AFTER UPDATE ON specialist_skill BEGIN
        INSERT INTO specialist_text (specialist_text, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
        INSERT INTO specialist_text (rowid, title, body) VALUES (new.id, new.title, new.body);
    END;
CREATE TRIGGER specialist_text_removed AFTER DELETE ON specialist_skill BEGIN
        INSERT INTO specialist_text (specialist_text, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
    END;
INSERT INTO alembic_version (version_num) VALUES ('0023_run_ends');
