"""Vectors that represent texts: how similar two of them are, and how they are stored in a row."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
"""One vector, or a row for each of several."""
_Floats = TypeVar("_Floats", np.float32, np.float64)

_BATCH_SIZE = 32
"""Rows computed at once, which bounds the size of the intermediate double-precision array."""


def cosine(first: Vector, other: Vector) -> float:
    """Return the similarity of two vectors, -1 to 1. Never NaN: 0 for a vector that is empty, has length zero or
    contains non-finite values. Vectors that differ in length are compared in their common prefix."""
    common = min(len(first), len(other))
    if not common:
        return 0.0
    a, b = (_unit(vector[:common].astype(np.float64)) for vector in (first, other))
    return float(np.clip(cosines(a[np.newaxis], b)[0], -1.0, 1.0))


def cosines(rows: npt.NDArray[_Floats], other: npt.NDArray[_Floats]) -> npt.NDArray[_Floats]:
    """Return the similarity of each row to the vector, -1 to 1. All must have length 1 or 0, as from ``normalised``.
    For rows that are weighted sums of such vectors, the result is the sum of the cosines with the same weights."""
    return rows @ other


def normalised(rows: Vector) -> Vector:
    """Return each row scaled to length 1, so that the product with another unit vector is their cosine; a row of length
    zero stays 0."""
    matrix = np.array(np.atleast_2d(rows), dtype=np.float32)
    normalise(matrix)
    return matrix.reshape(rows.shape)


def normalise(rows: Vector) -> None:
    """Normalise the rows in place to length 1; see ``normalised``. rows: two dimensions."""
    for start in range(0, len(rows), _BATCH_SIZE):
        rows[start : start + _BATCH_SIZE] = _units(rows[start : start + _BATCH_SIZE].astype(np.float64))


def _unit(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return _units(vector[np.newaxis]).reshape(vector.shape)


def _units(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    measured = np.isfinite(largest) & (largest != 0.0)
    # Scaled by the largest element first, as squares of very large or very small numbers would overflow or underflow.
    scaled = np.where(measured, rows, 0.0) / np.where(measured, largest, 1.0)
    scaled /= np.where(measured, np.linalg.norm(scaled, axis=1, keepdims=True), 1.0)
    return scaled


def to_bytes(vector: Vector) -> bytes:
    """Write the vector as stored in rows: 32-bit floats, least significant byte first."""
    return vector.astype("<f4").tobytes()


def from_bytes(data: bytes) -> Vector:
    """Return the vector written by ``to_bytes``. Raises ValueError."""
    return np.frombuffer(data, dtype="<f4").astype(np.float32)
