"""Whether the daemon is healthy, which checks were made, and whether it starts anything. Also a circuit breaker: after
consecutive failures nothing is tried for a while, then one trial decides."""

from dataclasses import replace

from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.values import dataclass


class CheckView(View):
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    """What to do if it is not ok."""
    blocking: bool = True
    """True if tasks are not accepted or not started while it is not ok; otherwise it only needs attention."""


class DrainView(View):
    """Whether the daemon is drained and starts nothing new."""

    drained: bool
    since: Instant | None = None
    reason: str | None = None
    running: int
    """Live runs, which are left to finish."""


class StopsView(View):
    """Whether tasks are started, and which agents an operator has put on hold."""

    drain: DrainView
    held: tuple[str, ...] = ()


FAILURES = 3
FIRST_PAUSE_MS = MINUTE_MS // 2
MAX_PAUSE_MS = 10 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Trouble:
    """The problem of an optional component, such as an encoder."""

    problem: str
    since_ms: int
    """Start of the period without a useful answer, in epoch milliseconds."""

    @classmethod
    def after(cls, before: "Trouble | None", problem: str, now_ms: int) -> "Trouble":
        """Return the trouble after another failure."""
        return cls(problem, now_ms if before is None else before.since_ms)


@dataclass(frozen=True, slots=True)
class Breaker:
    """State of the breaker. failures: consecutive. open_until: epoch milliseconds before which nothing is tried; None
    if closed. trial: a single try is under way after the pause, and nothing else is tried meanwhile."""

    failures: int = 0
    open_until: int | None = None
    trial: bool = False

    def allows(self, now_ms: int) -> bool:
        """Return whether a try may start."""
        return self.open_until is None or (now_ms >= self.open_until and not self.trial)

    def began(self) -> "Breaker":
        """Return the state once a try has started; with an open breaker it is the trial."""
        return self if self.open_until is None else replace(self, trial=True)

    def succeeded(self) -> "Breaker":
        """Return the closed breaker."""
        return Breaker()

    def failed(self, now_ms: int) -> "Breaker":
        """Return the state after another failure. From the third in a row the breaker opens, for twice as long each
        time."""
        failures = self.failures + 1
        if failures < FAILURES:
            return Breaker(failures)
        pause = min(FIRST_PAUSE_MS << min(failures - FAILURES, 20), MAX_PAUSE_MS)
        return Breaker(failures, now_ms + pause)
