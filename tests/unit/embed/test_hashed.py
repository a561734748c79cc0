"""Hashed counts: the same for the same text everywhere, and alike for texts that are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.embed import Hashed
from claudomator_py.routing.space import cosine

ENCODER = Hashed()


@given(st.lists(st.text(max_size=60), max_size=4))
def test_each_text_has_a_row_of_its_own_whatever_it_is_encoded_with(texts: list[str]) -> None:
    rows = ENCODER.encode(texts)

    assert rows.shape == (len(texts), Hashed.dimensions)
    assert np.isfinite(rows).all()
    for row, text in zip(rows, texts, strict=True):
        assert np.array_equal(row, ENCODER.encode([text])[0])


def test_case_and_width_make_no_difference() -> None:
    entry, other = ENCODER.encode(["Fix the LOGIN page", "fix the \uff4c\uff4f\uff47\uff49\uff4e page"])
    assert np.array_equal(entry, other)


def test_a_typing_error_leaves_most_of_a_text_alike() -> None:
    right, wrong, other = ENCODER.encode(["restart the database", "restrat teh database", "paint the garden fence"])
    assert cosine(right, wrong) > 0.4 > cosine(right, other)


def test_a_text_without_words_is_like_nothing() -> None:
    (row,) = ENCODER.encode(["?!"])
    assert not row.any()
