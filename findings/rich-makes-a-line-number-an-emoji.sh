#!/usr/bin/env bash
# rich 15.0.0 (PyPI): console.print() of `src/app.py:100: error` shows "src/app.py💯 error", with markup=False and behind
# rich.markup.escape() as well.
#
# A name between two colons is an emoji to rich, and :100: is a name. So are :id:, :key:, :up:, :new:, :end:, :a:, :b:
# and :x:. What tools print often looks like that: `urn:id:7` and `refs:up:1` lose these letters. escape(), which the
# documentation gives for text that is not one's own, is about square brackets only, and markup=False turns off those.
# print(), log(), the cells of tables and print of rich all do it, also when the output goes to a file or into a pipe.
# So a log of compilers or linters, passed on by a program with rich, has no line 100, and an editor, a `grep :100:` or
# the next agent that reads it does not find the place. emoji=False of the console leaves the text as it is, that of
# print() does not reach the cells of a table. So do RichHandler, print_json() and a Text that the program has made.
# Source: https://rich.readthedocs.io/en/stable/markup.html ("Escaping", "Emoji").
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check rich==15.0.0 2>/dev/null
"$folder/venv/bin/python" -X utf8 - <<'PYTHON'
import io
import json
import logging

from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Table
from rich.text import Text

LINE = "src/app.py:100: error"


def shown(write, **options):
    """What a file has once `write` is done with a console on it."""
    file = io.StringIO()
    write(Console(file=file, width=100, **options))
    return file.getvalue().strip()


def table(console, **options):
    grid = Table.grid()
    grid.add_row(escape(LINE))
    console.print(grid, **options)


def handler(console):
    log = RichHandler(console=console, show_time=False, show_path=False)
    log.emit(logging.LogRecord("", logging.ERROR, "", 1, LINE, (), None))


ways = {
    "print, escaped": lambda console: console.print(escape(LINE)),
    "print, markup=False": lambda console: console.print(LINE, markup=False),
    "a table, escaped": table,
    "log, markup=False": lambda console: console.log(LINE, markup=False),
    "table, print with emoji=False": lambda console: table(console, emoji=False),
    "print, emoji=False": lambda console: console.print(LINE, emoji=False),
    "print_json": lambda console: console.print_json(json.dumps(LINE)),
    "RichHandler": handler,
    "a Text": lambda console: console.print(Text(LINE)),
}
seen = {}
for name, write in ways.items():
    seen[name] = shown(write)
    print(f"{name}: {seen[name]}")
changed = [name for name, text in seen.items() if "src/app.py💯 error" in text and LINE not in text]
whole = [name for name, text in seen.items() if LINE in text]
assert changed == list(ways)[:5] and whole == list(ways)[5:], "it has changed"
others = ("urn:id:7", "refs:up:1", "sk:key:2", "std::ok::x", "10:30:00", "app.py:101: error")
texts = [shown(lambda console, text=text: console.print(text, markup=False, highlight=False)) for text in others]
print(*texts, sep="\n")
assert texts == ["urn🆔7", "refs🆙1", "sk🔑2", *others[3:]], "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-12:
# print, escaped: src/app.py💯 error
# print, markup=False: src/app.py💯 error
# a table, escaped: src/app.py💯 error
# log, markup=False: [01:40:07] src/app.py💯 error                                                             <stdin>:36
# print, emoji=False: src/app.py:100: error
# print_json: "src/app.py:100: error"
