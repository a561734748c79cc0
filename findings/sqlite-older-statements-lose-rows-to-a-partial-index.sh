#!/usr/bin/env bash
# SQLite 3.40.1 to 3.53.4 (apsw 3.40.1.0 and 3.53.4.0 on PyPI; pysqlite3-binary 0.5.4.post2 has 3.51.1): a statement
# that was prepared before a partial index was created, and that compares the column of the index's condition with a
# parameter, is prepared again after that, with the value that is bound at that moment. If the condition holds for that
# value, the new program uses the partial index, and is then kept for other values too, for which rows that exist are
# not returned. No error is raised. A statement whose text is new, even by a comment, returns them. Drivers and pools
# that cache statements (Python's sqlite3 keeps 128 for each connection) have such statements whenever a migration adds
# an index on a connection that has already been used. In SQLite 3.54.1 (apsw 3.54.1.0), all rows are returned.
# The documentation says that a statement is prepared again after a change of the schema, and "following any change to
# the bindings" that influence its plan: https://www.sqlite.org/c3ref/prepare.html
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cat > "$folder/try.py" <<'PYTHON'
import sys

if sys.argv[1] == "apsw":
    import apsw

    connection, version = apsw.Connection(":memory:"), apsw.sqlitelibversion()
else:
    import pysqlite3

    connection, version = pysqlite3.connect(":memory:", isolation_level=None), pysqlite3.sqlite_version


def rows(query, *values):
    return list(connection.execute(query, values))


rows("CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, lane TEXT)")
rows("INSERT INTO job (state, lane) VALUES ('DONE', 'a'), ('RUNNING', 'b')")
query = "SELECT id FROM job WHERE state = ? AND lane = ?"
before = rows(query, "DONE", "a")
rows("CREATE INDEX running ON job (lane) WHERE state = 'RUNNING'")
running, after, anew = rows(query, "RUNNING", "b"), rows(query, "DONE", "a"), rows(f"{query} -- new", "DONE", "a")
print(f"{version}: before the index {before}, then RUNNING {running}, DONE {after}, DONE by a new statement {anew}")
assert before == anew == [(1,)] and running == [(2,)], "it has changed"
assert after == ([(1,)] if sys.argv[2] == "whole" else []), "it has changed"
PYTHON
try() {  # package version driver expectation
    python3 -m venv "$folder/$3$2"
    "$folder/$3$2/bin/pip" install --quiet --disable-pip-version-check "$1==$2"
    "$folder/$3$2/bin/python" "$folder/try.py" "$3" "$4"
}
try apsw 3.40.1.0 apsw lost
try pysqlite3-binary 0.5.4.post2 pysqlite3 lost
try apsw 3.53.4.0 apsw lost
try apsw 3.54.1.0 apsw whole
# Seen with Python 3.11, 2026-11:
# 3.40.1: before the index [(1,)], then RUNNING [(2,)], DONE [], DONE by a new statement [(1,)]
# 3.51.1: before the index [(1,)], then RUNNING [(2,)], DONE [], DONE by a new statement [(1,)]
# 3.53.4: before the index [(1,)], then RUNNING [(2,)], DONE [], DONE by a new statement [(1,)]
# 3.54.1: before the index [(1,)], then RUNNING [(2,)], DONE [(1,)], DONE by a new statement [(1,)]
