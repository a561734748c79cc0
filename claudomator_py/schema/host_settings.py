"""What is wrong with hosts taken together, and with where agents may run."""

from collections.abc import Mapping, Sequence

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Lines, Problem, shown, suggestion
from claudomator_py.domain.host import LOCAL, HostSpec
from claudomator_py.policy.rule import Rule
from claudomator_py.schema.validation import problem_at


def odd_hosts(
    hosts: Mapping[str, HostSpec], agents: Mapping[str, AgentSpec], rules: Sequence[Rule], lines: Lines
) -> list[Problem]:
    """Return a problem for each name or folder that means two hosts, and each host of an agent or of a rule that there
    is not."""
    problems = []
    roots: dict[str, str] = {}
    for name, host in hosts.items():
        if name == LOCAL:
            message = f"`{LOCAL}` is this machine, which needs no entry"
            problems.append(problem_at(lines, ("hosts", name), message, "choose another name"))
        other = roots.setdefault(host.root.rstrip("/"), name)
        if other != name:
            message = f"is the folder of `{shown(other)}` as well"
            problems.append(problem_at(lines, ("hosts", name, "root"), message, "give each host a folder of its own"))
        problems += [
            problem_at(lines, ("hosts", name, "licenses", agent), "is not an agent", suggestion(agent, agents))
            for agent in host.licenses
            if agent not in agents
        ]
    known = {LOCAL, *hosts}
    named: list[tuple[tuple[str | int, ...], Sequence[str]]] = [
        *((("agents", name, "hosts"), agent.hosts) for name, agent in agents.items()),
        *((("policy", place, "hosts"), rule.hosts) for place, rule in enumerate(rules)),
        *((("policy", place, "exclude_hosts"), rule.exclude_hosts) for place, rule in enumerate(rules)),
    ]
    problems += [
        problem_at(lines, path, f"there is no host `{shown(host)}`", suggestion(host, known))
        for path, listed in named
        for host in listed
        if host not in known
    ]
    return problems
