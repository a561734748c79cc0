"""A database of the first schema, with some of everything in it, as it is after an upgrade.

Its rows are text, written by version 0.1 itself, and its tables are made by the migration that is frozen: neither
follows what the tables have become since.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, text

from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.task import TaskSpec
from claudomator_py.prompts.conversations import resumption_of
from claudomator_py.scheduler.decision import DecisionRecord
from claudomator_py.scheduler.lanes import lane_columns
from claudomator_py.scheduler.snapshot import Snapshot
from claudomator_py.store import decision_rows, events, outbox_rows, queue, run_rows, switch_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import DECISION, RUN, SNAPSHOT, TASK, TASK_REVISION
from tests.fakes.world import World
from tests.integration.store.earlier_schemas import content, earlier, kept
from tests.warm import bare

FIRST = "0001_first"
CHILD = Path(__file__).with_name("upgrading_child.py")
LATER_MS = 1_795_400_000_000


@pytest.fixture
def first(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the first schema, and rows in each."""
    with earlier(FIRST, database_url, tmp_path / "state") as database:
        yield database


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
    command = [sys.executable, str(CHILD), database_url, str(state), "schema-changed"]

    killed = bare.of_the_store().read(command, given=b"", environ={"PATH": os.environ["PATH"]})
    _, errors = killed.communicate()

    assert killed.returncode == -9, errors.decode()
    assert first.read(content) == before
    assert first.read(lambda connection: connection.execute(text("SELECT * FROM alembic_version")).scalar()) == FIRST
    assert migrate(first).before == FIRST
    kept(before, first.read(content))
