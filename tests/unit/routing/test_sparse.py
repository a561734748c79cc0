"""Rows that are mostly zeros give what their dense likes do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from claudomator_py.routing.space import SparseRow, Vector, frequencies, means, normalised

WIDTH = 7
ROWS = arrays(np.float32, WIDTH, elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.5, 0.4]))


@given(st.lists(st.lists(ROWS, min_size=1, max_size=4), max_size=600), arrays(np.float32, WIDTH, elements=st.just(1.5)))
def test_means_are_those_of_the_dense_rows(groups: list[list[Vector]], weights: Vector) -> None:
    weights = (weights * np.arange(1, WIDTH + 1)).astype(np.float32)
    result = means([[SparseRow.of(row) for row in group] for group in groups], weights)

    assert result.shape == (len(groups), WIDTH)
    for row, group in zip(result, groups, strict=True):
        assert np.allclose(row, normalised(np.stack(group) * weights).mean(axis=0), atol=1e-6)


@given(st.lists(ROWS, max_size=20))
def test_frequencies_are_of_the_rows_that_have_a_feature(rows: list[Vector]) -> None:
    expected = np.stack([row > 0 for row in rows]).sum(axis=0) if rows else np.zeros(WIDTH)
    assert frequencies([SparseRow.of(row) for row in rows], WIDTH).tolist() == expected.tolist()
    assert all(np.array_equal(SparseRow.of(row).dense, row) for row in rows)
