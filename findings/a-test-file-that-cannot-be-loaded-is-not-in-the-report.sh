#!/usr/bin/env bash
# The JUnit XML of a project of two test files, of which one cannot be loaded, as after an agent has removed a module
# that it imports. Both passed before, and wrote their report to the same file.
#
#                                                            exit code   the report
#   jest 30.5.2 with jest-junit 17.0.0 (npm)                 1           1 test, no failure: the file is left out
#   mocha 12.0.3 (npm), --reporter xunit                     1           that of the run before: 2 tests, no failure
#   vitest 5.1.2 (npm), --reporter=junit                     1           2 tests, 1 failure
#   node --test of Node.js 20.20.2                           1           2 tests, 1 failure
#   pytest 9.2.0 (PyPI), --junit-xml                         2           1 test, 1 error
#
# jest-junit writes what the tests have said, and a file that was not loaded has said nothing; its option
# reportTestSuiteErrors, which is off, adds it. mocha loads all files before it begins, so nothing is written, and what
# was there stays. So a dispatcher or a page of CI that goes by the report, since the exit code is that of a pipe, or a
# step that is to fail only for tests, takes the worst kind of failure for a success. Delete the report before each run,
# take the exit code as well, and compare the number of tests.
# Source: https://github.com/jest-community/jest-junit#configuration ("reportTestSuiteErrors"),
# https://mochajs.org/#xunit.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pytest==9.2.0 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" jest@30.5.2 jest-junit@17.0.0 mocha@12.0.3 \
    vitest@5.1.2 >/dev/null
cd "$folder"
for kind in jest mocha vitest node pytest; do mkdir "$kind"; done
printf 'module.exports = 1\n' | tee jest/help.js mocha/help.js >node/help.js
printf 'export default 1\n' >vitest/help.js
printf 'ONE = 1\n' >pytest/help.py
for each in jest mocha node; do
    start=''
    [ "$each" != node ] || start="const test = require('node:test'); "
    word=test
    [ "$each" != mocha ] || word=it
    echo "$start$word('a', () => {})" >"$each/a.test.js"
    echo "${start}require('./help'); $word('b', () => {})" >"$each/b.test.js"
done
echo "import { test } from 'vitest'; test('a', () => {})" >vitest/a.test.js
echo "import './help.js'; import { test } from 'vitest'; test('b', () => {})" >vitest/b.test.js
echo 'def test_a(): pass' >pytest/test_a.py
printf 'import help_of_tests\ndef test_b(): pass\n' >pytest/test_b.py
mv pytest/help.py pytest/help_of_tests.py

check() { # in the folder of $1: prints the exit code, and counts the elements of the report
    local code=0
    (cd "$1" && env -i PATH="$folder/node_modules/.bin:$folder/venv/bin:$PATH" HOME="$folder" \
        PYTHONDONTWRITEBYTECODE=1 timeout 100 "${@:2}" >../log 2>&1) || code=$?
    count() { grep -oE "<($1)[ >]" "$kind/report.xml" | wc -l; }
    echo "exit $code, $(count testcase) tests, $(count 'failure|error') failures"
}
run() {
    case $1 in
        jest) check jest env JEST_JUNIT_OUTPUT_FILE=report.xml jest --ci --rootDir . --reporters=jest-junit ;;
        mocha) check mocha mocha --reporter xunit --reporter-option output=report.xml a.test.js b.test.js ;;
        vitest) check vitest vitest run --root . --reporter=junit --outputFile=report.xml ;;
        node) check node node --test --test-reporter=junit --test-reporter-destination=report.xml a.test.js b.test.js ;;
        pytest) check pytest pytest -p no:cacheprovider --rootdir . --junit-xml=report.xml ;;
    esac
}
for kind in jest mocha vitest node pytest; do
    before=$(run "$kind")
    rm "$kind"/help*
    echo "$kind: $before; then $(run "$kind")"
done | tee seen
diff seen - <<'SEEN' || { echo "it has changed"; exit 1; }
jest: exit 0, 2 tests, 0 failures; then exit 1, 1 tests, 0 failures
mocha: exit 0, 2 tests, 0 failures; then exit 1, 2 tests, 0 failures
vitest: exit 0, 2 tests, 0 failures; then exit 1, 2 tests, 1 failures
node: exit 0, 2 tests, 0 failures; then exit 1, 2 tests, 1 failures
pytest: exit 0, 2 tests, 0 failures; then exit 2, 1 tests, 1 failures
SEEN
# Seen with Python 3.11 and Node.js 20.20.2, twice, 2026-12.
