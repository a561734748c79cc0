#!/usr/bin/env bash
# A test of a snapshot whose file is gone, as after an agent has deleted or renamed it, run twice: exit codes, without CI
# in the environment and with CI=1.
#
#                                                          without CI    CI=1
#   jest 30.5.2, vitest 4.1.12, ava 7.0.0,
#   snap-shot-it 7.9.10 (mocha 12.0.3)                     0, 0          1, 1
#   snapshottest 0.6.0                                     0, 0          0, 0
#   @playwright/test 1.65.1, pytest-regressions 2.11.0     1, 0          1, 0
#   tap 21.8.0, syrupy 7.0.2, pytest-snapshot 0.9.0,
#   inline-snapshot 0.36.1, approvaltests 20.0.1           1, 1          1, 1
#
# The first four write the file with whatever the code gives, and pass; where CI is set, as it is for hosted runners and
# not for the commands of an agent or the checks of a daemon, they refuse to. Playwright and pytest-regressions fail, but
# have written what they saw, so they pass when run again, also where CI is set: as the second attempt of a task, or as
# the check after the agent's own run. (Playwright's own --retries do not run such a test again.)
#
# So an agent whose change breaks a snapshot makes the check pass by deleting the file. CI=1 for the check helps with the
# first four; `git diff --exit-code -- '*.snap'` or a list of the files that must be there with all of them.
# Source: https://jestjs.io/docs/cli#--ci, https://vitest.dev/guide/snapshot,
# https://playwright.dev/docs/test-snapshots, https://pytest-regressions.readthedocs.io/en/latest/overview.html
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pytest==9.2.0 syrupy==7.0.2 inline-snapshot==0.36.1 \
    pytest-regressions==2.11.0 approvaltests==20.0.1 pytest-snapshot==0.9.0 snapshottest==0.6.0 2>/dev/null
npm install --silent --no-fund --no-audit --ignore-scripts jest@30.5.2 vitest@4.1.12 ava@7.0.0 mocha@12.0.3 \
    snap-shot-it@7.9.10 tap@21.8.0 @playwright/test@1.65.1 >/dev/null

mkdir -p tests/{jest,vitest,ava,snap-shot-it,tap,playwright,syrupy,regressions,pytest-snapshot,inline,approval,snapshottest}
cd tests
for one in jest snap-shot-it tap; do echo '{"name": "x"}' >"$one/package.json"; done
for one in vitest ava playwright; do echo '{"name": "x", "type": "module"}' >"$one/package.json"; done
echo 'test("a", () => { expect({a: 1}).toMatchSnapshot(); });' >jest/a.test.js
echo 'import {test, expect} from "vitest"; test("a", () => { expect({a: 1}).toMatchSnapshot(); });' >vitest/a.test.js
echo 'import test from "ava"; test("a", t => { t.snapshot({a: 1}); });' >ava/test.js
echo 'const snapshot = require("snap-shot-it"); it("a", () => { snapshot({a: 1}); });' >snap-shot-it/a.cjs
echo 'require("tap").matchSnapshot({a: 1}, "a");' >tap/a.test.cjs
echo 'import {test, expect} from "@playwright/test"; test("a", () => { expect("a").toMatchSnapshot("a.txt"); });' \
    >playwright/a.spec.js
printf 'def test_a(snapshot):\n    assert {"a": 1} == snapshot\n' >syrupy/test_a.py
printf 'def test_a(data_regression):\n    data_regression.check({"a": 1})\n' >regressions/test_a.py
printf 'def test_a(snapshot):\n    snapshot.assert_match("a", "a.txt")\n' >pytest-snapshot/test_a.py
printf 'from inline_snapshot import snapshot\ndef test_a():\n    assert 1 == snapshot()\n' >inline/test_a.py
printf 'from approvaltests import verify\ndef test_a():\n    verify("a")\n' >approval/test_a.py
printf 'def test_a(snapshot):\n    snapshot.assert_match({"a": 1})\n' >snapshottest/test_a.py

code() {  # the exit code of a command
    local exit=0
    env -i PATH="$PATH" HOME="$folder" NO_COLOR=1 ${CI:+CI=1} timeout 300 "$@" >"$folder/out" 2>&1 </dev/null || exit=$?
    echo "$exit"
}
twice() {  # name, then the command
    local name=$1
    shift
    cp -r "$name" "$folder/copy"
    (cd "$folder/copy" && echo "$name${CI:+, CI} $(code "$@") $(code "$@")")
    rm -rf "$folder/copy"
}
node="$folder/node_modules/.bin"
python=("$folder/venv/bin/pytest" -q -p no:cacheprovider)
for CI in '' 1; do
    twice jest "$node/jest"
    twice vitest "$node/vitest" run
    twice ava "$node/ava"
    twice snap-shot-it "$node/mocha" a.cjs
    twice tap "$node/tap" --disable-coverage --allow-empty-coverage a.test.cjs
    twice playwright "$node/playwright" test
    twice syrupy "${python[@]}" -p no:snapshot -p no:snapshottest
    twice pytest-snapshot "${python[@]}" -p no:syrupy -p no:snapshottest
    twice snapshottest "${python[@]}" -p no:syrupy -p no:snapshot
    for one in regressions inline approval; do
        twice "$one" "${python[@]}" -p no:syrupy -p no:snapshot -p no:snapshottest
    done
done | tee ../seen
diff - ../seen <<'SEEN'
jest 0 0
vitest 0 0
ava 0 0
snap-shot-it 0 0
tap 1 1
playwright 1 0
syrupy 1 1
pytest-snapshot 1 1
snapshottest 0 0
regressions 1 0
inline 1 1
approval 1 1
jest, CI 1 1
vitest, CI 1 1
ava, CI 1 1
snap-shot-it, CI 1 1
tap, CI 1 1
playwright, CI 1 0
syrupy, CI 1 1
pytest-snapshot, CI 1 1
snapshottest, CI 0 0
regressions, CI 1 0
inline, CI 1 1
approval, CI 1 1
SEEN
# Seen with Python 3.11 and Node 20, twice, 2026-12.
