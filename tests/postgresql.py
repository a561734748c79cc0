"""Databases on a PostgreSQL server for tests, migrated once and lent again and again."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, make_url, text
from sqlmodel import SQLModel

from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate


class PostgresqlDatabases:
    """Databases with the tables of this version on a PostgreSQL server, each empty when it is lent.

    One that comes back is emptied, which costs a third of a new one: PostgreSQL makes and removes a thousand files for
    each. One whose schema is no longer what it was is dropped.
    """

    def __init__(self, server: str) -> None:
        """server: the URL of a server of our own."""
        self._server = server
        self._free: list[str] = []
        self._bare: list[str] = []
        self._made = 0

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The URL of a database, for as long as it is needed."""
        url = self._free.pop() if self._free else self._make()
        yield url
        with connected(url) as connection:
            connection.execute(_END_OTHERS)
            sound = connection.execute(_SCHEMA).all() == self._schema
            if sound:
                empty_postgresql(connection)
        if sound:
            self._free.append(url)
        else:
            with connected(self._server) as connection:
                connection.execute(text(f"DROP DATABASE {make_url(url).database} WITH (FORCE)"))

    @contextmanager
    def lend_bare(self) -> Iterator[str]:
        """The URL of a database without tables, for as long as it is needed."""
        url = self._bare.pop() if self._bare else self._create()
        yield url
        with connected(url) as connection:
            connection.execute(_END_OTHERS)
            connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
        self._bare.append(url)

    def _create(self) -> str:
        self._made += 1
        name = f"test_{os.getpid()}_{self._made}"
        with connected(self._server) as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return named(self._server, name)

    def _make(self) -> str:
        url = self._create()
        with tempfile.TemporaryDirectory() as folder, Database.open(url, state_dir=Path(folder)) as opened:
            migrate(opened)
        with connected(url) as connection:
            self._schema = connection.execute(_SCHEMA).all()
        return url


# Whoever a test has killed may have left a transaction that the server has not given up yet.
_END_OTHERS = text(
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_SCHEMA = text(
    "SELECT c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull FROM pg_class c"
    " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    " WHERE c.relnamespace = 'public'::regnamespace"
    " UNION ALL SELECT tgname, 't', NULL, NULL, tgenabled = 'D' FROM pg_trigger WHERE NOT tgisinternal"
    " UNION ALL SELECT conname, contype, NULL, NULL, NULL FROM pg_constraint"
    " UNION ALL SELECT version_num, NULL, NULL, NULL, NULL FROM alembic_version"
    " ORDER BY 1, 2, 3, 4, 5"
)
_COUNT_FROM_ONE = text(
    "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"
)


def empty_postgresql(connection: Connection) -> None:
    """Remove all rows of a PostgreSQL database, and begin to count at 1 again."""
    tables = reversed(SQLModel.metadata.sorted_tables)
    connection.execute(text(";".join(f'DELETE FROM "{table.name}"' for table in tables)))
    connection.execute(_COUNT_FROM_ONE)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A connection to that database, each of whose statements is a transaction of its own."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def named(server: str, database: str) -> str:
    """The URL of that database on the server."""
    return make_url(server).set(database=database).render_as_string(hide_password=False)
