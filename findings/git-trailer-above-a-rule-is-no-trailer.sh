#!/usr/bin/env bash
# git 2.39.5 (Debian 12), `git commit --trailer "Task: 12"`: if the message has a line of three hyphens, as Markdown's
# rule, git writes the trailer above it, and then finds no trailer in that commit.
#
# `git commit --trailer` and `git interpret-trailers` take what follows `---` for a patch, as in a mail. `git log`
# with %(trailers) and `git shortlog --group=trailer:Task` read the message as a whole, and look at its end. So what one
# half of git writes the other does not see; each command exits with 0. For `git interpret-trailers --parse` that
# trailer is there, but one at the end is not, so a hook that adds it if there is none (`--if-exists doNothing`) adds it
# a second time. `git am` drops what follows the line. Agents write Markdown into messages, and dispatchers find their
# commits by trailers: give --no-divider to git interpret-trailers, in place of `git commit --trailer`, which does not
# take it.
# Source: https://git-scm.com/docs/git-commit (--trailer), and
# https://git-scm.com/docs/git-interpret-trailers (--no-divider).
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export HOME="$work" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=ann GIT_COMMITTER_EMAIL=ann@example.org
git init --quiet "$work/project"
cd "$work/project"
git commit --quiet --allow-empty --message base
plain=$'Parse the header\n\nBefore.\n\nAfter.' rule=$'Parse the header\n\nBefore.\n\n---\n\nAfter.'

show() { # WHAT
    local whole; whole=$(git log -1 --format=%B)
    echo "$1: $(tail -n +3 <<<"$whole" | xargs)"
    echo "  git shortlog: $(git shortlog --summary --group=trailer:Task -1 HEAD | xargs)"
    echo "  git log: $(git log -1 --format='%(trailers:key=Task)' | xargs)"
    echo "  interpret-trailers: $(git interpret-trailers --parse <<<"$whole" | xargs)"
}
{
    for message in "$plain" "$rule"; do
        echo "$RANDOM" >file && git add file
        git commit --quiet --message "$message" --trailer "Task: 12"
        show "commit --trailer"
    done
    git commit --quiet --amend --message "$rule"$'\n\nTask: 12'
    show "at the end by hand"
    git interpret-trailers --if-exists doNothing --trailer "Task: 12" <<<"$(git log -1 --format=%B)" >message
    git commit --quiet --amend --file message
    show "one that adds it if there is none"
    git format-patch --quiet --stdout -1 >patch
    git reset --quiet --hard HEAD~1
    git am --quiet patch
    show "after git am"
} | tee seen
diff seen - <<'TXT' || { echo "it has changed" && exit 1; }
commit --trailer: Before. After. Task: 12
  git shortlog: 1 12
  git log: Task: 12
  interpret-trailers: Task: 12
commit --trailer: Before. Task: 12 --- After.
  git shortlog: 
  git log: 
  interpret-trailers: Task: 12
at the end by hand: Before. --- After. Task: 12
  git shortlog: 1 12
  git log: Task: 12
  interpret-trailers: 
one that adds it if there is none: Before. Task: 12 --- After. Task: 12
  git shortlog: 1 12
  git log: Task: 12
  interpret-trailers: Task: 12
after git am: Before. Task: 12
  git shortlog: 1 12
  git log: Task: 12
  interpret-trailers: Task: 12
TXT
# Seen with git 2.39.5, twice, 2026-11: the lines above.
