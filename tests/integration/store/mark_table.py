"""A table for tests that write and count rows."""

from sqlalchemy import Connection, text


def create(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE mark (number INTEGER, filler TEXT)"))


def add(connection: Connection, filler: str = "") -> None:
    connection.execute(text("INSERT INTO mark VALUES (1, :filler)"), {"filler": filler})


def count(connection: Connection) -> int:
    return int(connection.execute(text("SELECT count(*) FROM mark")).scalar_one())
