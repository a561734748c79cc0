"""Shapes of the results of a replay."""

from claudomator_py.domain.shape import Instant, View


class DifferenceView(View):
    """A placement that is not reproduced. at: the first place where the two records differ."""

    decision_id: str
    task_id: str | None = None
    decided_at: Instant
    at: str


class ShareView(View):
    """A share of a total. low, high: its 95% Wilson score interval (E. B. Wilson, 1927)."""

    number: int
    total: int
    share: float
    low: float
    high: float


class ChangeView(View):
    """A change of a decision. number: how often it occurs."""

    before: str
    after: str
    number: int


class CostView(View):
    """Expected cost of runs in US dollars, from the mean cost of past runs on the same agent and tier."""

    placements: int
    """Placements for which both costs are known."""
    own_usd: float
    other_usd: float
    difference_usd: float
    """Total of the other minus the own cost."""
    low_usd: float
    """Lower end of the difference's 95% interval, by bootstrap over placements (B. Efron, 1979) with a fixed seed."""
    high_usd: float
    """Upper end of that interval."""


class ChangedTaskView(View):
    """A task for which a decision would differ."""

    task_id: str
    task_name: str | None = None
    """null: the task was removed."""
    what: str
    """`verdict`, `specialist`, `agent` or `tier`."""
    before: str
    """The recorded decision."""
    after: str
    """The other configuration's decision, or `waits`: its run would not have started then."""
    reason: str | None = None
    """The reason for it; null: unknown, as for a run that waits."""


class OtherView(View):
    """Differences between the record and the decisions of another configuration."""

    placements: ShareView
    """Recorded placements that differ: another agent, another tier, or no start in that tick."""
    agents: tuple[ChangeView, ...]
    tiers: tuple[ChangeView, ...]
    waits: int
    cost: CostView | None = None
    policy: ShareView
    """Tasks with a different verdict, decided as the daemon would have at the time of their last decision."""
    verdicts: tuple[ChangeView, ...]
    specialists: ShareView
    """Tasks with a different specialist or route, decided likewise, but with today's cards and what was learned since.
    """
    routes: tuple[ChangeView, ...]
    tasks: tuple[ChangedTaskView, ...] = ()
    """Tasks for which a decision differs; empty if only shadow decisions were counted."""
    undecided: int = 0
    """Tasks that cannot be compared, as they were removed or restarted since."""


class ReplayView(View):
    """The result of replaying recorded placements."""

    since: Instant | None = None
    until: Instant | None = None
    placements: int
    identical: int
    """Placements reproduced exactly, by their canonical JSON."""
    differing: tuple[DifferenceView, ...]
    """The first of those that are not reproduced."""
    gone: int
    """Placements that cannot be replayed, as retention removed their snapshots."""
    other: OtherView | None = None
