#!/usr/bin/env bash
# Python's sqlite3 (iterdump) and sqlite-utils 4.2.1 (PyPI): what is restored from a dump is less than was in the
# database. A text with U+0000 in it ends there.
#
# SQLite stores such a text whole, and returns it whole. Agents produce them, as by `find -print0` or `git ls-files -z`,
# and "\u0000" in their JSON is one. A dump is SQL that is written by quote(), which stops at the first U+0000, so the
# rest is missing from every backup made that way. No error is raised, neither at the dump nor when it is restored, and
# integrity_check and the number of rows are as they should be. length() and LIKE stop there as well: by the lengths,
# both databases are the same, and no search finds what is behind. hex(), replace() and `||` see all of it. The program
# sqlite3 (3.40.1, Debian 12) does the same in .dump, and in what it prints, as CSV and JSON, too.
# Connection.backup(), VACUUM INTO and the dump of apsw 3.54.1.0 (PyPI) keep the text.
# Source: https://www.sqlite.org/nulinstr.html, https://www.sqlite.org/lang_corefunc.html#quote;
# https://docs.python.org/3/library/sqlite3.html#sqlite3.Connection.iterdump, which is silent about it.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check apsw==3.54.1.0 sqlite-utils==4.2.1 2>/dev/null
cd "$folder"
cat >try.py <<'PYTHON'
import contextlib, io, sqlite3, subprocess, sys

import apsw.shell

text = "changed: a.py\0b.py\0and the tests pass"
source = sqlite3.connect("runs.db")
source.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, answer TEXT)")
source.execute("INSERT INTO runs (answer) VALUES (?)", [text])
source.commit()


def restored(script):
    database = sqlite3.connect(":memory:")
    database.executescript(script)
    return database


def by_apsw():
    output = io.StringIO()
    shell = apsw.shell.Shell(args=("runs.db",), stdout=output)
    shell.process_command(".dump")
    database = apsw.Connection(":memory:")
    database.execute(output.getvalue())
    return database


copy = sqlite3.connect(":memory:")
source.backup(copy)
source.execute("VACUUM INTO 'vacuumed.db'")
dump = subprocess.run([sys.executable, "-m", "sqlite_utils", "dump", "runs.db"], stdout=-1, text=True, check=True).stdout
databases = {
    "the database": source,
    "iterdump": restored("\n".join(source.iterdump())),
    "sqlite-utils dump": restored(dump),
    "backup": copy,
    "VACUUM INTO": sqlite3.connect("vacuumed.db"),
    "apsw's dump": by_apsw(),
}
question = "SELECT answer, length(answer), answer LIKE '%pass%', length(replace(hex(answer), ' ', '')) / 2 FROM runs"
seen = {name: tuple(next(iter(database.execute(question)))) for name, database in databases.items()}
check = databases["iterdump"].execute("PRAGMA integrity_check").fetchone()[0]
for name, (answer, length, found, size) in seen.items():
    print(f"{name:18} {answer!r}, length() {length}, LIKE finds its end: {found}, bytes {size}")
print("integrity_check after iterdump:", check)
whole, cut = (text, 13, 0, len(text)), ("changed: a.py", 13, 0, 13)
assert list(seen.values()) == [whole, cut, cut, whole, whole, whole] and check == "ok", "it has changed"
PYTHON
env -i PATH="$PATH" HOME="$folder" LANG=C.UTF-8 timeout 60 venv/bin/python try.py
# Seen with Python 3.11 and SQLite 3.40.1, twice, 2026-11.
