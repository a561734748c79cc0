#!/usr/bin/env bash
# SQLite 3.54.1 (apsw 3.54.1.0 on PyPI; the same in 3.40.1 and 3.53.4): a statement that compares a parameter with the
# column in the condition of a partial index is prepared again at every execution, even if each execution binds the same
# value, and twice at the first. With a constant in the text, or without a partial index, a cached statement is prepared
# once. The documentation names two cases in which values influence a plan: LIKE and GLOB, and columns with statistics
# of ANALYZE (SQLITE_ENABLE_STAT4); partial indexes are neither: https://www.sqlite.org/c3ref/prepare.html
# Each preparation asks the authorizer four times here, so its calls count preparations.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check apsw==3.54.1.0
"$folder/venv/bin/python" - <<'PYTHON'
import apsw


def preparations(index, query, values):
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, lane TEXT)")
    connection.execute(f"CREATE INDEX some ON job (lane) {index}")
    calls, counts = [], []
    connection.authorizer = lambda *call: calls.append(call) or apsw.SQLITE_OK
    for _ in range(4):
        calls.clear()
        list(connection.execute(query, values))
        counts.append(len(calls) / 4)
    return counts


partial, bound = "WHERE state = 'RUNNING'", "SELECT id FROM job WHERE state = ? AND lane = ?"
constant = "SELECT id FROM job WHERE state = 'RUNNING' AND lane = ?"
results = {
    "partial index, parameter": preparations(partial, bound, ("RUNNING", "a")),
    "partial index, constant": preparations(partial, constant, ("a",)),
    "whole index, parameter": preparations("", bound, ("RUNNING", "a")),
}
for name, counts in results.items():
    print(f"{apsw.sqlitelibversion()}, {name}: prepared {counts} times at four executions")
assert list(results.values()) == [[2, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0]], "it has changed"
PYTHON
# Seen with Python 3.11, 2026-11:
# 3.54.1, partial index, parameter: prepared [2.0, 1.0, 1.0, 1.0] times at four executions
# 3.54.1, partial index, constant: prepared [1.0, 0.0, 0.0, 0.0] times at four executions
# 3.54.1, whole index, parameter: prepared [1.0, 0.0, 0.0, 0.0] times at four executions
