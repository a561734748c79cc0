"""Histograms: every observation is in one place, and what is merged is as if observed together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.units import Histogram

BOUNDS = (0.5, 1.0, 10.0)
values = st.lists(st.floats(0, 100))


def of(observed: list[float]) -> Histogram:
    histogram = Histogram.empty(BOUNDS)
    for value in observed:
        histogram = histogram.plus(value)
    return histogram


@given(values)
def test_each_step_counts_what_is_at_most_so_large(observed: list[float]) -> None:
    histogram = of(observed)
    expected = [(bound, sum(value <= bound for value in observed)) for bound in (*BOUNDS, float("inf"))]
    assert histogram.cumulative() == expected
    assert histogram.count == len(observed)
    assert histogram.total == pytest.approx(sum(observed))


@given(values, values)
def test_merged_is_observed_together(one: list[float], other: list[float]) -> None:
    merged = of(one).merged(of(other))
    assert merged.counts == of(one + other).counts
    assert merged.total == pytest.approx(of(one + other).total)


def test_other_bounds_cannot_be_merged() -> None:
    with pytest.raises(ValueError, match="different bounds"):
        Histogram.empty((1.0,)).merged(Histogram.empty((2.0,)))
