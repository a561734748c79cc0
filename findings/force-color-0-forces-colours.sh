#!/usr/bin/env bash
# FORCE_COLOR=0 in the environment of rich 15.0.0, typer 0.29.2 and pytest 9.2.0 (PyPI), beside Node.js and chalk 6.0.1
# (npm): it turns colours on in the first three, where the output goes into a file, and off in the others.
#
# A runner that keeps the output of agents sets it to have none. Node.js and the packages of npm count: 0 is no colours,
# 1 to 3 are more and more. Those of Python ask whether there is a value: `0` and `false` are. So what was plain without
# the variable has escape sequences with it: a program that prints JSON by rich (`rich.print`) prints none any more, and
# `pytest | tail -1` no longer begins with a digit. The empty value is the other way round: colours in Node.js, none
# with rich and pytest. Beside it, NO_COLOR=1 takes the colours from rich, but not the escape sequences for bold,
# and all from pytest; and Node.js, for FORCE_COLOR=1 with NO_COLOR, warns on stderr in each process. What all take for
# "no colours" is neither of the two in the environment, or NO_COLOR=1 alone.
# Source: https://force-color.org/ ("regardless of its value"), https://nodejs.org/api/cli.html#force_color1-2-3,
# https://rich.readthedocs.io/en/stable/console.html#environment-variables.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rich==15.0.0 typer==0.29.2 pytest==9.2.0 2>/dev/null
npm install --silent --no-fund --no-audit --ignore-scripts chalk@6.0.1 >/dev/null
echo 'def test_nothing(): pass' >test_nothing.py
cat >chalk.mjs <<'NODE'
import chalk from "chalk";
console.log(chalk.red("a"));
NODE
cat >try.py <<'PYTHON'
import json, os, subprocess, sys

typer = "import typer\ndef main(): pass\ntyper.run(main)"
programs = {
    "rich": [sys.executable, "-c", "import rich; rich.print('{\"cost\": 1.5}')"],
    "typer": [sys.executable, "-c", typer, "--help"],
    "pytest": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    "node": ["node", "--eval", "console.log({ cost: 1.5 })"],
    "chalk": ["node", "chalk.mjs"],
}
settings = [{}, {"FORCE_COLOR": "0"}, {"FORCE_COLOR": "false"}, {"FORCE_COLOR": ""}, {"FORCE_COLOR": "1"},
            {"FORCE_COLOR": "0", "NO_COLOR": "1"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, {"NO_COLOR": "1"}]
seen = {}
for name, command in programs.items():
    row = []
    for variables in settings:
        run = subprocess.run(command, env={"PATH": os.environ["PATH"], **variables}, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        row.append(("x" if "\x1b" in run.stdout else "-") + ("w" if "Warning" in run.stderr else ""))
        if name == "rich" and variables == {"FORCE_COLOR": "0"}:
            try:
                json.loads(run.stdout)
            except ValueError:
                print("rich with FORCE_COLOR=0 prints no JSON:", ascii(run.stdout))
    seen[name] = " ".join(row)
print("x: escape sequences in a pipe, w: a warning on stderr, with", *settings, sep="\n  ")
for name, row in seen.items():
    print(f"{name:7} {row}")
assert seen == {
    "rich": "- x x - x x x -",
    "typer": "- x x - x x x -",
    "pytest": "- x x - x - - -",
    "node": "- - - x x - xw -",
    "chalk": "- - - x x - xw -",
}, "it has changed"
PYTHON
env -i PATH="$PATH" HOME="$folder" LANG=C.UTF-8 timeout 200 venv/bin/python try.py
# Seen with Python 3.11 and Node 20, twice, 2026-11.
