"""Accounts with quota windows, as the services have them: a window begins with its first use, and then lasts."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Window:
    """length: milliseconds. capacity: units that may be used in it. began: None until the first use."""

    name: str
    length: int
    capacity: int
    began: int | None = None
    used: int = 0

    def reset_at(self, now: int) -> int | None:
        """Until when it is used up; None: it is not."""
        self._roll(now)
        return self.began + self.length if self.began is not None and self.used >= self.capacity else None

    def use(self, now: int) -> None:
        """One unit."""
        self._roll(now)
        if self.began is None:
            self.began = now
        self.used += 1

    def _roll(self, now: int) -> None:
        if self.began is not None and now >= self.began + self.length:
            self.began, self.used = None, 0


@dataclass(frozen=True)
class Refusal:
    """The account is used up until then, in that window."""

    window: str
    reset_at: int


@dataclass
class Account:
    """What the agents of one login share. told: the latest reset that was reported to anybody."""

    windows: Sequence[Window]
    told: int = 0
    refusals: int = 0
    used: int = 0
    refused_in_a_row: int = field(default=0)

    def take(self, now: int) -> Refusal | None:
        """Use a unit, or be refused."""
        results = [(at, window.name) for window in self.windows if (at := window.reset_at(now)) is not None]
        if results:
            self.refusals += 1
            self.refused_in_a_row += 1
            at, name = max(results)
            return Refusal(name, at)
        for window in self.windows:
            window.use(now)
        self.used += 1
        self.refused_in_a_row = 0
        return None

    def most_by(self, elapsed: int) -> int:
        """Units that can be used at most within that time, whatever the plan."""
        return min(-(-max(elapsed, 1) // window.length) * window.capacity for window in self.windows)
