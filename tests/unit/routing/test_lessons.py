"""What labels teach: performance, and the vote of earlier tasks; and the other signals beside likeness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.learning import LabelVerdict
from claudomator_py.routing.lessons import (
    HALF_LIFE_MS,
    PRIOR,
    SUCCESS_HALF_LIFE_MS,
    Lesson,
    Lessons,
    SpecialistStats,
    Votes,
    corrected,
    keyword_in,
    moved,
    recency,
    standing_of,
)

NOW_MS = 1_790_000_000_000
ALIKE = 0.2


def lessons(*text: tuple[float, str | None, str | None], at_ms: int = NOW_MS) -> Lessons:
    """text: of each task how alike the new one is to it, who did it, and who was wanted."""
    rows = np.array([[entry[0], np.sqrt(1 - entry[0] ** 2)] for entry in text], dtype=np.float32)
    return Lessons([Lesson("", chosen, wanted, at_ms) for _, chosen, wanted in text], rows, ALIKE)


TASK = np.array([1.0, 0.0], dtype=np.float32)


@pytest.mark.parametrize(
    ("before", "verdict", "after"),
    [
        (0.5, LabelVerdict.POSITIVE, 0.55),
        (0.5, LabelVerdict.NEGATIVE, 0.45),
        (0.5, LabelVerdict.NEUTRAL, 0.5),
        (0.55, LabelVerdict.POSITIVE, 0.595),
        (1.0, LabelVerdict.POSITIVE, 1.0),
        (0.0, LabelVerdict.NEGATIVE, 0.0),
    ],
)
def test_performance_is_a_moving_average(before: float, verdict: LabelVerdict, after: float) -> None:
    assert moved(before, verdict, 0.1) == pytest.approx(after)


@given(st.lists(st.sampled_from(LabelVerdict)), st.floats(0, 1))
def test_performance_stays_between_0_and_1(verdicts: list[LabelVerdict], rate: float) -> None:
    performance = 0.5
    for verdict in verdicts:
        performance = moved(performance, verdict, rate)
        assert 0 <= performance <= 1


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.data(), st.floats(0.01, 1))
def test_a_corrected_label_counts_as_if_it_had_been_so_from_the_first(
    successes: list[bool], data: st.DataObject, rate: float
) -> None:
    at = data.draw(st.integers(0, len(successes) - 1))
    right = [success is not (place == at) for place, success in enumerate(successes)]

    def average(of: list[bool]) -> float:
        performance = 0.5
        for success in of:
            performance = moved(performance, LabelVerdict.POSITIVE if success else LabelVerdict.NEGATIVE, rate)
        return performance

    verdict = LabelVerdict.POSITIVE if right[at] else LabelVerdict.NEGATIVE
    result = corrected(average(successes), verdict, rate, len(successes) - 1 - at)
    assert result == pytest.approx(average(right))


def test_what_is_known_of_all_topics_stands_in_for_one_of_which_nothing_is() -> None:
    standings = {("a", ""): SpecialistStats(0.7, 5), ("a", "sql"): SpecialistStats(0.2, 3)}

    assert standing_of(standings, "a", "sql") == SpecialistStats(0.2, 5)
    assert standing_of(standings, "a", "css") == SpecialistStats(0.7, 5)
    assert standing_of(standings, "a", None) == SpecialistStats(0.7, 5)
    assert standing_of(standings, "b", "sql") == SpecialistStats(0.5, None)


def test_an_equal_task_that_was_moved_speaks_for_one_and_against_the_other() -> None:
    votes = lessons((1.0, "a", "b")).votes(TASK, NOW_MS).shares

    assert votes == {"a": pytest.approx(-1 / (1 + PRIOR)), "b": pytest.approx(1 / (1 + PRIOR))}


def test_what_is_not_like_the_task_says_nothing() -> None:
    assert lessons((ALIKE, "a", "b"), (-0.5, "a", "b")).votes(TASK, NOW_MS) == Votes()
    assert Lessons([], np.zeros((0, 0), dtype=np.float32), ALIKE).votes(TASK, NOW_MS) == Votes()


def test_what_was_right_speaks_against_a_correction() -> None:
    alone = lessons((1.0, "a", "b")).votes(TASK, NOW_MS).shares["b"]
    beside = lessons((1.0, "a", "b"), (1.0, "a", None), (1.0, "a", None)).votes(TASK, NOW_MS).shares

    assert beside["b"] < alone
    assert beside["a"] > 0


def test_whom_operators_have_given_such_tasks_is_told_from_whom_they_went_well_with() -> None:
    votes = lessons((1.0, "a", "b"), (1.0, "c", None), (ALIKE, "a", "d")).votes(TASK, NOW_MS)

    assert votes.shares["c"] > 0
    assert votes.corrected == {"b"}


def test_the_more_alike_the_more_it_counts() -> None:
    votes = lessons((0.9, "a", "b"), (0.4, "a", "c")).votes(TASK, NOW_MS).shares

    assert votes["b"] > votes["c"] > 0


def test_a_label_counts_half_after_its_half_life() -> None:
    both = Lessons(
        [Lesson("", None, "old", NOW_MS - HALF_LIFE_MS), Lesson("", None, "new", NOW_MS)],
        np.array([[1.0, 0.0], [1.0, 0.0]], dtype=np.float32),
        ALIKE,
    )

    votes = both.votes(TASK, NOW_MS).shares

    assert votes["old"] == pytest.approx(votes["new"] / 2)
    assert list(votes) == ["old", "new"], "nobody is voted for whom nothing is known"


def test_a_label_of_the_future_counts_as_one_of_now() -> None:
    votes = lessons((1.0, None, "b"), at_ms=NOW_MS + HALF_LIFE_MS).votes(TASK, NOW_MS).shares

    assert votes == {"b": pytest.approx(1 / (1 + PRIOR))}


@given(
    st.lists(
        st.tuples(
            st.floats(-1, 1),
            st.sampled_from(["a", "b", None]),
            st.sampled_from(["a", "b", "c", None]),
        ),
        max_size=20,
    )
)
def test_a_vote_is_between_minus_1_and_1(said: list[tuple[float, str | None, str | None]]) -> None:
    votes = lessons(*said).votes(TASK, NOW_MS).shares if said else {}

    assert all(-1 <= vote <= 1 for vote in votes.values())


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Add a REST API endpoint", "rest api"),
        ("Add a rest\n api", "rest api"),
        ("the rest apiary", None),
        ("interest api", None),
        ("Rest-API", None),
    ],
)
def test_a_keyword_is_found_as_whole_words(text: str, result: str | None) -> None:
    assert keyword_in(text, ["rest api"]) == result


def test_a_success_counts_half_after_two_days() -> None:
    assert recency(None, 0) == 0.0
    assert recency(SUCCESS_HALF_LIFE_MS, SUCCESS_HALF_LIFE_MS) == 1.0
    assert recency(0, SUCCESS_HALF_LIFE_MS) == pytest.approx(0.5)
    assert recency(SUCCESS_HALF_LIFE_MS, 0) == 1.0
