"""Agents, and the holds on what they draw on."""

from pydantic import Field

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.blocked import Shown
from claudomator_py.domain.blocked_words import hold_cause, predicate
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.text import clause
from claudomator_py.domain.views.base import Instant, View
from claudomator_py.domain.wording import Sentence, said


class SpendingView(View):
    """What runs have used, as far as is known: tokens, input and output together, and US dollars.

    unpriced, uncounted: how many of them have ended without anybody knowing their dollars, or their tokens.
    """

    usd: float = 0.0
    tokens: int = 0
    runs: int = 0
    unpriced: int = 0
    uncounted: int = 0


class BudgetView(View):
    """What may be spent, what was, and what is left; None: no limit. text: the figures in words; unknown: what these
    lack, in words.

    reached: why nothing starts, once it is used up; until: when that is over, for a day or a window. window: the share
    of a window that may be used up; windows_used: what was, by name, 1 being all of it, as far as the account has said.
    """

    usd: float | None = None
    tokens: int | None = None
    runs: int | None = None
    window: str | None = None
    spent: SpendingView
    usd_left: float | None = None
    tokens_left: int | None = None
    runs_left: int | None = None
    windows_used: dict[str, float] = Field(default_factory=dict)
    text: str = ""
    unknown: str = ""
    reached: str | None = None
    until: Instant | None = None


class HoldView(View):
    """A reason not to start anything on a bucket: an agent, or an account that agents of a kind share.

    agent: the one that is named. family: only its models of that family; None: all. window: the one that is used up.
    reason: None for one that an operator has put there. until: None: until it is released. source: where that was read;
    run_id: the run that met it. probing: its time is over, and more runs follow as the first ones answer; may_start:
    how many more of them may begin now. text: all of it in words that follow the agent's name and `is`; blocked: the
    same as a code with its parameters. doubted: a reset more than 35 days away that the agent named, cut to that;
    nothing waits for it, and the limit is tried sooner.
    """

    agent: str
    bucket: str
    family: str | None = None
    window: str | None = None
    reason: Reason | None = None
    until: Instant | None = None
    provenance: Provenance
    text: str = ""
    blocked: Shown = None
    source: str
    since: Instant
    run_id: str | None = None
    probing: bool = False
    may_start: int | None = None
    doubted: Instant | None = None

    @property
    def cause(self) -> str:
        """Who or what holds, and how the end is known, in words; see ``domain.blocked_words.hold_cause``."""
        return hold_cause(self.blocked) if self.blocked is not None else self.text

    @property
    def words(self) -> Sentence:
        """All of it, in words that follow the agent's name and `is`."""
        return predicate(self.blocked) if self.blocked is not None else said(self.text)

    @property
    def read(self) -> str | None:
        """Where it was read, in a clause, unless ``cause`` says so."""
        return clause(self.source) or None if self.window is not None and self.source != self.window else None


class NearLimitView(View):
    """A warning that an account is near a limit. used: the share of it that was used up by then, where that is known.

    window: its name; until: when it resets; run_id: the run that was told so, and since: when that run had ended.
    """

    window: str | None = None
    used: float | None = None
    until: Instant
    since: Instant
    run_id: str


class AgentView(View):
    """A configured agent as it is now. problem: why it cannot run, with the remedy. active: its live runs.

    limited: a hold on all of its models is open; hold_reason and provenance say which, limited_until until when (None:
    until released). holds: all that are open, those on a family of models included, the longest first. near_limit: what
    its account was last warned of; it goes second until then.
    cannot_enforce: what a task may ask for and this agent cannot keep to; such a task goes to another one. spent_today:
    by the runs that began today; budget: what it may spend on a day, None if that is not limited.
    """

    name: str
    kind: str
    account: str = "default"
    program: str | None = None
    version: str | None = None
    installed: bool
    problem: str | None = None
    active: int = 0
    max_concurrent: int
    auto_select: bool = True
    limited: bool = False
    limited_until: Instant | None = None
    hold_reason: str | None = None
    provenance: Provenance | None = None
    models: dict[Tier, ModelChoice] = Field(default_factory=dict)
    default_tier: Tier
    cannot_enforce: tuple[str, ...] = ()
    holds: tuple[HoldView, ...] = ()
    near_limit: NearLimitView | None = None
    spent_today: SpendingView = SpendingView()
    budget: BudgetView | None = None

    @property
    def hold(self) -> HoldView | None:
        """The hold that stops all of its models the longest; None: none does."""
        return next((hold for hold in self.holds if hold.family is None and not hold.probing), None)
