#!/usr/bin/env bash
# pytest 9.2.0 (PyPI) and unittest of Python 3.11, jest 30.5.2, vitest 5.1.2, mocha 12.0.3 (npm) and `node --test` of
# Node.js 20.20.2: the exit code, if what is asked for does not exist.
#
#             a name that no test has       a file that does not exist
#   pytest    5                             4
#   jest      0, "1 skipped"                1
#   vitest    0, "1 skipped"                1
#   mocha     0, "0 passing"                1
#   node      0, "# skipped 1"              1
#   unittest  0, "Ran 0 tests", "OK"        1
#
# So the check of a task, `npm test -- -t "logs out"`, which is to show that an agent has written that test, passes
# before it has begun, and after it has written it under another name; with pytest the same check fails. None of those
# that exit with 0 warns. mocha has --fail-zero for it, and unittest exits with 5 from Python 3.12 on. The option
# --passWithNoTests of jest and vitest, off by default, is about files alone. Ask for a file, or count.
# Source: https://docs.pytest.org/en/stable/reference/exit-codes.html, https://jestjs.io/docs/cli#--passwithnotests,
# https://vitest.dev/guide/cli, https://mochajs.org/#-fail-zero, https://nodejs.org/api/test.html ("Filtering tests by
# name").
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pytest==9.2.0 2>/dev/null
npm install --silent --no-fund --no-audit --ignore-scripts jest@30.5.2 vitest@5.1.2 mocha@12.0.3 >/dev/null

mkdir project
cd project
echo '{"jest": {"testMatch": ["**/jest.js"]}}' >package.json
echo 'test("logs in", () => {});' >jest.js
echo 'it("logs in", () => {});' >mocha.js
echo 'import { test } from "vitest"; test("logs in", () => {});' >vitest.test.mjs
echo 'import test from "node:test"; test("logs in", () => {});' >node.mjs
cat >test_login.py <<'PYTHON'
import unittest

class Login(unittest.TestCase):
    def test_logs_in(self): pass
PYTHON

code() {  # the exit code of a test runner
    local exit=0
    env -i PATH="$PATH" HOME="$folder" CI=1 NO_COLOR=1 timeout 120 "$@" >"$folder/out" 2>&1 </dev/null || exit=$?
    echo "$exit"
}
python=../venv/bin/python bin=../node_modules/.bin
{
    pytest="$python -m pytest"
    echo "pytest $(code $pytest -k logs_in) $(code $pytest -k logs_out) $(code $pytest no.py)"
    echo "jest $(code $bin/jest -t 'logs in') $(code $bin/jest -t 'logs out') $(code $bin/jest no.js)"
    echo "vitest $(code $bin/vitest run -t 'logs in') $(code $bin/vitest run -t 'logs out') $(code $bin/vitest run no)"
    mocha=$bin/mocha
    echo "mocha $(code $mocha -g 'logs in' mocha.js) $(code $mocha -g 'logs out' mocha.js) $(code $mocha no.js)"
    named="node --test --test-name-pattern"
    echo "node $(code $named='logs in' node.mjs) $(code $named='logs out' node.mjs) $(code node --test no.mjs)"
    unittest="$python -m unittest"
    echo "unittest $(code $unittest -k logs_in) $(code $unittest -k logs_out) $(code $unittest no.py)"
} | tee seen
echo "with --fail-zero, mocha $(code $bin/mocha --fail-zero -g 'logs out' mocha.js)" | tee -a seen
version=$(python3 -c 'import sys; print(5 if sys.version_info >= (3, 12) else 0)')
diff - seen <<SEEN
pytest 0 5 4
jest 0 0 1
vitest 0 0 1
mocha 0 0 1
node 0 0 1
unittest 0 $version 1
with --fail-zero, mocha 1
SEEN
# Seen with Python 3.11 and Node 20, twice, 2026-11. The columns: a name that exists, one that does not, and a file.
