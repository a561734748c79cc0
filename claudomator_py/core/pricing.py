"""What a run cost, where the agent does not say: its tokens at configured prices."""

from collections.abc import Mapping

from claudomator_py.core.agent import Price
from claudomator_py.core.outcome import Outcome, Tokens

_PER = 1_000_000


def cost_usd(tokens: Tokens, price: Price) -> float | None:
    """US dollars for so many tokens; None if it is not known how many."""
    if tokens.input is None or tokens.output is None:
        return None
    return (tokens.input * price.input + tokens.output * price.output) / _PER


def priced(outcome: Outcome, prices: Mapping[str, Price], model: str | None) -> Outcome:
    """The outcome with its cost. What the agent says is kept; a 0 is what it says of a model whose price it has not."""
    price = prices.get(model) if model is not None else None
    if outcome.cost_usd or price is None:
        return outcome
    cost = cost_usd(outcome.tokens, price)
    return outcome if cost is None else outcome.model_copy(update={"cost_usd": cost})
