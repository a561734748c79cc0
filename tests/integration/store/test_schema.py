"""The short way round the migrations is taken only where there is nothing to migrate."""

from pathlib import Path

from alembic.script import ScriptDirectory
from sqlalchemy import text

from claudomator_py.store.database import Database
from claudomator_py.store.migrate import alembic_config
from claudomator_py.store.schema import SCHEMA, is_current


def test_the_schema_of_this_version_is_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == SCHEMA


def test_a_migrated_database_is_current(database: Database) -> None:
    assert is_current(database)


def test_an_empty_database_is_not(database_url: str, tmp_path: Path) -> None:
    with Database.open(database_url, state_dir=tmp_path / "state") as database:
        assert not is_current(database)


def test_neither_is_one_of_another_version(database: Database) -> None:
    database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = 'other'")))
    assert not is_current(database)
