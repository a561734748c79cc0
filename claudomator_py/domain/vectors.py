"""Vectors that stand for texts: how alike two of them are, and how one is kept in a row."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
"""One dimension, or a row for each of several."""
_Floats = TypeVar("_Floats", np.float32, np.float64)

_BATCH_SIZE = 32
"""Rows that are computed in one go, so that the numbers of twice the size on the way are few."""


def cosine(one: Vector, other: Vector) -> float:
    """Return how alike two vectors are: -1 to 1. Never NaN: 0 for an empty one, or one of zero length or beyond
    measure.

    Of vectors that differ in length the common prefix is compared.
    """
    common = min(len(one), len(other))
    if not common:
        return 0.0
    a, b = (_unit(vector[:common].astype(np.float64)) for vector in (one, other))
    return float(np.clip(cosines(a[np.newaxis], b)[0], -1.0, 1.0))


def cosines(rows: npt.NDArray[_Floats], other: npt.NDArray[_Floats]) -> npt.NDArray[_Floats]:
    """Return how alike each row is to the vector, all of length 1 or 0 as ``normalised`` leaves them: -1 to 1.

    Of rows that are sums of such ones, each in shares, it is the sum of the cosines in the same shares.
    """
    return rows @ other


def normalised(rows: Vector) -> Vector:
    """Return each row at length 1, so that a product with another of length 1 is their cosine; a row of no length stays
    0."""
    found = np.array(np.atleast_2d(rows), dtype=np.float32)
    normalise(found)
    return found.reshape(rows.shape)


def normalise(rows: Vector) -> None:
    """Bring the rows themselves to length 1, see ``normalised``. rows: two dimensions."""
    for start in range(0, len(rows), _BATCH_SIZE):
        rows[start : start + _BATCH_SIZE] = _units(rows[start : start + _BATCH_SIZE].astype(np.float64))


def _unit(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return _units(vector[np.newaxis]).reshape(vector.shape)


def _units(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    measured = np.isfinite(largest) & (largest != 0.0)
    # Divided by the largest, as the squares of very large or very small numbers leave the range.
    scaled = np.where(measured, rows, 0.0) / np.where(measured, largest, 1.0)
    scaled /= np.where(measured, np.linalg.norm(scaled, axis=1, keepdims=True), 1.0)
    return scaled


def to_bytes(vector: Vector) -> bytes:
    """Write it as rows keep it: 32-bit floats, the least significant byte first."""
    return vector.astype("<f4").tobytes()


def from_bytes(data: bytes) -> Vector:
    """Return what ``to_bytes`` has made. Raises ValueError."""
    return np.frombuffer(data, dtype="<f4").astype(np.float32)
