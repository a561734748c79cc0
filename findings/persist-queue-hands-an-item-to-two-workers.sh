#!/usr/bin/env bash
# persist-queue 1.1.0 (PyPI), queues in SQLite: an item that one worker is working on is handed to the next worker that
# starts. What has been taken is kept from others by the memory of the process that took it.
#
#   SQLiteAckQueue(path)                      the one with ack() and nack(): auto_resume, on by default, makes what was
#                                             not acknowledged ready again when a queue is opened
#   SQLiteAckQueue(path, auto_resume=False)   another item, as one expects; what a dead worker had is not handed out
#   SQLiteQueue(path, auto_commit=False)      the same item, until the first worker calls task_done()
#
# So a second worker, beside the first or after one that was started again, does the same task. Tests with one process,
# or with threads that share one queue, see nothing. Nor does ack() tell: it succeeds for both.
# An issue says that several processes are not supported; the README says nothing of it.
# Source: https://github.com/peter-wangxu/persist-queue (README), and its issue 132
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check persist-queue==1.1.0 2>/dev/null
cat >"$folder/worker.py" <<'PYTHON'
import sys

import persistqueue

name, path, options = sys.argv[1:]
queue = getattr(persistqueue, name)(path, multithreading=True, **eval(options))
item = queue.get(block=False)
print(item, flush=True)
sys.stdin.readline()
if hasattr(queue, "ack"):
    print("acknowledged", queue.ack(item))
PYTHON
cat >"$folder/main.py" <<'PYTHON'
import subprocess, sys

import persistqueue

folder = sys.argv[1]
seen = {}
for name, options in (
    ("SQLiteAckQueue", {}),
    ("SQLiteAckQueue", {"auto_resume": False}),
    ("SQLiteQueue", {"auto_commit": False}),
):
    path = f"{folder}/{name}{len(options)}"
    queue = getattr(persistqueue, name)(path, multithreading=True)
    for task in ("task 1", "task 2"):
        queue.put(task)
    command = [sys.executable, f"{folder}/worker.py", name, path, repr(options)]
    workers, got = [], []
    for _ in range(2):
        workers.append(subprocess.Popen(command, stdin=-1, stdout=-1, text=True))
        got.append(workers[-1].stdout.readline().strip())
    acknowledged = [worker.communicate("\n")[0].strip() for worker in workers]
    key = f"{name}({', '.join(f'{key}={value}' for key, value in options.items())})"
    seen[key] = got
    print(f"{key}: the first worker has {got[0]!r}, the second has {got[1]!r}", *acknowledged)
assert list(seen.values()) == [["task 1"] * 2, ["task 1", "task 2"], ["task 1"] * 2], "it has changed"
PYTHON
env -i PATH="$PATH" HOME="$folder" timeout 120 "$folder/venv/bin/python" "$folder/main.py" "$folder"
