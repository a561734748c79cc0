#!/usr/bin/env bash
# npm 11.19.1 (npm): the options of the `npx` or `npm` that started a program hold for every npx and npm below it, in
# any folder. A program that was started by `npx --package` has no working npx.
#
# npm hands its own options down in the environment, as npm_config_NAME, and reads such variables itself.
#   npx PACKAGE                  nothing is handed down that matters here
#   npx -p PACKAGE COMMAND       `npx semver@7.7.2` of an agent below takes PACKAGE for its package, and "semver@7.7.2"
#                                for a command of that: "not found", exit code 127
#   npm --prefix RUNNER start    the global folder below is RUNNER/lib, so what an agent installs there is in no PATH
#   npm start --ignore-scripts   `npm install` of a project below leaves out its install scripts, with exit code 0
# The second form is for packages whose command has another name, and so stands in configurations of agents and of MCP
# servers. No line of output tells of any of this. A runner has to remove npm_config_* from what it hands down.
# Source: https://docs.npmjs.com/cli/v11/using-npm/config ("Environment Variables"),
# https://docs.npmjs.com/cli/v11/commands/npx.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
npm_config_globalconfig=$(npm config get globalconfig) # the machine's settings, which --prefix would move as well
export npm_config_globalconfig
mkdir tools runner project
(cd tools && npm install --silent --no-audit --no-fund npm@11.19.1 >/dev/null)
cat >runner/package.json <<'JSON'
{"name": "runner", "version": "1.0.0", "scripts": {"start": "sh $TASK"}}
JSON
cat >project/package.json <<'JSON'
{"name": "project", "version": "1.0.0", "scripts": {"postinstall": "echo made > made"}, "dependencies": {"ms": "2.1.3"}}
JSON
# What an agent does in its project.
cat >task.sh <<'SHELL'
cd "$PROJECT"
npx --yes semver@7.7.2 1.2.3 >/dev/null 2>&1
npx=$?
rm -rf node_modules made
npm install --silent --no-audit --no-fund --no-package-lock >/dev/null 2>&1
installed=$?
[ -e made ] && script=run || script="left out"
global=$(npm root --global)
case $global in *runner*) global=runner/lib ;; *) global="as ever" ;; esac
echo "npx: $npx, npm install: $installed, its script $script, global: $global" >>"$SEEN"
SHELL
as() {
    printf '%-54s ' "$*" >>seen
    (cd runner && env PATH="$work/tools/node_modules/.bin:$PATH" HOME="$work" TASK="$work/task.sh" SEEN="$work/seen" \
        PROJECT="$work/project" timeout 120 "$@" >/dev/null 2>&1) || echo "ended with $?" >>seen
}
as sh ../task.sh
as npx --yes cross-env@10.1.0 sh ../task.sh
as npx --yes -p cross-env@10.1.0 cross-env sh ../task.sh
as npm start
as npm --prefix ../runner start
as npm start --ignore-scripts
cat seen
diff - seen <<'SEEN' # as seen twice, 2026-11
sh ../task.sh                                          npx: 0, npm install: 0, its script run, global: as ever
npx --yes cross-env@10.1.0 sh ../task.sh               npx: 0, npm install: 0, its script run, global: as ever
npx --yes -p cross-env@10.1.0 cross-env sh ../task.sh  npx: 127, npm install: 0, its script run, global: as ever
npm start                                              npx: 0, npm install: 0, its script run, global: as ever
npm --prefix ../runner start                           npx: 0, npm install: 0, its script run, global: runner/lib
npm start --ignore-scripts                             npx: 0, npm install: 0, its script left out, global: as ever
SEEN
