"""Whether the daemon is in order: what was looked at, and whether it starts anything."""

from claudomator_py.domain.shape import Instant, View


class CheckView(View):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    """What to do when it is not ok."""
    blocking: bool = True
    """Whether tasks are not accepted or not started while it is not ok; else it only needs attention."""


class DrainView(View):
    """Whether the daemon is drained, and starts nothing new."""

    drained: bool
    since: Instant | None = None
    reason: str | None = None
    running: int
    """Live runs, which finish."""
