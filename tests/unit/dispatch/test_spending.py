"""What of the budgets in force is watched while a run lives, and what is left where there is none."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from claudomator_py.dispatch.spending import Budgets, Spent
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import AgentBudget, DayBudget, day_of
from tests.fakes.world import START_MS, spec


def agent(**budget: Any) -> AgentSpec:
    return AgentSpec(name="claude", kind="claude", budget=AgentBudget(**budget))


@pytest.mark.parametrize(
    ("task", "of_agent", "of_day", "watched"),
    [
        ({}, {}, {}, False),
        ({"runs": 2}, {"runs": 3}, {"runs": 9}, False),
        ({"usd": 2.0}, {}, {}, True),
        ({}, {"tokens": 1_000}, {}, True),
        ({}, {"runs": 3}, {"usd": 9.0}, True),
        ({}, {"window": "80%"}, {}, True),
    ],
)
def test_a_run_is_watched_if_what_it_uses_counts_before_its_end(
    task: dict[str, Any], of_agent: dict[str, Any], of_day: dict[str, Any], watched: bool
) -> None:
    budgets = Budgets(lambda: DayBudget(**of_day))
    assert budgets.watches(spec("t", budget=task) if task else spec("t"), agent(**of_agent)) is watched


def test_of_a_day_without_a_budget_nothing_is_told() -> None:
    today = Spent(day_of(START_MS, ZoneInfo("UTC")), {})
    assert Budgets().day_left(today) is None
    left = Budgets(lambda: DayBudget(runs=3)).day_left(today)
    assert left is not None
    assert (left.room, left.until) == (3, today.day.end_ms)
