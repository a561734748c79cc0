"""What the front page says of budgets: what is spent today, of what, and that nothing starts any more."""

import pytest

from claudomator_py.api.page.front import front_of
from claudomator_py.domain.budget import AgentBudget
from claudomator_py.domain.lifecycle import Completed
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.wording import worded
from claudomator_py.resources.agents import BudgetView, SpendingView
from claudomator_py.resources.overview import StatusView
from claudomator_py.resources.overview.cli import overview
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, text_of

MIDNIGHT = "2026-11-23T00:00:00.000Z"
SPENT = SpendingView(usd=5.0, runs=3)
LEFT = BudgetView(usd=9.0, spent=SPENT, usd_left=4.0, text="5.00 of 9.00 USD", until=MIDNIGHT)
OVER = LEFT.model_copy(update={"usd": 5.0, "text": "5.00 of 5.00 USD", "reached": "5.00 of 5.00 USD"})


def test_an_agent_says_what_it_has_spent_of_its_day_and_once_that_is_all_of_it(
    operator: Visitor, prepared: PreparedService
) -> None:
    prepared.add_agent("alpha", budget=AgentBudget(usd=5.0))
    prepared.add_agent("beta", budget=AgentBudget(usd=9.0))
    prepared.add_agent("gamma")
    for agent in ("alpha", "beta"):
        spent = Outcome(status=OutcomeStatus.SUCCEEDED, cost_usd=5.0)
        prepared.add_run(prepared.add(f"of-{agent}", Completed()), agent, outcome=spent)
    page = text_of(operator.get("/"))
    assert "nothing starts: 5.00 of 5.00 USD used" in page
    assert "today 5.00 of 9.00 USD" in page
    assert page.count("today") == 2  # beta's, and that of all together


def test_the_day_of_all_agents_is_told_with_its_end() -> None:
    def told(budget: BudgetView | None, spent_today: SpendingView = SPENT) -> str:
        spent = front_of(StatusView(budget=budget, spent_today=spent_today)).spent
        assert spent is not None
        return worded(spent, lambda instant: instant)

    assert told(None) == "today 3 runs, $5.00"
    assert told(None, SpendingView(runs=1, unpriced=1, uncounted=1)) == "today 1 run"
    assert told(LEFT) == "today 5.00 of 9.00 USD"
    assert told(OVER) == f"nothing starts: 5.00 of 5.00 USD used, until {MIDNIGHT}"


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (SpendingView(), "0 runs"),
        (SpendingView(runs=1), "1 run, $0.00"),
        (SpendingView(runs=2, tokens=129, unpriced=2), "2 runs, 129 tokens"),
        (SpendingView(runs=3, usd=0.004, tokens=1_200), "3 runs, $0.0040, 1,200 tokens"),
        (SpendingView(runs=4, usd=1.5, tokens=7, unpriced=1, uncounted=1), "4 runs, at least $1.50, 7 tokens"),
    ],
)
def test_what_was_spent_is_the_same_on_the_page_and_in_the_terminal(spent: SpendingView, words: str) -> None:
    status = StatusView(spent_today=spent)
    assert worded(front_of(status).spent or (), str) == f"today {words}"
    assert overview(status).splitlines()[0] == f"Nothing is running or waiting; today {words}"
