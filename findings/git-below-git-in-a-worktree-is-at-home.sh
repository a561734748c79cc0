#!/usr/bin/env bash
# git 2.39.5 (Debian 12): a program that makes a repository of its own in a temporary folder, as tests do, makes it
# there when git starts it in the main work tree, and commits to your branch if git starts it in a linked one.
#
#   git rebase --exec, git bisect run, the hooks post-merge and pre-push, an alias with `!`
#
# all hand GIT_DIR down in a linked work tree, and none does in the main one. With GIT_DIR, `git init FOLDER` only looks
# at the repository that it names again, says so with exit code 0, and leaves no .git in FOLDER; `git add` and
# `git commit` there go on in yours, with FOLDER as the work tree. So the test's fixture is a commit on your branch that
# deletes all files of the project, and the test passes: it finds the commit that it has made. A merge, a push and an
# alias exit with 0; a rebase and a bisection then stop, since no file of the work tree is as in HEAD.
# Agents are given linked work trees, and so meet this on checks that have always passed in a clone. Let such a program
# remove the variables that `git rev-parse --local-env-vars` lists.
# Source: https://git-scm.com/docs/githooks ("Environment variables, such as GIT_DIR ..., are exported"), which
# does not tell the two kinds of work tree apart; https://git-scm.com/docs/git-rebase (--exec) is silent.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/test" <<'SH'
#!/bin/sh -e
# A test of a program that uses git: a repository of its own with one file and one commit.
folder=$(mktemp -d "$HOME/test.XXXX")
git init --quiet "$folder"
cd "$folder"
echo data >data
git add --all
git commit --quiet --message "fixture of the test"
test "$(git log -1 --format=%s)" = "fixture of the test"
SH
chmod +x "$work/test"

cat >"$work/try" <<'SH'
#!/bin/bash -e
# In a work tree of kind $1, have git start the test by $2, and print what the branch has got.
cd "$HOME"
rm -rf project tree target
git init --quiet --initial-branch=main project
cd project
for name in one two three; do
    echo "$name" >"$name"
    git add "$name"
    git commit --quiet --message "$name"
done
git branch topic
if [ "$1" = linked ]; then
    git worktree add --quiet ../tree topic
    cd ../tree
else
    git switch --quiet topic
fi
code=0
case $2 in
    "git rebase --exec") git rebase --quiet --exec "$HOME/test" HEAD~1 ;;
    "git bisect run") git bisect start main main~2 && git bisect run "$HOME/test" ;;
    "an alias") git -c alias.check="!$HOME/test" check ;;
    "post-merge") cp "$HOME/test" ../project/.git/hooks/ && mv ../project/.git/hooks/{test,post-merge} &&
        git reset --quiet --hard HEAD~1 && git merge --quiet main ;;
    "pre-push") cp "$HOME/test" ../project/.git/hooks/ && mv ../project/.git/hooks/{test,pre-push} &&
        git init --quiet --bare ../target && git push --quiet ../target HEAD ;;
esac >/dev/null 2>&1 || code=$?
made=$(git log --all --reflog --format=%s | grep --count "fixture of the test" || true)
echo "$1, $2: exit $code, fixtures in the project's history: $made; $(git show --shortstat --format=%s HEAD | xargs)"
SH
for kind in main linked; do
    for way in "git rebase --exec" "git bisect run" "an alias" post-merge pre-push; do
        env -i PATH="$PATH" HOME="$work" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org \
            GIT_COMMITTER_NAME=ann GIT_COMMITTER_EMAIL=ann@example.org bash "$work/try" "$kind" "$way"
    done
done | tee "$work/seen"
main=$(grep -c "^main, .*: exit 0, fixtures in the project's history: 0; .*insertion(+)$" "$work/seen" || true)
linked=$(grep -c \
    "^linked, .* history: 1; fixture of the test . files changed, 1 insertion(+), . deletions(-)$" "$work/seen" || true)
[ "$main $linked" = "5 5" ] || { echo "it has changed" && exit 1; }
# Seen with git 2.39.5, twice, 2026-11:
# main, git rebase --exec: exit 0, fixtures in the project's history: 0; three 1 file changed, 1 insertion(+)
# linked, git rebase --exec: exit 1, fixtures in the project's history: 1; fixture of the test 4 files changed, 1
#   insertion(+), 3 deletions(-)
# linked, post-merge: exit 0, fixtures in the project's history: 1; fixture of the test 4 files changed, ...
