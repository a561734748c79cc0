"""A database of the fifth schema, with rows in every table, as it is after an upgrade; see ``test_first_schema``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import inspect

from claudomator_py.domain.task import TaskSpec
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config, migrate
from claudomator_py.tasks.inputs import with_granted_tools
from tests.fakes.world import World
from tests.integration.store.test_first_schema import content, filled, kept

FIFTH = "0005_decisions"


@pytest.fixture
def fifth(database_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the fifth schema, and rows in each."""
    with Database.open(database_url, state_dir=tmp_path / "state") as database:
        with database.exclusive() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, FIFTH)
        database.write(lambda connection: filled(connection, FIFTH))
        yield database


def test_every_row_survives_the_way_to_the_newest_schema(fifth: Database) -> None:
    before = fifth.read(content)
    assert all(before.values()), "the rows that are kept as text leave a table untried"

    assert migrate(fifth).before == FIFTH

    kept(before, fifth.read(content))


def test_the_column_of_granted_tools_has_only_its_new_name(fifth: Database) -> None:
    migrate(fifth)

    found = fifth.read(lambda connection: {column["name"] for column in inspect(connection).get_columns("task")})

    assert "granted_tools" in found
    assert "leave" not in found


def test_tools_that_were_granted_before_the_upgrade_still_are(fifth: Database) -> None:
    migrate(fifth)
    task = World(fifth).row("demanding")
    spec = TaskSpec(name="demanding", instructions="Build it.")

    assert with_granted_tools(task, spec, "claude").permissions.allowed_tools == ("Bash(make)",)
    assert with_granted_tools(task, spec, "codex") == spec
