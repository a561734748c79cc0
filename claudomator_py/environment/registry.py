"""The configured agents and what was last found of their programs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from claudomator_py.acts.reach import Reach
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.budget import Budget
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.pricing import unmeasured
from claudomator_py.domain.routing import OPEN, Constraints
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.ports import AgentKind


@cache
def _asks_for_all() -> TaskSpec:
    """A task with all that an agent may be unable to enforce."""
    return TaskSpec(
        name="all",
        instructions="all",
        max_turns=1,
        permissions=Permissions(tools=("read",), allowed_tools=("read",), disallowed_tools=("bash",)),
        add_dirs=("/",),
        reach=Reach.NETWORK,
        budget=Budget(usd=1.0, tokens=1),
    )


def _lacks_fence(agent: AgentSpec, reach: Reach | None, why: str | None) -> list[str]:
    return [] if why is None else [f"{agent.name} cannot be kept within reach {reach}: {why}"]


class AgentRegistry:
    """Agents by name, in the order of the configuration. Safe to use from any thread."""

    def __init__(
        self,
        agents: Sequence[AgentSpec],
        kinds: Mapping[str, AgentKind],
        path: str,
        clean: Callable[[AgentHealth], AgentHealth] = lambda found: found,
    ) -> None:
        """clean: takes secrets out of what programs say when they are looked at."""
        self._clean = clean
        self._agents = {agent.name: agent for agent in agents}
        self._remote: dict[str, AgentSpec] = {}
        self._kinds = kinds
        self._path = path
        self._health: dict[str, AgentHealth] = {}
        self._lock = threading.Lock()
        self.is_present: Callable[[str], bool] = lambda _: True
        """Whether the agent of that id is connected to the hub, or may be again in a moment. Set by the hub's owner."""
        self.drained_hosts: frozenset[str] = frozenset()
        """Hosts that take no new runs. Set by whoever plans."""

    def refresh(self, also: Sequence[AgentSpec] = ()) -> None:
        """Look at every agent's program again, at the same time. also: agents to add, unless there is one so named."""
        agents = self._agents
        grown = {**agents, **{agent.name: agent for agent in also if agent.name not in agents}}
        found = self.look(tuple(grown.values()))
        with self._lock:
            if self._agents is agents:
                self._agents, self._health = grown, found

    def begin(self, known: Mapping[str, AgentHealth]) -> None:
        """Look at the programs of all but those of which something is known from before."""
        found = self.look([agent for agent in self.agents if agent.name not in known])
        with self._lock:
            self._health = {**known, **found}

    @property
    def found(self) -> dict[str, AgentHealth]:
        """What was last found, by name."""
        with self._lock:
            return dict(self._health)

    def look(self, agents: Sequence[AgentSpec]) -> dict[str, AgentHealth]:
        """Return what is found of these agents' programs now, by name. Blocks for as long as the slowest takes."""
        with ThreadPoolExecutor(max_workers=max(1, min(8, len(agents)))) as pool:
            return dict(zip((agent.name for agent in agents), pool.map(self._look, agents), strict=True))

    def replace(self, agents: Sequence[AgentSpec], found: dict[str, AgentHealth]) -> None:
        """Put these agents in place of the others from now on, with what ``look`` has found of them. Runs of others go
        on."""
        with self._lock:
            self._agents = {agent.name: agent for agent in agents}
            self._health = found

    def reach(self, remote: Sequence[AgentSpec]) -> None:
        """Put these agents in place of those that remote specialists were so far, beside the configured ones. Of the
        same name, the configured one counts. Runs of others go on."""
        found = self.look(remote)
        with self._lock:
            self._remote = {agent.name: agent for agent in remote}
            self._health = {**found, **self._health}

    def _look(self, agent: AgentSpec) -> AgentHealth:
        return self._clean(self._kinds[agent.kind].health(agent, self._path))

    @property
    def configured(self) -> tuple[AgentSpec, ...]:
        """The agents that a task can name: those of the configuration."""
        return tuple(self._agents.values())

    @property
    def agents(self) -> tuple[AgentSpec, ...]:
        """All agents: those of the configuration, and those that remote specialists are."""
        return tuple(self._all().values())

    @property
    def kinds(self) -> Mapping[str, AgentKind]:
        """All kinds that this program knows, configured or not."""
        return self._kinds

    def find(self, name: str) -> AgentSpec | None:
        """Return the agent of that name, or None."""
        return self._agents.get(name) or self._remote.get(name)

    def _all(self) -> dict[str, AgentSpec]:
        return {**self._remote, **self._agents} if self._remote else self._agents

    def of(self, name: str, kind: str) -> AgentSpec:
        """Return the agent of a run; one that is no longer configured is known by its kind only."""
        return self.find(name) or AgentSpec(name=name, kind=kind)

    def kind_of(self, agent: AgentSpec) -> AgentKind:
        """Return how to start and read it."""
        return self._kinds[agent.kind]

    def lacking(self, spec: TaskSpec, rules: Constraints = OPEN) -> dict[str, str]:
        """Return, by agent, what the task asks for and the agent cannot enforce, or that rules leave it no host;
        without those that can do it all."""
        found = {agent.name: self.unsupported(spec, agent) for agent in self._all().values()}
        for agent in self._all().values() if rules.hosts or rules.excluded_hosts else ():
            places = self._places(spec, agent)
            if not found[agent.name] and not rules.open_hosts(places):
                found[agent.name] = [f"rules allow the task on none of its hosts ({', '.join(places)})"]
        return {name: "; ".join(sentences) for name, sentences in found.items() if sentences}

    def unable(self, spec: TaskSpec, rules: Constraints = OPEN) -> dict[str, str]:
        """Return the same as ``lacking``, with those whose hosts take no new runs at present."""
        found = self.lacking(spec, rules)
        for agent in self._all().values() if self.drained_hosts else ():
            places = rules.open_hosts(self._places(spec, agent))
            if agent.name not in found and places and self.drained_hosts.issuperset(places):
                undrained = " or ".join(f"`claudomator undrain --host {name}`" for name in places)
                take = "takes" if len(places) == 1 else "take"
                found[agent.name] = f"{' and '.join(places)} {take} no new runs until {undrained}"
        return found

    def hosts(self, spec: TaskSpec, agent: AgentSpec, rules: Constraints = OPEN) -> tuple[str, ...]:
        """Return where a run of the task may go that starts now; to what was drained a moment ago, if nowhere else."""
        places = rules.open_hosts(self._places(spec, agent))
        return tuple(host for host in places if host not in self.drained_hosts) or places

    def _places(self, spec: TaskSpec, agent: AgentSpec) -> tuple[str, ...]:
        """What is asked of a node this machine keeps not."""
        places = agent.hosts if spec.host is None else (spec.host,)
        return tuple(name for name in places if spec.needs is None or name != LOCAL)

    def unsupported(self, spec: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the task asks for and that agent cannot enforce, in sentences."""
        elsewhere = _is_elsewhere(spec, agent)
        fence = [] if spec.reach in (None, Reach.ANY) else _lacks_fence(agent, spec.reach, self.unfenced(agent))
        return [*self._kinds[agent.kind].unsupported(spec, agent), *fence, *unmeasured(spec, agent), *elsewhere]

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why its runs cannot be kept within a reach, in a clause; None: they can."""
        return self._kinds[agent.kind].unfenced(agent)

    def cannot_enforce(self, agent: AgentSpec) -> list[str]:
        """Return what no task can have enforced by this agent, in sentences."""
        return self.unsupported(_asks_for_all(), agent)

    def health(self, name: str) -> AgentHealth:
        """Return what was last found. Before the first look nothing is held against an agent."""
        with self._lock:
            return self._health.get(name, AgentHealth(installed=True))


def _is_elsewhere(spec: TaskSpec, agent: AgentSpec) -> list[str]:
    if spec.needs is not None and agent.hosts == (LOCAL,):
        return [f"{agent.name} runs on this machine alone, which keeps no `needs`; add a cluster to its `hosts`"]
    if spec.host is None or spec.host in agent.hosts:
        return []
    return [f"{agent.name} does not run on {spec.host}; add that to agents.{agent.name}.hosts"]
