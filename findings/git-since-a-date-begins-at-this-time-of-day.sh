#!/usr/bin/env bash
# git 2.39.5 (Debian 12): `git log --since=2026-11-30` is not since the beginning of that day, but since the time of day
# at which one asks.
#
# A date without a time takes the time of the clock. Asked in the evening for the commits since today's date, git shows
# none of the day's, and none is shown for `--since=today` at any time. "yesterday" is 24 hours ago, and
# `--until=2026-11-29` ends before that evening. Only "midnight" and a date with 00:00 behind it begin with the day.
# It is the same with `git shortlog`, `git rev-list` and `git commit --date=2026-11-30`.
# So a report of what agents have committed today is empty and exits with 0, one that cron makes at 00:00 is right, and
# one that two machines make at two hours differs.
# Source: https://git-scm.com/docs/git-log ("Show commits more recent than a specific date"), silent on it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export HOME="$work" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null TZ=UTC
export GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=ann GIT_COMMITTER_EMAIL=ann@example.org
git init --quiet "$work/project"
cd "$work/project"
for at in 29T09 29T15 29T21 30T06 30T10; do
    export GIT_AUTHOR_DATE="2026-11-${at}:00:00+00:00" GIT_COMMITTER_DATE="2026-11-${at}:00:00+00:00"
    git commit --quiet --allow-empty --message "$at"
done
unset GIT_AUTHOR_DATE GIT_COMMITTER_DATE

for clock in 12 18; do
    # git takes this for the clock, so that the output is the same on each day.
    export GIT_TEST_DATE_NOW; GIT_TEST_DATE_NOW=$(date --date "2026-11-30T$clock:00:00Z" +%s)
    for day in since=2026-11-30 since=today since=yesterday since=2026-11-29 until=2026-11-29 \
        since=midnight "since=2026-11-29 00:00"; do
        echo "at $clock:00, --$day: $(git log --reverse --format=%s --"$day" | xargs)"
    done
done | tee seen
diff seen - <<'TXT' || { echo "it has changed" && exit 1; }
at 12:00, --since=2026-11-30: 
at 12:00, --since=today: 
at 12:00, --since=yesterday: 29T15 29T21 30T06 30T10
at 12:00, --since=2026-11-29: 29T15 29T21 30T06 30T10
at 12:00, --until=2026-11-29: 29T09
at 12:00, --since=midnight: 30T06 30T10
at 12:00, --since=2026-11-29 00:00: 29T09 29T15 29T21 30T06 30T10
at 18:00, --since=2026-11-30: 
at 18:00, --since=today: 
at 18:00, --since=yesterday: 29T21 30T06 30T10
at 18:00, --since=2026-11-29: 29T21 30T06 30T10
at 18:00, --until=2026-11-29: 29T09 29T15
at 18:00, --since=midnight: 30T06 30T10
at 18:00, --since=2026-11-29 00:00: 29T09 29T15 29T21 30T06 30T10
TXT
# Seen with git 2.39.5, twice, 2026-11: the lines above.
