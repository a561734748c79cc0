"""Databases with the tables of this version, migrated once a process and copied from then on.

The migrations have tests of their own; every other test only needs what they come to.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, text
from sqlalchemy.pool.base import _ConnectionFairy
from sqlmodel import SQLModel

from claudomator_py.store.database import FILE_NAME, Database
from claudomator_py.store.migrate import migrate


def open_migrated(state_dir: Path) -> Database:
    """A SQLite database of its own in that folder, which is made if missing."""
    put_migrated(state_dir)
    return Database.open("sqlite", state_dir=state_dir)


def put_migrated(state_dir: Path, *, begun: bool = False) -> None:
    """The file of such a database in that folder, which is made if missing. begun: as a daemon leaves it that has
    started once, with the specialists that come with it."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = state_dir / FILE_NAME
    file.touch(mode=0o600)
    file.write_bytes(_migrated_file(begun))


def empty(connection: Connection) -> None:
    """Remove all rows of a SQLite database, and begin to count at 1 again."""
    for table in reversed(SQLModel.metadata.sorted_tables):
        connection.execute(delete(table))
    connection.execute(text("DELETE FROM sqlite_sequence"))


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


class _TellingCursor:
    """A driver's cursor that tells of what it executes."""

    def __init__(self, cursor: Any, told: Told) -> None:
        self._cursor = cursor
        self._told = told

    def execute(self, statement: str, *parameters: Any) -> Any:
        self._told(statement, *parameters or ((),))
        return self._cursor.execute(statement, *parameters)

    def executemany(self, statement: str, parameters: Any) -> Any:
        self._told(statement, parameters)
        return self._cursor.executemany(statement, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


@contextmanager
def listening(told: Told) -> Iterator[None]:
    """In the block, tell of all that a driver is given, on whichever connection, but for BEGIN and COMMIT."""
    given = _ConnectionFairy.cursor

    def cursor(fairy: _ConnectionFairy, *arguments: Any, **options: Any) -> Any:
        return _TellingCursor(given(fairy, *arguments, **options), told)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_ConnectionFairy, "cursor", cursor)
        yield
