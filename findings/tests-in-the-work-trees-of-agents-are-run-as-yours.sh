#!/usr/bin/env bash
# jest 30.5.2 and vitest 5.1.2 (npm), `node --test` of Node.js 20.20.2 and pytest 9.2.0 (PyPI): which tests run in a
# repository that has two linked work trees below it, both of them in .gitignore.
#
#              .claude/worktrees/one     worktrees/two
#   jest       run                       run
#   vitest     run                       run
#   node       run                       run
#   pytest     not run                   run
#
# Claude Code makes its work trees in `.claude/worktrees`, and dispatchers theirs beside it. What git ignores, and what
# begins with a dot, is taken for what tools leave alone. Of the four, only pytest passes over folders with a dot, and
# none reads .gitignore. So a test that an agent has half written in its own tree fails `npm test` in the main one, in
# the hook before a push as well, and when agents are asked for the check of a task that merges there, one agent's work
# fails another's; each test runs once more for each tree. Put work trees outside of the repository.
# Source: https://jestjs.io/docs/configuration#testpathignorepatterns-arraystring (["/node_modules/"]),
# https://vitest.dev/config/exclude, https://nodejs.org/docs/latest-v20.x/api/test.html,
# https://docs.pytest.org/en/stable/reference/reference.html#confval-norecursedirs.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export HOME="$work" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=ann GIT_COMMITTER_EMAIL=ann@example.org
unset NODE_OPTIONS NODE_TEST_CONTEXT PYTEST_ADDOPTS
npm install --prefix "$work/npm" --silent --no-save --no-package-lock --no-audit --no-fund --ignore-scripts \
    jest@30.5.2 vitest@5.1.2
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pytest==9.2.0 2>/dev/null

project() { # RUNNER FILE TEXT: a test that writes down the folder in which it stands
    mkdir "$work/$1" && cd "$work/$1" && git init --quiet .
    printf '.claude/\nworktrees/\nnode_modules\n' >.gitignore
    ln -s "$work/npm/node_modules" node_modules
    echo '{"name": "project"}' >package.json
    echo "$3" >"$2"
    git add --all && git commit --quiet --message base
    git worktree add --quiet .claude/worktrees/one && git worktree add --quiet worktrees/two
}
say() { # RUNNER: which of the three ran
    echo "$1: $(sort "$work/$1.ran" | xargs --no-run-if-empty realpath --relative-to "$work/$1" | xargs)"
}
export RAN
javascript="require('fs').appendFileSync(process.env.RAN, __dirname + '\\n')"
{
    RAN=$work/jest.ran && project jest a.test.js "test('a', () => { $javascript })"
    node node_modules/jest/bin/jest.js >"$work/log" 2>&1
    say jest
    RAN=$work/vitest.ran && project vitest a.test.js "
import { test } from 'vitest'
import fs from 'node:fs'
test('a', () => fs.appendFileSync(process.env.RAN, import.meta.dirname + '\\n'))"
    node node_modules/vitest/vitest.mjs run >"$work/log" 2>&1
    say vitest
    RAN=$work/node.ran && project node a.test.js "require('node:test')('a', () => { $javascript })"
    node --test >"$work/log" 2>&1
    say node
    RAN=$work/pytest.ran && project pytest test_a.py "
import os, pathlib
def test_a():
    with open(os.environ['RAN'], 'a') as file:
        print(pathlib.Path(__file__).parent, file=file)"
    "$work/venv/bin/python" -m pytest --import-mode=importlib >"$work/log" 2>&1
    say pytest
} | tee "$work/seen"
diff "$work/seen" - <<'TXT' || { echo "it has changed" && exit 1; }
jest: . .claude/worktrees/one worktrees/two
vitest: . .claude/worktrees/one worktrees/two
node: . .claude/worktrees/one worktrees/two
pytest: . worktrees/two
TXT
