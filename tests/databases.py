"""Databases with the tables of this version, migrated once a process, then copied, or lent again and again.

The migrations and how a file is opened have tests of their own; every other test only needs what they come to.
"""

import atexit
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.pool.base import _ConnectionFairy
from sqlmodel import SQLModel

from claudomator_py.store import statement
from claudomator_py.store.connections import driver_of
from claudomator_py.store.database import BUSY_TIMEOUT_MS, FILE_NAME, Database, _Engines, _sqlite_engines
from claudomator_py.store.migrate import migrate

_free: list["_Lent"] = []


def open_migrated(state_dir: Path) -> Database:
    """An empty SQLite database with that state folder, which is made if missing. Its file is elsewhere, see ``_Lent``.

    Whoever needs the file in the folder, or one that was never used, takes ``put_migrated``.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lent = _free.pop() if _free else _Lent(_folder() / str(next(_numbers)))
    return Database(state_dir=state_dir, file=lent.file, engines=lent.engines())


class _Lent:
    """A file with its open connections: most of what a small test costs is opening one, and learning its tables.

    A database that is closed comes back. It is emptied, and lent again unless a test has changed its schema, made it
    large, or holds on to it.
    """

    def __init__(self, folder: Path) -> None:
        put_migrated(folder)
        self.file = folder / FILE_NAME
        self._engines = _sqlite_engines(self.file, BUSY_TIMEOUT_MS)
        with self._engines.writer.connect() as connection:
            self._schema = _schema(connection)

    def engines(self) -> _Engines:
        """For one database: what listens to them hears of no other."""
        of_this = (self._engines.reader, self._engines.writer, self._engines.schema)
        return _OfOneDatabase(self, *(engine.execution_options() for engine in of_this))

    def come_back(self) -> None:
        """Nobody has it any more."""
        if self._is_sound():
            _free.append(self)
        else:
            self._engines.dispose()
            shutil.rmtree(self.file.parent, ignore_errors=True)

    def _is_sound(self) -> bool:
        pools = (self._engines.reader.pool, self._engines.writer.pool)
        if any(isinstance(pool, QueuePool) and pool.checkedout() for pool in pools):
            return False
        try:
            with self._engines.writer.connect() as connection, connection.begin():
                empty(connection)
                return _schema(connection) == self._schema and self.file.stat().st_size < _LARGE_BYTES
        except (OSError, SQLAlchemyError):
            return False


class _OfOneDatabase(_Engines):
    """Engines that outlast the database that they are of."""

    def __init__(self, lent: _Lent, reader: Engine, writer: Engine, schema: Engine) -> None:
        super().__init__(reader, writer, schema)
        self._lent: _Lent | None = lent

    def dispose(self) -> None:
        lent, self._lent = self._lent, None
        if lent is not None:
            lent.come_back()


_LARGE_BYTES = 4 * 2**20
_numbers = itertools.count(1)


def _schema(connection: Connection) -> tuple[Any, ...]:
    """What it is, and what it is said to be."""
    text = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
    return connection.exec_driver_sql("PRAGMA schema_version").scalar_one(), text


@cache
def _folder() -> Path:
    """Of this process."""
    folder, process = Path(tempfile.mkdtemp(prefix="claudomator-databases-")), os.getpid()

    def remove() -> None:
        # Not by a child that was forked, and ends first.
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def put_migrated(state_dir: Path, *, begun: bool = False) -> None:
    """The file of such a database in that folder, which is made if missing. begun: as a daemon leaves it that has
    started once, with the specialists that come with it."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = state_dir / FILE_NAME
    file.touch(mode=0o600)
    file.write_bytes(_migrated_file(begun))


def empty(connection: Connection) -> None:
    """Remove all rows of a SQLite database, and begin to count at 1 again."""
    driver: Any = connection.connection.dbapi_connection
    for table in _tables():
        driver.execute(f'DELETE FROM "{table}"')


@cache
def _tables() -> list[str]:
    return [*(table.name for table in reversed(SQLModel.metadata.sorted_tables)), "sqlite_sequence"]


@cache
def _migrated_file(begun: bool) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with Database.open("sqlite", state_dir=Path(folder)) as opened:
            migrate(opened)
            if begun:
                from claudomator_py.app.startup import ship_cards  # with more of a daemon than most tests need

                ship_cards(opened, wanted=True)
        return (Path(folder) / FILE_NAME).read_bytes()


Told = Callable[[str, Any], object]
"""Hears of a statement with its parameters."""


class _TellingDriver:
    """A driver's connection or cursor that tells of what it executes."""

    def __init__(self, driver: Any, record: Told) -> None:
        self._driver = driver
        self._told = record

    def cursor(self) -> Any:
        return _TellingDriver(self._driver.cursor(), self._told)

    def execute(self, statement: str, *parameters: Any) -> Any:
        self._told(statement, *parameters or ((),))
        return self._driver.execute(statement, *parameters)

    def executemany(self, statement: str, parameters: Any) -> Any:
        self._told(statement, parameters)
        return self._driver.executemany(statement, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)


@contextmanager
def listening(record: Told) -> Iterator[None]:
    """In the block, tell of all that a driver is given, on whichever connection, but for BEGIN and COMMIT."""
    given = _ConnectionFairy.cursor

    def cursor(fairy: _ConnectionFairy, *arguments: Any, **options: Any) -> Any:
        return _TellingDriver(given(fairy, *arguments, **options), record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_ConnectionFairy, "cursor", cursor)
        patch.setattr(statement, "driver_of", lambda connection: _TellingDriver(driver_of(connection), record))
        yield
