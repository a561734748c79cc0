"""The real Claude Code over its budget: it is stopped on the way, or stops itself, and both say so with figures."""

import pytest

from tests.e2e.scenarios_support import ended, last_run, why
from tests.fakes.http_api import INPUT_TOKENS, Text
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE, Cli
from tests.real_clis.place import END_S, SLEEP, Place

ONLY_CLAUDE = pytest.mark.parametrize("cli", [pytest.param(CLAUDE, id="claude", marks=CLAUDE.marks)])


@ONLY_CLAUDE
def test_a_run_is_stopped_once_its_messages_have_used_up_the_tokens(place: Place, cli: Cli) -> None:
    place.api.script(place.writes(), place.sleeps(), Text("never said"))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, budget={"tokens": INPUT_TOKENS + 500}, env={"IS_SANDBOX": "1"})

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.reason, task.runs) == ("FAILED", "budget", 1), task
    assert f"of {INPUT_TOKENS + 500:,} tokens" in str(task.reason_text)
    assert task.budget is not None
    assert task.budget.spent.tokens >= 2 * INPUT_TOKENS
    outcome = last_run(daemon, "greet").outcome
    assert outcome is not None
    assert outcome.tokens.input == 2 * INPUT_TOKENS
    wait_until(lambda: not place.running(SLEEP), "its tool to end")


@ONLY_CLAUDE
def test_it_keeps_to_the_dollars_itself_and_its_word_is_understood(place: Place, cli: Cli) -> None:
    place.api.script(place.writes(), place.writes(), place.writes(), Text("I wrote it."))
    daemon = place.start()
    place.drop("greet", budget={"usd": 0.004})

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.reason, task.runs) == ("FAILED", "budget", 1), task
    assert "of 0.0040 USD" in str(task.reason_text) or "of 0.004 USD" in str(task.reason_text), task.reason_text
    assert (task.cost_usd or 0) > 0.004
    assert place.api.heard <= 3
    assert "(budget)" in why(daemon, "greet")


@ONLY_CLAUDE
def test_within_its_budget_it_is_left_alone(place: Place, cli: Cli) -> None:
    place.api.script(place.writes(), Text("I wrote it."))
    daemon = place.start()
    place.drop("greet", budget={"usd": 5, "tokens": 100_000, "runs": 1})

    task = ended(daemon, "greet", END_S)
    assert task.state == "COMPLETED", task
    assert task.budget is not None
    assert 0 < task.budget.spent.usd < 5
