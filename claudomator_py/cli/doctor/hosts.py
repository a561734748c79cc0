"""Hosts: whether the cluster answers, whether the folder for runs supports locks, and by short jobs whether its nodes
and this machine share what runs need."""

import fcntl
import os
import re
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from claudomator_py.cli.doctor import Finding, Severity, ok, problem, warn
from claudomator_py.cli.doctor.agents import login_files
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.fields import is_wildcard
from claudomator_py.domain.host import SLURM_COMMANDS, HostSpec
from claudomator_py.domain.remote import is_loopback
from claudomator_py.hosts.slurm import EngineSilent, ask
from claudomator_py.hosts.slurm.nodes import list_nodes
from claudomator_py.hosts.slurm.trial import Tried, Untried, Wanted, tried, tried_between
from claudomator_py.schema.settings import Settings

_PATIENCE_S = 5.0
_SLURM_CONF = "/etc/slurm/slurm.conf"
_MUNGE_SOCKET = "/run/munge/munge.socket.2"
_START_MUNGE = "Start it, for example by `sudo systemctl start munge`."


def host_findings(name: str, host: HostSpec) -> Iterator[Finding]:
    """Yield findings about a host."""
    yield _folder(f"host {name}: folder", Path(host.root))
    missing = [command for command in SLURM_COMMANDS if shutil.which(command) is None]
    if missing:
        detail = f"{', '.join(missing)} is not on PATH" if len(missing) == 1 else f"not on PATH: {', '.join(missing)}"
        yield problem(f"host {name}: commands", detail, "Install Slurm's client (slurm-client), and its slurm.conf.")
        return
    munge = _munge(f"host {name}: munge")
    if munge is not None:
        yield munge
    if munge is not None and munge.verdict is Severity.PROBLEM:
        return  # Slurm's commands would hang.
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


def _munge(name: str) -> Finding | None:
    """Return whether munged, which signs what Slurm's commands say, is there; None if Slurm does not use it."""
    try:
        text = Path(os.environ.get("SLURM_CONF", _SLURM_CONF)).read_text(errors="replace")
    except OSError:
        text = ""
    kind = re.search(r"^\s*AuthType\s*=\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    if not text or (kind is not None and kind[1] != "auth/munge"):
        return None
    named = re.search(r"^\s*AuthInfo\s*=.*\bsocket=([^\s,]+)", text, re.MULTILINE | re.IGNORECASE)
    path = _MUNGE_SOCKET if named is None else named[1]
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(path)
    except FileNotFoundError:
        return problem(name, f"munged does not run: there is no {path}", _START_MUNGE)
    except ConnectionRefusedError:
        return problem(name, f"munged has died: nobody listens on {path}", _START_MUNGE)
    except OSError as fault:
        return problem(name, f"munged cannot be reached on {path}: {fault.strerror or fault}", _START_MUNGE)
    return ok(name, f"munged listens on {path}")


def _cluster(name: str, host: HostSpec) -> Finding:
    try:
        listed = list_nodes(host)
    except EngineSilent as fault:
        if "authentication" in str(fault).lower():
            remedy = "Give both machines the same /etc/munge/munge.key and time, and restart munged there."
            return problem(name, f"the controller does not accept what munged signs: {fault}", remedy)
        return problem(name, f"the controller does not answer: {fault}", "See `sinfo`, and the log of slurmctld.")
    if not listed.nodes:
        place = "the cluster" if host.partition is None else f"partition {host.partition}"
        without = "" if host.constraint is None else f" with `{host.constraint}`, which `constraint` demands"
        return problem(name, f"{place} has no nodes{without}", "Name a partition and features that `sinfo` shows.")
    counts = Counter(node.state for node in listed.nodes)
    states = ", ".join(f"{number} {state}" for state, number in counts.items())
    if len(listed.unusable) == len(listed.nodes):
        return warn(name, f"no node takes runs: {states}", "See `sinfo -R` for the reasons.")
    return ok(name, f"nodes: {states}")


def _tracking(name: str) -> Iterator[Finding]:
    try:
        kind = re.search(r"ProctrackType\s*=\s*(\S+)", ask("scontrol", "show", "config"))
    except EngineSilent:
        return
    if kind is None:
        return
    if kind[1] == "proctrack/cgroup":
        yield ok(name, kind[1])
    else:
        detail = f"with {kind[1]}, processes in sessions of their own survive their job"
        yield warn(name, detail, "Set ProctrackType=proctrack/cgroup in slurm.conf.")


def tools_findings(name: str, settings: Settings) -> Iterator[Finding]:
    """Yield a finding if nodes cannot reach the daemon where it listens, and agents that work there have tools."""
    there = [
        key for key, agent in settings.agents.items() if name in agent.hosts and agent.mcp.enabled and agent.info.mcp
    ]
    listen, host = settings.http.listen, settings.http.host
    if there and (is_loopback(host) or is_wildcard(host)):
        becomes = "" if is_loopback(host) else ", which nodes find as the loopback address"
        detail = f"http.listen is {listen}{becomes}: on other machines, tools of {', '.join(there)} do not reach it"
        remedy = "Set http.listen to an address of this machine that nodes reach, or `mcp: {enabled: false}` there."
        yield warn(f"host {name}: tools", detail, remedy)


_MAX_SHOWN = 5


def probe_findings(
    name: str, host: HostSpec, agents: Sequence[AgentSpec], environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield findings on what a node and this machine see of each other, and two nodes. agents: those of the
    configuration, of which the ones that run there must have their programs and logins on the nodes."""
    there = [agent for agent in agents if name in agent.hosts]
    files = [os.fspath(path) for agent in there for path in login_files(agent, environ)]
    programs = [agent.command[0] for agent in there if agent.command]
    wanted = Wanted(files, programs, environ.get("PATH", os.defpath))
    title = f"host {name}: a node"
    try:
        first = tried(host, wanted)
    except Untried as untried:
        yield problem(title, *untried.args)
        return
    yield from _about(title, first)
    results = [first]
    title = f"host {name}: two nodes"
    try:
        second = tried_between(host, wanted, first.node)
    except Untried as untried:
        yield warn(title, *untried.args)
    else:
        if second is not None:
            results.append(second)
            yield from _about(title, second)
    if there:
        yield from _agents(f"host {name}: agents", results)


def _about(title: str, result: Tried) -> Iterator[Finding]:
    for fault in result.faults:
        yield problem(title, fault.words, fault.remedy)
    if not result.faults:
        machines = " and ".join(result.machines)
        yield ok(title, f"{machines}: locks, exclusive creation, renaming and flushing work")
    if result.skew is not None:
        yield warn(title, result.skew.words, result.skew.remedy)


def _agents(title: str, results: Sequence[Tried]) -> Iterator[Finding]:
    for result in results:
        absent = [*dict.fromkeys(result.absent)]
        if absent:
            more = f" and {len(absent) - _MAX_SHOWN} more" if absent[_MAX_SHOWN:] else ""
            words = f"{result.machines[0]} lacks {', '.join(absent[:_MAX_SHOWN])}{more}"
            remedy = (
                "Install the programs on all nodes, and share the home directory with them or log the agents in there."
            )
            yield warn(title, words, remedy)
        else:
            yield ok(title, f"{result.machines[0]} has the programs and logins of its agents")
