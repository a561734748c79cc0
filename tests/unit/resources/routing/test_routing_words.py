"""Scores in words: what is below the threshold is seen to be."""

import pytest

from claudomator_py.resources.routing.service import apart


@pytest.mark.parametrize(
    ("score", "threshold", "shown"),
    [
        (0.4, 0.11, ("0.40", "0.11")),
        (0.108, 0.112, ("0.108", "0.112")),
        (0.11, 0.11, ("0.11", "0.11")),
        (0.109999, 0.11, ("0.109999", "0.110000")),
    ],
)
def test_a_score_below_the_threshold_does_not_look_equal(
    score: float, threshold: float, shown: tuple[str, str]
) -> None:
    assert apart(score, threshold) == shown
