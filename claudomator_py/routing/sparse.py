"""Counts of features: rows that are mostly zeros, and bulk operations on them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from claudomator_py.domain.vectors import Vector
from claudomator_py.values import dataclass

_BATCH_SIZE = 32
"""Means computed at once; each temporarily takes 8 bytes per feature."""


@dataclass(frozen=True, eq=False, slots=True)
class SparseRow:
    """A vector that is mostly zeros. Immutable."""

    at: npt.NDArray[np.int32]
    values: Vector
    width: int

    @classmethod
    def of(cls, vector: Vector) -> "SparseRow":
        """Make a sparse row from a dense vector."""
        at = vector.nonzero()[0].astype(np.int32)
        return cls(at, vector[at], len(vector))

    def __len__(self) -> int:
        return self.width

    @property
    def dense(self) -> Vector:
        """The row as a dense vector."""
        row = np.zeros(self.width, dtype=np.float32)
        row[self.at] = self.values
        return row


def frequencies(rows: Sequence[SparseRow], width: int) -> npt.NDArray[np.intp]:
    """Return the number of rows that have each feature."""
    there = [row.at[row.values > 0] for row in rows]
    return np.bincount(np.concatenate(there) if there else np.zeros(0, dtype=np.int32), minlength=width)


def means(groups: Sequence[Sequence[SparseRow]], weights: Vector) -> Vector:
    """Return one row per group: the mean of its rows, each first weighted by feature and scaled to length 1; a row
    without features counts as length 0. weights: one per feature."""
    width = len(weights)
    totals = np.zeros((len(groups), width), dtype=np.float32)
    for first in range(0, len(groups), _BATCH_SIZE):
        some = groups[first : first + _BATCH_SIZE]
        group_of = [place for place, group in enumerate(some) for row in group if len(row.at)]
        rows = [row for group in some for row in group if len(row.at)]
        if not rows:
            continue
        lengths = np.array([len(row.at) for row in rows])
        at = np.concatenate([row.at for row in rows])
        values = np.concatenate([row.values for row in rows]).astype(np.float64) * weights[at]
        norms = np.sqrt(np.add.reduceat(values * values, np.cumsum(lengths) - lengths))
        values /= np.repeat(np.where(norms > 0, norms, 1.0), lengths)
        places = np.repeat(np.array(group_of) * width, lengths) + at
        sums = np.bincount(places, weights=values, minlength=len(some) * width).reshape(len(some), width)
        totals[first : first + len(some)] = sums / np.array([max(1, len(group)) for group in some])[:, np.newaxis]
    return totals
