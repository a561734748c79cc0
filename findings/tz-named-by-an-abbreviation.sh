#!/usr/bin/env bash
# Node.js 20.20.2, `date` of coreutils 9.1 with glibc 2.36 (Debian 12), Python 3.11 and tzlocal 5.4.5 (PyPI): TZ=PST is
# UTC under the name of a zone, and a Node.js process with it has two local times.
#
# TZ takes names such as America/Los_Angeles. Some abbreviations are names, too: EST is five hours behind UTC, and CET
# has a summer time. PST, CEST, IST, JST, BST and AST are none, so glibc takes UTC and prints it as "12:00 PST". Node.js
# counts its hours in UTC as well, but has ICU look the abbreviation up: Intl.DateTimeFormat says America/Los_Angeles,
# Asia/Dhaka for BST, America/Anchorage for AST, and Date.toString() "GMT+0000 (Pacific Standard Time)".
# A program that writes an hour of its own with the zone that Intl names, "resets 12pm (America/Los_Angeles)", means
# 12:00 UTC, and whoever reads it waits seven hours longer. tzlocal's get_localzone() refuses such names, but its
# get_localzone_name() passes over TZ and returns the zone in the files of the machine; so it does for EST5EDT, which is
# a zone to all others, and to get_localzone(). So one value of TZ is up to three zones on a machine,
# and a schedule runs at other hours than its log says. No process warns. Set names with a slash.
# Source: https://www.gnu.org/software/libc/manual/html_node/TZ-Variable.html,
# https://nodejs.org/api/cli.html#tz, https://github.com/regebro/tzlocal#readme, tzlocal/utils.py.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tzlocal==5.4.5 tzdata 2>/dev/null
cat >try.mjs <<'NODE'
const noon = new Date("2026-07-01T12:00:00Z");
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
const there = timeZone && noon.toLocaleTimeString("en-GB", { timeZone, timeStyle: "short" });
console.log(`${noon.toTimeString().slice(0, 5)} ${timeZone} ${there}`);
NODE
cat >try.py <<'PYTHON'
import os, time, warnings, zoneinfo

import tzlocal

warnings.simplefilter("ignore")
noon, zone = time.strftime("%H:%M %Z", time.localtime(1_782_907_200)), os.environ["TZ"]
name = tzlocal.get_localzone_name()
try:
    known = str(tzlocal.get_localzone())
except zoneinfo.ZoneInfoNotFoundError:
    known = "refused"
print(noon, known, name if name == zone else "machine")
PYTHON
echo "date | Python's time, tzlocal's zone and name | Node.js: its own time, the zone by Intl, the time there"
for zone in PST IST JST BST AST CEST EST EST5EDT CET America/Denver; do
    bare=(env -i PATH="$PATH" HOME="$folder" TZ="$zone")
    echo "$zone: $("${bare[@]}" date --date=@1782907200 '+%H:%M %Z %z') | $("${bare[@]}" venv/bin/python try.py) |" \
        "$("${bare[@]}" node try.mjs)"
done | tee lines
diff - lines <<'SEEN'
PST: 12:00 PST +0000 | 12:00 PST refused machine | 12:00 America/Los_Angeles 05:00
IST: 12:00 IST +0000 | 12:00 IST refused machine | 12:00 Asia/Calcutta 17:30
JST: 12:00 JST +0000 | 12:00 JST refused machine | 12:00 Asia/Tokyo 21:00
BST: 12:00 BST +0000 | 12:00 BST refused machine | 12:00 Asia/Dhaka 18:00
AST: 12:00 AST +0000 | 12:00 AST refused machine | 12:00 America/Anchorage 04:00
CEST: 12:00 CEST +0000 | 12:00 CEST refused machine | 12:00 undefined undefined
EST: 07:00 EST -0500 | 07:00 EST EST EST | 07:00 America/Panama 07:00
EST5EDT: 08:00 EDT -0400 | 08:00 EDT EST5EDT machine | 08:00 America/New_York 08:00
CET: 14:00 CEST +0200 | 14:00 CEST CET CET | 14:00 Europe/Brussels 14:00
America/Denver: 06:00 MDT -0600 | 06:00 MDT America/Denver America/Denver | 06:00 America/Denver 06:00
SEEN
# Seen twice, 2026-11.
