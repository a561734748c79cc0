"""Which times are met: those that just came, and of those missed what the policy says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.schedule import LATE_MS, STAMP_LENGTH, CatchUp, Due, due, fire_name
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS

T = 1_790_000_000_000 // DAY_MS * DAY_MS


def hourly(at: int) -> int:
    return at // HOUR_MS * HOUR_MS + HOUR_MS


def minutely(at: int) -> int:
    return at // MINUTE_MS * MINUTE_MS + MINUTE_MS


def test_a_time_that_has_just_come_is_met_whatever_the_policy() -> None:
    for policy in CatchUp:
        assert due(hourly, T, T + HOUR_MS, policy) == Due((T + HOUR_MS,))
        assert due(hourly, T, T + HOUR_MS + LATE_MS - 1, policy) == Due((T + HOUR_MS,))
        assert due(hourly, T, T + HOUR_MS - 1, policy) == Due(())


def test_missed_times_are_skipped_met_once_or_all_met() -> None:
    now = T + 5 * HOUR_MS + 2 * LATE_MS
    times = tuple(T + hour * HOUR_MS for hour in range(1, 6))
    assert due(hourly, T, now, CatchUp.SKIP) == Due((), times[-1])
    assert due(hourly, T, now, CatchUp.ONCE) == Due(times[-1:], times[-2])
    assert due(hourly, T, now, CatchUp.ALL) == Due(times)


def test_a_time_that_has_just_come_stands_for_those_missed() -> None:
    now = T + 5 * HOUR_MS
    assert due(hourly, T, now, CatchUp.SKIP) == Due((now,), now - HOUR_MS)
    assert due(hourly, T, now, CatchUp.ONCE) == Due((now,), now - HOUR_MS)


@pytest.mark.parametrize("policy", CatchUp)
def test_after_years_of_absence_only_the_newest_times_are_looked_at(policy: CatchUp) -> None:
    asked = 0

    def counted(at: int) -> int:
        nonlocal asked
        asked += 1
        return minutely(at)

    now = T + 3650 * DAY_MS + 30_000
    result = due(counted, T, now, policy)
    assert asked < 5_000
    assert len(result.times) == {CatchUp.SKIP: 1, CatchUp.ONCE: 1, CatchUp.ALL: 1_000}[policy]
    assert result.missed is not None


@given(st.integers(0, 400), st.integers(0, 3 * HOUR_MS), st.sampled_from(CatchUp))
def test_what_is_due_lies_between_and_is_in_order(hours: int, more: int, policy: CatchUp) -> None:
    now = T + hours * HOUR_MS + more
    result = due(hourly, T, now, policy, most=100)
    assert list(result.times) == sorted(set(result.times))
    assert all(T < at <= now for at in result.times)
    if result.missed is not None and result.times:
        assert result.missed < result.times[0]
    if result.missed is None:
        assert len(result.times) == hours + more // HOUR_MS


def test_the_name_of_a_task_says_schedule_and_time_in_utc() -> None:
    assert fire_name("nightly", 1_795_312_800_000) == "nightly.20261122t0200z"
    assert fire_name("nightly", 1_795_312_861_999) == "nightly.20261122t020101z"


def test_the_longest_name_of_a_schedule_makes_a_valid_name() -> None:
    name = "a" * (100 - STAMP_LENGTH)
    spec = TaskSpec(name=name, instructions="x", schedule="0 3 * * *").fired(T + 1_000)
    again = TaskSpec.model_validate(spec.model_dump(mode="json"))
    assert again == spec
    assert (spec.schedule, len(spec.name)) == (None, 100)
