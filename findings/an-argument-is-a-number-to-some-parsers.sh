#!/usr/bin/env bash
# `tool --task VALUE`, as eight parsers of the command line read it: minimist 1.2.8, mri 1.2.0, cac 7.1.0, yargs 18.2.0
# and commander 15.1.0 (npm), Fire 0.7.1 and click 8.5.1 (PyPI), and parseArgs of Node.js 20.20.2. "-" is the text.
#
#   VALUE                    minimist    mri, cac    yargs    Fire                commander, click, parseArgs
#   84e1240      a commit    Infinity    -           -        inf                 -
#   007          a task      7           7           -        -                   -
#   1e3          a commit    1000        1000        1000     1000.0              -
#   1.10         a version   1.1         1.1         1.1      1.1                 -
#   (empty)      no task     -           0           -        -                   -
#   wip, lint    a title     -           -           -        ("wip", "lint")     -
#   "wip"        a title     -           -           -        wip                 -
#   12 # ui      a title     -           -           -        12                  -
#
# The first four convert what looks like a number unless the option is declared as a string, and cac does so although
# the option says `<text>`. Fire takes each value for a literal of Python: what a shell or an agent hands over as one
# text becomes a tuple, None or Ellipsis, or loses its quotes or what is behind "#". So a program that was tried with
# `--task ab12cde` gets another id for one commit in some hundred, and that without an error. With a type
# (`string: ['task']` of minimist, mri and yargs) they leave the text alone; Fire has none: write `--task '"84e1240"'`.
# Source: https://github.com/minimistjs/minimist, https://google.github.io/python-fire/guide/ ("Argument Parsing")
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" minimist@1.2.8 mri@1.2.0 cac@7.1.0 yargs@18.2.0 \
    commander@15.1.0 >/dev/null
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check fire==0.7.1 click==8.5.1 2>/dev/null
cat >"$folder/parse.mjs" <<'JS'
import { parseArgs } from 'node:util'
import { cac } from 'cac'
import { Command } from 'commander'
import minimist from 'minimist'
import mri from 'mri'
import yargs from 'yargs'
const string = ['task']
const parsers = {
  minimist: args => minimist(args).task,
  mri: args => mri(args).task,
  cac: args => cac().option('--task <text>', '').parse(['node', 'tool', ...args]).options.task,
  yargs: args => yargs(args).parse().task,
  'commander, parseArgs': args => {
    const { task } = new Command().option('--task <text>').parse(args, { from: 'user' }).opts()
    return task === parseArgs({ args, options: { task: { type: 'string' } } }).values.task ? task : 'they differ'
  },
  'minimist, mri, yargs with a type': args => {
    const [task, ...others] = [minimist(args, { string }), mri(args, { string }), yargs(args).string(string).parse()]
    return others.every(other => other.task === task.task) ? task.task : 'they differ'
  }
}
for (const [name, parse] of Object.entries(parsers)) {
  const read = value => {
    const found = parse(['--task', value])
    return found === value ? '-' : String(found)
  }
  console.log(`${name}: ${process.argv.slice(2).map(read).join(' | ')}`)
}
JS
cat >"$folder/parse.py" <<'PYTHON'
import sys

import click
import fire


@click.command()
@click.option("--task")
def by_click(task):
    return task


def by_fire(value):
    return fire.Fire(lambda task: task, command=["--task", value], serialize=lambda _: None)


def read(value, parse):
    found = parse(value)
    return "-" if found == value else str(found)


for name, parse in {"Fire": by_fire, "click": lambda value: by_click(["--task", value], standalone_mode=False)}.items():
    print(f"{name}:", " | ".join(read(value, parse) for value in sys.argv[1:]))
PYTHON
cd "$folder"
values=(84e1240 007 1e3 1.10 "" "wip, lint" '"wip"' "12 # ui")
run() { env -i PATH="$PATH" HOME="$folder" timeout 60 "$@" "${values[@]}"; }
{ run node parse.mjs && run venv/bin/python parse.py; } | tee seen
diff seen - <<'TXT' || { echo "it has changed"; exit 1; }
minimist: Infinity | 7 | 1000 | 1.1 | - | - | - | -
mri: - | 7 | 1000 | 1.1 | 0 | - | - | -
cac: - | 7 | 1000 | 1.1 | 0 | - | - | -
yargs: - | - | 1000 | 1.1 | - | - | - | -
commander, parseArgs: - | - | - | - | - | - | - | -
minimist, mri, yargs with a type: - | - | - | - | - | - | - | -
Fire: inf | - | 1000.0 | 1.1 | - | ('wip', 'lint') | wip | 12
click: - | - | - | - | - | - | - | -
TXT
