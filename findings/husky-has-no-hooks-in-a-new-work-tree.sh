#!/usr/bin/env bash
# husky 9.1.7 beside simple-git-hooks 2.14.0 (npm) and pre-commit 4.7.0 (PyPI): a commit that husky's pre-commit hook
# refuses in a clone is made in a linked work tree of it, without a word.
#
# git looks for hooks in one place for all work trees, .git/hooks of the repository, where the other two install theirs.
# husky sets core.hooksPath to `.husky/_`. git takes a relative path from the folder in which the hook runs, the top of
# each work tree, and husky writes `.husky/_` when packages are installed, with a .gitignore of its own in it. So `git
# worktree add` makes a tree that has .husky/pre-commit and no `.husky/_`: git finds no hook there, and goes on.
# Agents work in linked trees, so their commits are neither formatted nor linted, while those of people are, and it is
# found in a review. A link to node_modules in place of an installation does not change that. Run `npx husky`, or
# `npm ci` with its prepare script, in each tree.
# Source: https://typicode.github.io/husky/how-to.html, https://git-scm.com/docs/git-config (core.hooksPath: "A relative
# path is taken as relative to the directory where the hooks are run").
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export HOME="$work" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=ann GIT_COMMITTER_EMAIL=ann@example.org
unset HUSKY SKIP_SIMPLE_GIT_HOOKS
npm install --prefix "$work/npm" --silent --no-save --no-package-lock --no-audit --no-fund --ignore-scripts \
    husky@9.1.7 simple-git-hooks@2.14.0
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pre-commit==4.7.0 2>/dev/null
PATH="$work/npm/node_modules/.bin:$work/venv/bin:$PATH"

try() { # PROGRAM: commits a file that its hook refuses, here and in a linked work tree
    local place code
    git init --quiet "$work/$1" && cd "$work/$1"
    case $1 in
        husky) mkdir .husky && echo "grep -q fine file" >.husky/pre-commit && husky ;;
        simple-git-hooks)
            echo '{"simple-git-hooks": {"pre-commit": "grep -q fine file"}}' >package.json && simple-git-hooks ;;
        pre-commit)
            echo 'repos: [{repo: local, hooks: [{id: fine, name: fine, language: system, entry: grep -q fine}]}]' \
                >.pre-commit-config.yaml && pre-commit install ;;
    esac >"$work/log" 2>&1
    echo fine >file && git add --all && git commit --quiet --message base >"$work/log" 2>&1
    git worktree add --quiet "$work/$1-tree"
    for place in "$work/$1" "$work/$1-tree"; do
        cd "$place" && echo wrong >file && git add file && code=0
        git commit --quiet --message wrong >"$work/log" 2>&1 || code=$?
        [ "$place" = "$work/$1" ] && echo "$1, the clone: exit $code" || echo "$1, a linked work tree: exit $code"
    done
}
{
    try husky
    husky && echo fine >file && git add file && git commit --quiet --message fine && echo wrong >file && git add file
    git commit --quiet --message wrong && echo "husky, after npx husky there: exit 0" ||
        echo "husky, after npx husky there: exit 1"
    try simple-git-hooks
    try pre-commit
} 2>"$work/log" | tee "$work/seen"
diff "$work/seen" - <<'TXT' || { echo "it has changed" && exit 1; }
husky, the clone: exit 1
husky, a linked work tree: exit 0
husky, after npx husky there: exit 1
simple-git-hooks, the clone: exit 1
simple-git-hooks, a linked work tree: exit 1
pre-commit, the clone: exit 1
pre-commit, a linked work tree: exit 1
TXT
# Seen with git 2.39.5 and Node.js 20, twice, 2026-11: the lines above.
