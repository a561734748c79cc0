"""What comes of deciding again."""

from claudomator_py.domain.views.base import Instant, View


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
    """What runs would cost in US dollars, by the mean cost of past runs on the same agent and tier.

    placements: those of which both are known. difference: other minus own, in all; low, high: its 95% interval by
    bootstrap over the placements (B. Efron, 1979), with a fixed seed.
    """

    placements: int
    own_usd: float
    other_usd: float
    difference_usd: float
    low_usd: float
    high_usd: float


class ChangedTaskView(View):
    """A task about which something would be decided otherwise. task_name: null: it was removed. what: `verdict`,
    `specialist`, `agent` or `tier`. before: what was recorded; after: what the other configuration decides, or
    `waits`: its run would not have started then. reason: why; null: of what waits nothing is known.
    """

    task_id: str
    task_name: str | None = None
    what: str
    before: str
    after: str
    reason: str | None = None


class OtherView(View):
    """What would differ under another configuration, from what was recorded.

    placements: of those recorded, how many go elsewhere: to another agent, another tier, or nowhere in that tick.
    policy: of the tasks, how many get another verdict; specialists: how many go to somebody else. Both are decided as
    the daemon would, for the time of the last decision on the task, with the cards as they are, and what was learned by
    now. tasks: those about which something is decided otherwise; empty where only shadows were counted. undecided: how
    many of the tasks are gone, or were restarted since, so that nothing can be told.
    """

    placements: ShareView
    agents: tuple[ChangeView, ...]
    tiers: tuple[ChangeView, ...]
    waits: int
    cost: CostView | None = None
    policy: ShareView
    verdicts: tuple[ChangeView, ...]
    specialists: ShareView
    routes: tuple[ChangeView, ...]
    tasks: tuple[ChangedTaskView, ...] = ()
    undecided: int = 0


class ReplayView(View):
    """Placements, decided again from what was recorded.

    identical: how many come out the same, to the byte of their canonical JSON. differing: the others. gone: how many
    cannot be decided again, as their snapshot was removed for its age.
    """

    since: Instant | None = None
    until: Instant | None = None
    placements: int
    identical: int
    differing: tuple[DifferenceView, ...]
    gone: int
    other: OtherView | None = None
