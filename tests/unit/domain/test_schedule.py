"""Order and readiness: ageing, pauses, and what a task waits for."""

from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.lifecycle import (
    DependencyState,
    Failing,
    Queued,
    Waiting,
    WaitReason,
    backoff_ms,
    rank,
    readiness,
)
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.task import Priority
from claudomator_py.domain.units import DAY_MS, HOUR_MS

TIMES = st.integers(1_600_000_000_000, 2_000_000_000_000)
PRIORITIES = st.sampled_from(Priority)
STATES = st.none() | st.sampled_from(
    ["WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT", "COMPLETED", "FAILED", "CANCELLED"]
)
DEPENDENCIES = st.lists(st.builds(DependencyState, st.text(min_size=1, max_size=3), STATES), max_size=4)


@given(PRIORITIES, TIMES)
def test_a_task_gains_a_level_every_24_hours(priority: Priority, created: int) -> None:
    day_older = rank(priority, created - DAY_MS)
    if priority is not Priority.URGENT:
        assert day_older == rank(Priority(priority + 1), created)
        assert rank(Priority(priority + 1), created) < rank(priority, created)


@given(PRIORITIES, TIMES, PRIORITIES, TIMES, st.integers(0, 400 * DAY_MS))
def test_the_constant_order_is_that_of_levels_plus_age_at_any_time(
    one: Priority, born: int, other: Priority, other_born: int, later: int
) -> None:
    now = max(born, other_born) + later
    level = int(one) * DAY_MS + (now - born)
    other_level = int(other) * DAY_MS + (now - other_born)
    assert (rank(one, born) < rank(other, other_born)) == (level > other_level)


def test_nothing_starves() -> None:
    old = rank(Priority.LOW, 0)
    assert old < rank(Priority.URGENT, 3 * DAY_MS + 1)


@given(st.integers(0, 7 * DAY_MS), st.integers(1, 100), st.text(max_size=40))
def test_a_pause_doubles_up_to_an_hour_and_jitters_by_a_tenth(base: int, attempt: int, run_id: str) -> None:
    pause = backoff_ms(base, attempt, run_id)
    bare = min(base * 2 ** (attempt - 1), max(base, HOUR_MS))
    assert bare <= pause <= bare + bare // 10
    assert pause == backoff_ms(base, attempt, run_id)
    assert pause >= base


def test_jitter_differs_from_run_to_run() -> None:
    assert len({backoff_ms(60_000, 1, f"run-{number}") for number in range(20)}) > 10


@given(DEPENDENCIES, st.none() | TIMES, st.none() | TIMES, TIMES)
def test_readiness_is_dependencies_then_time_then_pause(
    dependencies: list[DependencyState], not_before: int | None, backoff_until: int | None, now: int
) -> None:
    verdict = readiness(dependencies, not_before, backoff_until, now)
    states = [dependency.state for dependency in dependencies]
    if "FAILED" in states or "CANCELLED" in states:
        assert verdict == Failing(Reason.DEPENDENCY_FAILED)
    elif states.count("COMPLETED") < len(states):
        assert verdict == Waiting(WaitReason.DEPENDENCY)
    elif not_before is not None and not_before > now:
        assert verdict == Waiting(WaitReason.TIME, not_before)
    elif backoff_until is not None and backoff_until > now:
        assert verdict == Waiting(WaitReason.BACKOFF, backoff_until)
    else:
        assert verdict == Queued()


@given(st.none() | TIMES, st.none() | TIMES, TIMES)
def test_what_waits_for_a_time_is_ready_once_it_has_come(
    not_before: int | None, backoff_until: int | None, now: int
) -> None:
    verdict = readiness((), not_before, backoff_until, now)
    if isinstance(verdict, Waiting):
        assert verdict.until is not None
        assert verdict.until > now
        assert readiness((), not_before, backoff_until, max(not_before or 0, backoff_until or 0)) == Queued()


def test_a_task_waits_for_its_dependencies_its_budget_and_its_times() -> None:
    now = 1_790_000_000_000
    done, open_ = DependencyState("a", "COMPLETED"), DependencyState("b", "RUNNING")
    assert readiness([done, open_], now + 1, now + 2, now, spent=True) == Waiting(WaitReason.DEPENDENCY)
    assert readiness([done], now + 1, now + 2, now, spent=True) == Waiting(WaitReason.BUDGET)
    assert readiness([done], now + 1, now + 2, now) == Waiting(WaitReason.TIME, now + 1)
    assert readiness([done], now, now + 2, now) == Waiting(WaitReason.BACKOFF, now + 2)
    assert readiness([done], now, now, now) == Queued()
