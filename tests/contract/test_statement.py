"""Statements given to the driver as they are: what goes in comes out, in the types of the columns."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import BindParameter, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from claudomator_py.store.database import Database
from claudomator_py.store.statement import Statement
from claudomator_py.store.tables import EVENT, REMEMBERED

_ADD = Statement(insert(REMEMBERED))
_ALL = Statement(select(REMEMBERED.c.name, REMEMBERED.c.data).order_by(REMEMBERED.c.name))
_AMONG = Statement(
    select(REMEMBERED.c.name)
    .where(REMEMBERED.c.name.in_(bindparam("names", expanding=True)), REMEMBERED.c.name.in_(["a", "b"]))
    .order_by(REMEMBERED.c.name)
    .limit(bindparam("most"))
)
_CHANGE = Statement(update(REMEMBERED).where(REMEMBERED.c.name == bindparam("called")))
_FORGET = Statement(delete(REMEMBERED).where(REMEMBERED.c.name == bindparam("called")))


def add(database: Database, *names: str) -> None:
    rows = [{"name": name, "data": {"is": name}} for name in names]
    database.write(lambda connection: _ADD.run_all(connection, rows))


def names(database: Database, *wanted: str, most: int = 9) -> list[Any]:
    return database.read(lambda connection: _AMONG.values(connection, names=wanted, most=most))


def test_what_is_written_is_read(database: Database) -> None:
    add(database, "b", "a")
    results = database.read(_ALL.rows)
    assert results == [("a", {"is": "a"}), ("b", {"is": "b"})]


def test_nothing_is_none(database: Database) -> None:
    assert database.read(_ALL.row) is None
    assert database.read(_ALL.value) is None
    database.write(lambda connection: _ADD.run_all(connection, []))
    assert database.read(_ALL.rows) == []


def test_a_list_may_have_any_length(database: Database) -> None:
    add(database, "a", "b", "c")
    assert names(database) == []
    assert names(database, "a") == ["a"]
    assert names(database, "a", "b", "c") == ["a", "b"]
    assert names(database, "b", "a", most=1) == ["a"]


def test_a_list_of_any_length_names_neither_more_nor_less(database: Database) -> None:
    """Whatever length it is written in: the shortest, both sides of each power of two, and the longest."""
    add(database, *(f"n{number:04}" for number in range(1100)))
    within = Statement(select(REMEMBERED.c.name).where(REMEMBERED.c.name.in_(bindparam("these", expanding=True))))
    outside = Statement(select(REMEMBERED.c.name).where(REMEMBERED.c.name.not_in(bindparam("these", expanding=True))))
    for length in (0, 1, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31, 33, 500, 1023, 1024, 1025):
        these = {f"n{number:04}" for number in range(1100 - length, 1100)}
        results = database.read(partial(within.values, these=sorted(these)))
        assert sorted(results) == sorted(these)
        left = database.read(partial(outside.values, these=sorted(these)))
        assert len(left) == 1100 - length
        assert these.isdisjoint(left)


def test_it_says_how_many_rows_it_has_changed_and_writes_what_it_is_given(database: Database) -> None:
    add(database, "a")
    assert database.write(lambda connection: _CHANGE.run(connection, called="b", data={})) == 0
    assert database.write(lambda connection: _CHANGE.run(connection, called="a", data={"x": 1})) == 1
    assert database.read(lambda connection: _ALL.row(connection)) == ("a", {"x": 1})
    assert database.write(lambda connection: _FORGET.run(connection, called="a")) == 1


def test_what_the_database_refuses_is_refused_as_by_sqlalchemy(database: Database) -> None:
    add(database, "a")
    with pytest.raises(IntegrityError):
        add(database, "a")


def test_a_parameter_that_is_not_given_is_a_fault(database: Database) -> None:
    with pytest.raises(TypeError, match="most"):
        database.read(lambda connection: _AMONG.values(connection, names=["a"]))


def test_a_list_is_for_in_or_for_not_in(database: Database) -> None:
    """Where one stood in both and was empty, PostgreSQL found nothing to be in it and everything."""
    listed: BindParameter[Any] = bindparam("names", expanding=True)
    twofold = Statement(select(REMEMBERED.c.name.in_(listed)).where(REMEMBERED.c.name.not_in(listed)))
    with pytest.raises(TypeError, match="names is given to IN and to NOT IN; use two names"):
        database.read(lambda connection: twofold.values(connection, names=["a"]))


def test_no_secret_is_stored_where_people_look(database: Database) -> None:
    adding, reading = Statement(insert(EVENT)), Statement(select(EVENT.c.data))
    payload = {"said": "sk-ant-api03-" + "x" * 80}
    values = {"at_ms": 1, "task_id": None, "run_id": None, "kind": "k", "data": payload, "by": None}
    database.write(lambda connection: adding.run(connection, **values))
    assert "xxxx" not in str(database.read(reading.value))
