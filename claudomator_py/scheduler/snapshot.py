"""What a tick observed: everything that ``plan`` may look at, which makes planning deterministic."""

from collections.abc import Mapping, Set
from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.budget import Figures
from claudomator_py.domain.decision import StandIn
from claudomator_py.domain.limits import in_family
from claudomator_py.domain.outcome import REASON_POLICIES, Provenance, Reason
from claudomator_py.domain.principal import OWN
from claudomator_py.domain.routing import Constraints

NearLimit = Literal["tie_break", "avoid", "ignore"]
"""What an agent near a limit means: it loses ties, counts as limited while another agent is not, or nothing."""
FALLBACK_REASONS = frozenset(reason for reason, policy in REASON_POLICIES.items() if policy.falls_back)


class _Frozen(BaseModel, frozen=True):
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with these values, in a third of the time of pydantic's: nothing in it can be changed."""
        if deep or update is None:
            return super().model_copy(update=update, deep=deep)
        made, put = self.__class__.__new__(self.__class__), object.__setattr__
        put(made, "__dict__", {**self.__dict__, **update})
        put(made, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *update})
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made


class ActiveHold(_Frozen):
    """A hold on a bucket that an agent draws on."""

    bucket: str
    """Label of the bucket."""
    reason: Reason | None
    """None for an operator's own hold."""
    until: int | None
    """Epoch milliseconds; None if it lasts until an operator releases it."""
    provenance: Provenance
    source: str
    family: str | None = None
    """The model family that the hold applies to; None for all models."""
    window: str | None = None
    room: int | None = None
    """Set once the hold's time is over: how many more runs may start on the bucket, as earlier ones have to answer
    first. None while the hold is in force. With reason ``budget`` the limit comes from the configuration, not from the
    account, and this is the number of runs left."""
    tries: int | None = None
    """For a hold in force, how many runs may start anyway if limited agents are tried; None if not counted."""
    figures: Figures | None = None
    """What was spent of the day's budget, with reason ``budget``."""
    used: float | None = None
    """Share of the window that is used up, if only part of it may be used."""
    share: float | None = None
    """Share of the window that may be used; 1 is all of it."""
    reserved: str | None = None
    """Hours for which the rest of the window is reserved, such as ``08:00-20:00``."""

    @property
    def stops(self) -> bool:
        """True if nothing can start on the bucket now."""
        return self.room is None or self.room <= 0

    @property
    def tried(self) -> bool:
        """True if the hold's time is over and runs are testing whether the limit is gone."""
        return self.room is not None and self.reason is not Reason.BUDGET

    @property
    def counts(self) -> bool:
        """True if runs that start on the bucket have to be counted."""
        return self.room is not None or self.tries is not None

    def with_run(self) -> "ActiveHold":
        """Return a copy with one more run on the bucket."""
        counted = {"room": self.room, "tries": self.tries}
        return self.model_copy(update={name: left - 1 for name, left in counted.items() if left is not None})

    @property
    def end(self) -> float:
        """The end, for comparing: a hold without an end outlasts all others."""
        if self.tried:
            return 0.0
        return float("inf") if self.until is None else self.until


class AgentState(_Frozen):
    """A configured agent."""

    name: str
    kind: str
    active: int
    """Number of live runs."""
    max_concurrent: int
    auto_select: bool
    problem: str | None = None
    """Why the agent cannot run at all."""
    unfenced: str | None = None
    """Why its runs cannot be confined to a reach, as a clause; None if they can."""
    unfit: bool = False
    """True if ``problem`` concerns the task in question, which asks for something the agent cannot enforce."""
    barred: bool = False
    """True if ``problem`` is that the task in question is not allowed on the agent, whatever it could do."""
    holds: tuple[ActiveHold, ...] = ()
    near_limit: bool = False
    """True if the account has warned that a limit is near."""
    default_model: str | None = None
    """The model last chosen for a run that asked for none, while holds apply to only some of its models."""
    models: dict[Tier, ModelChoice] = {}
    default_tier: Tier = Tier.BALANCED
    fallback_model: str | None = None
    """The model to use when another is unavailable."""
    stands_in: StandIn | None = None
    """How the fallback model stands in, for the task in question."""
    specialist: str | None = None
    """The remote specialist that this agent is; None for a configured agent."""
    remote: bool = False
    """True if its runs need no processor on this machine and have slots of their own; see ``Rules.remote``."""
    closed: Blocked | None = Field(None, exclude=True)
    """Why the task in question gets no slot for a run on the agent although the agent has a free one."""

    @property
    def full(self) -> bool:
        """True if all of its own slots are in use."""
        return self.active >= self.max_concurrent

    @property
    def free(self) -> bool:
        """True if there is a free slot for a run on it."""
        return not self.full and self.closed is None

    @property
    def hold(self) -> ActiveHold | None:
        """The longest hold that stops all of its models, if any."""
        stopping = (hold for hold in self.holds if hold.family is None and hold.stops)
        return max(stopping, key=lambda hold: hold.end, default=None)

    @property
    def triable(self) -> bool:
        """True if trying the agent makes sense although it is limited: it is not held until an operator acts, and no
        run is trying it now or has just tried it in vain."""
        stopping = [hold for hold in self.holds if hold.family is None and hold.stops]
        own = (None, Reason.BUDGET)
        limits = all(hold.room is None and hold.until is not None and hold.reason not in own for hold in stopping)
        return limits and all(hold.tries is None or hold.tries > 0 for hold in stopping)

    @property
    def limited(self) -> bool:
        """True if a hold stops all of its models."""
        return any(hold.family is None and hold.stops for hold in self.holds)

    def with_run(self, buckets: Set[str]) -> "AgentState":
        """Return a copy with one more run on these buckets."""
        if not any(hold.counts and hold.bucket in buckets for hold in self.holds):
            return self
        holds = tuple(hold.with_run() if hold.bucket in buckets else hold for hold in self.holds)
        return self.model_copy(update={"holds": holds})

    def buckets_of(self, model: str | None) -> frozenset[str]:
        """Return the held buckets that a run on that model draws on. model: None if the agent chooses."""
        chosen = model or self.default_model
        return frozenset(hold.bucket for hold in self.holds if hold.family is None or in_family(chosen, hold.family))

    def falling_back(self, tier: Tier, model: str | None, after: Reason | None) -> "AgentState":
        """Return the agent as seen by a task of that tier that would get that model: with the fallback model in its
        place if the model is overloaded or the task's last run on this agent ended that way."""
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
        """Return the agent as seen by a task on that model: holds on its family apply to all models, holds on other
        families are dropped. model: None if it is not decided yet."""
        if all(hold.family is None for hold in self.holds):
            return self
        own = (hold for hold in self.holds if hold.family is None or in_family(model, hold.family))
        return self.model_copy(update={"holds": tuple(hold.model_copy(update={"family": None}) for hold in own)})


class AskedTier(_Frozen):
    """A question for the task's tier."""

    agent: str
    """The picked agent that the question was about."""
    deadline: int
    """Epoch milliseconds after which the task starts without an answer."""
    answered: bool
    source: Literal["classifier", "cache", "default"] | None = None
    """Where the tier comes from, once answered; the next three fields belong to it."""
    tier: Tier | None = None
    cause: str | None = None
    detail: str | None = None
    said_agent: str | None = None
    """The agent that the answer named, if it was a different one."""


class HeldConversation(_Frozen):
    """A conversation that a task continues: the run it belongs to, and the agent that has it."""

    run: str
    agent: str
    kind: str
    optional: bool = False
    """True if another free agent may start afresh instead."""
    yields: Literal["unable", "limited"] | None = None
    """When another agent may take over although the conversation is not optional: once the holder cannot run at all, or
    also while it is limited."""
    of: str | None = None
    """The task that the conversation belongs to, if it is another one."""


class QueueHead(_Frozen):
    """A task at the head of its lane, with everything that the choice of an agent depends on."""

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
    """By agent, the task's demands that the agent cannot enforce."""
    model: str | None = None
    strict: bool = False
    conversation: HeldConversation | None = None
    """The conversation that the task continues; None for a fresh one."""
    thread: str | None = None
    """The task that began the thread that this task continues; None if this one did."""
    failed_on: str | None = None
    """The agent on which the last run did not get its model."""
    failed_for: Reason | None = None
    """Why the last run did not get its model on ``failed_on``."""
    queued: int = 0
    """When it was queued, in epoch milliseconds."""
    specialist: str | None = None
    """The specialist that the task was routed to."""
    skill: str | None = None
    """The specialist's skill that the task was routed to."""
    constraints: Constraints = Constraints()
    """The constraints that routing and policy put on the task."""
    routed: bool = False
    """True if it is decided which specialist does the task, including the decision that none does."""
    asks: bool = False
    """True if whoever routes it has to judge it first: it demands approval before its first run and has none, or an
    agent will read its text, which the policy has not judged."""
    names_specialist: bool = False
    """True if the task itself, or a person, has named the specialist."""
    tenant: str = OWN
    """The tenant that owns the task; see ``domain.principal.tenant_of``."""

    @property
    def exclusive(self) -> str:
        """What no other run may use at the same time: the thread, identified by the task that began it."""
        return self.thread or self.task_id


class KeptDirectory(_Frozen):
    """A directory kept for a task that waits for a person, or was answered and has not continued yet. until: epoch
    milliseconds."""

    dir_key: str
    task_id: str
    name: str
    until: int


class Rules(_Frozen):
    """The configuration that planning depends on, and its hash. Snapshots of earlier versions have no bounds for
    tenants and do not distinguish remote runs, which count in ``total``."""

    total: int
    per_organisation: int | None = None
    """Maximum of these slots for the tasks of any one tenant other than the operator; None if unlimited."""
    remote: int | None = None
    """Maximum number of runs on remote agents; None if they count in ``total``."""
    remote_per_organisation: int | None = None
    """Maximum of the remote slots for any one such tenant; None if unlimited."""
    per_workdir: int
    type_hint: Literal["prefer", "ignore"]
    when_all_limited: Literal["wait", "try"]
    near_limit: NearLimit = "tie_break"
    prefer_wait: int = 0
    """Milliseconds that a task waits for a preferred agent that is full."""
    routing: bool = False
    """True if it must be decided first which specialist does a task."""
    policed: bool = False
    """True if policy rules apply to every task, including tasks for agents that take no role."""
    classifier: bool = False
    """True if there is a classifier to ask."""
    settings_hash: str


class DayLeft(_Frozen):
    """What is left of the day's budget for all agents. room: runs that may still start; None if unlimited. figures:
    what is used up, once nothing more may start; until: end of the day in epoch milliseconds."""

    figures: Figures | None = None
    until: int
    room: int | None = None

    @property
    def spent(self) -> bool:
        """True if nothing more may start."""
        return self.room is not None and self.room <= 0

    def with_run(self) -> "DayLeft":
        """Return a copy with one more run."""
        return self if self.room is None else self.model_copy(update={"room": self.room - 1})


class Snapshot(_Frozen):
    """What one tick observed."""

    now: int
    """Epoch milliseconds."""
    rules: Rules
    agents: tuple[AgentState, ...]
    live: int
    """Live runs that need a processor on this machine."""
    tenants: dict[str, int] = {}
    """``live`` by tenant, without the operator's own."""
    remote_live: int = 0
    """Live runs on remote agents, which need no processor here."""
    remote_tenants: dict[str, int] = {}
    """``remote_live`` by tenant, without the operator's own."""
    busy: dict[str, int]
    """Live runs by directory."""
    kept: tuple[KeptDirectory, ...] = ()
    """Directories kept for tasks that need input."""
    capped: dict[str, int] = {}
    """Live runs by the policy rule that limits their number."""
    threads: tuple[str, ...] = ()
    """Threads with a live run."""
    in_turn: dict[str, str] = {}
    """By thread, the task that is next to continue it."""
    disk_low: bool = False
    drained: bool = False
    """True if an operator wants nothing to be started."""
    day: DayLeft | None = None
    """None if there is no budget for the day."""
    heads: tuple[QueueHead, ...] = ()
    """In queue order, followed by heads whose tier is asked for ahead of their turn."""
