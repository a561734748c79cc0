#!/usr/bin/env bash
# croniter 7.0.0 and cronsim 2.8 (PyPI), cron-parser 5.10.5 and croner 11.0.0 (npm): the same line of cron, and when it
# runs in Berlin. None of them warns.
#
#   "0 0 2 * * *"    has six fields. Three libraries take the first for the seconds: daily at 02:00. croniter takes the
#                    last: 60 times in the first minute of the 2nd of each month, and at no other time.
#   "0 0 */2 * mon"  Debian's cron lets a day that begins with `*` restrict nothing by itself, so it runs on Mondays
#                    with an odd date. cronsim agrees. The others run on each odd date and on each Monday.
#   "30 2 * * *"     comes twice on 25 October 2026, as the clocks go back: croniter runs twice. On 29 March it does not
#                    come: cron-parser runs at 03:30, the others at 03:00.
#   "0 */2 * * *"    on 29 March: croniter and cron-parser run at 03:00, in place of 02:00, and again an hour later.
#
# So a schedule that moves from one program to another keeps its line, but not its times.
# Source: crontab(5) and cron(8) of Debian (https://manpages.debian.org/bookworm/cron/), the README of each package.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet croniter==7.0.0 cronsim==2.8 tzdata==2025.2
(cd "$work" && npm install --silent --no-fund --no-audit cron-parser@5.10.5 croner@11.0.0 >/dev/null)

# The times are in UTC.
cat >"$work/lines.json" <<'JSON'
[["0 0 2 * * *", "2026-05-01T00:00:00Z", "2026-05-05T00:00:00Z"],
 ["0 0 */2 * mon", "2026-04-30T12:00:00Z", "2026-05-31T12:00:00Z"],
 ["30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"],
 ["30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"],
 ["0 */2 * * *", "2026-03-28T22:30:00Z", "2026-03-29T03:00:00Z"]]
JSON
cat >"$work/times.py" <<'PYTHON'
import json, sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim


def times(library, line, start, end):
    for time in library(line, start):
        if time >= end:
            return
        yield time.astimezone(UTC).isoformat()[:16]


libraries = {"croniter": lambda line, start: croniter(line, start, ret_type=datetime), "cronsim": CronSim}
for line, *span in json.load(open(sys.argv[1])):
    start, end = (datetime.fromisoformat(text).astimezone(ZoneInfo("Europe/Berlin")) for text in span)
    for name, library in libraries.items():
        print(json.dumps([line, span[0][:10], name, list(times(library, line, start, end))]))
PYTHON
cat >"$work/times.mjs" <<'NODE'
import { Cron } from "croner";
import { CronExpressionParser } from "cron-parser";
import fs from "node:fs";

const zone = "Europe/Berlin";
function* parsed(line, start) {
  const times = CronExpressionParser.parse(line, { currentDate: start, tz: zone });
  for (;;) yield times.next().toDate();
}
function* croner(line, start) {
  const cron = new Cron(line, { timezone: zone, paused: true });
  for (let time = start; (time = cron.nextRun(time)); ) yield time;
}
for (const [line, from, to] of JSON.parse(fs.readFileSync(process.argv[2])))
  for (const [name, library] of [["cron-parser", parsed], ["croner", croner]]) {
    const times = [];
    for (const time of library(line, new Date(from))) {
      if (time >= new Date(to)) break;
      times.push(time.toISOString().slice(0, 16));
    }
    console.log(JSON.stringify([line, from.slice(0, 10), name, times]));
  }
NODE
(cd "$work" && PYTHONTZPATH="" timeout 60 venv/bin/python times.py lines.json && timeout 60 node times.mjs lines.json) |
    python3 -c '
import json, sys
for line, day, name, times in sorted(map(json.loads, sys.stdin)):
    print(f"{line:13}  from {day}  {name:11}  {len(times):2}  {times[0]} ... {times[-1]}")' | tee "$work/seen"
diff - "$work/seen" <<'SEEN'
0 */2 * * *    from 2026-03-28  cron-parser   3  2026-03-28T23:00 ... 2026-03-29T02:00
0 */2 * * *    from 2026-03-28  croner        2  2026-03-28T23:00 ... 2026-03-29T02:00
0 */2 * * *    from 2026-03-28  croniter      3  2026-03-28T23:00 ... 2026-03-29T02:00
0 */2 * * *    from 2026-03-28  cronsim       2  2026-03-28T23:00 ... 2026-03-29T02:00
0 0 */2 * mon  from 2026-04-30  cron-parser  18  2026-04-30T22:00 ... 2026-05-30T22:00
0 0 */2 * mon  from 2026-04-30  croner       18  2026-04-30T22:00 ... 2026-05-30T22:00
0 0 */2 * mon  from 2026-04-30  croniter     18  2026-04-30T22:00 ... 2026-05-30T22:00
0 0 */2 * mon  from 2026-04-30  cronsim       2  2026-05-10T22:00 ... 2026-05-24T22:00
0 0 2 * * *    from 2026-05-01  cron-parser   3  2026-05-02T00:00 ... 2026-05-04T00:00
0 0 2 * * *    from 2026-05-01  croner        3  2026-05-02T00:00 ... 2026-05-04T00:00
0 0 2 * * *    from 2026-05-01  croniter     60  2026-05-01T22:00 ... 2026-05-01T22:00
0 0 2 * * *    from 2026-05-01  cronsim       3  2026-05-02T00:00 ... 2026-05-04T00:00
30 2 * * *     from 2026-03-28  cron-parser   1  2026-03-29T01:30 ... 2026-03-29T01:30
30 2 * * *     from 2026-03-28  croner        1  2026-03-29T01:00 ... 2026-03-29T01:00
30 2 * * *     from 2026-03-28  croniter      1  2026-03-29T01:00 ... 2026-03-29T01:00
30 2 * * *     from 2026-03-28  cronsim       1  2026-03-29T01:00 ... 2026-03-29T01:00
30 2 * * *     from 2026-10-24  cron-parser   1  2026-10-25T00:30 ... 2026-10-25T00:30
30 2 * * *     from 2026-10-24  croner        1  2026-10-25T00:30 ... 2026-10-25T00:30
30 2 * * *     from 2026-10-24  croniter      2  2026-10-25T00:30 ... 2026-10-25T01:30
30 2 * * *     from 2026-10-24  cronsim       1  2026-10-25T00:30 ... 2026-10-25T00:30
SEEN
