"""A database that has grown: a task in it, copied with all that belongs to it, as often as wanted."""

import sqlite3

APART_MS = 1_000
_COPIED = ("task", "task_revision", "run", "decision", "event")


def copy(connection: sqlite3.Connection, state: str, numbers: range, apart_ms: int = APART_MS) -> None:
    """Copy the newest task of that state, with what belongs to it, once for each number, each so much earlier.

    Without a journal, and many without indexes until all are copied: with them, a million tasks take hours.
    """
    connection.commit()
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    newest = "SELECT id FROM task WHERE state = ? ORDER BY created_ms DESC LIMIT 1"
    (first,) = connection.execute(newest, (state,)).fetchone()
    connection.execute("CREATE TEMP TABLE n (i INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO n VALUES (?)", ((number,) for number in numbers))
    indexes = connection.execute(
        f"SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN {_COPIED}"  # noqa: S608 - its own tables
    ).fetchall()
    (there,) = connection.execute("SELECT count(*) FROM task").fetchone()
    if there > 10 * len(numbers):
        indexes = []  # a few more
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    for table in _COPIED:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(_copied(table, name, apart_ms) for name in columns)
        names = ", ".join(f'"{name}"' for name in columns)
        of_first = "id" if table == "task" else "task_id"
        order = "DESC" if table == "event" else "ASC"  # that of the copies' ids
        connection.execute(
            f"INSERT INTO {table} ({names}) SELECT {values} FROM n, {table} WHERE {of_first} = ? ORDER BY n.i {order}",  # noqa: S608 - its own tables
            (first,),
        )
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("DROP TABLE n")
    connection.commit()
    connection.execute("PRAGMA journal_mode = WAL")


def part_lanes(connection: sqlite3.Connection) -> None:
    """Have each of the queued tasks be in a lane of its own."""
    connection.execute("UPDATE task SET eligibility = eligibility || id WHERE state = 'QUEUED'")


def _copied(table: str, column: str, apart_ms: int) -> str:
    """The column of a copy, in SQL."""
    if (table, column) == ("event", "id"):
        # Before all that have happened: else those who follow events would have as many new ones to read.
        return f"{column} - {apart_ms} * n.i"
    if column in ("id", "task_id", "run_id", "last_run_id", "supersedes"):
        return f"{column} || printf('-%08d', n.i)"
    if column == "name" and table == "task":
        return "'copy-' || n.i"
    return f"{column} - {apart_ms} * n.i" if column.endswith("_ms") else f'"{column}"'
