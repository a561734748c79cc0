"""This version's schema without alembic, whose import takes a tenth of a start: check for it, and create it in a new
database."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.store.database import Database

SCHEMA = "0023_run_ends"
"""The newest migration."""
NEW_DATABASE = Path(__file__).with_name("new_database.sql")
"""The schema that the migrations produce in SQLite, written by ``store.migrations.revise --snapshot``."""

_STAMP = table("alembic_version", column("version_num"))


def is_current(database: Database) -> bool:
    """Return whether the database has this version's schema. Raises StoreUnavailable."""
    return database.read(_stamped) == SCHEMA


def begin(database: Database) -> bool:
    """Create the schema in an empty SQLite database. Return False, without a change, for any other database. Raises
    StoreUnavailable."""
    if database.dialect != "sqlite":
        return False
    with database.exclusive() as connection:
        if connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one():
            return False
        for statement in statements(NEW_DATABASE.read_text(encoding="utf-8")):
            connection.exec_driver_sql(statement)
        crashpoint("schema-changed")
    return True


def statements(script: str) -> Iterator[str]:
    """Yield the statements of an SQLite script, each trigger as one. No line may have parts of two statements."""
    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        if line.endswith(";") and sqlite3.complete_statement(statement := "\n".join(lines)):
            yield statement.strip().removesuffix(";")
            lines = []


def _stamped(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_STAMP.name):
        return None
    revision: str | None = connection.execute(select(_STAMP.c.version_num)).scalar()
    return revision
