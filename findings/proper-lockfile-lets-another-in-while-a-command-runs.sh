#!/usr/bin/env bash
# proper-lockfile 4.1.2 (npm): a lock that is held while spawnSync or execFileSync runs a command is taken by another
# process after ten seconds (`stale`), and both are at work. The first then gives back the lock of the second, and lets
# in a third.
#
# A lock is a folder, and whoever holds it touches it every five seconds, by a timer. A synchronous command stops the
# timers of its process, so if it takes longer than `stale`, as an agent, a build or `npm install` does, the lock looks
# like one whose holder has died. release() succeeds: it removes the folder, whosever it is by then, before the overdue
# timer can tell that the lock was compromised. With the same command by `await execFile`, everybody waits. A lock of
# the kernel, as flock(1) takes it, needs no timer. `stale` is four seconds here.
# Source: https://github.com/moxystudio/node-proper-lockfile ("Design", "lock")
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" proper-lockfile@4.1.2 >/dev/null
cat >"$folder/worker.mjs" <<'JS'
// Takes the lock, says so, works until its folder has a file "done-NAME", and gives the lock back.
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import lockfile from 'proper-lockfile'
const [name, how] = process.argv.slice(2)
const options = { stale: 4000, retries: { retries: 1000, factor: 1, minTimeout: 100, maxTimeout: 100 } }
const release = await lockfile.lock('.', options)
console.log('in')
const work = ['sh', ['-c', `until [ -e done-${name} ]; do sleep 0.1; done`]]
if (how === 'spawnSync') spawnSync(...work)
else await promisify(execFile)(...work)
await release()
console.log('out')
JS
cat >"$folder/main.mjs" <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'

class Worker {
  constructor (name, how) {
    this.name = name
    this.said = []
    this.process = spawn(process.execPath, ['worker.mjs', name, how], { stdio: ['ignore', 'pipe', 'inherit'] })
    createInterface(this.process.stdout).on('line', line => this.said.push(line))
    this.ended = once(this.process, 'exit')
  }

  async says (word, seconds) {
    for (let i = 0; i < seconds * 10 && !this.said.includes(word); i++) await setTimeout(100)
    return this.said.includes(word)
  }

  async end () {
    writeFileSync(`done-${this.name}`, '')
    await this.ended
  }
}

const seen = []
const tell = (what, is) => { seen.push(is); console.log(`  ${what}: ${is}`) }
for (const how of ['spawnSync', 'await execFile']) {
  console.log(how)
  const first = new Worker('first', how)
  await first.says('in', 60)
  const second = new Worker('second', 'await execFile')
  tell('the second is in beside the first', await second.says('in', how === 'spawnSync' ? 60 : 8))
  await first.end()
  tell('the first has given back its lock', first.said.includes('out'))
  await second.says('in', 60)
  const third = new Worker('third', 'await execFile')
  tell('the third is in beside the second', await third.says('in', how === 'spawnSync' ? 60 : 8))
  await second.end()
  await third.says('in', 60)
  await third.end()
  for (const name of ['first', 'second', 'third']) rmSync(`done-${name}`)
}
if (String(seen) !== 'true,true,true,false,true,false') throw new Error('it has changed')
JS
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 300 node main.mjs
