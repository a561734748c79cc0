"""Routing's decisions on a task: how much harm it could do, whether it says enough for anybody, who does it, and
what follows for agents and tiers."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Self

from pydantic import BaseModel, model_validator

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import TIERS, Tier
from claudomator_py.domain.task import PermissionMode, Permissions, TaskSpec
from claudomator_py.values import dataclass


class Risk(StrEnum):
    """How much harm a task could do if it went to the wrong specialist."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


HARM: Final = {risk: harm for harm, risk in enumerate(Risk)}
"""Amount of harm by risk; more is worse."""


class Sign(StrEnum):
    """What was seen in a text: an order of a class of the lexicon, or what is described here."""

    IRREVERSIBLE = "irreversible"
    LIVE = "live"
    PUBLISHED = "published"
    MONEY = "money"
    MASS_MAIL = "mass_mail"
    ACCESS = "access"
    COMMAND = "command"
    """It has a command run that acts on others."""
    DOUBTFUL = "doubtful"
    """It may be meant to harm or deceive somebody; a person is to judge."""
    HARMFUL = "harmful"
    """It is meant to harm or deceive somebody."""
    UNREAD = "unread"
    """Hardly a word of it is known."""
    VAGUE = "vague"
    """It does not say what is wanted of what."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a text says of the harm that it could do, and whether it says enough for anybody to do it."""

    risk: Risk
    signs: tuple[tuple[Sign, str], ...] = ()
    """What was seen, with the words in which it was."""

    @property
    def harmful(self) -> bool:
        """Whether it asks for harm."""
        return self.seen(Sign.HARMFUL) is not None

    @property
    def unread(self) -> bool:
        """Whether hardly a word of it is known."""
        return self.seen(Sign.UNREAD) is not None

    @property
    def vague(self) -> bool:
        """Whether it says too little for anybody."""
        return self.seen(Sign.VAGUE) is not None

    @property
    def words(self) -> str:
        """What was seen of harm, in the words of the text; empty: nothing."""
        parts = dict.fromkeys(words.rstrip(" .;") for sign, words in self.signs if sign is not Sign.VAGUE)
        # A sentence may contain the order that was seen in it.
        return "; ".join(part for part in parts if not any(part != other and part in other for other in parts))

    def seen(self, sign: Sign) -> str | None:
        """Return the words in which that was seen; None: it was not."""
        return next((words for present, words in self.signs if present is sign), None)


_FREEDOM = (PermissionMode.PLAN, PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.BYPASS)


class ToolLimits(BaseModel, frozen=True, extra="forbid"):
    """The most that an agent may do with a task. It grants nothing: requests are cut down to it."""

    mode: PermissionMode | None = None
    """The freest mode allowed; None for any. From the strictest: ``plan``, ``default``, ``acceptEdits``,
    ``bypassPermissions``."""
    allowed_tools: tuple[str, ...] | None = None
    """The only tools that may be allowed without asking; None for any. A bare tool name covers all its uses, so
    ``Bash`` covers ``Bash(npm test)``."""
    disallowed_tools: tuple[str, ...] = ()
    """Tools that the agent may not use."""

    def within(self, other: "ToolLimits") -> "ToolLimits":
        """Return the limits that satisfy both."""
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
        """Return what remains of the permissions that a task asks for."""
        mode = asked.mode if self.mode is None else min(asked.mode, self.mode, key=_FREEDOM.index)
        tools = asked.allowed_tools
        if self.allowed_tools is not None:
            tools = tuple(tool for tool in tools if covers(self.allowed_tools, tool))
        forbidden = tuple(dict.fromkeys((*self.disallowed_tools, *asked.disallowed_tools)))
        return asked.model_copy(update={"mode": mode, "allowed_tools": tools, "disallowed_tools": forbidden})


def tool_name(tool: str) -> str:
    """Return the bare name of the tool, without its permitted use."""
    return tool.partition("(")[0]


def covers(tools: tuple[str, ...], tool: str) -> bool:
    """Return whether the tools include that one, where a bare tool name covers all its uses."""
    return tool in tools or tool_name(tool) in tools


def tools_in_both(first: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools named by both, as ``covers`` compares them."""
    return tuple(
        dict.fromkeys([tool for tool in first if covers(other, tool)] + [tool for tool in other if covers(first, tool)])
    )


def nearest(first: Reach | None, other: Reach | None) -> Reach | None:
    """Return the narrower of the two; None if neither is given."""
    return min((reach for reach in (first, other) if reach is not None), key=lambda reach: reach.rank, default=None)


class ReachSource(StrEnum):
    """Who determines how far a task's runs may act."""

    TASK = "task"
    RULE = "rule"
    CONFIGURATION = "configuration"
    DEFAULT = "default"


class ReachOrigin(BaseModel, frozen=True):
    """How far a task's runs may act, and who determined it."""

    reach: Reach
    source: ReachSource
    rule: str | None = None
    """Name of the rule."""

    @property
    def leaves_unfenced(self) -> bool:
        """True if agents that cannot be confined to it may still take the task, as nobody requested it."""
        return self.source in (ReachSource.CONFIGURATION, ReachSource.DEFAULT)

    @property
    def text(self) -> str:
        """The same for lists: ``tree (rule inside)``."""
        return f"{self.reach} ({self.source}{f' {self.rule}' if self.rule else ''})"

    @property
    def sentence(self) -> str:
        """The same as a sentence."""
        by = {
            ReachSource.TASK: "as the task says",
            ReachSource.RULE: f"by rule {self.rule}" if self.rule else "as a rule says",
            ReachSource.CONFIGURATION: "as the configuration says",
            ReachSource.DEFAULT: "by default",
        }[self.source]
        if self.reach is Reach.ANY:
            return f"It may reach anywhere, {by}."
        return f"It may reach no further than {self.reach}, {by}."


class RuleCap(BaseModel, frozen=True, extra="forbid"):
    """Maximum number of tasks matching a policy rule that may run at once."""

    rule: str
    most: int


class Constraints(BaseModel, frozen=True, extra="forbid"):
    """What routing and policy require of agents and tiers, overriding the task's content and the classifier."""

    tier_floor: Tier | None = None
    """The weakest tier allowed; None for any."""
    tier_ceiling: Tier | None = None
    """The strongest tier allowed; None for any."""
    default_tier: Tier | None = None
    """The tier if neither the task nor the classifier specifies one; None for the agent's default."""
    agents: tuple[str, ...] = ()
    """Agents or kinds that may take the task, per the specialist's card; empty for all."""
    one_of: tuple[tuple[str, ...], ...] = ()
    """For each rule that has such a list: the agent or its kind must be in it."""
    excluded_agents: tuple[str, ...] = ()
    """Agents or kinds that may not take the task."""
    hosts: tuple[tuple[str, ...], ...] = ()
    """For each rule that has such a list: the host must be in it."""
    excluded_hosts: tuple[str, ...] = ()
    """Hosts on which it may not run."""
    tools: ToolLimits | None = None
    """The most that its agent may do; None if only task and specialist determine it."""
    isolated: bool = False
    """True if it must run in a work tree of its own."""
    reach: Reach | None = None
    """The farthest reach that rules allow its runs; None if the task determines it."""
    reach_rule: str | None = None
    """The rule that sets it: of several, the one with the narrowest reach."""
    default_reach: Reach | None = None
    """Reach if neither the task nor a rule sets one and the agent can be confined to it; None for anywhere."""
    is_reach_configured: bool = False
    """True if the configuration sets that default."""
    role_adds: bool = False
    """True if the specialist's card only adds to the task and forbids nothing, as nobody chose that role explicitly."""
    caps: tuple[RuleCap, ...] = ()
    """Limits on how many tasks like it run at once."""

    @model_validator(mode="after")
    def _leave_a_tier(self) -> Self:
        if self.tier_floor and self.tier_ceiling and TIERS.index(self.tier_floor) > TIERS.index(self.tier_ceiling):
            raise ValueError(f"no tier is between the floor {self.tier_floor} and the ceiling {self.tier_ceiling}")
        return self

    @classmethod
    def parse(cls, text: str | None) -> "Constraints":
        """Return the constraints that ``text`` serialised; None means that everything is open. Raises ValueError."""
        return OPEN if text is None else cls.model_validate_json(text)

    @classmethod
    def shown(cls, text: str | None) -> "Constraints":
        """Return the constraints that ``text`` serialised, for display and statistics: empty if they cannot be read."""
        try:
            return cls.parse(text)
        except ValueError:
            return OPEN

    @property
    def text(self) -> str:
        """Canonical JSON: equal constraints give equal text, which identifies the tasks of a lane."""
        return self.model_dump_json(exclude_defaults=True)

    @property
    def bounds_tiers(self) -> bool:
        """True if any tier is ruled out."""
        return self.tier_floor is not None or self.tier_ceiling is not None

    def admits(self, agent: str, kind: str) -> bool:
        """Return whether that agent may take the task."""
        if agent in self.excluded_agents or kind in self.excluded_agents:
            return False
        lists = (self.agents, *self.one_of) if self.agents else self.one_of
        return all(agent in names or kind in names for names in lists)

    def open_hosts(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Return the hosts on which the task may run."""
        open_ = (host for host in hosts if host not in self.excluded_hosts)
        return tuple(host for host in open_ if all(host in names for names in self.hosts))

    def names(self, agent: str) -> bool:
        """Return whether a list names the agent itself, which allows it to be chosen although it is closed to
        balancing."""
        return agent in self.agents or any(agent in names for names in self.one_of)

    def limited(self, spec: TaskSpec) -> TaskSpec:
        """Return the task restricted to what it may do."""
        changes: dict[str, object] = {}
        if self.tools is not None:
            changes["permissions"] = self.tools.limited(spec.permissions)
        if self.reach is not None:
            changes["reach"] = nearest(spec.reach, self.reach)
        return spec.model_copy(update=changes) if changes else spec

    def reach_of(self, asked: Reach | None) -> "ReachOrigin | None":
        """Return how far the runs of a task with this requested reach may act if their agent can be confined to it;
        None if nothing determines it."""
        if self.reach is not None and nearest(asked, self.reach) is not asked:
            return ReachOrigin(reach=self.reach, source=ReachSource.RULE, rule=self.reach_rule)
        if asked is not None:
            return ReachOrigin(reach=asked, source=ReachSource.TASK)
        if self.default_reach is None:
            return None
        source = ReachSource.CONFIGURATION if self.is_reach_configured else ReachSource.DEFAULT
        return ReachOrigin(reach=self.default_reach, source=source)

    def and_those(self, other: "Constraints") -> "Constraints":
        """Return what both constraints allow: for instance those of a specialist's card and those that rules require.
        If no tier satisfies both, the ceiling of ``other`` wins."""
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
        """The only tier left, if there is just one."""
        return self.tier_floor if self.tier_floor == self.tier_ceiling else None

    def clamp(self, tier: Tier) -> Tier:
        """Return the tier, or the nearest allowed one."""
        if self.tier_floor is not None:
            tier = max(tier, self.tier_floor, key=TIERS.index)
        if self.tier_ceiling is not None:
            tier = min(tier, self.tier_ceiling, key=TIERS.index)
        return tier

    def allows(self, tier: Tier) -> bool:
        """Return whether the tier is between floor and ceiling."""
        return self.clamp(tier) is tier


OPEN = Constraints()


class TaskRoute(BaseModel, frozen=True):
    """Where a task was routed. specialist, skill: ids of a card and of one of its skills; None if no specialist does
    it. risk: None if it was not assessed."""

    specialist: str | None = None
    skill: str | None = None
    risk: Risk | None = None
    constraints: Constraints = Constraints()
