"""Budgets behind a real daemon: what may begin, what is stopped on the way, and what survives the daemon's end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.resources.tasks import TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.reloading import reload
from tests.e2e.scenarios_support import document, ended, waits_for, why
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

USUAL: dict[str, Any] = {"kind": "simulated", "auto_select": True, "max_concurrent": 4}
AGENTS = {"alpha": USUAL, "beta": USUAL}
# A thousand tokens, and a cent, with every second.
SPENDING = "simulate: delay=60s tokens=50000/10000 cost=0.6"


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """A site with the simulated agents alpha and beta."""
    with open_site(tmp_path / "site", warm=warm, agents=AGENTS) as opened:
        yield opened


def spend(site: Site, daemon: Daemon, name: str, script: str, **fields: object) -> TaskView:
    """Drop a task that does as the script says, and wait for its end."""
    site.drop(f"{name}.yaml", document(None, f"simulate: {script}", **{"agent": None, **fields}))
    return ended(daemon, name)


def test_a_task_is_stopped_while_it_runs_and_goes_on_once_it_may_use_more(site: Site) -> None:
    daemon = site.start().ready()
    stopped = spend(site, daemon, "greedy", SPENDING.removeprefix("simulate: "), budget={"tokens": 1500})
    assert (stopped.state, stopped.reason) == ("FAILED", "budget")
    assert "of 1,500 tokens" in str(stopped.reason_text)
    assert stopped.budget is not None
    assert 1500 < stopped.budget.spent.tokens < 30_000, "it ran for seconds, not for a minute"
    assert stopped.tokens.input is not None, "what it had said by then is kept"
    waiting = daemon.client.restart("greedy")
    assert (waiting.state, waiting.reason) == ("WAITING", "budget")
    assert "raise budget.tokens in" in str(waiting.reason_text)
    site.drop("greedy.yaml", document(None, "simulate: outcome=success", agent=None, budget={"tokens": 90_000}))
    assert ended(daemon, "greedy").state == "COMPLETED"
    assert "It has used " in why(daemon, "greedy")


def test_a_daemon_killed_between_the_decision_and_the_stop_stops_it_afterwards(site: Site) -> None:
    daemon = site.start(crash_at="budget-met").ready()
    site.drop("greedy.yaml", document(None, SPENDING, agent=None, budget={"usd": 0.01}))
    assert daemon.wait() == -9
    daemon = site.start().ready()
    task = ended(daemon, "greedy")
    assert (task.state, task.reason, task.runs) == ("FAILED", "budget", 1)
    assert "of 0.01 USD" in str(task.reason_text)


def test_a_task_that_uses_up_its_agents_day_goes_on_elsewhere_or_waits_for_midnight(site: Site) -> None:
    site.configure(agents={"alpha": {**USUAL, "budget": {"usd": 0.5}}, "beta": USUAL})
    daemon = site.start().ready()
    costs = "simulate: delay=10s cost=1.2 outcome=success"
    site.drop("bound.yaml", document(None, costs, agent="alpha"))
    site.drop("flows.yaml", document(None, costs, agent=None))
    assert ended(daemon, "flows").agent == "beta"
    bound = waits_for(daemon, "bound", "budget")
    assert (bound.state, bound.attempts) == ("QUEUED", 0)
    assert bound.waiting_until is not None
    (stopped,) = daemon.client.runs("bound")
    assert stopped.outcome is not None
    assert stopped.outcome.reason == "budget"


def test_agents_and_days_have_budgets_that_outlive_the_daemon_and_can_be_raised(site: Site) -> None:
    agents: dict[str, Any] = {"alpha": {**USUAL, "budget": {"usd": 1.0}}, "beta": USUAL}
    site.configure(agents=agents, budget={"usd": 4.0, "timezone": "UTC"})
    daemon = site.start().ready()
    assert spend(site, daemon, "first", "cost=1.5 outcome=success").agent == "alpha"
    daemon.kill()

    daemon = site.start().ready()
    assert spend(site, daemon, "second", "cost=3 outcome=success").agent == "beta", "alpha has spent its day"
    site.drop("third.yaml", document(None, "simulate: outcome=success", agent=None))
    third = waits_for(daemon, "third", "budget")
    assert third.waiting_until is not None
    assert str(third.reason_text).startswith(
        "the daily budget of all agents is used up (4.50 of 4.00 USD); nothing starts until "
    )
    alpha, beta = daemon.client.agents()
    assert alpha.budget is not None
    assert (alpha.budget.reached, alpha.spent_today.usd) == ("1.50 of 1.00 USD", 1.5)
    assert (beta.budget, beta.spent_today.usd, beta.spent_today.runs) == (None, 3.0, 1)

    reload(site, daemon, agents=agents, budget={"usd": 10.0, "timezone": "UTC"})
    assert ended(daemon, "third").agent == "beta"


def test_what_runs_is_stopped_when_the_day_is_spent(site: Site) -> None:
    site.configure(agents=AGENTS, budget={"tokens": 3000})
    daemon = site.start().ready()
    for name in ("one", "two"):
        site.drop(f"{name}.yaml", document(None, SPENDING, agent=None, on_limit="fail"))
    for name in ("one", "two"):
        task = ended(daemon, name)
        assert (task.state, task.reason) == ("FAILED", "budget")
        assert "the day's budget of all agents is used up" in str(task.reason_text)
    wait_until(lambda: daemon.client.status().budget is not None, "the day's budget to be shown")
