#!/usr/bin/env bash
# APScheduler 3.11.3 (PyPI), CronTrigger with a time zone: in spring it leaves out a run that the change of clocks does
# not touch, and says nothing.
#
# In Berlin, the clocks change at 02:00 on Sunday, 29 March 2026. "0 0 * * *" runs at midnight before that, and next
# at midnight on Tuesday: Monday, of which every hour exists, is left out. "0 0 1 * *" has no April, "0 0 * * mon" goes
# from 23 March to 6 April, and "*/15 0 * * *" loses four runs. This happens each year, to every time before 01:00.
# The trigger advances to the next day, week or month by adding elapsed time. Over the change that ends at 01:00, past
# the hour that it looks for, so it continues with the day, week or month after. misfire_grace_time does not help, since
# the run is never due. cronsim 2.8 and croniter 7.0.0 leave out no run, nor does APScheduler with timezone="UTC".
# Source: https://apscheduler.readthedocs.io/en/3.x/modules/triggers/cron.html ("Daylight saving time behavior"), which
# warns only of times of day that the change itself skips or repeats.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet apscheduler==3.11.3 tzlocal==5.3.1 cronsim==2.8 croniter==7.0.0 tzdata==2025.2

PYTHONTZPATH="" "$folder/venv/bin/python" - <<'PYTHON'
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

BERLIN = ZoneInfo("Europe/Berlin")
EXPECTED = {
    "0 0 * * *": ("2026-03-30 00:00",),
    "0 0 1 * *": ("2026-04-01 00:00",),
    "0 0 * * mon": ("2026-03-30 00:00",),
    "*/15 0 * * *": ("2026-03-30 00:00", "2026-03-30 00:15", "2026-03-30 00:30", "2026-03-30 00:45"),
    "0 1 * * *": (),
    "0 9 * * *": (),
}


def apscheduler(expression, zone):
    trigger = CronTrigger.from_crontab(expression, timezone=zone)
    previous, now = None, datetime(2026, 1, 1, tzinfo=zone)
    while True:
        previous = trigger.get_next_fire_time(previous, now)
        yield previous
        now = previous + timedelta(seconds=1)


def others(expression, zone):
    start = datetime(2025, 12, 31, 23, 59, 59, tzinfo=zone)
    return CronSim(expression, start), croniter(expression, start, ret_type=datetime)


def year(times):
    days = []
    for time in times:
        if time.year > 2026:
            return days
        days.append(time.strftime("%Y-%m-%d %H:%M"))


for expression, expected in EXPECTED.items():
    due, also_due = (year(times) for times in others(expression, BERLIN))
    assert due == also_due, expression
    runs = year(apscheduler(expression, BERLIN))
    left_out = tuple(time for time in due if time not in runs)
    named = ", ".join(left_out[:2]) + ", ..." * (len(left_out) > 2)
    print(f"{expression:13} {len(runs)} of {len(due)} runs in 2026, left out: {named or 'none'}")
    assert (left_out, len(due) - len(runs)) == (expected, len(expected)), expression
    assert len(year(apscheduler(expression, ZoneInfo("UTC")))) == len(due), "in UTC none is left out"
PYTHON
# Seen with Python 3.11, 2026-11:
# 0 0 * * *     364 of 365 runs in 2026, left out: 2026-03-30 00:00
# 0 0 1 * *     11 of 12 runs in 2026, left out: 2026-04-01 00:00
# 0 0 * * mon   51 of 52 runs in 2026, left out: 2026-03-30 00:00
# */15 0 * * *  1456 of 1460 runs in 2026, left out: 2026-03-30 00:00, 2026-03-30 00:15, ...
# 0 1 * * *     365 of 365 runs in 2026, left out: none
# 0 9 * * *     365 of 365 runs in 2026, left out: none
