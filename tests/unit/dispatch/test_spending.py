"""What of the budgets in force is watched while a run lives, and what is left where there is none."""

from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from claudomator_py.dispatch.spending import Budgets, DaySpending
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import AgentBudget, DayBudget, WindowUse, day_of
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import format_instant
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World


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
    today = DaySpending(day_of(START_MS, ZoneInfo("UTC")), {})
    assert Budgets().day_left(today) is None
    left = Budgets(lambda: DayBudget(runs=3)).day_left(today)
    assert left is not None
    assert (left.room, left.until) == (3, today.day.end_ms)
    assert left.figures is not None
    assert left.figures.text == "3 of 3 runs", "as is said once the last of them has begun"


def test_a_day_ends_at_midnight_in_its_zone() -> None:
    today = Budgets(lambda: DayBudget(timezone="Pacific/Auckland")).day(START_MS)
    assert format_instant(today.end_ms) == "2026-09-22T12:00:00.000Z"


@pytest.mark.parametrize(
    ("of_agent", "of_day", "why"),
    [
        ({"usd": 1.0}, {}, "the day's budget of claude is used up, 2.00 of 1.00 USD"),
        ({}, {"usd": 1.0}, "the day's budget of all agents is used up, 2.00 of 1.00 USD"),
    ],
)
def test_a_run_is_stopped_by_either_budget_of_its_day(
    database: Database, of_agent: dict[str, Any], of_day: dict[str, Any], why: str
) -> None:
    world = World(database, agents=[CLAUDE.model_copy(update={"budget": AgentBudget(**of_agent)})])
    world.day_budget = DayBudget(**of_day)
    world.submit("t", on_limit="fail")
    world.tick()
    world.tick()
    world.use("t", cost_usd=2.0)
    world.tick()
    world.tick()
    assert world.state("t") == "FAILED budget"
    assert why in str(world.task("t").reason_text)


def test_of_what_all_have_spent_a_principal_is_told_its_organisations_part(world: World) -> None:
    ann = Principal("ann", Role.OPERATE, organisation="acme")
    for by, name, usd in ((OPERATOR, "ours", 1.0), (ann, "theirs", 0.5)):
        world.access.as_(by)[Tasks].submit(spec(name))
        world.tick()
        world.end(name, cost_usd=usd)
    world.tick()
    for by, own_usd in ((OPERATOR, 1.5), (ann, 0.5)):
        today, own = world.database.read(partial(world.budgets.seen, at_ms=world.now_ms, by=by))
        assert (today.total.usd, own.total.usd) == (1.5, own_usd)


def test_nothing_begins_once_exactly_its_share_of_a_window_is_used() -> None:
    """As the account says it in decimals, which a computer knows only nearly."""

    def stopping(percent: int, used: float, until_ms: int) -> bool:
        fields = {"five_hour": WindowUse(used=used, resets_at=until_ms)}
        return Budgets().window_holds(agent(window=f"{percent}%"), fields, START_MS) != []

    decimals = {percent: float(f"0.{percent:02}") for percent in range(1, 100)}
    assert [percent for percent, used in decimals.items() if not stopping(percent, used, START_MS + 1)] == []
    assert not stopping(80, 0.79, START_MS + 1)
    assert not stopping(80, 1.0, START_MS), "the window is over"
