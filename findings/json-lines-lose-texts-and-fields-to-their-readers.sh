#!/usr/bin/env bash
# JSON lines, as agents and runners write their events, read with defaults by pandas 3.1.1, Polars 2.1.0 and DuckDB
# 2.0.0 (PyPI). But for one case, there is no error and no warning.
#
#   all values of a field in the file     pandas          Polars     DuckDB
#   "0140", "0150"      numbers of tasks  140, 150        as it is   as it is
#   "1.10", "1.9"       versions          1.1, 1.9        as it is   as it is
#   "84e1240"           commits           infinity        as it is   as it is
#   1796083200          "created_at"      a time          as it is   as it is
#   "12:30"             a time of day     as it is        as it is   a time
#   a field that is first in line 150     as it is        missing    as it is
#   a field that is first in line 25000   as it is        missing    an error
#
# pandas makes numbers of a text if all of its column look like some, so "84e1240" is a text again once another commit
# has another letter in it, and times of what is called "..._at", "..._time", "date" or "modified". Polars learns the
# fields from 100 lines, and leaves out what is not among these; DuckDB learns them from 20,480, and refuses. In a log
# of events that is the rare one: "error", "retried", "denied". So the column of failures is missing where there are
# few, and there in each test. Say dtype=False; infer_schema_length=None; sample_size=-1.
# Source: https://pandas.pydata.org/docs/reference/api/pandas.read_json.html,
# https://docs.pola.rs/api/python/stable/reference/api/polars.read_ndjson.html,
# https://duckdb.org/docs/stable/data/json/loading_json
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pandas==3.1.1 polars==2.1.0 duckdb==2.0.0 2>/dev/null
cd "$folder"
env -i PATH="$PATH" HOME="$folder" "$folder/venv/bin/python" -W error - <<'PYTHON'
import json

import duckdb
import pandas
import polars

DAY = 1796083200


def written(count, **fields):
    """The name of a file of so many events, of which the last but four has an error."""
    events = [{"run": run} | {name: values[run % 2] for name, values in fields.items()} for run in range(count)]
    events[-5]["error"] = "the tests fail"
    with open("events.jsonl", "w") as file:
        file.writelines(f"{json.dumps(event)}\n" for event in events)
    return "events.jsonl"


def by_pandas(path, **options):
    return pandas.read_json(path, lines=True, **options).to_dict("list")


def by_polars(path, **options):
    return polars.read_ndjson(path, **options).to_dict(as_series=False)


def by_duckdb(path, options=""):
    table = duckdb.sql(f"select * from read_json('{path}'{options})")
    return dict(zip(table.columns, map(list, zip(*table.fetchall()))))


fields = {
    "task": ("0140", "0150"),
    "version": ("1.10", "1.9"),
    "commit": ("84e1240", "12e3456"),
    "created_at": (DAY, DAY + 1),
    "at": ("12:30", "01:15"),
}
path = written(150, **fields)
seen = {}
for name, read in {"pandas": by_pandas, "Polars": by_polars, "DuckDB": by_duckdb}.items():
    table = read(path)
    seen[name] = {field: str(table[field][0]) for field in fields} | {"error": "error" in table}
    print(f"{name}: {seen[name]}")
mixed = by_pandas(written(150, commit=("84e1240", "ab12345")))["commit"][0]
print("pandas, beside a commit with a letter behind the first:", mixed)
path = written(25_000)
late = ["error" in by_pandas(path), "error" in by_polars(path)]
try:
    late.append("error" in by_duckdb(path))
except duckdb.Error as error:
    late.append(type(error).__name__)
print("the field of line 25000, in pandas, Polars, DuckDB:", *late)
asked = [
    by_pandas(written(25_000, **fields), dtype=False),
    by_polars(path, infer_schema_length=None),
    by_duckdb(path, ", sample_size=-1"),
]
plain = {name: str(values[0]) for name, values in fields.items()}
assert seen["pandas"] == plain | {
    "task": "140",
    "version": "1.1",
    "commit": "inf",
    "created_at": "2026-12-01 00:00:00",
    "error": True,
}, "pandas has changed"
assert seen["Polars"] == plain | {"error": False}, "Polars has changed"
assert seen["DuckDB"] == plain | {"at": "12:30:00", "error": True}, "DuckDB has changed"
assert mixed == "84e1240", "pandas has changed"
assert late == [True, False, "InvalidInputException"], "it has changed"
assert all("error" in table for table in asked) and asked[0]["commit"][0] == "84e1240", "it has changed"
assert asked[0]["created_at"][0] == DAY, "it has changed"
PYTHON
