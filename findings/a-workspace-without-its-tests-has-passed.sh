#!/usr/bin/env bash
# Runners of the scripts of a workspace whose only package has no script `test`, as after an agent has renamed it to
# `tests`: the exit code and what is said, and the same for a name that no package ever had.
#
#                                test                           tset
#   npm 10.9.4, --workspaces     1                              1
#   pnpm 12.23.0, -r             0, without a word              1, "None of the selected packages"
#   turbo 2.11.11 run            0                              1, "Could not find task"
#   lerna 9.0.7 run              0, "success … No packages"     0, likewise
#   nx 22.7.12 run-many -t       0, "No tasks were run"         0, likewise
#   concurrently 9.2.5 'npm:*'   0, without a word              0, without a word
#   npm-run-all2 8.0.4, run-s    1                              1
#   (npm; the last two by the pattern `test:*` in one package)
#
#   nox 2026.10.20 (PyPI), a session whose Python is not there: 0, "skipped"; with CI set in the environment: 1
#   tox 4.67.15 (PyPI), the same, also with skip_missing_interpreters: 1
#
# So the check of a task, `pnpm -r test` or `nox`, passes on a machine or after a change with which it runs nothing.
# pnpm fails for every name but `test`, and nox fails where CI is set, as it is for hosted runners and not for an agent's
# commands or a daemon's checks. Set CI=1 for checks, or name a package (`pnpm --filter shop run test`).
# Source: https://pnpm.io/cli/recursive, https://nx.dev/reference/core-api/nx/documents/run-many,
# https://nox.thea.codes/en/stable/usage.html (--error-on-missing-interpreters),
# https://tox.wiki/en/stable/config.html#skip_missing_interpreters.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check nox==2026.10.20 tox==4.67.15 2>/dev/null
npm install --silent --no-fund --no-audit pnpm@12.23.0 turbo@2.11.11 lerna@9.0.7 nx@22.7.12 concurrently@9.2.5 \
    npm-run-all2@8.0.4 npm@10.9.4 >/dev/null

mkdir -p work/packages/shop python
echo '{"name": "shop", "version": "1.0.0", "scripts": {"tests": "node --test"}}' >work/packages/shop/package.json
echo '{"name": "work", "private": true, "workspaces": ["packages/*"]}' >work/package.json
printf 'packages:\n  - packages/*\n' >work/pnpm-workspace.yaml
echo '{"version": "1.0.0", "packages": ["packages/*"]}' >work/lerna.json
echo '{"tasks": {"test": {}}}' >work/turbo.json
echo '{}' >work/nx.json
git init --quiet work
cp -r work turbo  # which wants the package manager to be named, and pnpm refuses another than itself
echo '{"name": "work", "private": true, "workspaces": ["packages/*"], "packageManager": "npm@10.9.4"}' >turbo/package.json
cat >python/noxfile.py <<'PYTHON'
import nox

@nox.session(python="3.7", venv_backend="venv")
def tests(session):
    session.run("python", "-c", "raise SystemExit(1)")
PYTHON
printf '[tox]\nenv_list = py37\nno_package = true\nskip_missing_interpreters = true\n[testenv]\ncommands = false\n' \
    >python/tox.ini

code() {  # the exit code of a command; what it has said is in `out`
    local exit=0
    env -i PATH="$folder/node_modules/.bin:/usr/local/bin:/usr/bin:/bin" HOME="$folder" NO_COLOR=1 NX_DAEMON=false \
        DO_NOT_TRACK=1 TURBO_TELEMETRY_DISABLED=1 timeout 200 "$@" >"$folder/out" 2>&1 </dev/null || exit=$?
    echo "$exit"
}
{
    cd work
    echo "npm $(code npm run test --workspaces) $(code npm run tset --workspaces)"
    echo "pnpm $(code pnpm -r test)$(cat "$folder/out") $(code pnpm -r run tset)"
    echo "lerna $(code lerna run test) $(code lerna run tset)"
    grep -o 'success run No packages found' "$folder/out"
    echo "nx $(code nx run-many -t test) $(code nx run-many -t tset)"
    grep -o 'No tasks were run' "$folder/out"
    cd packages/shop
    echo "concurrently $(code concurrently 'npm:test:*')$(cat "$folder/out") $(code concurrently 'npm:tset:*')"
    echo "run-s $(code run-s 'test:*') $(code run-s 'tset:*')"
    cd "$folder/turbo"
    (cd "$folder/turbo" && code npm install --package-lock-only >/dev/null)
    echo "turbo $(code turbo run test) $(code turbo run tset)"
    cd "$folder/python"
    echo "nox $(code ../venv/bin/nox) $(code env CI=1 ../venv/bin/nox)"
    echo "tox $(code ../venv/bin/tox)"
    cd ..
} | tee seen
diff - seen <<'SEEN'
npm 1 1
pnpm 0 1
lerna 0 0
success run No packages found
nx 0 0
No tasks were run
concurrently 0 0
run-s 1 1
turbo 0 1
nox 0 1
tox 1
SEEN
# Seen with Python 3.11 and Node 20, twice, 2026-12.
