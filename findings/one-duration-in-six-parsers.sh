#!/usr/bin/env bash
# The timeout of a task as a text, in six parsers: pytimeparse 1.1.10, humanfriendly 10.0, durationpy 0.11 and the
# timedelta of pydantic 2.14.4 (PyPI), ms 2.1.3 and parse-duration 2.1.9 (npm). In seconds:
#
#            pytimeparse   humanfriendly   durationpy   pydantic   ms          parse-duration
#   90       None          90              error        error      0.09        0.09
#   01:30    90            error           error        5400       undefined   0.00103
#   1h30m    5400          error           5400         error      undefined   5400
#   1M       60            60              error        error      60          60
#
# One text is a minute and a half to one and an hour and a half to the next, since a time of two numbers is minutes and
# seconds in pytimeparse, as on a stopwatch, and hours and minutes in pydantic, as on a clock; a third adds the numbers
# up as milliseconds. What is no duration is no error in half of them, but None or undefined, which are timeouts, too:
# `subprocess.run(..., timeout=None)` waits for ever, and `setTimeout(stop, undefined)` stops at once. ms takes a single
# unit, so "2h" works, until somebody needs "1h30m". "1M", a month in ISO 8601 and in systemd, is a minute in four.
# Only "90s", "1.5h" and the like are the same in five of them; pydantic alone refuses both.
# Source: https://github.com/wroberts/pytimeparse, https://github.com/vercel/ms, the readme of parse-duration on npm,
# https://docs.pydantic.dev/latest/api/standard_library_types/#datetimetimedelta
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytimeparse==1.1.10 humanfriendly==10.0 \
    durationpy==0.11 pydantic==2.14.4 2>/dev/null
npm install --prefix "$folder" --silent --no-save --no-package-lock --no-audit --no-fund ms@2.1.3 parse-duration@2.1.9
cat >"$folder/try.mjs" <<'JS'
import ms from 'ms'
import parse from 'parse-duration'
const seconds = value => (value == null ? String(value) : value / 1000)
for (const text of process.argv.slice(2)) console.log(JSON.stringify([seconds(ms(text)), seconds(parse(text))]))
JS
cat >"$folder/try.py" <<'PYTHON'
import datetime
import json
import subprocess
import sys

import durationpy
import humanfriendly
import pydantic
import pytimeparse

pydantics = pydantic.TypeAdapter(datetime.timedelta).validate_python


def seconds(parse, text):
    try:
        value = parse(text)
    except Exception:
        return "error"
    return value.total_seconds() if isinstance(value, datetime.timedelta) else str(value) if value is None else value


TEXTS = ["90", "01:30", "1h30m", "1M", "90s", "1.5h"]
printed = subprocess.check_output(["node", sys.argv[1], *TEXTS], text=True)
seen = {
    text: [
        *(seconds(p, text) for p in (pytimeparse.parse, humanfriendly.parse_timespan, durationpy.from_str, pydantics)),
        *json.loads(line),
    ]
    for text, line in zip(TEXTS, printed.splitlines(), strict=True)
}
for text, values in seen.items():
    print(f"{text:6}", *(f"{value!s:10}" for value in values))
assert seen == {
    "90": ["None", 90, "error", "error", 0.09, 0.09],
    "01:30": [90, "error", "error", 5400, "undefined", 0.00103],
    "1h30m": [5400, "error", 5400, "error", "undefined", 5400],
    "1M": [60, 60, "error", "error", 60, 60],
    "90s": [90, 90, 90, "error", 90, 90],
    "1.5h": [5400, 5400, 5400, "error", 5400, 5400],
}, "it has changed"
PYTHON
"$folder/venv/bin/python" "$folder/try.py" "$folder/try.mjs"
# Seen with Python 3.11 and Node.js 20, twice, 2026-11:
# 90     None       90.0       error      error      0.09       0.09
# 01:30  90         error      error      5400.0     undefined  0.00103
# 1h30m  5400       error      5400.0     error      undefined  5400
# 1M     60         60.0       error      error      60         60
# 90s    90         90.0       90.0       error      90         90
# 1.5h   5400       5400.0     5400.0     error      5400       5400
