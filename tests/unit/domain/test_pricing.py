"""What a run cost, by its tokens."""

import pytest

from claudomator_py.domain.agent import Price
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Tokens
from claudomator_py.domain.report import cost_usd, priced

PRICES = {"cheap": Price(input=1.0, output=4.0)}


def succeeded(tokens: Tokens, cost: float | None = None) -> Outcome:
    return Outcome(status=OutcomeStatus.SUCCEEDED, tokens=tokens, cost_usd=cost)


def test_prices_are_per_million_tokens() -> None:
    assert cost_usd(Tokens(input=500_000, output=250_000), PRICES["cheap"]) == pytest.approx(1.5)
    assert cost_usd(Tokens(input=0, output=0), PRICES["cheap"]) == 0.0


def test_tokens_that_are_not_known_have_no_price() -> None:
    assert cost_usd(Tokens(input=500_000), PRICES["cheap"]) is None
    assert priced(succeeded(Tokens()), PRICES, "cheap").cost_usd is None


def test_what_the_agent_says_is_kept() -> None:
    assert priced(succeeded(Tokens(input=500_000, output=0), cost=0.1), PRICES, "cheap").cost_usd == 0.1


@pytest.mark.parametrize("text", [None, 0.0])
def test_an_agent_that_does_not_know_is_told(text: float | None) -> None:
    assert priced(succeeded(Tokens(input=500_000, output=0), cost=text), PRICES, "cheap").cost_usd == pytest.approx(0.5)


@pytest.mark.parametrize("model", [None, "other"])
def test_a_model_without_a_price_costs_what_the_agent_says(model: str | None) -> None:
    assert priced(succeeded(Tokens(input=1, output=1)), PRICES, model).cost_usd is None
