#!/usr/bin/env bash
# git 2.39.5 (Debian 12), `git merge-tree --write-tree`: whether two commits conflict depends on what is checked out
# where it runs, though by its manual it "does not read from or write to either the working tree or index".
#
# With "CHANGELOG.md merge=union" in .gitattributes, two branches that each add a line to that file merge without a
# conflict. Both commits and their base have that .gitattributes, but git reads the one on disk:
#
#   a branch with the file is checked out   merged, exit 0
#   a branch without it (an orphan)         conflict, exit 1
#   the file is not on disk (sparse)        conflict, though the manual says that the index is used as a fall-back
#   a bare clone, or the folder .git        conflict
#
# So a merge that is tried before it is made, by a bot with a bare mirror or a scratch work tree, says no where `git
# merge` says yes, and an agent is asked to resolve what is no conflict. Run it in a folder that has the .gitattributes
# of the target; newer versions of git have --attr-source for it.
# Source: https://git-scm.com/docs/git-merge-tree/2.39.0, https://git-scm.com/docs/gitattributes/2.39.0 ("When the
# .gitattributes file is missing from the work tree, the path in the index is used as a fall-back").
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export HOME="$work" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=ann GIT_COMMITTER_EMAIL=ann@example.org
git init --quiet --initial-branch=main "$work/project"
cd "$work/project"
echo "CHANGELOG.md merge=union" >.gitattributes
echo "# Changes" >CHANGELOG.md
git add --all && git commit --quiet --message base
for name in one two; do
    git switch --quiet --create "$name" main
    echo "- $name" >>CHANGELOG.md
    git commit --quiet --all --message "$name"
done
git clone --quiet --bare . "$work/bare.git"

try() { # NAME FOLDER
    local code=0 said
    said=$(git -C "$2" merge-tree --write-tree --no-messages one two) || code=$?
    echo "$1: exit $code, $(wc -l <<<"$said") line(s)"
}
{
    git switch --quiet main
    try "the base is checked out" .
    try "the folder .git" .git
    try "a bare clone" "$work/bare.git"
    git sparse-checkout set --no-cone CHANGELOG.md
    try "the file is in the index alone" .
    git sparse-checkout disable
    git switch --quiet --orphan pages
    git commit --quiet --allow-empty --message pages
    try "an orphan is checked out" .
    git switch --quiet one
    git merge --quiet --no-edit two >/dev/null
    echo "git merge with one checked out: $(xargs <CHANGELOG.md)"
} 2>/dev/null | tee seen
diff seen - <<'TXT' || { echo "it has changed" && exit 1; }
the base is checked out: exit 0, 1 line(s)
the folder .git: exit 1, 4 line(s)
a bare clone: exit 1, 4 line(s)
the file is in the index alone: exit 1, 4 line(s)
an orphan is checked out: exit 1, 4 line(s)
git merge with one checked out: # Changes - one - two
TXT
# Seen with git 2.39.5, twice, 2026-11: the lines above.
