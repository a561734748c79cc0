"""Hosts: whether the cluster answers, and whether the folder for runs supports locks."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from claudomator_py.cli.doctor import Finding, ok, problem, warn
from claudomator_py.domain.host import SLURM_COMMANDS, HostSpec

_PATIENCE_S = 15.0


def host_findings(name: str, host: HostSpec) -> Iterator[Finding]:
    """Yield findings about a host."""
    yield _folder(f"host {name}: folder", Path(host.root))
    missing = [command for command in SLURM_COMMANDS if shutil.which(command) is None]
    if missing:
        detail = f"{', '.join(missing)} is not on PATH" if len(missing) == 1 else f"not on PATH: {', '.join(missing)}"
        yield problem(f"host {name}: commands", detail, "Install Slurm's client (slurm-client), and its slurm.conf.")
        return
    yield _cluster(f"host {name}: cluster", host)
    yield from _tracking(f"host {name}: ends of jobs")


def _folder(name: str, root: Path) -> Finding:
    if not root.is_dir():
        remedy = "Mount it, or create it below its mount point; the daemon never creates it."
        return problem(name, f"{root} does not exist", remedy)
    if not os.access(root, os.W_OK | os.X_OK):
        return problem(name, f"{root} is not writable", "Give this user the folder.")
    if (fault := _lock_fault(root)) is not None:
        return problem(name, f"{root}: {fault}", "Use a file system with locks; they keep a run from beginning twice.")
    return ok(name, f"locks work in {root}, as far as one machine can tell")


def _lock_fault(root: Path) -> str | None:
    """Return what is wrong with locks there, as seen from this machine; None: nothing."""
    try:
        with tempfile.NamedTemporaryFile(dir=root, prefix=".probe-") as first, Path(first.name).open("rb") as second:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
    except OSError as fault:
        return f"no file there can be locked: {fault.strerror}"
    return "a lock can be held twice at once"


def _cluster(name: str, host: HostSpec) -> Finding:
    chosen = [] if host.partition is None else [f"--partition={host.partition}"]
    nodes = _ask("sinfo", "--noheader", "--format=%D %T", *chosen)
    if nodes is None:
        return problem(name, "the controller does not answer", "See `sinfo`, and the log of slurmctld.")
    if not nodes.strip():
        place = "the cluster" if host.partition is None else f"partition {host.partition}"
        return problem(name, f"{place} has no nodes", "Name one of the partitions that `sinfo` shows.")
    states = ", ".join(line.strip() for line in nodes.splitlines())
    if not re.search(r"\b(idle|mixed|allocated|completing|planned)\b", nodes):
        return warn(name, f"no node takes runs: {states}", "See `sinfo -R` for the reasons.")
    return ok(name, f"nodes: {states}")


def _tracking(name: str) -> Iterator[Finding]:
    config = _ask("scontrol", "show", "config")
    kind = None if config is None else re.search(r"ProctrackType\s*=\s*(\S+)", config)
    if kind is None:
        return
    if kind[1] == "proctrack/cgroup":
        yield ok(name, kind[1])
    else:
        detail = f"with {kind[1]}, processes in sessions of their own survive their job"
        yield warn(name, detail, "Set ProctrackType=proctrack/cgroup in slurm.conf.")


def _ask(*command: str) -> str | None:
    """Return the command's output; None: it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
