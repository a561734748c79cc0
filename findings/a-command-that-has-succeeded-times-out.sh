#!/usr/bin/env bash
# `echo done; sleep 3 & exit 0` ends at once with exit code 0, and leaves a process behind that has its stdout, as a
# check does that starts a server. With a timeout of one second, twelve ways to run it and read its output say:
#
#   subprocess.run (Python 3.11)           timed out, after the second
#   invoke 3.0.3 (PyPI)                    timed out, when the last process has ended
#   sh 2.4.0 (PyPI)                        success, after the second
#   plumbum 2.0.2 (PyPI)                   success, when the last process has ended
#   execFile, exec (Node.js 20.20.2)       success, after the second
#   execFileSync                           timed out, after the second; spawnSync: status 0 and an error
#   execa 9.6.1 (npm)                      timed out, with exit code 0, when the last process has ended
#   zx 8.8.5, tinyexec 1.4.0 and
#     nano-spawn 2.1.0 (npm)               success, when the last process has ended
#
# A pipe is at its end when all who hold it have let go. To some, a timeout is about that; to others, it is about the
# life of the process that was started. Where the last process is waited for, the timeout bounds nothing: a server that
# stays is waited for without end. Where it counts as a failure, work that is done is done again. None of them ends what
# is left. Have such a command send the server's output elsewhere: `server >log 2>&1 &`.
# Source: https://nodejs.org/api/child_process.html ("exit" and "close"),
# https://docs.python.org/3/library/subprocess.html, https://github.com/sindresorhus/execa/blob/main/docs/termination.md
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check invoke==3.0.3 sh==2.4.0 plumbum==2.0.2 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" execa@9.6.1 zx@8.8.5 tinyexec@1.4.0 nano-spawn@2.1.0 \
    >/dev/null
cat >"$folder/run.mjs" <<'JS'
import { exec, execFile, execFileSync, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { execa } from "execa";
import spawn from "nano-spawn";
import { x } from "tinyexec";
import { $ } from "zx";
const [name, script] = process.argv.slice(2), sh = ["sh", ["-c", script]], limit = { timeout: 1000 };
const ways = {
  execFile: () => promisify(execFile)(...sh, limit),
  exec: () => promisify(exec)(script, limit),
  execFileSync: () => execFileSync(...sh, limit),
  spawnSync: () => { const { status, error } = spawnSync(...sh, limit); if (error) throw { exitCode: status }; },
  execa: () => execa(...sh, limit),
  "nano-spawn": () => spawn(...sh, limit),
  tinyexec: () => x(...sh, limit),
  zx: () => $({ timeout: "1s", quiet: true })`sh -c ${script}`,
};
const failed = ({ exitCode }) => (exitCode === 0 ? "timed out, exit code 0" : "timed out");
process.stdout.write(await (async () => ways[name]())().then(() => "success", failed));
process.exit();
JS
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import os, subprocess, sys

import invoke, plumbum, sh

FOLDER = sys.argv[1]
PYTHON = {
    "subprocess.run": lambda script: subprocess.run(["sh", "-c", script], stdout=-1, timeout=1, check=True),
    "invoke": lambda script: invoke.run(script, timeout=1, hide=True, in_stream=False),
    "sh": lambda script: sh.sh("-c", script, _timeout=1),
    "plumbum": lambda script: plumbum.local["sh"].run(["-c", script], timeout=1),
}
TIMEOUTS = (subprocess.TimeoutExpired, invoke.CommandTimedOut, sh.TimeoutException, plumbum.ProcessTimedOut)


def verdict(name, script):
    if name not in PYTHON:  # into a file, so that nobody waits for the pipe
        with open(f"{FOLDER}/verdict", "w+") as file:
            subprocess.run(["node", f"{FOLDER}/run.mjs", name, script], stdout=file, check=True)
            file.seek(0)
            return file.read()
    try:
        PYTHON[name](script)
        return "success"
    except TIMEOUTS:
        return "timed out"


seen = {}
of_node = ["execFile", "exec", "execFileSync", "spawnSync", "execa", "zx", "tinyexec", "nano-spawn"]
for name in [*PYTHON, *of_node]:
    mark = f"{FOLDER}/{name}"
    told = verdict(name, f"echo done; {{ sleep 3; touch {mark}; }} & exit 0")
    seen[name] = told, os.path.exists(mark)
    print(f"{name}: {told}, {'when the last process has ended' if seen[name][1] else 'before that'}", flush=True)
assert seen == {
    "subprocess.run": ("timed out", False),
    "invoke": ("timed out", True),
    "sh": ("success", False),
    "plumbum": ("success", True),
    **dict.fromkeys(["execFile", "exec"], ("success", False)),
    "execFileSync": ("timed out", False),
    "spawnSync": ("timed out, exit code 0", False),
    "execa": ("timed out, exit code 0", True),
    **dict.fromkeys(["zx", "tinyexec", "nano-spawn"], ("success", True)),
}, "it has changed"
PYTHON
