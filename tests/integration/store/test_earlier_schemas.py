"""Databases of earlier schemas, with rows in every table: what is in them survives an upgrade, and work goes on.

The rows are text, written by a daemon of that schema, and the tables are made by the migration that is frozen: neither
follows what the tables have become since.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, inspect, select, text
from sqlmodel import SQLModel

from claudomator_py.domain.channel import NewMessage
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.task import TaskSpec
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.scheduler.records import DecisionKind, DecisionRecord
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.store import (
    channel_rows,
    decision_rows,
    events,
    hold_rows,
    learning_rows,
    outbox_rows,
    run_rows,
    task_rows,
    tick_rows,
)
from claudomator_py.store import migrate as migrate_module
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import DECISION, RUN, SNAPSHOT, SPECIALIST_GRANT, TASK, TASK_REVISION, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks import specialists
from claudomator_py.tasks.inputs import with_granted_tools
from claudomator_py.tasks.messages import PostedMessage, TriageInputs, post
from tests.fakes.world import START_MS, World
from tests.integration.store.earlier_schemas import NEXT, ROWS, content, earlier, kept, with_next
from tests.warm import bare

OLDEST = "0023_run_ends"
CHILD = Path(__file__).with_name("upgrading_child.py")
REVISIONS = sorted(path.stem for path in ROWS.glob("*.sql"))
LATER_MS = 1_795_400_000_000


@pytest.fixture
def oldest(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the oldest schema that is upgraded, and rows in each."""
    with earlier(OLDEST, database_url, tmp_path / "state") as database:
        yield database


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a version with one more migration, and returns the folder of that."""
    folder = tmp_path / "versions"
    config = with_next(folder)
    monkeypatch.setattr(migrate_module, "alembic_config", lambda: config)
    return folder


def test_what_was_kept_is_understood(oldest: Database) -> None:
    migrate(oldest)
    world = World(oldest)

    def read(connection: Connection) -> None:
        for row in connection.execute(select(TASK)):
            task = task_rows.get(connection, row.id)
            assert task_rows.spec_of(connection, task.id, task.revision).name == task.name
        for row in connection.execute(select(TASK_REVISION)):
            TaskSpec.model_validate(row.spec)
        for row in connection.execute(select(RUN)):
            run = run_rows.find(connection, row.id)
            assert run is not None
            assert run.live or run.state == "revoked" or Outcome.model_validate(run.outcome).status
        for row in connection.execute(select(SNAPSHOT)):
            Snapshot.model_validate(decision_rows.snapshot(connection, row.hash))
        for row in connection.execute(select(DECISION).where(DECISION.c.kind == DecisionKind.PLACEMENT)):
            DecisionRecord.model_validate(row.data)
        assert tick_rows.next_times(connection, 0).hold is not None
        assert hold_rows.find_switch(connection, hold_rows.DRAIN) is not None
        assert (outbox_rows.cursor(connection, "log") or 0) > 0
        assert len(events.following(connection, 0, 1_000)) == events.last_id(connection)

    oldest.read(read)
    names = world.names()
    assert (world.state("live"), world.state("second")) == ("FAILED lost", "COMPLETED")
    assert (world.state("backing-off"), world.task("asking").state) == ("QUEUED drained", "NEEDS_INPUT")
    assert all(world.service.why(name).sentences for name in names)
    assert [run.agent for run in world.service.runs("live")] == ["two"]
    assert [schedule.name for schedule in world.schedules.all()] == ["nightly"]


def test_work_goes_on_in_it(oldest: Database) -> None:
    migrate(oldest)
    world = World(oldest)
    world.now_ms = LATER_MS
    newest = oldest.read(events.last_id)

    world.daemon.undrain()
    world.submit("fresh", depends_on=["second"], agent={"type": "claude", "strict": True})
    world.tick()

    assert "fresh" in world.running()
    assert oldest.read(lambda connection: events.following(connection, newest, 1))[0].id == newest + 1


def test_what_was_queued_is_in_the_lanes_that_new_tasks_are_in(oldest: Database) -> None:
    migrate(oldest)
    world = World(oldest, agents=())

    def lanes(connection: Connection) -> None:
        for row in connection.execute(select(TASK).where(TASK.c.state.not_in(("COMPLETED", "FAILED", "CANCELLED")))):
            task = Task.load(row)
            spec = task_rows.spec_of(connection, task.id, task.revision)
            for column, value in lane_columns(spec, resumption_of(task)).items():
                assert getattr(task, column) == value, (task.name, column)
            assert world.observer.reader.head(task, spec).lane.startswith(task.eligibility)

    oldest.read(lanes)


def test_an_upgrade_that_is_killed_leaves_the_database_as_it_was(
    oldest: Database, database_url: str, tmp_path: Path, next_version: Path
) -> None:
    before = oldest.read(content)
    state = tmp_path / "state"
    command = [sys.executable, str(CHILD), database_url, str(state), "schema-changed", str(next_version)]

    killed = bare.of_daemons().read(command, given=b"", environ={"PATH": os.environ["PATH"]})
    _, errors = killed.communicate()

    assert killed.returncode == -9, errors.decode()
    assert oldest.read(content) == before
    assert oldest.read(lambda connection: connection.execute(text("SELECT * FROM alembic_version")).scalar()) == OLDEST
    report = migrate(oldest)
    assert (report.before, report.after) == (OLDEST, NEXT)
    kept(before, oldest.read(content))


def test_it_has_the_schema_of_a_new_database(oldest: Database, database: Database) -> None:
    migrate(oldest)

    def schema(connection: Connection) -> dict[str, Any]:
        asked = inspect(connection)
        tables = Task.metadata.tables
        return {
            name: (
                {column["name"]: (str(column["type"]), column["nullable"]) for column in asked.get_columns(name)},
                asked.get_pk_constraint(name),
                sorted(asked.get_foreign_keys(name), key=repr),
                sorted((index["name"], index["column_names"], index["unique"]) for index in asked.get_indexes(name)),
            )
            for name in tables
        }

    assert oldest.read(schema) == database.read(schema)


def test_a_retry_supersedes_the_decision_from_before_the_upgrade(oldest: Database) -> None:
    migrate(oldest)
    world = World(oldest)
    world.now_ms = LATER_MS
    before = oldest.read(lambda connection: decision_rows.of_task(connection, world.row("first").id))

    world.daemon.undrain()
    world.restart("first")
    world.tick()

    after = oldest.read(lambda connection: decision_rows.of_task(connection, world.row("first").id))
    assert [decision.id for decision in after[:-1]] == [decision.id for decision in before]
    assert after[-1].supersedes == before[-1].id
    assert world.service.why("first").decisions[0].supersedes == before[-1].id


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_row_survives_the_way_to_the_next_schema(
    revision: str, database_url: str, tmp_path: Path, next_version: Path
) -> None:
    with earlier(revision, database_url, tmp_path / "state") as database:
        before = database.read(content)
        assert all(before.values()), "the rows that are kept as text leave a table untried"

        report = migrate(database)
        assert (report.before, report.after) == (revision, NEXT)

        kept(before, database.read(content))


def test_tools_that_were_granted_before_the_upgrade_still_are(oldest: Database) -> None:
    database = oldest
    migrate(database)
    task = World(database).row("demanding")
    spec = TaskSpec(name="demanding", instructions="Build it.")

    assert with_granted_tools(task, spec, "claude").permissions.allowed_tools == ("Bash(make)",)
    assert with_granted_tools(task, spec, "codex") == spec


def test_labels_that_were_learned_before_the_upgrade_are_corrected_in_their_place(oldest: Database) -> None:
    database = oldest
    migrate(database)
    (label,) = database.read(lambda connection: learning_rows.with_right_specialist(connection, "bank", 10))
    assert (label.counted, label.counted_as) == ("positive", 1)


def test_the_newest_rows_that_are_kept_leave_no_table_untried() -> None:
    """A migration that adds a table brings rows of it, so that the one after it is tried on them."""
    newest = max(ROWS.glob("*.sql"))
    assert set(re.findall(r"^INSERT INTO (\w+) ", newest.read_text(), re.MULTILINE)) == set(SQLModel.metadata.tables)


def test_conversations_of_channels_go_on(oldest: Database) -> None:
    database = oldest
    migrate(database)
    shared = {"specialist_id": "plumber", "grantee": OPERATOR.id, "by": "ann", "created_ms": START_MS}
    database.write(lambda connection: connection.execute(insert(SPECIALIST_GRANT).values(shared)))
    database.write(lambda connection: specialists.admit(connection, "plumber", OPERATOR, START_MS))
    (channel,) = database.read(lambda connection: channel_rows.seen(connection, OPERATOR))
    answered, asked = database.read(lambda connection: channel_rows.messages(connection, channel.id))
    assert (asked.verdict, answered.reply_to) == ("right", asked.id)

    reply = PostedMessage(OPERATOR.id, NewMessage(content="And the other tap?", reply_to=answered.id))
    posted = database.write(lambda connection: post(connection, channel, reply, TriageInputs(), START_MS + 10_000))

    (answer,) = database.read(lambda connection: channel_rows.answers(connection, [posted.id or 0]))
    assert (answer.specialist, answer.state) == ("plumber", "asked")


def test_packed_snapshots_are_read(oldest: Database) -> None:
    database = oldest
    migrate(database)

    def unread(connection: Connection) -> list[str]:
        hashes = connection.execute(select(SNAPSHOT.c.hash)).scalars().all()
        return [digest for digest in hashes if not decision_rows.snapshot(connection, digest)]

    assert database.read(unread) == []
