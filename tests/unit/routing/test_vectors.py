"""Cosine with guard rails, and vectors in rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from claudomator_py.routing.space import Vector, cosine, from_bytes, normalised, to_bytes

VECTORS = arrays.arrays(np.float32, st.integers(0, 8), elements=st.floats(width=32))


def vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(
    ("entry", "other", "alike"),
    [
        ((), (), 0.0),
        ((), (1, 2), 0.0),
        ((0, 0), (1, 2), 0.0),
        ((1, 2), (2, 4), 1.0),
        ((1, 0), (0, 1), 0.0),
        ((1, 2), (-1, -2), -1.0),
        ((3, 4, 100), (3, 4), 1.0),
        ((1e-38, 0), (1e38, 0), 1.0),
        ((math.nan, 1), (1, 1), 0.0),
        ((math.inf, 1), (1, 1), 0.0),
    ],
)
def test_how_alike_two_vectors_are(entry: tuple[float, ...], other: tuple[float, ...], alike: float) -> None:
    assert cosine(vector(*entry), vector(*other)) == pytest.approx(alike, abs=1e-6)


@given(VECTORS, VECTORS)
def test_a_cosine_is_a_number_from_minus_one_to_one_and_the_same_both_ways(one: Vector, other: Vector) -> None:
    alike = cosine(one, other)
    assert -1.0 <= alike <= 1.0
    assert alike == cosine(other, one)


@given(arrays.arrays(np.float32, (3, 4), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_a_product_of_normalised_rows_is_their_cosine(rows: Vector) -> None:
    unit = normalised(rows)
    for i in range(3):
        for j in range(3):
            assert float(unit[i] @ unit[j]) == pytest.approx(cosine(rows[i], rows[j]), abs=1e-5)


@given(arrays.arrays(np.float32, 5, elements=st.floats(width=32, allow_nan=False)))
def test_a_vector_is_the_same_out_of_its_row(kept: Vector) -> None:
    assert np.array_equal(from_bytes(to_bytes(kept)), kept)


def test_bytes_that_are_no_vector_are_refused() -> None:
    with pytest.raises(ValueError, match="buffer size"):
        from_bytes(b"abc")
