"""What was read is at hand until something is written."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Connection

from claudomator_py.store import remembered
from claudomator_py.store.connections import Unchanged
from claudomator_py.store.database import Database
from claudomator_py.store.migrations import begin


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open("sqlite", state_dir=tmp_path / "state") as opened:
        assert begin(opened)
        yield opened


def write(database: Database, value: int = 0) -> None:
    database.write(lambda connection: remembered.keep(connection, "it", {"is": value}))


def said(connection: Connection) -> int:
    return int(remembered.find(connection, "it").get("is", -1))


def test_it_is_read_once_for_each_key_until_something_is_written(database: Database) -> None:
    kept, reads = Unchanged(), count()

    def read(key: str) -> int:
        return database.read(lambda connection: kept.read(connection, key, lambda: next(reads)))

    assert [read("a"), read("a"), read("b"), read("a")] == [0, 0, 1, 0]
    write(database)
    assert [read("a"), read("b"), read("a")] == [2, 3, 2]


def test_what_was_written_is_read_by_whoever_was_told_of_it(database: Database) -> None:
    kept = Unchanged()
    for value in range(50):
        write(database, value)
        results = [database.read(lambda connection: kept.read(connection, "a", lambda: said(connection))) for _ in "ab"]
        assert results == [value, value]


def test_what_an_earlier_snapshot_says_is_not_told_to_a_later_one(database: Database) -> None:
    """The one who reads is late: somebody has written and read what was written meanwhile."""
    kept = Unchanged()
    write(database, 1)

    def ask(connection: Connection, before: Callable[[], None] = lambda: None) -> int:
        def read() -> int:
            before()
            return said(connection)

        return kept.read(connection, "a", read)

    def meanwhile() -> None:
        write(database, 2)
        assert database.read(ask) == 2

    def late(connection: Connection) -> int:
        said(connection)  # with which the snapshot begins
        return ask(connection, meanwhile)

    assert database.read(late) == 1
    assert database.read(ask) == 2


def test_a_write_sees_what_it_has_written_itself(database: Database) -> None:
    kept = Unchanged()
    assert database.read(lambda connection: kept.read(connection, "a", lambda: said(connection))) == -1

    def change(connection: Connection) -> tuple[int, int]:
        before = kept.read(connection, "a", lambda: said(connection))
        remembered.keep(connection, "it", {"is": 7})
        return before, kept.read(connection, "a", lambda: said(connection))

    assert database.write(change) == (-1, 7)


def test_so_many_are_kept_and_nothing_of_what_is_too_much_or_could_not_be_read(database: Database) -> None:
    kept, asked = Unchanged(most=3), list[int]()

    def read(connection: Connection) -> None:
        for number in (1, 2, 3, 3, 4, 1):
            kept.read(connection, number, lambda number=number: asked.append(number))  # type: ignore[misc]
        for _ in range(2):
            kept.read(connection, 9, lambda: asked.append(9), lambda _: False)
            with pytest.raises(ZeroDivisionError):
                kept.read(connection, 8, lambda: 1 // 0)
        assert kept.read(connection, 8, lambda: 8) == 8

    database.read(read)
    assert asked == [1, 2, 3, 4, 1, 9, 9]
