"""Budgets as people are told about them: what may be spent, what was, what is left, and what to do once nothing is."""

from sqlalchemy import Connection

from claudomator_py.dispatch.spending import Budgets, Spent
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.budget import (
    Budget,
    Spending,
    Unit,
    all_figures,
    figures_of,
    left,
    spent,
    unknown_figures,
    with_unknown,
)
from claudomator_py.domain.errors import sentence
from claudomator_py.domain.limits import window_text
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_instant
from claudomator_py.resources.agents.shape import BudgetView, SpendingView
from claudomator_py.store import spending_rows
from claudomator_py.store.tables import Task

_PLACES = 6
"""Of US dollars: what sums of floating-point numbers are off by comes after them."""


def spending_view(spending: Spending) -> SpendingView:
    """What was spent."""
    return SpendingView.of(spending, usd=round(spending.usd, _PLACES))


def task_budget(connection: Connection, task: Task, spec: TaskSpec) -> BudgetView | None:
    """The task's budget, over all of its runs; None if it has none."""
    if not spec.budget.units:
        return None
    return _view(spec.budget, spending_rows.of_task(connection, task.id))


def agent_budget(
    connection: Connection, agent: AgentSpec, budgets: Budgets, today: Spent, now_ms: int
) -> BudgetView | None:
    """The agent's budget for the day, and its share of a window; None if it has neither."""
    budget = agent.budget
    if not budget.units and budget.window is None:
        return None
    spending = today.of(agent.name)
    view = _view(budget, spending, today.day.end_ms)
    if budget.window is None:
        return view
    said = spending_rows.windows(connection, agent.kind, agent.quota_account)
    used = {name: use.used for name, use in said.items() if use.resets_at > now_ms}
    view = view.model_copy(update={"window": f"{budget.window}%", "windows_used": used})
    stopping = budgets.window_holds(agent, said, now_ms)
    if not stopping or view.reached is not None:
        return view
    longest = max(stopping, key=lambda hold: hold.end)
    until = None if longest.until is None else format_instant(longest.until)
    reached = f"{longest.used:.0%} of its {window_text(longest.window or '')}, of which it may use {budget.window}%"
    return view.model_copy(update={"reached": reached, "until": until})


def day_budget(budgets: Budgets, today: Spent) -> BudgetView | None:
    """The day's budget for all agents; None if there is none."""
    return _view(budgets.total, today.total, today.day.end_ms) if budgets.total.units else None


def used_up(connection: Connection, task: Task, spec: TaskSpec) -> Blocked:
    """Why a task whose budget is used up does not start, and what to do about it."""
    spending = spending_rows.of_task(connection, task.id)
    figures_too = figures_of(spec.budget, spending, spent(spec.budget, spending) or Unit.USD)
    return blocked(BlockCode.TASK_BUDGET, task=task.name, file=task.file_path, figures=figures_too)


def failed_by_budget(connection: Connection, task: Task, spec: TaskSpec, failure: str, *, told: bool) -> str:
    """What is said of a task that a budget has ended. failure: what its run says; told: with the figures."""
    failed = sentence(failure)
    spending = spending_rows.of_task(connection, task.id)
    unit = spent(spec.budget, spending)
    if unit is None:
        resume = f"`claudomator restart {task.name} --resume`"
        return f"{failed} Run {resume} to continue once the daily budget allows."
    figures_too = "" if told else f" It has used {figures_of(spec.budget, spending, unit).text}."
    more = f"allow it more with `claudomator restart {task.name} --budget-{unit} ...`"
    remedy = more if task.file_path is None else f"raise budget.{unit} in {task.file_path}, or {more}"
    return f"{failed}{figures_too} {sentence(remedy)}"


def budget_sentences(connection: Connection, task: Task, spec: TaskSpec) -> list[str]:
    """What the task has used of its budget."""
    if not spec.budget.units:
        return []
    spending = spending_rows.of_task(connection, task.id)
    return [f"It has used {with_unknown(all_figures(spec.budget, spending), unknown_figures(spec.budget, spending))}."]


def _view(budget: Budget, spending: Spending, end_ms: int | None = None) -> BudgetView:
    unit = spent(budget, spending)
    tokens, runs, usd = (left(budget, spending, unit) for unit in (Unit.TOKENS, Unit.RUNS, Unit.USD))
    return BudgetView.of(
        budget,
        window=None,
        spent=spending_view(spending),
        usd_left=None if usd is None else round(usd, _PLACES),
        tokens_left=None if tokens is None else int(tokens),
        runs_left=None if runs is None else int(runs),
        text=all_figures(budget, spending),
        unknown=unknown_figures(budget, spending),
        reached=None if unit is None else all_figures(budget, spending),
        until=end_ms,
    )
