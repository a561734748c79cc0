#!/usr/bin/env bash
# psutil 7.2.2 (PyPI) beside subprocess: an agent that was killed, or that failed, has exit code 0.
#
# psutil.Process(pid).wait() and psutil.wait_procs() reap a process that is one's own child, and keep its exit code to
# themselves. subprocess, which started it, is then told that there is no such child, and takes that for exit code 0:
# Popen.wait(), poll() and returncode all say success. psutil's own recipe "Kill process tree" ends with wait_procs(),
# so where a runner ends an agent by it, at a timeout or after too much memory, the run is recorded as done. The agent's
# own code for "stopped", here 3, is lost in the same way. Without such a wait the code is right, as it is with
# psutil.Popen. asyncio's processes race with psutil for the code, and report 255 if they lose.
# Source: https://psutil.readthedocs.io/ ("Kill process tree"), Lib/subprocess.py (Popen._try_wait).
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check psutil==7.2.2 2>/dev/null
env -i PATH="$PATH" timeout 60 "$folder/venv/bin/python" - <<'PYTHON'
import signal, subprocess, sys

import psutil

AGENTS = {
    "fails with 3": "echo ready; read line; exit 3",
    "ends with 3 on SIGTERM": "trap 'kill $!; exit 3' TERM; sleep 60 & echo ready; wait",
    "dies of SIGTERM": "echo ready; read line; exit 0",
}


def kill_tree(pid):
    """End a process and its children as the recipe does."""
    processes = [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]
    for process in processes:
        try:
            process.send_signal(signal.SIGTERM)
        except psutil.NoSuchProcess:
            pass
    return psutil.wait_procs(processes, timeout=20)


def wait(process):
    process.stdin.close()
    return psutil.Process(process.pid).wait(timeout=20)


def run(popen, agent, end):
    with popen(["sh", "-c", AGENTS[agent]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        end(process)
        return process.wait()


ends = {
    "fails with 3": {"subprocess alone": lambda process: process.stdin.close(), "psutil.Process.wait()": wait},
    "ends with 3 on SIGTERM": {"subprocess alone": lambda process: process.terminate(),
                               "psutil's recipe": lambda process: kill_tree(process.pid)},
    "dies of SIGTERM": {"subprocess alone": lambda process: process.terminate(),
                        "psutil's recipe": lambda process: kill_tree(process.pid)},
}
print(f"psutil {psutil.__version__}, Python {sys.version.split()[0]}")
codes = []
for agent, ways in ends.items():
    for way, end in ways.items():
        codes.append(run(subprocess.Popen, agent, end))
        print(f"{agent:23} {way:22} Popen.wait() -> {codes[-1]}")
codes.append(run(psutil.Popen, "fails with 3", lambda process: process.stdin.close() or psutil.wait_procs([process])))
print(f"{'fails with 3':23} {'psutil.wait_procs()':22} psutil.Popen.wait() -> {codes[-1]}")
assert codes == [3, 0, 3, 0, -15, 0, 3], "it has changed"
PYTHON
