"""What routing says of a task: who does it, how much harm it could do, and what follows for agents and tiers."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, model_validator

from claudomator_py.acts.reach import Reach
from claudomator_py.domain.agent import TIERS, Tier
from claudomator_py.domain.task import PermissionMode, Permissions, TaskSpec


class Risk(StrEnum):
    """How much harm a task could do if it went to the wrong one."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


HARM: Final = {risk: harm for harm, risk in enumerate(Risk)}
"""By how much harm it is; more is worse."""
_FREEDOM = (PermissionMode.PLAN, PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.BYPASS)


class ToolLimits(BaseModel):
    """The most that an agent may do with a task. It grants nothing: what is asked for is cut down to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: PermissionMode | None = None
    """The freest mode; None: any. From the strictest: ``plan``, ``default``, ``acceptEdits``, ``bypassPermissions``."""
    allowed_tools: tuple[str, ...] | None = None
    """The only tools that may be allowed without asking; None: any. A tool's name stands for all that it may be used
    for, so ``Bash`` for ``Bash(npm test)``."""
    disallowed_tools: tuple[str, ...] = ()
    """Tools that it may not use."""

    def within(self, other: "ToolLimits") -> "ToolLimits":
        """Return what both leave."""
        modes = [mode for mode in (self.mode, other.mode) if mode is not None]
        allowed = self.allowed_tools
        if allowed is None:
            allowed = other.allowed_tools
        elif other.allowed_tools is not None:
            allowed = tools_in_both(allowed, other.allowed_tools)
        return ToolLimits(
            mode=min(modes, key=_FREEDOM.index, default=None),
            allowed_tools=allowed,
            disallowed_tools=tuple(dict.fromkeys((*self.disallowed_tools, *other.disallowed_tools))),
        )

    def limited(self, asked: Permissions) -> Permissions:
        """Return what is left of what a task asks for."""
        mode = asked.mode if self.mode is None else min(asked.mode, self.mode, key=_FREEDOM.index)
        tools = asked.allowed_tools
        if self.allowed_tools is not None:
            tools = tuple(tool for tool in tools if _covers(self.allowed_tools, tool))
        forbidden = tuple(dict.fromkeys((*self.disallowed_tools, *asked.disallowed_tools)))
        return asked.model_copy(update={"mode": mode, "allowed_tools": tools, "disallowed_tools": forbidden})


def _covers(allowed: tuple[str, ...], tool: str) -> bool:
    return tool in allowed or tool.partition("(")[0] in allowed


def tools_in_both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return what both name, where a tool's name stands for all that it may be used for."""
    return tuple(
        dict.fromkeys([tool for tool in one if _covers(other, tool)] + [tool for tool in other if _covers(one, tool)])
    )


def nearest(one: Reach | None, other: Reach | None) -> Reach | None:
    """Return the nearer of both; None where neither is given."""
    return min((reach for reach in (one, other) if reach is not None), key=lambda reach: reach.rank, default=None)


class ReachSource(StrEnum):
    """Who says how far a task's runs may act."""

    TASK = "task"
    RULE = "rule"
    CONFIGURATION = "configuration"
    DEFAULT = "default"


class ReachOrigin(BaseModel):
    """How far a task's runs may act, and who says so."""

    model_config = ConfigDict(frozen=True)

    reach: Reach
    source: ReachSource
    rule: str | None = None
    """The rule's name."""

    @property
    def leaves_unfenced(self) -> bool:
        """Whether an agent that cannot be kept to it takes the task all the same, as nobody asked for it."""
        return self.source in (ReachSource.CONFIGURATION, ReachSource.DEFAULT)

    @property
    def text(self) -> str:
        """The same for lists: ``tree (rule inside)``."""
        return f"{self.reach} ({self.source}{f' {self.rule}' if self.rule else ''})"

    @property
    def sentence(self) -> str:
        """The same in a sentence."""
        by = {
            ReachSource.TASK: "as the task says",
            ReachSource.RULE: f"by rule {self.rule}" if self.rule else "as a rule says",
            ReachSource.CONFIGURATION: "as the configuration says",
            ReachSource.DEFAULT: "by default",
        }[self.source]
        if self.reach is Reach.ANY:
            return f"It may reach anywhere, {by}."
        return f"It may reach no further than {self.reach}, {by}."


class RuleCap(BaseModel):
    """How many tasks to which a rule of the policy applies may run at a time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    most: int


class Constraints(BaseModel):
    """What routing and policy say of agents and tiers, whatever the task's content and the classifier say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tier_floor: Tier | None = None
    """The weakest tier allowed; None: any."""
    tier_ceiling: Tier | None = None
    """The strongest tier allowed; None: any."""
    default_tier: Tier | None = None
    """The tier where neither the task nor the classifier says; None: that of the agent."""
    agents: tuple[str, ...] = ()
    """Agents, or kinds, that may take it, as the specialist's card says; empty: all."""
    one_of: tuple[tuple[str, ...], ...] = ()
    """Of each of these lists, an agent that takes it is one, or of a kind that is; one list for each rule that has
    one."""
    excluded_agents: tuple[str, ...] = ()
    """Agents, or kinds, that may not take it."""
    hosts: tuple[tuple[str, ...], ...] = ()
    """Of each of these lists, the host where it runs is one; one list for each rule that has one."""
    excluded_hosts: tuple[str, ...] = ()
    """Hosts where it may not run."""
    tools: ToolLimits | None = None
    """The most that its agent may do; None: what task and specialist say."""
    isolated: bool = False
    """Whether it has to run in a work tree of its own."""
    reach: Reach | None = None
    """The farthest that its runs may act, as rules say; None: as far as the task says."""
    reach_rule: str | None = None
    """The rule that says so, the nearest of several."""
    default_reach: Reach | None = None
    """How far they may act where neither the task nor a rule says, if the agent can be kept to it; None: anywhere."""
    is_reach_configured: bool = False
    """Whether the configuration names that default."""
    role_adds: bool = False
    """Whether the specialist's card adds to the task and forbids nothing of it, as nobody has chosen that role."""
    caps: tuple[RuleCap, ...] = ()
    """What limits how many like it run at a time."""

    @model_validator(mode="after")
    def _leave_a_tier(self) -> Self:
        if self.tier_floor and self.tier_ceiling and TIERS.index(self.tier_floor) > TIERS.index(self.tier_ceiling):
            raise ValueError(f"no tier is between the floor {self.tier_floor} and the ceiling {self.tier_ceiling}")
        return self

    @classmethod
    def parse(cls, text: str | None) -> "Constraints":
        """Return what ``text`` wrote; None: everything is open. Raises ValueError."""
        return OPEN if text is None else cls.model_validate_json(text)

    @classmethod
    def shown(cls, text: str | None) -> "Constraints":
        """Return what ``text`` wrote, for whoever only shows or counts it: where it cannot be read, none is known."""
        try:
            return cls.parse(text)
        except ValueError:
            return OPEN

    @property
    def text(self) -> str:
        """The same for the same constraints, as the tasks of one lane are told by it."""
        return self.model_dump_json(exclude_defaults=True)

    @property
    def bounds_tiers(self) -> bool:
        """Whether a tier is ruled out."""
        return self.tier_floor is not None or self.tier_ceiling is not None

    def admits(self, agent: str, kind: str) -> bool:
        """Return whether that agent may take the task."""
        if agent in self.excluded_agents or kind in self.excluded_agents:
            return False
        lists = (self.agents, *self.one_of) if self.agents else self.one_of
        return all(agent in one or kind in one for one in lists)

    def open_hosts(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Return those of the hosts where it may run."""
        open_ = (host for host in hosts if host not in self.excluded_hosts)
        return tuple(host for host in open_ if all(host in one for one in self.hosts))

    def names(self, agent: str) -> bool:
        """Return whether some list names that agent itself, which so can be chosen although it is closed to
        balancing."""
        return agent in self.agents or any(agent in one for one in self.one_of)

    def limited(self, spec: TaskSpec) -> TaskSpec:
        """Return the task as it may run."""
        changes: dict[str, object] = {}
        if self.tools is not None:
            changes["permissions"] = self.tools.limited(spec.permissions)
        if self.reach is not None:
            changes["reach"] = nearest(spec.reach, self.reach)
        return spec.model_copy(update=changes) if changes else spec

    def reach_of(self, asked: Reach | None) -> "ReachOrigin | None":
        """Return how far the runs of a task that asks for this may act, if their agent can be kept to it; None: nobody
        says."""
        if self.reach is not None and nearest(asked, self.reach) is not asked:
            return ReachOrigin(reach=self.reach, source=ReachSource.RULE, rule=self.reach_rule)
        if asked is not None:
            return ReachOrigin(reach=asked, source=ReachSource.TASK)
        if self.default_reach is None:
            return None
        source = ReachSource.CONFIGURATION if self.is_reach_configured else ReachSource.DEFAULT
        return ReachOrigin(reach=self.default_reach, source=source)

    def and_those(self, other: "Constraints") -> "Constraints":
        """Return what these and others leave open: those of a specialist's card, and what rules demand of the task.

        Where no tier is left between them, the ceiling of ``other`` counts.
        """
        floor, ceiling = self.tier_floor or other.tier_floor, other.tier_ceiling or self.tier_ceiling
        if self.tier_floor and other.tier_floor:
            floor = max(self.tier_floor, other.tier_floor, key=TIERS.index)
        if self.tier_ceiling and other.tier_ceiling:
            ceiling = min(self.tier_ceiling, other.tier_ceiling, key=TIERS.index)
        if floor and ceiling:
            floor = min(floor, ceiling, key=TIERS.index)
        tools = self.tools or other.tools
        lists = (*self.one_of, *other.one_of)
        if self.agents and other.agents:
            lists = (*lists, other.agents)
        return Constraints(
            tier_floor=floor,
            tier_ceiling=ceiling,
            default_tier=self.default_tier or other.default_tier,
            agents=self.agents or other.agents,
            one_of=lists,
            excluded_agents=tuple(dict.fromkeys((*self.excluded_agents, *other.excluded_agents))),
            hosts=(*self.hosts, *other.hosts),
            excluded_hosts=tuple(dict.fromkeys((*self.excluded_hosts, *other.excluded_hosts))),
            tools=self.tools.within(other.tools) if self.tools and other.tools else tools,
            isolated=self.isolated or other.isolated,
            reach=nearest(self.reach, other.reach),
            reach_rule=self.reach_rule if nearest(self.reach, other.reach) is self.reach else other.reach_rule,
            default_reach=nearest(self.default_reach, other.default_reach),
            is_reach_configured=self.is_reach_configured or other.is_reach_configured,
            caps=(*self.caps, *other.caps),
        )

    @property
    def only_tier(self) -> Tier | None:
        """The one tier that is left, if it is one."""
        return self.tier_floor if self.tier_floor == self.tier_ceiling else None

    def clamp(self, tier: Tier) -> Tier:
        """Return the tier, or the nearest one that is allowed."""
        if self.tier_floor is not None:
            tier = max(tier, self.tier_floor, key=TIERS.index)
        if self.tier_ceiling is not None:
            tier = min(tier, self.tier_ceiling, key=TIERS.index)
        return tier

    def allows(self, tier: Tier) -> bool:
        """Return whether it is between floor and ceiling."""
        return self.clamp(tier) is tier


OPEN = Constraints()


class Routing(BaseModel):
    """Where a task was routed. specialist, skill: ids of a card and of one of its skills; None: no specialist.

    risk: None: nobody has judged it.
    """

    model_config = ConfigDict(frozen=True)

    specialist: str | None = None
    skill: str | None = None
    risk: Risk | None = None
    constraints: Constraints = Constraints()
