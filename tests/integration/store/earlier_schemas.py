"""Databases of earlier schemas, with rows in every table, and what an upgrade has to keep of them."""

import json
import os
import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from claudomator_py.store.database import FILE_NAME, Database
from claudomator_py.store.migrate import alembic_config
from claudomator_py.store.migrations import SCHEMA

ROWS = Path(__file__).parents[2] / "fixtures" / "databases"
COUNTED = {"event", "hold", "answered_request", "outbox", "specialist_skill", "channel_message"}
"""Tables whose rows are numbered by the database."""
BYTES = re.compile(r"\bX'([0-9a-f]*)'")
DERIVED = {("task", "lane")}
NEXT = "9999_next"
"""The migration that ``with_next`` adds."""
_MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{SCHEMA}"


def upgrade() -> None:
    op.add_column("task", sa.Column("added", sa.String(), nullable=True))
    with op.batch_alter_table("run", recreate="always") as batch:
        batch.add_column(sa.Column("added", sa.Integer(), nullable=False, server_default="7"))
'''
OWN = ("alembic_version", "sqlite_sequence")
Content = Mapping[str, list[dict[str, Any]]]


@contextmanager
def earlier(revision: str, database_url: str, state_dir: Path) -> Iterator[Database]:
    """A database with the tables of that schema, and rows in each."""
    if database_url == "sqlite":
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = state_dir / FILE_NAME
        file.touch(mode=0o600)
        file.write_bytes(_sqlite_file(revision))
    with Database.open(database_url, state_dir=state_dir) as database:
        if database_url != "sqlite":
            _make(database, revision)
        yield database


@cache
def _sqlite_file(revision: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with Database.open("sqlite", state_dir=Path(folder)) as database:
            _make(database, revision)
        return (Path(folder) / FILE_NAME).read_bytes()


def _make(database: Database, revision: str) -> None:
    with database.exclusive() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    database.write(lambda connection: _fill(connection, revision))


def _fill(connection: Connection, revision: str) -> None:
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


def with_next(folder: Path) -> Config:
    """The migrations of this version and one more, which adds a column and builds a table anew."""
    folder.mkdir(exist_ok=True)
    (folder / f"{NEXT}.py").write_text(_MIGRATION)
    config = alembic_config()
    shipped = ScriptDirectory.from_config(config).versions
    config.set_main_option("version_locations", os.pathsep.join((shipped, str(folder))))
    return config


def content(connection: Connection) -> Content:
    """All rows of all tables, as the database has them."""
    results = {}
    for name in inspect(connection).get_table_names():
        if name not in OWN:
            rows = [dict(row._mapping) for row in connection.execute(text(f'SELECT * FROM "{name}"'))]
            results[name] = [{key: _plain(value) for key, value in row.items()} for row in rows]
    return results


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
        there = [[row[column] for column in columns] for row in after[name]]
        was = [[row[column] for column in columns] for row in rows]
        assert sorted(map(repr, there)) == sorted(map(repr, was)), name
