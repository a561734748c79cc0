"""Agents as they are shown, and what can be asked about them. Field order is the order of the JSON."""

from typing import Annotated

from pydantic import Field

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.blocked import Shown
from claudomator_py.domain.blocked_words import hold_cause, predicate
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.text import clause
from claudomator_py.domain.wording import Sentence, said
from claudomator_py.surface import ADMIN_WHOLE, READ, Calls, JsonBody, Key, Links, PathText, operation


class SpendingView(View):
    """What runs have used, as far as is known."""

    usd: float = 0.0
    """US dollars."""
    tokens: int = 0
    """Input and output together."""
    runs: int = 0
    unpriced: int = 0
    """How many of them have ended without anybody knowing their dollars."""
    uncounted: int = 0
    """How many of them have ended without anybody knowing their tokens."""


class BudgetView(View):
    """What may be spent, what was, and what is left; null where there is no limit."""

    usd: float | None = None
    tokens: int | None = None
    runs: int | None = None
    window: str | None = None
    """The share of a window that may be used up."""
    spent: SpendingView
    usd_left: float | None = None
    tokens_left: int | None = None
    runs_left: int | None = None
    windows_used: dict[str, float] = Field(default_factory=dict)
    """What was used of each window, by name, 1 being all of it, as far as the account has said."""
    text: str = ""
    """The figures in words."""
    unknown: str = ""
    """What the figures lack, in words."""
    reached: str | None = None
    """Why nothing starts, once it is used up."""
    until: Instant | None = None
    """When that is over, for a day or a window."""


class HoldView(View):
    """A reason not to start anything on a bucket: an agent, or an account that agents of a kind share."""

    agent: str
    """The one that is named."""
    bucket: str
    family: str | None = None
    """Only its models of that family; null: all."""
    window: str | None = None
    """The window that is used up."""
    reason: Reason | None = None
    """Null for one that an operator has put there."""
    until: Instant | None = None
    """Null: until it is released."""
    provenance: Provenance
    text: str = ""
    """All of it in words that follow the agent's name and `is`."""
    blocked: Shown = None
    """The same as a code with its parameters."""
    source: str
    """Where it was read."""
    since: Instant
    run_id: str | None = None
    """The run that met it."""
    probing: bool = False
    """Its time is over, and more runs follow as the first ones answer."""
    may_start: int | None = None
    """How many more of these may begin now."""
    doubted: Instant | None = None
    """A reset more than 35 days away that the agent named, cut to that; nothing waits for it, and the limit is tried
    sooner."""

    @property
    def cause(self) -> str:
        """Return who or what holds, and how the end is known, in words; see ``domain.blocked_words.hold_cause``."""
        return hold_cause(self.blocked) if self.blocked is not None else self.text

    @property
    def words(self) -> Sentence:
        """Return all of it, in words that follow the agent's name and `is`."""
        return predicate(self.blocked) if self.blocked is not None else said(self.text)

    @property
    def read(self) -> str | None:
        """Return where it was read, in a clause, unless ``cause`` says so."""
        return clause(self.source) or None if self.window is not None and self.source != self.window else None


class NearLimitView(View):
    """A warning that an account is near a limit."""

    window: str | None = None
    """The name of the window."""
    used: float | None = None
    """The share of it that was used up by then, where that is known."""
    until: Instant
    """When it resets."""
    since: Instant
    """When the run that was told so had ended."""
    run_id: str
    """The run that was told so."""


class ForecastView(View):
    """When a window will be full at the pace of the last hour."""

    full_at: Instant | None = None
    """Null: it resets before."""
    since: Instant
    """When the first of the readings was taken that it rests on; the last is the window's own."""
    used_then: float
    """The share that was used up by then."""


class WindowView(View):
    """A window of an account, as the account last said of it."""

    account: str
    """With its kind, such as ``claude/default``."""
    name: str
    """As the account calls it, such as ``five_hour``."""
    family: str | None = None
    """Only for models of that family; null: all."""
    used: float | None = None
    """The share that is used up, 1 being all of it; null: it has reset since, and nobody has said more."""
    resets_at: Instant
    """Of one that has reset: when it did."""
    said_at: Instant
    """When it was read."""
    run_id: str | None = None
    """The run that was told so, for whoever sees all runs."""
    forecast: ForecastView | None = None
    """Null: there are too few readings for one, or the share does not rise."""

    @property
    def title(self) -> str:
        """Return its name in words, such as ``5h window``."""
        return window_text(self.name)


class AgentView(View):
    """A configured agent as it is now."""

    name: str
    kind: str
    account: str = "default"
    program: str | None = None
    version: str | None = None
    installed: bool
    problem: str | None = None
    """Why it cannot run, with the remedy."""
    active: int = 0
    """Its live runs."""
    max_concurrent: int
    auto_select: bool = True
    limited: bool = False
    """A hold on all of its models is open."""
    limited_until: Instant | None = None
    """Until when it is open; null: until it is released."""
    hold_reason: str | None = None
    """Which hold that is."""
    provenance: Provenance | None = None
    """How the end of that hold is known."""
    models: dict[Tier, ModelChoice] = Field(default_factory=dict)
    default_tier: Tier
    cannot_enforce: tuple[str, ...] = ()
    """What a task may ask for and this agent cannot keep to; such a task goes to another one."""
    holds: tuple[HoldView, ...] = ()
    """All that are open, those on a family of models included, the longest first."""
    windows: tuple[WindowView, ...] = ()
    """Those of its account, the next to reset first; empty: its account has not said anything of any."""
    near_limit: NearLimitView | None = None
    """What its account was last warned of; it goes second until then."""
    spent_today: SpendingView = SpendingView()
    """By the runs that began today."""
    budget: BudgetView | None = None
    """What it may spend on a day; null if that is not limited."""

    @property
    def hold(self) -> HoldView | None:
        """Return the hold that stops all of its models the longest; None: none does."""
        return next((hold for hold in self.holds if hold.family is None and not hold.probing), None)


AgentName = Annotated[str, PathText("The agent's name.")]
_HOLDS = {
    "until_released": {},
    "for_the_night": {"until": "2099-12-01T06:00:00Z", "reason": "The window is reserved for daytime work."},
    "one_family": {"family": "opus", "until": "2099-12-01T06:00:00Z"},
    "the_account": {"account": True},
}
_RELEASES = {"all_of_them": {}, "one_family": {"family": "opus"}}


class AgentCalls(Calls):
    """Every operation on agents, as the client calls it."""

    @operation(
        "GET /v1/agents",
        "listAgents",
        READ,
        "The configured agents",
        links=Links("name", "$response.body#/items/0/name", {"releaseAgent": "End its holds"}),
    )
    def agents(self) -> list[AgentView]:
        """The agents in the order of the configuration, each with its slots, holds and health."""

    @operation("POST /v1/agents/{name}/hold", "holdAgent", ADMIN_WHOLE, "Start nothing on an agent", refuses=(404,))
    def hold(
        self,
        name: AgentName,
        wanted: Annotated[HoldRequest | None, JsonBody(_HOLDS)] = None,
        *,
        idempotency_key: Key = None,
    ) -> AgentView:
        """Running tasks continue; new ones go to other agents or wait, until the time named or until it is released."""

    @operation(
        "POST /v1/agents/{name}/release", "releaseAgent", ADMIN_WHOLE, "End the holds of an agent", refuses=(404,)
    )
    def release(
        self,
        name: AgentName,
        wanted: Annotated[ReleaseRequest | None, JsonBody(_RELEASES)] = None,
        *,
        idempotency_key: Key = None,
    ) -> AgentView:
        """Tasks may start on it again at once, and on all agents that share its account. With `family`, only holds on
        that family end. Without a hold it changes nothing."""
