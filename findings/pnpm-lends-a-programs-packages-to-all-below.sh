#!/usr/bin/env bash
# pnpm 12.21.0 (npm): a program that pnpm has installed gives its own dependencies to every Node.js process below it, in
# any folder. `require()` of a package that a project does not have then succeeds there.
#
#   the program was started by                    require("semver") in a project without it, below that program
#   npm's global folder, npx                      MODULE_NOT_FOUND
#   pnpm's global folder, pnpm exec, pnpm dlx     the program's own semver
#
# pnpm puts a shell script in front of the program, which sets NODE_PATH to the folders of its dependencies, and of all
# that are installed beside it; the environment is inherited. An agent's command line has hundreds of packages. Where it
# was installed by pnpm, tests of a project pass in the agent's shell although its package.json lacks a dependency, and
# fail in CI, and a tool may find its plugins among the agent's. What the project has itself goes first, and `import`
# does not look at NODE_PATH, so the same package is found by one file and not by the next. Start what is below with
# `env -u NODE_PATH`, or install the program by npm.
# Source: https://nodejs.org/api/modules.html#loading-from-the-global-folders
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
mkdir "$folder/runner" "$folder/project" "$folder/work" "$folder/pnpm"
echo '{"name": "project", "version": "1.0.0"}' >"$folder/project/package.json"
echo '{"name": "work", "version": "1.0.0"}' >"$folder/work/package.json"
cd "$folder/runner"
cat >package.json <<'JSON'
{"name": "runner", "version": "1.0.0", "bin": "runner.js", "dependencies": {"semver": "7.7.2"}}
JSON
cat >runner.js <<'JS'
#!/usr/bin/env node
// Runs a command in the project, as an agent does.
const { spawnSync } = require("node:child_process");
const ways = [
  ["-p", "require('semver/package.json').version"],
  ["--input-type=module", "-e", "import { SEMVER_SPEC_VERSION as version } from 'semver'; console.log(version)"],
];
for (const way of ways) {
  const { stdout, stderr } = spawnSync("node", ["--no-warnings", ...way], { cwd: process.argv[2], encoding: "utf8" });
  console.log(stdout.trim() || /code: '(.*)'/.exec(stderr)[1]);
}
JS
npm pack --silent >/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" pnpm@12.21.0 >/dev/null
export HOME="$folder" PNPM_HOME="$folder/pnpm" npm_config_prefix="$folder/npm"
unset NODE_PATH
PATH="$folder/node_modules/.bin:$PNPM_HOME/bin:$PATH"
program="$folder/runner/runner-1.0.0.tgz"
cd "$folder/work"
npm install --silent --global --no-audit --no-fund "$program" >/dev/null
{ pnpm add --global "$program" && pnpm add "$program"; } >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
seen=""
note() {  # note NAME COMMAND...: what the project finds below this program
    local found
    found=$("${@:2}" "$folder/project" 2>/dev/null | grep -E '^([0-9.]+|[A-Z_]+)$' | paste -sd ' ')
    echo "$1: $found"
    seen+="$found;"
}
echo "started by: require, import"
note "npm's global folder" "$folder/npm/bin/runner"
note "npx" npx --yes --package "$program" runner
note "pnpm's global folder" "$PNPM_HOME/bin/runner"
note "pnpm exec" pnpm exec runner
note "pnpm dlx" pnpm dlx "$program"
no="MODULE_NOT_FOUND ERR_MODULE_NOT_FOUND;" its="7.7.2 ERR_MODULE_NOT_FOUND;"
[ "$seen" = "$no$no$its$its$its" ] || { echo "it has changed"; exit 1; }
# Seen with Node.js 20.20.2 and npm 10, twice, 2026-12:
# started by: require, import
# npm's global folder: MODULE_NOT_FOUND ERR_MODULE_NOT_FOUND
# npx: MODULE_NOT_FOUND ERR_MODULE_NOT_FOUND
# pnpm's global folder: 7.7.2 ERR_MODULE_NOT_FOUND
# pnpm exec: 7.7.2 ERR_MODULE_NOT_FOUND
# pnpm dlx: 7.7.2 ERR_MODULE_NOT_FOUND
