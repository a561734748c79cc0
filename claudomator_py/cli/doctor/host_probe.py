"""A short job on a host: whether a node and this machine share what runs need."""

import os
from collections.abc import Iterator, Mapping, Sequence

from claudomator_py.cli.doctor import Finding, ok, problem, warn
from claudomator_py.cli.doctor.agents import login_files
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.host import HostSpec
from claudomator_py.hosts.slurm.trial import Untried, Wanted, tried

_MAX_SHOWN = 5


def probe_findings(
    name: str, host: HostSpec, agents: Sequence[AgentSpec], environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield findings on what a node does and this machine sees, and the other way round. agents: those of the
    configuration, of which the ones that run there must have their programs and logins on the node."""
    title = f"host {name}: a node"
    there = [agent for agent in agents if name in agent.hosts]
    files = [os.fspath(path) for agent in there for path in login_files(agent, environ)]
    programs = [agent.command[0] for agent in there if agent.command]
    try:
        result = tried(host, Wanted(files, programs, environ.get("PATH", os.defpath)))
    except Untried as untried:
        yield problem(title, *untried.args)
        return
    for fault in result.faults:
        yield problem(title, fault.words, fault.remedy)
    if not result.faults:
        yield ok(title, f"{result.node}: locks, exclusive creation and renaming work")
    if result.skew is not None:
        yield warn(title, result.skew.words, result.skew.remedy)
    absent = [*dict.fromkeys(result.absent)]
    if absent:
        shown = ", ".join(absent[:_MAX_SHOWN]) + (
            f" and {len(absent) - _MAX_SHOWN} more" if absent[_MAX_SHOWN:] else ""
        )
        remedy = "Install the programs on all nodes, and share the home directory with them or log the agents in there."
        yield warn(f"host {name}: agents", f"{result.node} lacks {shown}", remedy)
    elif there:
        yield ok(f"host {name}: agents", f"{result.node} has the programs and logins of its agents")
