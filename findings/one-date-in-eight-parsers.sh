#!/usr/bin/env bash
# A date as ISO 8601 writes it, in eight parsers: the datetime of pydantic 2.14.4, python-dateutil 2.9.0.post0 and
# pendulum 3.3.0 (PyPI), datetime.fromisoformat of Python 3.11, dayjs 1.11.23, luxon 3.7.2 and date-fns 4.4.0 (npm), and
# Date of Node.js 20.20.2. It is 1 December 2026 each time, but for the last line, which is no date.
#
#                pydantic     dayjs        Date         dateutil   fromisoformat, pendulum, luxon, date-fns
#   2026-12-01   right        right        right        right      right
#   20261201     1970-08-23   right        refused      right      right
#   2026-335     refused      2028-09-05   refused      refused    right; fromisoformat refuses
#   2026-W49-2   refused      refused      refused      refused    right
#   2026-02-31   refused      2026-03-03   2026-03-03   refused    refused
#
# pydantic takes digits for seconds since 1970, so the short form of a date, as in names of files and in `date +%Y%m%d`,
# is a day in August 1970: FastAPI's `since=20261201` returns everything, `not_before` is over, and what is kept "until"
# then is deleted. dayjs takes the day of the year for a month, the 33rd, and its fifth day.
# Source: https://docs.pydantic.dev/latest/api/standard_library_types/, https://day.js.org/docs/en/parse/string
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pydantic==2.14.4 python-dateutil==2.9.0.post0 \
    pendulum==3.3.0 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" dayjs@1.11.23 luxon@3.7.2 date-fns@4.4.0 >/dev/null
cat >"$folder/read.mjs" <<'JS'
import { parseISO } from "date-fns";
import dayjs from "dayjs";
import { DateTime } from "luxon";
const day = (date) => (Number.isNaN(date.getTime()) ? "refused" : date.toISOString().slice(0, 10));
const parsers = {
  dayjs: (text) => dayjs(text).toDate(),
  Date: (text) => new Date(text),
  luxon: (text) => DateTime.fromISO(text).toJSDate(),
  "date-fns": (text) => parseISO(text),
};
const entries = Object.entries(parsers), texts = process.argv.slice(2);
const days = entries.map(([name, parse]) => [name, texts.map((text) => day(parse(text)))]);
console.log(JSON.stringify(Object.fromEntries(days)));
JS
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import datetime, json, os, subprocess, sys

import dateutil.parser, pendulum, pydantic

TEXTS = ["2026-12-01", "20261201", "2026-335", "2026-W49-2", "2026-02-31"]
PARSERS = {
    "pydantic": pydantic.TypeAdapter(datetime.datetime).validate_python,
    "dateutil": dateutil.parser.parse,
    "fromisoformat": datetime.datetime.fromisoformat,
    "pendulum": pendulum.parse,
}


def day(parse, text):
    try:
        return f"{parse(text):%Y-%m-%d}"
    except ValueError:
        return "refused"


command = ["node", f"{sys.argv[1]}/read.mjs", *TEXTS]
of_node = subprocess.run(command, env=os.environ | {"TZ": "UTC"}, stdout=-1, text=True, check=True).stdout
seen = {name: [day(parse, text) for text in TEXTS] for name, parse in PARSERS.items()} | json.loads(of_node)
for name, days in seen.items():
    print(f"{name}: {', '.join(days)}")
right, no = "2026-12-01", "refused"
all_right = [right] * 4 + [no]
assert seen == {
    "pydantic": [right, "1970-08-23", no, no, no],
    "dateutil": [right, right, no, no, no],
    "fromisoformat": [right, right, no, right, no],
    "pendulum": all_right,
    "dayjs": [right, right, "2028-09-05", no, "2026-03-03"],
    "Date": [right, no, no, no, "2026-03-03"],
    "luxon": all_right,
    "date-fns": all_right,
}, "it has changed"
PYTHON
# Seen with Python 3.11 and Node 20, twice, 2026-12:
# pydantic: 2026-12-01, 1970-08-23, refused, refused, refused
# dayjs: 2026-12-01, 2026-12-01, 2028-09-05, refused, 2026-03-03
# Date: 2026-12-01, refused, refused, refused, 2026-03-03
# luxon: 2026-12-01, 2026-12-01, 2026-12-01, 2026-12-01, refused
