"""What a tick observed: everything that ``plan`` may look at, so that the same snapshot always gives the same plan."""

from collections.abc import Set
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.budget import Figures
from claudomator_py.domain.decision import StandIn
from claudomator_py.domain.limits import in_family
from claudomator_py.domain.outcome import REASON_POLICIES, Provenance, Reason
from claudomator_py.domain.principal import OWN
from claudomator_py.domain.routing import Constraints

NearLimit = Literal["tie_break", "avoid", "ignore"]
"""What it means that an agent is near a limit: it loses ties, or counts as limited while another is not, or nothing."""
FALLBACK_REASONS = frozenset(reason for reason, policy in REASON_POLICIES.items() if policy.falls_back)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ActiveHold(_Frozen):
    """A hold on a bucket that an agent draws on."""

    bucket: str
    """Its label."""
    reason: Reason | None
    """None for an operator's own."""
    until: int | None
    """Epoch milliseconds; None: until an operator releases it."""
    provenance: Provenance
    source: str
    family: str | None = None
    """Only for models of it; None: for all."""
    window: str | None = None
    room: int | None = None
    """Its time is over, and so many runs may still begin on the bucket, as those before them have to answer first;
    None: it is in force. With reason ``budget`` it is no limit of the account's, but of the configuration: room is
    the number of runs that are left of it."""
    tries: int | None = None
    """It is in force, and so many runs may begin anyway, if limited agents are tried; None: that is not
    counted."""
    figures: Figures | None = None
    """What was spent of the day's budget, with reason ``budget``."""
    used: float | None = None
    """The share of its window that is used up, if only a share of that may be."""
    share: float | None = None
    """The share of its window that may be used; 1 is all of it."""
    reserved: str | None = None
    """The hours for which the rest of its window is reserved, such as ``08:00-20:00``."""

    @property
    def stops(self) -> bool:
        """Whether nothing can begin on the bucket now."""
        return self.room is None or self.room <= 0

    @property
    def tried(self) -> bool:
        """Whether its time is over, and runs find out whether it is gone."""
        return self.room is not None and self.reason is not Reason.BUDGET

    @property
    def counts(self) -> bool:
        """Whether it matters how many runs begin on its bucket."""
        return self.room is not None or self.tries is not None

    def having_begun(self) -> "ActiveHold":
        """Return it with one more run on its bucket."""
        counted = {"room": self.room, "tries": self.tries}
        return self.model_copy(update={name: left - 1 for name, left in counted.items() if left is not None})

    @property
    def end(self) -> float:
        """When it ends, for comparing: one without an end outlasts all."""
        if self.tried:
            return 0.0
        return float("inf") if self.until is None else self.until


class AgentState(_Frozen):
    """A configured agent."""

    name: str
    kind: str
    active: int
    """Its live runs."""
    max_concurrent: int
    auto_select: bool
    problem: str | None = None
    """Why it cannot run at all."""
    unfenced: str | None = None
    """Why its runs cannot be kept within a reach, in a clause; None: they can."""
    unfit: bool = False
    """Its problem is with the task that is looked at, which asks for what it cannot enforce."""
    barred: bool = False
    """Its problem is that the task in question is not for it, whatever it could do."""
    holds: tuple[ActiveHold, ...] = ()
    near_limit: bool = False
    """Its account has warned that a limit is near."""
    default_model: str | None = None
    """What it chose last for a run that asked for no model, while a hold is on some of its models only."""
    models: dict[Tier, ModelChoice] = {}
    default_tier: Tier = Tier.BALANCED
    fallback_model: str | None = None
    """The model to use instead of one that is unavailable."""
    stands_in: StandIn | None = None
    """How it stands in, for the task in question."""
    specialist: str | None = None
    """The remote specialist that it is; None: it is configured."""
    remote: bool = False
    """Its runs need no processor here, and have slots of their own, see ``Rules.remote``."""
    closed: Blocked | None = Field(None, exclude=True)
    """Why the task that is looked at gets no slot for a run on it, though the agent itself had one."""

    @property
    def full(self) -> bool:
        """Whether all of its own slots are in use."""
        return self.active >= self.max_concurrent

    @property
    def free(self) -> bool:
        """Whether there is a free slot for a run on it."""
        return not self.full and self.closed is None

    @property
    def hold(self) -> ActiveHold | None:
        """The longest hold that stops all of its models, if any."""
        stopping = (hold for hold in self.holds if hold.family is None and hold.stops)
        return max(stopping, key=lambda hold: hold.end, default=None)

    @property
    def triable(self) -> bool:
        """Whether it makes sense to try it although it is limited: it is not held until an operator acts, and no run is
        trying it now or has just tried it in vain.
        """
        stopping = [hold for hold in self.holds if hold.family is None and hold.stops]
        own = (None, Reason.BUDGET)
        limits = all(hold.room is None and hold.until is not None and hold.reason not in own for hold in stopping)
        return limits and all(hold.tries is None or hold.tries > 0 for hold in stopping)

    @property
    def limited(self) -> bool:
        """Whether a hold stops all of its models."""
        return self.hold is not None

    def having_begun(self, buckets: Set[str]) -> "AgentState":
        """Return it with one more run on these buckets."""
        if not any(hold.counts and hold.bucket in buckets for hold in self.holds):
            return self
        holds = tuple(hold.having_begun() if hold.bucket in buckets else hold for hold in self.holds)
        return self.model_copy(update={"holds": holds})

    def buckets_of(self, model: str | None) -> frozenset[str]:
        """Return the buckets that a run on that model draws on, as far as there are holds on them. None: the agent
        chooses."""
        chosen = model or self.default_model
        return frozenset(hold.bucket for hold in self.holds if hold.family is None or in_family(chosen, hold.family))

    def falling_back(self, tier: Tier, model: str | None, after: Reason | None) -> "AgentState":
        """Return it as it is for a task of that tier, which would get that model: with the fallback in its place, if
        that model is overloaded, or the last run of the task ended so on this agent."""
        if self.fallback_model is None or model == self.fallback_model:
            return self
        reasons = [
            hold.reason
            for hold in self.holds
            if hold.stops and hold.reason in FALLBACK_REASONS and hold.family and in_family(model, hold.family)
        ]
        reason = after or next(iter(reasons), None)
        if reason is None:
            return self
        stands_in = StandIn(fallback=self.fallback_model, model=model, after=reason)
        models = {**self.models, tier: ModelChoice(model=self.fallback_model)}
        return self.model_copy(update={"models": models, "stands_in": stands_in})

    def with_model(self, model: str | None) -> "AgentState":
        """Return it as it is for a task on that model: holds on its family are on all, those on others are gone. None:
        the model is not decided yet."""
        if all(hold.family is None for hold in self.holds):
            return self
        own = (hold for hold in self.holds if hold.family is None or in_family(model, hold.family))
        return self.model_copy(update={"holds": tuple(hold.model_copy(update={"family": None}) for hold in own)})


class AskedTier(_Frozen):
    """A question for the task's tier."""

    agent: str
    """The pick it was asked for."""
    deadline: int
    """Epoch milliseconds past which it starts without an answer."""
    answered: bool
    source: Literal["classifier", "cache", "default"] | None = None
    """Where the tier comes from, once answered; the next three belong to it."""
    tier: Tier | None = None
    """See ``source``."""
    cause: str | None = None
    """See ``source``."""
    detail: str | None = None
    """See ``source``."""
    said_agent: str | None = None
    """The agent that the answer named, if that was another one."""


class HeldBy(_Frozen):
    """A conversation that a task continues: that of a run, and the agent that has it."""

    run: str
    agent: str
    kind: str
    optional: bool = False
    """Another agent that is free may begin afresh instead."""
    yields: Literal["unable", "limited"] | None = None
    """When another one may, although it is not optional: once the holder cannot run at all, or also while it is
    limited."""
    of: str | None = None
    """The task whose conversation it is, if another's."""


class QueueHead(_Frozen):
    """A task at the head of its lane, with what the choice of an agent depends on."""

    task_id: str
    version: int
    name: str
    lane: str
    dir_key: str
    rank: int
    created: int
    agent_type: str | None = None
    tier: Tier | None = None
    kept_tier: Tier | None = None
    asked: AskedTier | None = None
    cannot: dict[str, str] = {}
    """By agent, what the task asks for and that agent cannot enforce."""
    model: str | None = None
    strict: bool = False
    conversation: HeldBy | None = None
    """The one that it continues; None: a fresh one."""
    thread: str | None = None
    """The task that began the thread which it continues; None: its own."""
    failed_on: str | None = None
    """The agent on which its last run did not get its model, and why."""
    failed_for: Reason | None = None
    """See ``failed_on``."""
    queued: int = 0
    """Since when it is queued, in epoch milliseconds."""
    specialist: str | None = None
    """Where it was routed."""
    skill: str | None = None
    """See ``specialist``."""
    constraints: Constraints = Constraints()
    """See ``specialist``."""
    routed: bool = False
    """Whether it is decided who does it, be it nobody in particular."""
    names_specialist: bool = False
    """Whether it says itself who does it, or a person has said so."""
    tenant: str = OWN
    """Whose it is, see ``domain.principal.tenant_of``."""

    @property
    def exclusive(self) -> str:
        """What no other run may use at the same time: its thread, by the task that began it."""
        return self.thread or self.task_id


class Kept(_Frozen):
    """A directory that is kept for a task which waits for a person, or was answered and has not continued yet.

    until: epoch milliseconds.
    """

    dir_key: str
    task_id: str
    name: str
    until: int


class Rules(_Frozen):
    """The configuration that planning depends on, and its hash.

    Snapshots of earlier versions have no bounds for tenants, and know no remote runs: these count in ``total``.
    """

    total: int
    per_organisation: int | None = None
    """How many of these slots the tasks of one tenant may use that is not the operator; None: any number."""
    remote: int | None = None
    """How many runs may be on remote agents; None: they count in ``total``."""
    remote_per_organisation: int | None = None
    """How many of these may be of one such tenant; None: any number."""
    per_workdir: int
    type_hint: Literal["prefer", "ignore"]
    when_all_limited: Literal["wait", "try"]
    near_limit: NearLimit = "tie_break"
    prefer_wait: int = 0
    """For how many milliseconds a task waits for a preferred agent that is full."""
    routing: bool = False
    """Whether it has to be decided first who does a task."""
    policed: bool = False
    """Whether rules of a policy are asked about every task, also about one for an agent that takes no role."""
    classifier: bool = False
    """Whether there is one to ask."""
    settings_hash: str


class DayLeft(_Frozen):
    """What is left of the day's budget for all agents. room: runs that may still begin; None: any number.

    figures: what is used up of it, once nothing may begin; until: epoch milliseconds of its end.
    """

    figures: Figures | None = None
    until: int
    room: int | None = None

    @property
    def spent(self) -> bool:
        """Whether nothing may begin any more."""
        return self.room is not None and self.room <= 0

    def having_begun(self) -> "DayLeft":
        """Return it with one more run."""
        return self if self.room is None else self.model_copy(update={"room": self.room - 1})


class Snapshot(_Frozen):
    """One tick's view."""

    now: int
    """Epoch milliseconds."""
    rules: Rules
    agents: tuple[AgentState, ...]
    live: int
    """Live runs that need a processor here."""
    tenants: dict[str, int] = {}
    """These by tenant, without the operator's own."""
    remote_live: int = 0
    """Live runs on remote agents that need none."""
    remote_tenants: dict[str, int] = {}
    """See ``tenants``."""
    busy: dict[str, int]
    """Live runs by directory."""
    kept: tuple[Kept, ...] = ()
    """Directories that are kept for tasks which need input."""
    capped: dict[str, int] = {}
    """Live runs by rule of the policy that limits their number."""
    threads: tuple[str, ...] = ()
    """The threads in which a run is live."""
    in_turn: dict[str, str] = {}
    """By thread, the task that continues in it before any other."""
    disk_low: bool = False
    drained: bool = False
    """Whether an operator wants nothing to be started."""
    day: DayLeft | None = None
    """None: there is no budget for the day."""
    heads: tuple[QueueHead, ...] = ()
    """In the queue's order; then those whose tier is only asked for, ahead of their turn."""
