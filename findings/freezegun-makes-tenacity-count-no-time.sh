#!/usr/bin/env bash
# tenacity 9.2.1 with freezegun 1.5.5 (PyPI): behind freeze_time, the time of stop_after_delay never comes.
#
# freeze_time stops not only the calendar but time.monotonic, which tenacity measures a delay with, while time.sleep
# stays real. So a test of code that retries "for 0.3 s" waits between attempts as in production, and makes as many as
# something else allows: here 40, by a bound set beside it, where the real clock allows 7. With tick=True the clock runs, and
# all is as without freezegun. With auto_tick_seconds=1 each look at a clock takes a second: there is one attempt, so a
# test of what happens after a retry passes without a retry. An attempt's number of seconds is 0.0 in frozen time, so
# retry_state.seconds_since_start and the log of before_sleep_log are of no use there either.
# Source: https://github.com/spulec/freezegun#readme, https://tenacity.readthedocs.io/en/latest/#stopping
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tenacity==9.2.1 freezegun==1.5.5 2>/dev/null
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 120 "$folder/venv/bin/python" - <<'PYTHON'
from contextlib import nullcontext

import tenacity
from freezegun import freeze_time

BOUND = 40


def attempts(frozen):
    """Return how often a function that always fails is called, and how long that took for tenacity."""
    stop = tenacity.stop_after_delay(0.3) | tenacity.stop_after_attempt(BOUND)
    retrying = tenacity.Retrying(stop=stop, wait=tenacity.wait_fixed(0.05))

    def fail():
        raise ValueError

    with frozen:
        try:
            retrying(fail)
        except tenacity.RetryError:
            return retrying.statistics["attempt_number"], retrying.statistics["delay_since_first_attempt"]


ways = {
    "real clock": nullcontext(),
    'freeze_time("2026-11-30")': freeze_time("2026-11-30"),
    'freeze_time("2026-11-30", tick=True)': freeze_time("2026-11-30", tick=True),
    'freeze_time("2026-11-30", auto_tick_seconds=1)': freeze_time("2026-11-30", auto_tick_seconds=1),
}
counts = []
for name, frozen in ways.items():
    number, seconds = attempts(frozen)
    counts.append(number)
    more = ", all that the bound allows" if number == BOUND else ""
    print(f"{name}: {number} attempts in {seconds:.1f} s{more}", flush=True)
assert 2 <= counts[0] <= 7 and 2 <= counts[2] <= 7 and counts[1] == BOUND and counts[3] == 1, "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-11:
# real clock: 7 attempts in 0.3 s
# freeze_time("2026-11-30"): 40 attempts in 0.0 s, all that the bound allows
# freeze_time("2026-11-30", tick=True): 7 attempts in 0.3 s
# freeze_time("2026-11-30", auto_tick_seconds=1): 1 attempts in 1.0 s
