"""The configured agents, and the latest check of their programs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.budget import Budget
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.report import unmeasured
from claudomator_py.domain.routing import OPEN, Constraints
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.ports import AgentKind


@cache
def _asks_for_all() -> TaskSpec:
    """A task with everything that an agent may be unable to enforce."""
    return TaskSpec(
        name="all",
        instructions="all",
        max_turns=1,
        permissions=Permissions(tools=("read",), allowed_tools=("read",), disallowed_tools=("bash",)),
        add_dirs=("/",),
        reach=Reach.NETWORK,
        budget=Budget(usd=1.0, tokens=1),
    )


_UNCHECKED = AgentHealth(installed=True)


class AgentRegistry:
    """Agents by name, in the order of the configuration. Thread-safe."""

    def __init__(
        self,
        agents: Sequence[AgentSpec],
        kinds: Mapping[str, AgentKind],
        path: str,
        clean: Callable[[AgentHealth], AgentHealth] = lambda health: health,
    ) -> None:
        """clean: removes secrets from what programs print when they are checked."""
        self._clean = clean
        self._agents = {agent.name: agent for agent in agents}
        self._remote: dict[str, AgentSpec] = {}
        self._kinds = kinds
        self._path = path
        self._health: dict[str, AgentHealth] = {}
        self._lock = threading.Lock()
        self.is_present: Callable[[str], bool] = lambda _: True
        """Returns whether the agent with that id is connected to the hub, or may reconnect in a moment. Set by the
        hub's owner."""
        self.closed_hosts: Mapping[str, str] = {}
        """Hosts that take no new runs, and why, as clauses that follow the name. Set by the planning code."""

    def refresh(self, also: Sequence[AgentSpec] = ()) -> None:
        """Check the programs of all agents again, in parallel. also: agents to add, unless their names are taken."""
        agents = self._agents
        grown = {**agents, **{agent.name: agent for agent in also if agent.name not in agents}}
        healths = self.look(tuple(grown.values()))
        with self._lock:
            if self._agents is agents:
                self._agents, self._health = grown, healths

    def begin(self, known: Mapping[str, AgentHealth]) -> None:
        """Check the programs of all agents except those with a known result."""
        healths = self.look([agent for agent in self.agents if agent.name not in known])
        with self._lock:
            self._health = {**known, **healths}

    @property
    def found(self) -> dict[str, AgentHealth]:
        """Latest results by agent name."""
        with self._lock:
            return dict(self._health)

    def look(self, agents: Sequence[AgentSpec]) -> dict[str, AgentHealth]:
        """Return the results of checking these agents' programs now, by name. Blocks for as long as the slowest
        takes."""
        with ThreadPoolExecutor(max_workers=max(1, min(8, len(agents)))) as pool:
            return dict(zip((agent.name for agent in agents), pool.map(self._look, agents), strict=True))

    def replace(self, agents: Sequence[AgentSpec], healths: dict[str, AgentHealth]) -> None:
        """Replace the configured agents with these, and with the results of ``look`` for them. Runs of other agents
        continue."""
        with self._lock:
            self._agents = {agent.name: agent for agent in agents}
            self._health = healths

    def reach(self, remote: Sequence[AgentSpec]) -> None:
        """Replace the agents for remote specialists with these. If a name is also configured, the configured agent
        wins. Runs of other agents continue."""
        healths = self.look(remote)
        with self._lock:
            self._remote = {agent.name: agent for agent in remote}
            self._health = {**healths, **self._health}

    def _look(self, agent: AgentSpec) -> AgentHealth:
        return self._clean(self._kinds[agent.kind].health(agent, self._path))

    @property
    def configured(self) -> tuple[AgentSpec, ...]:
        """The agents that a task can name: those in the configuration."""
        return tuple(self._agents.values())

    @property
    def agents(self) -> tuple[AgentSpec, ...]:
        """All agents: those in the configuration, and those for remote specialists."""
        return tuple(self._all().values())

    @property
    def kinds(self) -> Mapping[str, AgentKind]:
        """All kinds known to this program, configured or not."""
        return self._kinds

    def find(self, name: str) -> AgentSpec | None:
        """Return the agent with that name, or None."""
        return self._agents.get(name) or self._remote.get(name)

    def _all(self) -> dict[str, AgentSpec]:
        return {**self._remote, **self._agents} if self._remote else self._agents

    def of(self, name: str, kind: str) -> AgentSpec:
        """Return the agent of a run; if it is no longer configured, only its kind is known."""
        return self.find(name) or AgentSpec(name=name, kind=kind)

    def kind_of(self, agent: AgentSpec) -> AgentKind:
        """Return how to start the agent and read its output."""
        return self._kinds[agent.kind]

    def lacking(self, spec: TaskSpec, rules: Constraints = OPEN) -> dict[str, str]:
        """Return, by agent, what the task asks for that the agent cannot enforce, or that rules leave it no host;
        agents that can do everything are absent."""
        reasons = {agent.name: self.unsupported(spec, agent) for agent in self._all().values()}
        for agent in self._all().values() if rules.hosts or rules.excluded_hosts else ():
            places = self._places(spec, agent)
            if not reasons[agent.name] and not rules.open_hosts(places):
                reasons[agent.name] = [f"rules allow the task on none of its hosts ({', '.join(places)})"]
        return {name: "; ".join(sentences) for name, sentences in reasons.items() if sentences}

    def unable(self, spec: TaskSpec, rules: Constraints) -> dict[str, str]:
        """Return the same as ``lacking``, plus agents whose hosts take no new runs at present."""
        reason = self.lacking(spec, rules)
        for agent in self._all().values() if self.closed_hosts else ():
            places = rules.open_hosts(self._places(spec, agent))
            if agent.name not in reason and places and self.closed_hosts.keys() >= set(places):
                reason[agent.name] = "; ".join(f"{name} {self.closed_hosts[name]}" for name in places)
        return reason

    def hosts(self, spec: TaskSpec, agent: AgentSpec, rules: Constraints = OPEN) -> tuple[str, ...]:
        """Return the hosts for a run of the task that starts now; includes closed hosts only if there are no others."""
        places = rules.open_hosts(self._places(spec, agent))
        return tuple(host for host in places if host not in self.closed_hosts) or places

    def _places(self, spec: TaskSpec, agent: AgentSpec) -> tuple[str, ...]:
        """The task's candidate hosts. This machine cannot guarantee a task's ``needs``."""
        places = agent.hosts if spec.host is None else (spec.host,)
        return tuple(name for name in places if spec.needs is None or name != LOCAL)

    def unsupported(self, spec: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the task asks for that the agent cannot enforce, as sentences."""
        elsewhere = _is_elsewhere(spec, agent)
        fence = []
        if spec.reach not in (None, Reach.ANY) and (why := self.unfenced(agent)) is not None:
            fence.append(f"{agent.name} cannot be kept within reach {spec.reach}: {why}")
        return [*self._kinds[agent.kind].unsupported(spec, agent), *fence, *unmeasured(spec, agent), *elsewhere]

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be confined to a reach, as a clause; None if they can."""
        return self._kinds[agent.kind].unfenced(agent)

    def cannot_enforce(self, agent: AgentSpec) -> list[str]:
        """Return what this agent cannot enforce for any task, as sentences."""
        return self.unsupported(_asks_for_all(), agent)

    def health(self, name: str) -> AgentHealth:
        """Return the latest result. Before the first check, nothing is held against an agent."""
        with self._lock:
            return self._health.get(name, _UNCHECKED)


def _is_elsewhere(spec: TaskSpec, agent: AgentSpec) -> list[str]:
    if spec.needs is not None and agent.hosts == (LOCAL,):
        return [f"{agent.name} runs on this machine alone, which keeps no `needs`; add a cluster to its `hosts`"]
    if spec.host is None or spec.host in agent.hosts:
        return []
    return [f"{agent.name} does not run on {spec.host}; add that to agents.{agent.name}.hosts"]
