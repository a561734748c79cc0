"""The shapes and operations of agents. Field order is the order of the JSON."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.blocked_words import hold_cause, predicate
from claudomator_py.domain.budget import Unit, amount_text, cost_text
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.units import counted
from claudomator_py.domain.wording import Known, Sentence, said
from claudomator_py.surface import ADMIN_WHOLE, READ, Calls, InPath, JsonBody, Key, Links, operation
from claudomator_py.texts import clause


class SpendingView(View):
    """What runs have used, as far as known."""

    usd: float = 0.0
    """US dollars."""
    tokens: int = 0
    """Input and output together."""
    runs: int = 0
    unpriced: int = 0
    """How many of them ended at an unknown cost."""
    uncounted: int = 0
    """How many of them ended with an unknown number of tokens."""

    @property
    def words(self) -> str:
        """In words: ``14 runs, at least $4.20, 1,200 tokens``. Zero is said only where it is known."""
        parts = [counted(self.runs, "run")]
        if self.usd or (self.runs and not self.unpriced):
            parts.append(cost_text(self.usd, self.unpriced) or "")
        if self.tokens:
            parts.append(f"{amount_text(Unit.TOKENS, self.tokens)} tokens")
        return ", ".join(parts)


class BudgetView(View):
    """What may be spent, what was spent, and what is left; null where there is no limit."""

    usd: float | None = None
    tokens: int | None = None
    runs: int | None = None
    window: str | None = None
    """The share of a window that may be used."""
    spent: SpendingView
    usd_left: float | None = None
    tokens_left: int | None = None
    runs_left: int | None = None
    windows_used: dict[str, float] = Field(default_factory=dict)
    """The used share of each window by name, where 1 is all of it, as last reported by the account."""
    text: str = ""
    """The figures in words."""
    unknown: str = ""
    """What is missing in the figures, in words."""
    reached: str | None = None
    """Why nothing starts once it is used up."""
    until: Instant | None = None
    """When the day or the window ends."""


class HoldView(View):
    """A reason to start nothing on a bucket: an agent, or an account that agents of a kind share."""

    agent: str
    """The agent for which the hold is shown."""
    bucket: str
    family: str | None = None
    """The model family that it applies to; null: all models."""
    window: str | None = None
    """The window that is used up."""
    reason: Reason | None = None
    """Null: an operator has set it."""
    until: Instant | None = None
    """Null: until it is released."""
    provenance: Provenance
    text: str = ""
    """The whole hold in words that follow the agent's name and `is`."""
    blocked: Known[Blocked] = None
    """The same as a code with parameters."""
    source: str
    """Where it was read."""
    since: Instant
    run_id: str | None = None
    """The run that met the limit."""
    probing: bool = False
    """Whether its time is over, and runs are started gradually as the first ones succeed."""
    may_start: int | None = None
    """How many more such runs may start now."""
    doubted: Instant | None = None
    """A reset more than 35 days away, as the agent reported it, cut to that; nothing waits for it, and the limit is
    tried sooner."""

    @property
    def cause(self) -> str:
        """Return who or what caused the hold, and how its end is known; see ``domain.blocked_words.hold_cause``."""
        return hold_cause(self.blocked) if self.blocked is not None else self.text

    @property
    def words(self) -> Sentence:
        """Return the whole hold in words that follow the agent's name and `is`."""
        return predicate(self.blocked) if self.blocked is not None else said(self.text)

    @property
    def read(self) -> str | None:
        """Return where it was read, as a clause, unless ``cause`` says so."""
        return clause(self.source) or None if self.window is not None and self.source != self.window else None


class NearLimitView(View):
    """A warning that an account is near a limit."""

    window: str | None = None
    """The name of the window."""
    used: float | None = None
    """The share that was used by then, if known."""
    until: Instant
    """When it resets."""
    since: Instant
    """When the run that received the warning ended."""
    run_id: str
    """The run that received the warning."""


class ForecastView(View):
    """When a window will be full at the pace of the last hour."""

    full_at: Instant | None = None
    """Null: it resets before that."""
    since: Instant
    """The time of the first reading that the forecast is based on; the last one is the window's own."""
    used_then: float
    """The share that was used at that time."""


class WindowView(View):
    """A window of an account, as last reported."""

    account: str
    """With its kind, such as ``claude/default``."""
    name: str
    """The account's own name for it, such as ``five_hour``."""
    family: str | None = None
    """The model family that it applies to; null: all models."""
    used: float | None = None
    """The used share, where 1 is all of it; null: unknown, as it has reset since the last report."""
    resets_at: Instant
    """When it resets, or did reset."""
    said_at: Instant
    """When it was reported."""
    run_id: str | None = None
    """The run that reported it; only for principals that see all runs."""
    forecast: ForecastView | None = None
    """Null: there are too few readings, or the share does not rise."""

    @property
    def title(self) -> str:
        """Return its name in words, such as ``5h window``."""
        return window_text(self.name)


class AgentCondition(StrEnum):
    """The condition of an agent, in the word that people see."""

    READY = "ready"
    FULL = "full"
    TRYING = "trying"
    """One run finds out whether its limit is over."""
    SPENT = "spent"
    LIMITED = "limited"
    HELD = "held"
    """By the operator, or until somebody releases it."""
    BROKEN = "cannot run"


class AgentView(View):
    """A configured agent in its current state."""

    name: str
    kind: str
    account: str = "default"
    program: str | None = None
    version: str | None = None
    installed: bool
    problem: str | None = None
    """Why it cannot run, with the remedy."""
    active: int = 0
    """The number of its live runs."""
    max_concurrent: int
    auto_select: bool = True
    limited: bool = False
    """Whether all of its models are held."""
    limited_until: Instant | None = None
    """Until when; null: until it is released."""
    hold_reason: str | None = None
    """The reason of that hold."""
    provenance: Provenance | None = None
    """How the end of that hold is known."""
    models: dict[Tier, ModelChoice] = Field(default_factory=dict)
    default_tier: Tier
    cannot_enforce: tuple[str, ...] = ()
    """What a task may ask for and this agent cannot enforce; such a task goes to another agent."""
    holds: tuple[HoldView, ...] = ()
    """All open holds, those on model families included, the longest first."""
    windows: tuple[WindowView, ...] = ()
    """The windows of its account, the next to reset first; empty: the account has reported none."""
    near_limit: NearLimitView | None = None
    """The last warning about its account; until the reset, other agents are preferred."""
    spent_today: SpendingView = SpendingView()
    """Used by the runs that began today."""
    budget: BudgetView | None = None
    """What it may spend in a day; null: not limited."""

    @property
    def condition(self) -> AgentCondition:
        """Whether it can take a task now, and if not, why, in a word."""
        if self.problem is not None or not self.installed:
            return AgentCondition.BROKEN
        if self.limited:
            is_held = self.limited_until is None or self.provenance is Provenance.OPERATOR
            return AgentCondition.HELD if is_held else AgentCondition.LIMITED
        if self.budget is not None and self.budget.reached is not None:
            return AgentCondition.SPENT
        if any(hold.probing and hold.family is None for hold in self.holds):
            return AgentCondition.TRYING
        return AgentCondition.FULL if self.active >= self.max_concurrent else AgentCondition.READY

    @property
    def hold(self) -> HoldView | None:
        """Return the longest hold on all of its models; None: there is none."""
        return next((hold for hold in self.holds if hold.family is None and not hold.probing), None)


AgentName = Annotated[str, InPath("The agent's name.")]
_HOLDS = {
    "until_released": {},
    "for_the_night": {"until": "2099-12-01T06:00:00Z", "reason": "The window is reserved for daytime work."},
    "one_family": {"family": "opus", "until": "2099-12-01T06:00:00Z"},
    "the_account": {"account": True},
}
_RELEASES = {"all_of_them": {}, "one_family": {"family": "opus"}}


class AgentCalls(Calls):
    """The operations on agents, as the client calls them."""

    @operation(
        "GET /v1/agents",
        "listAgents",
        READ,
        "The configured agents",
        links=Links("name", "$response.body#/items/0/name", {"releaseAgent": "End its holds"}),
    )
    def agents(self) -> list[AgentView]:
        """The agents in the order of the configuration, with their slots, holds and health."""

    @operation("POST /v1/agents/{name}/hold", "holdAgent", ADMIN_WHOLE, "Start nothing on an agent")
    def hold(
        self,
        name: AgentName,
        wanted: Annotated[HoldRequest | None, JsonBody(_HOLDS)] = None,
        *,
        idempotency_key: Key = None,
    ) -> AgentView:
        """Running tasks continue. New ones go to other agents or wait, until the given time or until a release."""

    @operation("POST /v1/agents/{name}/release", "releaseAgent", ADMIN_WHOLE, "End the holds of an agent")
    def release(
        self,
        name: AgentName,
        wanted: Annotated[ReleaseRequest | None, JsonBody(_RELEASES)] = None,
        *,
        idempotency_key: Key = None,
    ) -> AgentView:
        """Tasks may start on it again at once, and on all agents that share its account. With `family`, only holds on
        that family end. Without a hold, nothing changes."""
