"""A small schema for tests of the database itself: notes, and answers that refer to them."""

from collections.abc import Callable

from sqlalchemy import BigInteger, Column, Connection, ForeignKey, MetaData, String, Table, insert, select

from claudomator_py.store.database import Database

metadata = MetaData()
note = Table("note", metadata, Column("id", BigInteger, primary_key=True), Column("body", String, nullable=False))
answer = Table(
    "answer",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("note_id", ForeignKey("note.id", deferrable=True, initially="DEFERRED")),
)


def add(number: int) -> Callable[[Connection], int]:
    def fn(connection: Connection) -> int:
        connection.execute(insert(note).values(id=number, body=f"note {number}"))
        return number

    return fn


def ids(db: Database) -> list[int]:
    return db.read(lambda connection: list(connection.scalars(select(note.c.id).order_by(note.c.id))))
