"""Databases on a PostgreSQL server for tests, migrated once and lent again and again."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlmodel import SQLModel

from claudomator_py.store.database import BUSY_TIMEOUT_MS, Database, _Engines, _postgresql_engines
from claudomator_py.store.migrate import migrate

_DRIVER = "postgresql+psycopg"


class PostgresqlDatabases:
    """Databases with the tables of this version on a PostgreSQL server, each empty when it is lent.

    One that comes back is emptied, which costs a third of a new one: PostgreSQL makes and removes a thousand files for
    each. One whose schema is no longer what it was is dropped.
    """

    def __init__(self, server: str) -> None:
        """server: the URL of a server of our own."""
        self._server = server
        self._free: list[_Lent] = []
        self._bare: list[str] = []
        self._made = 0

    @contextmanager
    def lend(self, state_dir: Path) -> Iterator[Database]:
        """Yield an open database with that state folder."""
        lent = self._free.pop() if self._free else _Lent(self._create())
        with lent.opened(state_dir) as database:
            yield database
        if lent.is_empty_again():
            self._free.append(lent)
        else:
            with connected(self._server) as connection:
                connection.execute(text(f"DROP DATABASE {make_url(lent.url).database} WITH (FORCE)"))

    @contextmanager
    def lend_bare(self) -> Iterator[str]:
        """Yield the URL of a database without tables."""
        url = self._bare.pop() if self._bare else self._create()
        yield url
        with connected(url) as connection:
            connection.execute(_END_OTHERS, {"ours": []})
            connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
        self._bare.append(url)

    def close(self) -> None:
        """Close the connections of those that nobody has."""
        for lent in self._free:
            lent.close()

    def _create(self) -> str:
        self._made += 1
        name = f"test_{os.getpid()}_{self._made}"
        with connected(self._server) as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return named(self._server, name)


class _Lent:
    """A database with its open connections: the server reads its catalogue anew, and plans each statement anew, for
    each connection, which is most of what a test costs it."""

    def __init__(self, url: str) -> None:
        self.url = url
        with tempfile.TemporaryDirectory() as folder, Database.open(url, state_dir=Path(folder)) as opened:
            migrate(opened)
        self._engines = _postgresql_engines(make_url(url).set(drivername=_DRIVER), BUSY_TIMEOUT_MS)
        self._ours: set[int] = set()
        for engine in self._all:
            event.listen(engine, "connect", lambda connection, _: self._ours.add(connection.info.backend_pid))
        with self._engines.writer.connect() as connection:
            self._schema = connection.execute(_SCHEMA).all()

    @property
    def _all(self) -> tuple[Engine, ...]:
        return self._engines.reader, self._engines.writer, self._engines.schema

    @contextmanager
    def opened(self, state_dir: Path) -> Iterator[Database]:
        """Yield a database on those connections."""
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What listens to the engines of one database hears of no other.
        engines = _KeptOpen(*(engine.execution_options() for engine in self._all))
        with Database(state_dir=state_dir, file=None, engines=engines) as database:
            yield database

    def is_empty_again(self) -> bool:
        """Whether it can be lent again. Where it cannot, its connections are closed."""
        taken = any(engine.pool.checkedout() for engine in self._all if isinstance(engine.pool, QueuePool))
        if not taken:
            try:
                with self._engines.writer.connect() as connection, connection.begin():
                    connection.execute(_END_OTHERS, {"ours": [*self._ours]})
                    if connection.execute(_SCHEMA).all() == self._schema:
                        empty_postgresql(connection)
                        return True
            except SQLAlchemyError:
                pass
        self.close()
        return False

    def close(self) -> None:
        """Close its connections."""
        self._engines.dispose()


class _KeptOpen(_Engines):
    """Engines that outlast the database that they are of."""

    def dispose(self) -> None:
        """Leave them open."""


# Whoever a test has killed may have left a transaction that the server has not given up yet.
_END_OTHERS = text(
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL(CAST(:ours AS integer[]))"
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
    engine = create_engine(make_url(url).set(drivername=_DRIVER), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def named(server: str, database: str) -> str:
    """The URL of that database on the server."""
    return make_url(server).set(database=database).render_as_string(hide_password=False)
