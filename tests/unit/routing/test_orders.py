"""Texts as orders: where a long sentence is cut, and what its parts want."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.routing.orders import clauses, sentences


@given(st.text(alphabet="ab ,;(\n", min_size=900, max_size=4_000), st.integers(0, 3_000))
def test_a_sentence_that_is_cut_keeps_every_word_with_what_stands_near_it(text: str, place: int) -> None:
    near = "".join(text[place : place + 200].split(";"))
    if near.strip() and "\n" not in near:
        assert any(near.strip() in piece for piece in sentences(text.replace(";", "")))


@pytest.mark.parametrize(
    ("sentence", "ends", "goes_on"),
    [
        ("a" * 1_001, 1_000, 700),
        (f"{'a' * 940} {'b' * 29} {'c' * 400}", 970, 670),
        (f"{'a' * 600} {'b' * 20} {'c' * 600}", 1_000, 621),
        (f"{'a' * 600}, {'b' * 20}, {'c' * 30} {'d' * 600}", 1_000, 622),
    ],
    ids=["wherever it is", "at the last blank", "from the last blank", "from the last clause"],
)
def test_a_sentence_that_is_too_long_is_cut_where_as_little_as_may_be_is_torn(
    sentence: str, ends: int, goes_on: int
) -> None:
    assert sentences(sentence) == [sentence[:ends], sentence[goes_on:]]


def test_a_blank_line_is_no_sentence() -> None:
    assert sentences("Look at the log\n \nand write a report.\n") == ["Look at the log", "and write a report."]


def test_a_sentence_that_is_just_short_enough_is_left_whole() -> None:
    assert sentences("a" * 1_000) == ["a" * 1_000]


def test_nothing_stands_between_an_order_and_what_else_it_says_in_brackets() -> None:
    assert [clause.verb for clause in clauses("Drop the table, (wiping the disks)")] == ["drop", "wipe"]


@pytest.mark.parametrize(
    ("state", "order"),
    [
        ("opened", "open"),
        ("dropped", "drop"),
        ("pulled", "pull"),
        ("deleted", "delete"),
        ("copied", "copy"),
        ("sent", "send"),
        ("open", None),
        ("readied", None),
    ],
)
def test_what_is_to_be_done_with_something_is_an_order_and_how_it_has_to_be_is_none(
    state: str, order: str | None
) -> None:
    assert [clause.verb for clause in clauses(f"The port must be {state}")] == [order]


def test_what_somebody_needs_is_no_order() -> None:
    assert [clause.verb for clause in clauses("The team needs copies")] == [None]
