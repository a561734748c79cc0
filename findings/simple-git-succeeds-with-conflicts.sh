#!/usr/bin/env bash
# simple-git 4.0.2 (npm) with git 2.39.5 (Debian 12): a command that fails, and writes nothing to stderr, has succeeded.
#
#                                                     git exits with   the promise
#   stash(['pop']), which conflicts                   1                resolves, with git's text; the stash is kept
#   raw(['merge-tree', '--write-tree', a, b]),        1                resolves, with git's text
#     which conflicts
#   raw(['merge-base', '--is-ancestor', a, b]): no    1                resolves with "", as for yes (0)
#   raw(['diff', '--quiet']): there are changes       1                resolves with "", as for none (0)
#   merge([b]), which conflicts                       1                rejects
#   revparse(['--verify', 'none'])                    128              rejects
#
# An exit code counts as an error only if there is text on stderr, too, and the code itself is not passed on. git keeps
# stderr for what is fatal: an answer of "no" is exit code 1 and silence, and a conflict is reported on stdout. So a
# runner that puts the changes of an agent aside, and back, goes on with markers of a conflict in the files, and each
# commit is an ancestor of each other. The option `errors: (error, { exitCode, stdErr }) => ...` can judge by the code.
# Source: https://github.com/steveukx/git-js/blob/main/docs/PLUGIN-ERRORS.md
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" simple-git@4.0.2 >/dev/null
cat >"$folder/run.mjs" <<'JS'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { simpleGit } from 'simple-git'
const options = {
  plain: {},
  judged: {
    errors: (error, { exitCode, stdErr, stdOut }) =>
      error ?? (exitCode ? Buffer.concat([Buffer.from(`exit ${exitCode}: `), ...stdErr, ...stdOut]) : undefined)
  }
}
const seen = []
const sh = command => execFileSync('sh', ['-ec', command], { cwd: 'repository', stdio: 'ignore' })
const see = async (name, promise) => {
  const found = await promise.then(text => `resolves ${JSON.stringify(String(text).slice(0, 30))}`, () => 'rejects')
  seen.push(found.split(' ')[0])
  console.log(`${name}: ${found}`)
}
for (const [name, given] of Object.entries(options)) {
  console.log(name)
  sh(`rm -rf .git; git init -q -b main; git config user.name a; git config user.email a@b
    echo one >a; git add a; git commit -qm one; git checkout -qb side; echo side >a; git commit -qam side
    git checkout -q main; echo two >a; git commit -qam two; echo mine >a; git stash
    echo three >a; git commit -qam three`)
  const git = simpleGit('repository', given)
  await see('  stash pop, which conflicts', git.stash(['pop']))
  console.log('  in the file:', readFileSync('repository/a', 'utf8').split('\n')[0])
  sh('git reset -q --hard')
  await see('  merge-tree, which conflicts', git.raw(['merge-tree', '--write-tree', 'main', 'side']))
  await see('  merge-base --is-ancestor, no', git.raw(['merge-base', '--is-ancestor', 'side', 'main']))
  await see('  merge-base --is-ancestor, yes', git.raw(['merge-base', '--is-ancestor', 'main~1', 'main']))
  writeFileSync('repository/a', 'changed\n')
  await see('  diff --quiet, with changes', git.raw(['diff', '--quiet']))
  sh('git reset -q --hard')
  await see('  merge, which conflicts', git.merge(['side']))
  await see('  rev-parse --verify none', git.revparse(['--verify', 'none']))
}
const plain = 'resolves,resolves,resolves,resolves,resolves,rejects,rejects'
const judged = 'rejects,rejects,rejects,resolves,rejects,rejects,rejects'
if (String(seen) !== `${plain},${judged}`) throw new Error('it has changed')
JS
mkdir "$folder/repository"
cd "$folder"
env -i PATH="$PATH" HOME="$folder" LC_ALL=C GIT_CONFIG_NOSYSTEM=1 timeout 60 node run.mjs
