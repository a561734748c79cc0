"""A short job on a host: whether locks, exclusive creation and renaming work between this machine and a node. They
ensure that a run begins at most once."""

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from claudomator_py.cli.doctor import Finding, node_probe, ok, problem, warn
from claudomator_py.domain.host import HostSpec

_START_S = 120.0
_ANSWER_S = 30.0
_ASK_EVERY_S = 2.0
_GONE_S = 4.0
"""How long after the end of the job its files may take to appear here."""
_MAX_SKEW_S = 5.0
_LOCKS = "Use a file system whose locks hold across machines, such as NFS of version 4."


class _Fault(Exception):
    """The node cannot be checked. args: the reason and the remedy."""


def probe_findings(name: str, host: HostSpec) -> Iterator[Finding]:
    """Yield findings on what a node does and this machine sees, and the other way round."""
    title = f"host {name}: a node"
    try:
        folder = Path(tempfile.mkdtemp(prefix=".probe-", dir=host.root))
    except OSError as fault:
        yield problem(title, f"no folder can be created in {host.root}: {fault.strerror}", "Give this user the folder.")
        return
    # By name: Slurm gives the id of a job that it has forgotten to another one. The folder's name is unique.
    job = f"claudomator-{folder.name.removeprefix('.')}"
    try:
        try:
            _submit(host, folder, job)
            yield from _compared(title, folder, job)
        finally:
            subprocess.run(["scancel", "--me", f"--name={job}"], capture_output=True, timeout=_ANSWER_S, check=False)
    except _Fault as fault:
        yield problem(title, *fault.args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _submit(host: HostSpec, folder: Path, job: str) -> None:
    """Submit the job under that name."""
    for made in ("lock", "mine", "before"):
        (folder / made).touch()
    # Nodes need no Claudomator.
    program = shutil.copy(node_probe.__file__, folder / "probe.py")
    command = shlex.join([host.python or sys.executable, "-I", "-S", str(program), str(folder)])
    chosen = {name: getattr(host, name) for name in ("partition", "constraint", "account", "qos")}
    options = [f"--{name}={value}" for name, value in chosen.items() if value is not None]
    fixed = ["--parsable", "--no-requeue", f"--job-name={job}", "--time=2", "--chdir=/", f"--output={folder}/log"]
    try:
        done = subprocess.run(
            ["sbatch", *fixed, *options],
            input=f"#!/bin/sh\nexec {command}\n",
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise _Fault(f"sbatch: {fault}", "See `sinfo`, and the log of slurmctld.") from fault
    if done.returncode != 0:
        raise _Fault(" ".join(done.stderr.split()), "Correct the host's entry, or ask the cluster's administrators.")


def _compared(title: str, folder: Path, job: str) -> Iterator[Finding]:
    held = _said(folder / "held", _START_S, job)
    skew_s = time.time() - held["time"]
    with (folder / "lock").open("r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = False
        except BlockingIOError:
            is_locked = True
    (folder / "before").rename(folder / "after")
    (folder / "go").touch()
    answer = _said(folder / "found", _ANSWER_S, job)
    there = f"{held['node']} (Python {held['python']})"
    if held["uid"] != os.getuid():
        yield problem(
            title, f"{there} runs jobs as user {held['uid']}, not {os.getuid()}", "Use one user id everywhere."
        )
    if not is_locked:
        yield problem(title, f"{there} and this machine can hold the same lock at once", _LOCKS)
    if not (answer["exclusive"] and answer["renamed"]):
        yield problem(title, f"{there} does not see at once what was created or renamed here", _LOCKS)
    if is_locked and answer["exclusive"] and answer["renamed"]:
        yield ok(title, f"{there}: locks, exclusive creation and renaming work")
    if abs(skew_s) > _MAX_SKEW_S:
        yield warn(title, f"the clock of {there} differs by about {skew_s:.0f} s", "Have both follow a time server.")


def _said(file: Path, patience_s: float, job: str) -> dict[str, Any]:
    """Return what the node has written into the file, waiting for it, but not for a job that is gone."""
    began = time.monotonic()
    next_question, last_seen = began, began
    state: str | None = ""
    while (now := time.monotonic()) < began + patience_s and now - last_seen < _GONE_S + _ASK_EVERY_S:
        # Listing the folder makes network file systems refresh it.
        if file in file.parent.iterdir():
            answer: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return answer
        if now >= next_question:
            state = _state_of(job)
            next_question = time.monotonic() + _ASK_EVERY_S
            last_seen = last_seen if state == "" else next_question
        time.sleep(0.1)
    log = file.parent / "log"
    words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] if log.exists() else []
    so_far = "" if state == "" else f" within {patience_s:.0f} s"
    where = "gone" if state == "" else state or "not known to squeue"
    why = "".join(f": {line}" for line in words)
    raise _Fault(f"no node has answered{so_far}, and its job is {where}{why}", "See `squeue` and `sinfo -R`.")


def _state_of(job: str) -> str | None:
    """Return the job's state and reason in Slurm's words, empty if there is no such job; None if squeue fails."""
    command = ["squeue", "--me", "--noheader", f"--name={job}", "--format=%T (%r)"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
