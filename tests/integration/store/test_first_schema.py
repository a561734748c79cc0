"""A database of the first schema, with some of everything in it, as it is after an upgrade.

Its rows are text, written by version 0.1 itself, and its tables are made by the migration that is frozen: neither
follows what the tables have become since.
"""

import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, inspect, select, text

import claudomator_py
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.task import TaskSpec
from claudomator_py.prompts.conversations import resumption_of
from claudomator_py.scheduler.decision import DecisionRecord
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.store import decision_rows, events, outbox_rows, queue, run_rows, switch_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.store.tables import DECISION, RUN, SNAPSHOT, TASK, TASK_REVISION
from tests.fakes.world import World

FIRST = "0001_first"
ROWS = Path(__file__).parents[2] / "fixtures" / "databases"
CHILD = Path(__file__).with_name("upgrading_child.py")
ROOT = Path(claudomator_py.__file__).parents[1]
COUNTED = {"event", "hold", "answered_request", "outbox", "specialist_skill", "channel_message"}
"""Tables whose rows are numbered by the database."""
BYTES = re.compile(r"\bX'([0-9a-f]*)'")
DERIVED = {("task", "lane")}
RENAMED = {("task", "leave"): "granted_tools", ("snapshot", "data"): "packed"}
LATER_MS = 1_795_400_000_000
OWN = ("alembic_version", "sqlite_sequence")

Content = Mapping[str, list[dict[str, Any]]]


@pytest.fixture
def first(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the first schema, and rows in each."""
    with Database.open(database_url, state_dir=tmp_path / "state") as database:
        with database.exclusive() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, FIRST)
        database.write(lambda connection: filled(connection, FIRST))
        yield database


def filled(connection: Connection, revision: str) -> None:
    """Insert the rows that are kept as text for that schema: ``X'...'`` in them are bytes."""
    postgresql = connection.dialect.name == "postgresql"
    literally = connection.execution_options(no_parameters=True)
    for line in (ROWS / f"{revision}.sql").read_text().splitlines():
        if not line.startswith("--"):
            literally.exec_driver_sql(BYTES.sub(r"decode('\1', 'hex')", line) if postgresql else line)
    if postgresql:
        for name in COUNTED & set(inspect(connection).get_table_names()):
            highest = f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name}"
            connection.exec_driver_sql(highest)


def content(connection: Connection) -> Content:
    """All rows of all tables, as the database has them."""
    found = {}
    for name in inspect(connection).get_table_names():
        if name not in OWN:
            rows = [dict(row._mapping) for row in connection.execute(text(f'SELECT * FROM "{name}"'))]
            found[name] = [{key: _plain(value) for key, value in row.items()} for row in rows]
    return found


def _plain(value: object) -> object:
    """SQLite has JSON as text and truth as a number. Snapshots are compressed JSON."""
    if isinstance(value, bytes) and value.startswith(b"\x78\x01"):
        value = zlib.decompress(value).decode()
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, dict | list):
        return json.loads(json.dumps(value, sort_keys=True))
    return int(value) if isinstance(value, bool) else value


def kept(before: Content, after: Content) -> None:
    """Every table, every row and every column of it but those that follow from others."""
    for name, rows in before.items():
        columns = [column for column in rows[0] if (name, column) not in DERIVED]
        now = [RENAMED.get((name, column), column) for column in columns]
        there = [[row[column] for column in now] for row in after[name]]
        was = [[row[column] for column in columns] for row in rows]
        assert sorted(map(repr, there)) == sorted(map(repr, was)), name


def test_every_table_of_the_first_schema_has_rows(first: Database) -> None:
    assert all(first.read(content).values()), "the rows that are kept as text leave a table untried"


def test_every_row_survives_the_way_to_the_newest_schema(first: Database) -> None:
    before = first.read(content)

    report = migrate(first)

    assert report.before == FIRST
    kept(before, first.read(content))


def test_what_was_kept_is_understood(first: Database) -> None:
    migrate(first)
    world = World(first)

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
        for row in connection.execute(select(DECISION)):
            DecisionRecord.model_validate(row.data)
        assert queue.next_times(connection, 0).hold is not None
        assert switch_rows.find(connection, switch_rows.DRAIN) is not None
        assert (outbox_rows.cursor(connection, "log") or 0) > 0
        assert len(events.following(connection, 0, 1_000)) == events.last_id(connection)

    first.read(read)
    names = world.names()
    assert (world.state("live"), world.state("second")) == ("RUNNING", "COMPLETED")
    assert (world.state("backing-off"), world.task("asking").state) == ("WAITING backoff", "NEEDS_INPUT")
    assert all(world.queries.why(name).sentences for name in names)
    assert [run.agent for run in world.queries.runs("live")] == ["two"]
    assert [schedule.name for schedule in world.schedules.all()] == ["nightly"]


def test_work_goes_on_in_it(first: Database) -> None:
    migrate(first)
    world = World(first)
    world.now_ms = LATER_MS
    newest = first.read(events.last_id)

    world.service.undrain()
    world.submit("fresh", depends_on=["second"], agent={"type": "claude", "strict": True})
    world.tick()

    assert "fresh" in world.running()
    assert first.read(lambda connection: events.following(connection, newest, 1))[0].id == newest + 1


def test_what_was_queued_is_in_the_lanes_that_new_tasks_are_in(first: Database) -> None:
    migrate(first)
    world = World(first, agents=())

    def lanes(connection: Connection) -> None:
        for row in connection.execute(select(TASK).where(TASK.c.state.not_in(("COMPLETED", "FAILED", "CANCELLED")))):
            task = task_rows.task_from(row)
            spec = task_rows.spec_of(connection, task.id, task.revision)
            for column, value in lane_columns(spec, resumption_of(task)).items():
                assert getattr(task, column) == value, (task.name, column)
            assert world.observer.head(task, spec).lane.startswith(task.eligibility)

    first.read(lanes)


def test_an_upgrade_that_is_killed_leaves_the_database_as_it_was(
    first: Database, database_url: str, tmp_path: Path
) -> None:
    before = first.read(content)
    state = tmp_path / "state"
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    killed = subprocess.run(
        [sys.executable, str(CHILD), database_url, str(state), "schema-changed"], env=environ, check=False
    )

    assert killed.returncode == -9
    assert first.read(content) == before
    assert first.read(lambda connection: connection.execute(text("SELECT * FROM alembic_version")).scalar()) == FIRST
    assert migrate(first).before == FIRST
    kept(before, first.read(content))
