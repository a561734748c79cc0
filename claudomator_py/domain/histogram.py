"""A histogram as a value: how many observations were at or below each bound, and their sum."""

from bisect import bisect_left
from dataclasses import replace
from typing import Self

from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Histogram:
    """bounds: rising upper bounds, inclusive; counts: observations per bound, followed by those above all bounds.

    An observer replaces the whole value, so that a reader on another thread never sees a partial change.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> Self:
        """Return a histogram without observations."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(self.counts)

    def plus(self, value: float) -> Self:
        """Add one observation."""
        place = bisect_left(self.bounds, value)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return type(self)(self.bounds, counts, self.total + value)

    def merged(self, other: Self) -> Self:
        """Return the observations of both. Raises ValueError if the bounds differ."""
        if self.bounds != other.bounds:
            raise ValueError("histograms of different bounds cannot be merged")
        counts = tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True))
        return replace(self, counts=counts, total=self.total + other.total)

    def cumulative(self) -> list[tuple[float, int]]:
        """Count for each bound the observations at or below it; infinity comes last."""
        seen = 0
        steps = []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            steps.append((bound, seen))
        return steps
