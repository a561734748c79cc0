#!/usr/bin/env bash
# Python's sqlite3 (Python 3.11 to 3.13, SQLite 3.40.1) in autocommit mode (isolation_level=None): when execute() of an
# UPDATE with RETURNING has returned, it is not committed, has changed no row by `rowcount`, and is in no transaction.
#
# "update ... returning id" is how a worker takes work from a queue. execute() gets the first row, all rows are changed
# by then, and the statement ends only when its last row has been fetched. Until then
#
#   cursor.rowcount             is 0, so "if rowcount == 0: somebody else has it" gives up what one has just taken
#   connection.in_transaction   is False
#   another connection          sees the old rows, and its write fails: "database is locked", for as long as the cursor
#                               lives; a worker that logs the id and then works for an hour holds the lock for that hour
#
# Fetching the only row ends it; of two rows, fetchone() does not. In a transaction of one's own, commit() raises
# "SQL statements in progress". Without RETURNING all is as one expects. Call fetchall().
# Source: https://www.sqlite.org/lang_returning.html ("all database modifications are made during the first
# sqlite3_step()"), https://docs.python.org/3/library/sqlite3.html#sqlite3.Cursor.rowcount.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 - "$work" <<'PYTHON'
import sqlite3
import sys

print("Python", sys.version.split()[0], "SQLite", sqlite3.sqlite_version)
path = sys.argv[1] + "/queue.db"
worker = sqlite3.connect(path, isolation_level=None)
other = sqlite3.connect(path, isolation_level=None, timeout=0)
worker.execute("create table task (id integer primary key, state text)")
worker.executemany("insert into task (state) values (?)", [["queued"]] * 3)


def say(what, cursor):
    seen = other.execute("select count(*) from task where state = 'taken'").fetchone()[0]
    try:
        other.execute("update task set state = state where id = 3")
        writes = "writes"
    except sqlite3.OperationalError as error:
        writes = str(error)
    line = f"rowcount {cursor.rowcount}, in_transaction {worker.in_transaction}, another sees {seen} and {writes}"
    print(f"{what}: {line}")
    return line


TAKE = "update task set state = 'taken' where id in ({})"
seen = []
cursor = worker.execute(TAKE.format(1))
seen.append(say("one row, without returning", cursor))
cursor = worker.execute(TAKE.format(2) + " returning id")
seen.append(say("one row, nothing fetched", cursor))
assert cursor.fetchone() == (2,)
seen.append(say("one row, fetched", cursor))
cursor = worker.execute(TAKE.format("1, 2, 3") + " returning id")
assert cursor.fetchone() == (1,)
seen.append(say("three rows, one fetched", cursor))
cursor.close()
seen.append(say("three rows, cursor closed", cursor))

worker.isolation_level = "DEFERRED"
cursor = worker.execute(TAKE.format("1, 2, 3") + " returning id")
cursor.fetchone()
try:
    worker.commit()
    seen.append("committed")
except sqlite3.OperationalError as error:
    seen.append(str(error))
print("commit() with rows left:", seen[-1])

locked = "database is locked"
assert seen == [
    "rowcount 1, in_transaction False, another sees 1 and writes",
    f"rowcount 0, in_transaction False, another sees 1 and {locked}",
    "rowcount 1, in_transaction False, another sees 2 and writes",
    f"rowcount 0, in_transaction False, another sees 2 and {locked}",
    "rowcount 0, in_transaction False, another sees 3 and writes",
    "cannot commit transaction - SQL statements in progress",
], f"it has changed: {seen}"
PYTHON
# Seen with Python 3.11.7, 3.12.1 and 3.13.0, SQLite 3.40.1, 2026-11:
# one row, without returning: rowcount 1, in_transaction False, another sees 1 and writes
# one row, nothing fetched: rowcount 0, in_transaction False, another sees 1 and database is locked
# one row, fetched: rowcount 1, in_transaction False, another sees 2 and writes
# three rows, one fetched: rowcount 0, in_transaction False, another sees 2 and database is locked
# three rows, cursor closed: rowcount 0, in_transaction False, another sees 3 and writes
# commit() with rows left: cannot commit transaction - SQL statements in progress
