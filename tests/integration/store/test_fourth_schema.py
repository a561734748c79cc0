"""A database of the fourth schema, with rows in every table, as it is after an upgrade; see ``earlier_schemas``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect, select

from claudomator_py.scheduler.decision import DecisionKind, DecisionRecord
from claudomator_py.store import decision_rows, run_rows, task_rows
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.store.tables import DECISION, RUN, TASK, Task
from tests.fakes.world import World
from tests.integration.store.earlier_schemas import earlier

LATER_MS = 1_795_400_000_000
FOURTH = "0004_principals"


@pytest.fixture
def fourth(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the fourth schema, and rows in each."""
    with earlier(FOURTH, database_url, tmp_path / "state") as database:
        yield database


def test_it_has_the_schema_of_a_new_database(fourth: Database, database: Database) -> None:
    migrate(fourth)

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

    assert fourth.read(schema) == database.read(schema)


def test_the_primary_key_of_decisions_is_their_own_id(fourth: Database) -> None:
    migrate(fourth)

    found = fourth.read(lambda connection: inspect(connection).get_pk_constraint("decision"))

    assert found["constrained_columns"] == ["id"]


def test_decisions_get_ids_kinds_and_what_they_supersede(fourth: Database) -> None:
    migrate(fourth)

    def read(connection: Connection) -> None:
        ids = {row.id for row in connection.execute(select(DECISION))}
        for row in connection.execute(select(TASK)):
            placements = decision_rows.placements(connection, row.id)[::-1]
            assert [decision.supersedes for decision in placements] == [
                None,
                *(decision.id for decision in placements),
            ][: len(placements)]
            for decision in placements:
                run = run_rows.find(connection, str(decision.run_id))
                assert run is not None
                assert decision.id == decision_rows.identity(DecisionKind.PLACEMENT, run.id)
                assert decision.generation == run.generation
                assert decision.input_ref == f"task:{row.id}/{run.revision}"
                assert decision.confidence == 1.0
                assert DecisionRecord.model_validate(decision.data).agent == run.agent
                ids.remove(decision.id)
        assert not ids

    fourth.read(read)


def test_runs_say_whose_they_are(fourth: Database) -> None:
    migrate(fourth)

    def read(connection: Connection) -> set[tuple[str, str | None]]:
        for row in connection.execute(select(RUN)):
            task = task_rows.get(connection, row.task_id)
            assert (row.creator, row.organisation) == (task.creator, task.organisation)
        return {(row.creator, row.organisation) for row in connection.execute(select(RUN))}

    assert fourth.read(read) == {("operator", None), ("ci", "shop")}


def test_what_waits_is_in_the_lanes_that_new_tasks_are_in(fourth: Database) -> None:
    migrate(fourth)
    world = World(fourth)
    world.now_ms = LATER_MS
    old = world.row("after-it")
    new = world.submit("new")

    lane = world.row(new.name).lane
    assert (old.eligibility, old.constraints) == (world.row(new.name).eligibility, None)
    assert old.lane == lane


def test_a_retry_supersedes_the_decision_from_before_the_upgrade(fourth: Database) -> None:
    migrate(fourth)
    world = World(fourth)
    world.now_ms = LATER_MS
    before = fourth.read(lambda connection: decision_rows.placements(connection, world.row("first").id))

    world.service.undrain()
    world.restart("first")
    world.tick()

    after = fourth.read(lambda connection: decision_rows.placements(connection, world.row("first").id))
    assert [decision.id for decision in after[1:]] == [decision.id for decision in before]
    assert after[0].supersedes == before[0].id
    assert world.queries.why("first").decisions[0].supersedes == before[0].id
