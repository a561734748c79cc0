"""The schema of this version without alembic, which takes a tenth of a start to import: whether a database has it, and
a new one's first tables."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.store.database import Database

SCHEMA = "0021_settled_branches"
"""The newest migration."""
NEW_DATABASE = Path(__file__).with_name("new_database.sql")
"""What the migrations make of an empty SQLite file; ``store.migrations.snapshot`` writes it."""

_STAMP = table("alembic_version", column("version_num"))


def is_current(database: Database) -> bool:
    """Return whether there is nothing to migrate. Raises StoreUnavailable."""
    return database.read(_stamped) == SCHEMA


def begin(database: Database) -> bool:
    """Make at once all that the migrations would come to, step by step, in an empty SQLite database; whether it was
    one. Raises StoreUnavailable."""
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
    """Yield the statements of SQL for SQLite, triggers with all of theirs. Each begins and ends on lines of its own."""
    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        if line.endswith(";") and sqlite3.complete_statement(statement := "\n".join(lines)):
            yield statement.strip().removesuffix(";")
            lines = []


def _stamped(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_STAMP.name):
        return None
    found: str | None = connection.execute(select(_STAMP.c.version_num)).scalar()
    return found
