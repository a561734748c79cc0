"""Short jobs on a host: whether its nodes and this machine share what runs need."""

import os
from collections.abc import Iterator, Mapping, Sequence

from claudomator_py.cli.doctor import Finding, ok, problem, warn
from claudomator_py.cli.doctor.agents import login_files
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.host import HostSpec
from claudomator_py.hosts.slurm.trial import Tried, Untried, Wanted, tried, tried_between

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
