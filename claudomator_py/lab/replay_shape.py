"""What comes of deciding again."""

from claudomator_py.domain.shape import Instant, View


class DifferenceView(View):
    """A placement that is not decided as it was. at: the first place where the two records part."""

    decision_id: str
    task_id: str | None = None
    decided_at: Instant
    at: str


class ShareView(View):
    """So many of a total. low, high: the 95% interval by Wilson's score (E. B. Wilson, 1927)."""

    number: int
    total: int
    share: float
    low: float
    high: float


class ChangeView(View):
    """What would be decided otherwise. number: how often."""

    before: str
    after: str
    number: int


class CostView(View):
    """What runs would cost in US dollars, by the mean cost of past runs on the same agent and tier."""

    placements: int
    """Those of which both are known."""
    own_usd: float
    other_usd: float
    difference_usd: float
    """Other minus own, in all."""
    low_usd: float
    """Of its 95% interval by bootstrap over the placements (B. Efron, 1979), with a fixed seed."""
    high_usd: float
    """Of the same interval."""


class ChangedTaskView(View):
    """A task about which something would be decided otherwise."""

    task_id: str
    task_name: str | None = None
    """null: it was removed."""
    what: str
    """`verdict`, `specialist`, `agent` or `tier`."""
    before: str
    """What was recorded."""
    after: str
    """What the other configuration decides, or `waits`: its run would not have started then."""
    reason: str | None = None
    """Why; null: of what waits nothing is known."""


class OtherView(View):
    """What would differ under another configuration, from what was recorded."""

    placements: ShareView
    """How many of those recorded go elsewhere: to another agent, another tier, or nowhere in that tick."""
    agents: tuple[ChangeView, ...]
    tiers: tuple[ChangeView, ...]
    waits: int
    cost: CostView | None = None
    policy: ShareView
    """How many of the tasks get another verdict, decided as the daemon would for the time of their last decision."""
    verdicts: tuple[ChangeView, ...]
    specialists: ShareView
    """How many go to somebody else, decided likewise, with the cards as they are and what was learned by now."""
    routes: tuple[ChangeView, ...]
    tasks: tuple[ChangedTaskView, ...] = ()
    """Those about which something is decided otherwise; empty where only shadows were counted."""
    undecided: int = 0
    """How many of the tasks are gone, or were restarted since, so that nothing can be told."""


class ReplayView(View):
    """Placements, decided again from what was recorded."""

    since: Instant | None = None
    until: Instant | None = None
    placements: int
    identical: int
    """How many come out the same, to the byte of their canonical JSON."""
    differing: tuple[DifferenceView, ...]
    """The others."""
    gone: int
    """How many cannot be decided again, as their snapshot was removed for its age."""
    other: OtherView | None = None
