"""Whether the daemon is in order, what was looked at, and whether it starts anything; and a circuit breaker: after
failures in a row nothing is tried for a while, then one trial decides."""

from dataclasses import replace

from claudomator_py.domain.shape import Instant, View
from claudomator_py.domain.units import MINUTE_MS
from claudomator_py.values import dataclass


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


class StandingView(View):
    """Whether tasks are started, and on which agents an operator lets none."""

    drain: DrainView
    held: tuple[str, ...] = ()


FAILURES = 3
FIRST_PAUSE_MS = MINUTE_MS // 2
MAX_PAUSE_MS = 10 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with something that is asked and not needed, such as an encoder."""

    problem: str
    since_ms: int
    """Epoch milliseconds: since when it has answered nothing of use."""

    @classmethod
    def after(cls, before: "Trouble | None", problem: str, now_ms: int) -> "Trouble":
        """Return the trouble with another failure."""
        return cls(problem, now_ms if before is None else before.since_ms)


@dataclass(frozen=True, slots=True)
class Breaker:
    """failures: in a row. open_until: epoch milliseconds before which nothing is tried; None: closed.

    trial: one try is under way after the pause, and nothing else is tried beside it.
    """

    failures: int = 0
    open_until: int | None = None
    trial: bool = False

    def allows(self, now_ms: int) -> bool:
        """Return whether a try may begin."""
        return self.open_until is None or (now_ms >= self.open_until and not self.trial)

    def began(self) -> "Breaker":
        """Return a try has begun; with an open breaker it is the trial."""
        return self if self.open_until is None else replace(self, trial=True)

    def succeeded(self) -> "Breaker":
        """Return it closed again."""
        return Breaker()

    def failed(self, now_ms: int) -> "Breaker":
        """Return one more failure. From the third in a row on it opens, for twice as long each time."""
        failures = self.failures + 1
        if failures < FAILURES:
            return Breaker(failures)
        pause = min(FIRST_PAUSE_MS << min(failures - FAILURES, 20), MAX_PAUSE_MS)
        return Breaker(failures, now_ms + pause)
