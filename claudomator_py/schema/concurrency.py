"""Maximum numbers of concurrent runs: in total, per organisation, on remote agents, and per working directory. Also
checks hosts against each other, and the hosts of agents."""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import Field

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Lines, Problem, shown, suggestion
from claudomator_py.domain.fields import Count, Duration, Strict
from claudomator_py.domain.host import LOCAL, HostSpec
from claudomator_py.domain.units import DAY_MS, MINUTE_MS
from claudomator_py.policy.rule import Rule
from claudomator_py.schema.validation import problem_at

_REMOTE: Final = 16
"""Default for runs on remote agents: each consists of two small processes that wait."""


class Concurrency(Strict):
    """The configuration's ``concurrency``."""

    total: Count = Field(
        4, ge=1, le=1_000, description="Maximum number of concurrent runs, without those on remote agents."
    )
    per_organisation: Count | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Maximum number of these for the tasks of one organisation, or of one creator without an "
        "organisation; the operator's own tasks and those of the inbox are not bounded by it. All of them together "
        "leave the operator one slot. Default: half of `total`.",
    )
    remote: Count | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Maximum number of concurrent runs on remote agents, which need no processor here: of kind `a2a`, "
        "and of the hub, also while they wait for their agent. Default: 16, or `total` if that is more.",
    )
    remote_per_organisation: Count | None = Field(
        None, ge=1, le=1_000, description="The same as `per_organisation` for these. Default: half of `remote`."
    )
    per_workdir: Count = Field(
        1,
        ge=1,
        le=1_000,
        description="Maximum number of concurrent runs in one working directory. A git repository counts as one "
        "directory.",
    )
    input_hold: Duration = Field(
        30 * MINUTE_MS,
        le=7 * DAY_MS,
        description="How long a task that waits for a person keeps other tasks out of its working directory; 0s: not "
        "at all.",
    )

    @property
    def share(self) -> int:
        """Maximum number of runs of one organisation, not counting those on remote agents."""
        return self.per_organisation or max(1, self.total // 2)

    @property
    def remote_total(self) -> int:
        """Maximum number of runs on remote agents."""
        return self.remote or max(_REMOTE, self.total)

    @property
    def remote_share(self) -> int:
        """Maximum number of runs on remote agents for one organisation."""
        return self.remote_per_organisation or max(1, self.remote_total // 2)


def share_problems(concurrency: Concurrency, lines: Lines) -> list[Problem]:
    """Return a problem for each share that exceeds the total."""
    shares = (
        ("per_organisation", concurrency.per_organisation, "total", concurrency.total),
        ("remote_per_organisation", concurrency.remote_per_organisation, "remote", concurrency.remote_total),
    )
    return [
        problem_at(
            lines,
            ("concurrency", key),
            f"{share} is more than `concurrency.{of}`, which is {whole}",
            f"write {whole} at most, or raise `concurrency.{of}`",
        )
        for key, share, of, whole in shares
        if share is not None and share > whole
    ]


def host_problems(
    hosts: Mapping[str, HostSpec], agents: Mapping[str, AgentSpec], rules: Sequence[Rule], lines: Lines
) -> list[Problem]:
    """Return a problem for each name or folder shared by two hosts, and for each unknown host of an agent or a rule."""
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
