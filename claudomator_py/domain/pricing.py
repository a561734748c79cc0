"""The cost of a run whose agent does not report it, from its tokens at configured prices; and which costs cannot be
known."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from claudomator_py.domain.agent import AgentSpec, Price
from claudomator_py.domain.budget import Budget, WindowUse
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.kind import UsageReporting
from claudomator_py.domain.outcome import Outcome, Tokens
from claudomator_py.domain.task import TaskSpec
from claudomator_py.values import dataclass

_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Used:
    """What a run has used so far, as far as reported. windows: used share of each of its account's windows."""

    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    windows: Mapping[str, WindowUse] = field(default_factory=dict)

    @classmethod
    def by(cls, outcome: Outcome) -> "Used":
        """Return the total usage of a run."""
        return cls(outcome.tokens, outcome.cost_usd, outcome.windows)

    def priced(self, prices: Mapping[str, Price], model: str | None) -> "Used":
        """Return the usage with its cost added; see ``priced``."""
        price = prices.get(model) if model is not None else None
        if self.cost_usd or price is None:
            return self
        cost = cost_usd(self.tokens, price)
        return self if cost is None else replace(self, cost_usd=cost)


def cost_usd(tokens: Tokens, price: Price) -> float | None:
    """Return the US dollars for that many tokens; None if their number is unknown."""
    if tokens.input is None or tokens.output is None:
        return None
    return (tokens.input * price.input + tokens.output * price.output) / _PER


def priced(outcome: Outcome, prices: Mapping[str, Price], model: str | None) -> Outcome:
    """Return the outcome with its cost. A cost reported by the agent is kept, except 0, which agents report for models
    whose price they do not know."""
    cost = Used.by(outcome).priced(prices, model).cost_usd
    return outcome if cost == outcome.cost_usd else outcome.model_copy(update={"cost_usd": cost})


def unmeasured(task: TaskSpec, agent: AgentSpec) -> list[str]:
    """Return which parts of the task's budget could not be measured on that agent, as sentences with the remedy."""
    if task.budget.usd is None and task.budget.tokens is None:
        return []
    hint = task.agent
    if hint.model is not None and hint.type in (agent.name, agent.kind):
        models: Sequence[str] = (hint.model,)
    elif hint.tier is not None:
        models = [choice.model for tier, choice in agent.models.items() if tier is hint.tier]
    else:
        models = [choice.model for choice in agent.models.values()]
    return [f"{agent.name} cannot keep to {odd.render()}" for odd in unknown_to(task.budget, agent, models)]


def unknown_to(budget: Budget, agent: AgentSpec, models: Sequence[str] | None = None) -> list[Problem]:
    """Return which parts of the budget cannot be known when the agent runs these models, by default all of its own.
    field: the key, such as ``budget.usd``; remedy: None if the program never reports usage."""
    costs = []
    silent = agent.info.reports is UsageReporting.NOTHING
    countless = silent or agent.info.reports is UsageReporting.DOLLARS_ALONE
    if budget.tokens is not None and countless:
        costs.append(Problem(field="budget.tokens", message="its program does not say how many it uses"))
    if budget.usd is not None and silent:
        costs.append(Problem(field="budget.usd", message="its program does not say what it costs"))
    elif budget.usd is not None and agent.info.reports not in (UsageReporting.DOLLARS, UsageReporting.DOLLARS_ALONE):
        named = [choice.model for choice in agent.models.values()] if models is None else models
        without = sorted({model for model in named if model not in agent.prices})
        if without or not named:
            price = f"it has no price for {', '.join(without)}" if without else "its models have no names"
            message = f"its program does not say what it costs, and {price}"
            costs.append(Problem(field="budget.usd", message=message, remedy="add `prices` to the agent"))
    return costs
