"""The short ways round the migrations are taken only where there is nothing to migrate, and lead where they do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from claudomator_py.store.database import FILE_NAME, Database
from claudomator_py.store.migrate import alembic_config, is_described, migrate
from claudomator_py.store.migrations import NEW_DATABASE, SCHEMA, begin, is_current, statements
from claudomator_py.store.migrations.revise import snapshot
from claudomator_py.store.tables import Task


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


def test_what_a_new_database_begins_with_is_what_the_migrations_make() -> None:
    remedy = "write it again: python -m claudomator_py.store.migrations.revise --snapshot"
    assert NEW_DATABASE.read_text(encoding="utf-8") == snapshot(), remedy


def test_a_new_database_is_the_one_that_is_migrated_step_by_step(tmp_path: Path) -> None:
    def made(name: str) -> list[str]:
        with closing(sqlite3.connect(tmp_path / name / FILE_NAME)) as connection:
            return sorted(" ".join(statement.split()) for statement in connection.iterdump())

    with Database.open("sqlite", state_dir=tmp_path / "begun") as begun:
        assert begin(begun)
        assert is_current(begun)
        assert migrate(begun).applied == ()
        assert begun.read(_differences) == []
    with Database.open("sqlite", state_dir=tmp_path / "migrated") as migrated:
        migrate(migrated)
    assert made("begun") == made("migrated")


def _differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"include_name": is_described})
    return list(compare_metadata(context, Task.metadata))


def test_a_database_with_anything_in_it_does_not_begin_anew(tmp_path: Path) -> None:
    with Database.open("sqlite", state_dir=tmp_path / "state") as database:
        database.write(lambda connection: connection.execute(text("CREATE TABLE theirs (id INTEGER)")))
        assert not begin(database)
        assert database.read(lambda connection: inspect(connection).get_table_names()) == ["theirs"]


def test_a_beginning_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "new.sql"
    broken.write_text("CREATE TABLE first (id INTEGER);\nCREATE TABLE first (id INTEGER);\n")
    monkeypatch.setattr("claudomator_py.store.migrations.NEW_DATABASE", broken)
    with Database.open("sqlite", state_dir=tmp_path / "state") as database:
        with pytest.raises(OperationalError):
            begin(database)
        assert database.read(lambda connection: inspect(connection).get_table_names()) == []


def test_postgresql_is_migrated_from_the_beginning(database: Database) -> None:
    assert not begin(database)


def test_a_trigger_is_one_statement() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n    DELETE FROM b;\n    DELETE FROM c;\nEND"
    assert list(statements(f"CREATE TABLE a (id);\n{trigger};\n")) == ["CREATE TABLE a (id)", trigger]
