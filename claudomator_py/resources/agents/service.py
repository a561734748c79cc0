"""Agents, holds and budgets as views, and an operator's changes to holds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.agent_states import probed
from claudomator_py.dispatch.spending import Budgets, DaySpending
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.blocked import BlockCode, Blocked, blocked, on_hold
from claudomator_py.domain.blocked_words import hold_label, predicate
from claudomator_py.domain.budget import (
    Budget,
    Forecast,
    Reading,
    Spending,
    Unit,
    all_figures,
    figures_of,
    forecast,
    left,
    spent,
    unknown_figures,
    with_unknown,
)
from claudomator_py.domain.errors import NotFound, sentence
from claudomator_py.domain.limits import Hold, window_text
from claudomator_py.domain.outcome import Outcome
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import format_instant, short_id
from claudomator_py.domain.wording import ConversationRef, instant_text, utc_clock, worded
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.ports import Clock
from claudomator_py.resources.agents import (
    AgentCalls,
    AgentView,
    BudgetView,
    ForecastView,
    HoldView,
    NearLimitView,
    SpendingView,
    WindowView,
)
from claudomator_py.resources.session import KeyedService
from claudomator_py.store import hold_rows, run_rows, specialist_rows, spending_rows
from claudomator_py.store.stored_json import readable
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.surface import answers
from claudomator_py.tasks.holds import hold_agent, release_agent
from claudomator_py.texts import cut_line
from claudomator_py.values import dataclass

_SOURCE = 1_000
"""Characters shown of a hold's source."""
_REPORTS = 50
"""Reports of an account that a forecast may use."""
_PLACES = 6
"""Decimals of US dollars, so that errors of floating-point sums do not show."""
AWAY = "it is not connected to the hub, and is woken for work only if its card has a wake_url"
"""The problem of a hub agent that is not connected."""


def hold_views(
    connection: Connection, agents: Sequence[AgentSpec], now_ms: int, by: Principal
) -> dict[str, tuple[HoldView, ...]]:
    """Return each agent's open holds, the longest first.
    Everybody sees the holds; only principals that see all runs see the run in which one was read.
    """
    open_now: list[tuple[Hold, int | None]] = [(hold, None) for hold in hold_rows.in_force(connection, now_ms)]
    tried = probed(connection, run_rows.live(connection), now_ms)
    all_of_them = [*open_now, *((probe.hold, probe.room) for probe in tried)]
    return {
        agent.name: tuple(
            _hold_view(agent.name, hold, may_start, now_ms, by)
            for hold, may_start in all_of_them
            if hold.bucket.is_of(agent.name, agent.kind, agent.quota_account)
        )
        for agent in agents
    }


def agent_views(
    connection: Connection,
    registry: AgentRegistry,
    budgets: Budgets,
    now_ms: int,
    by: Principal,
    seen: tuple[DaySpending, DaySpending],
) -> list[AgentView]:
    """Return the agents that are visible to the principal. Everybody sees their slots, holds and budgets, but only the
    spending of tasks that are visible to them. seen: see ``Budgets.seen``."""
    today, own = seen
    # Read once, as another thread may find a newly installed program meanwhile.
    agents = _seen(connection, registry.agents, by)
    active = Counter(run.agent for run in run_rows.live(connection))
    holds = hold_views(connection, agents, now_ms, by)
    warned = run_rows.warnings(connection, now_ms)
    accounts = {(agent.kind, agent.quota_account) for agent in agents}
    windows = {account: _windows(connection, *account, now_ms, by) for account in accounts}
    views = []
    for agent in agents:
        whole = next((hold for hold in holds[agent.name] if hold.family is None and not hold.probing), None)
        health = registry.health(agent.name)
        is_there = agent.kind != "hub" or agent.specialist is None or registry.is_present(agent.specialist)
        views.append(
            AgentView.of(
                agent,
                program=health.program,
                version=health.version,
                installed=health.installed,
                problem=health.problem or (None if is_there else AWAY),
                active=active[agent.name],
                limited=whole is not None,
                limited_until=whole.until if whole is not None else None,
                hold_reason=hold_label(whole.blocked) if whole is not None and whole.blocked is not None else None,
                provenance=whole.provenance if whole is not None else None,
                cannot_enforce=tuple(registry.cannot_enforce(agent)),
                holds=holds[agent.name],
                windows=windows[agent.kind, agent.quota_account],
                near_limit=_near_limit(agent, warned, by),
                spent_today=spending_view(own.of(agent.name)),
                budget=agent_budget(connection, agent, budgets, today, now_ms),
            )
        )
    return views


def _seen(connection: Connection, agents: Sequence[AgentSpec], by: Principal) -> list[AgentSpec]:
    """Return the agents, without remote specialists whose card is hidden."""
    hidden = specialist_rows.hidden(connection, [agent.specialist for agent in agents], by)
    return [agent for agent in agents if agent.specialist not in hidden]


def hold_sentences(holds: Sequence[HoldView]) -> list[str]:
    """Return a sentence about each hold: what it is on, and where it was read."""
    by_bucket = {hold.bucket: hold for hold in holds}
    return [_hold_sentence(hold) for hold in by_bucket.values()]


def _hold_sentence(hold: HoldView) -> str:
    if hold.reason is None:
        return f"An operator has held {hold.bucket} since {instant_text(hold.since)}."
    # Without a run, the classifier met it, or its run has been removed.
    read = f" from run {short_id(hold.run_id)}" if hold.run_id is not None else ""
    source = f": {cut_line(hold.source, _SOURCE)}" if hold.source else ""
    return f"The hold on {hold.bucket} ({hold.reason}) was read at {instant_text(hold.since)}{read}{source}."


def _hold_view(agent: str, hold: Hold, may_start: int | None, now_ms: int, by: Principal) -> HoldView:
    what = on_hold(
        agent,
        bucket=hold.bucket.label,
        reason=hold.reason,
        until=hold.until_ms,
        provenance=hold.provenance,
        source=hold.source,
        family=hold.bucket.family,
        window=hold.window,
        room=may_start,
        doubted=hold.doubted_ms,
    )
    return HoldView.legible(
        hold,
        agent=agent,
        bucket=hold.bucket.label,
        family=hold.bucket.family,
        until=hold.until_ms,
        text=worded(predicate(what), utc_clock(now_ms)),
        blocked=what,
        since=hold.created_ms,
        run_id=hold.run_id if by.sees_all else None,
        probing=may_start is not None,
        may_start=may_start,
        doubted=hold.doubted_ms,
    )


def _near_limit(agent: AgentSpec, warned: Mapping[tuple[str, str], Run], by: Principal) -> NearLimitView | None:
    run = warned.get((agent.kind, agent.quota_account))
    outcome = None if run is None else readable(Outcome, run.outcome)
    if run is None or outcome is None or run.warned_until_ms is None:
        return None
    return NearLimitView(
        window=outcome.near_limit,
        used=outcome.near_limit_used,
        until=format_instant(run.warned_until_ms),
        since=format_instant(run.ended_ms or run.started_ms),
        run_id=run.id if by.sees_all else "",
    )


def _windows(connection: Connection, kind: str, account: str, now_ms: int, by: Principal) -> tuple[WindowView, ...]:
    reports = spending_rows.window_reports(connection, kind, account, _REPORTS)
    latest = {name: report for report in reversed(reports) for name in report.uses}
    windows = []
    for name, report in latest.items():
        use = report.uses[name]
        readings = [Reading(report.at_ms, report.uses[name]) for report in reversed(reports) if name in report.uses]
        is_over = use.resets_at <= now_ms
        windows.append(
            WindowView.of(
                use,
                account=f"{kind}/{account}",
                name=name,
                used=None if is_over else use.used,
                said_at=report.at_ms,
                run_id=report.run_id if by.sees_all else None,
                forecast=None if is_over else _forecast_view(forecast(readings)),
            )
        )
    return tuple(sorted(windows, key=lambda window: (window.used is None, window.resets_at, window.name)))


def _forecast_view(forecast: Forecast | None) -> ForecastView | None:
    if forecast is None:
        return None
    since = forecast.since
    return ForecastView.model_validate({"full_at": forecast.full_ms, "since": since.at_ms, "used_then": since.use.used})


def spending_view(spending: Spending) -> SpendingView:
    """Return the spending as a view."""
    return SpendingView.of(spending, usd=round(spending.usd, _PLACES))


def task_budget(connection: Connection, task: Task, spec: TaskSpec) -> BudgetView:
    """Return the budget of a task that has one, over all of its runs."""
    return _budget_view(spec.budget, spending_rows.of_task(connection, task.id))


def agent_budget(
    connection: Connection, agent: AgentSpec, budgets: Budgets, today: DaySpending, now_ms: int
) -> BudgetView | None:
    """Return the agent's budget for the day, and for its windows; None without either."""
    budget = agent.budget
    if not budget.units and not budgets.keeps_windows(agent):
        return None
    spending = today.of(agent.name)
    view = _budget_view(budget, spending, today.day.end_ms)
    if not budgets.keeps_windows(agent):
        return view
    windows = spending_rows.windows(connection, agent.kind, agent.quota_account)
    used = {name: use.used for name, use in windows.items() if use.resets_at > now_ms}
    window = None if budget.window is None else f"{budget.window}%"
    view = view.model_copy(update={"window": window, "windows_used": used})
    stopping = budgets.window_holds(agent, windows, now_ms)
    if not stopping or view.reached is not None:
        return view
    longest = max(stopping, key=lambda hold: hold.end)
    until = None if longest.until is None else format_instant(longest.until)
    kept = "" if longest.reserved is None else f", as the rest is kept for {longest.reserved}"
    allowed = f"of which it may use {longest.share:.0%}{kept}"
    reached = f"{longest.used:.0%} of its {window_text(longest.window or '')}, {allowed}"
    return view.model_copy(update={"reached": reached, "until": until})


def day_budget(budgets: Budgets, today: DaySpending) -> BudgetView | None:
    """Return the day's budget for all agents; None without one."""
    return _budget_view(budgets.total, today.total, today.day.end_ms) if budgets.total.units else None


def used_up(connection: Connection, task: Task, spec: TaskSpec) -> Blocked:
    """Return why a task whose budget is used up does not start, and the remedy. A changed file begins a fresh
    conversation, so it is none for a task whose agent is yet to hear an answer."""
    spending = spending_rows.of_task(connection, task.id)
    figures_too = figures_of(spec.budget, spending, spent(spec.budget, spending) or Unit.USD)
    why, resumption = blocked(BlockCode.TASK_BUDGET, task=task.name, figures=figures_too), resumption_of(task)
    if resumption is None or not resumption.answering:
        return why.having(file=task.file_path)
    return why.having(conversation=ConversationRef(run=resumption.run_id, agent=resumption.agent))


def failed_by_budget(connection: Connection, task: Task, spec: TaskSpec, failure: str, *, has_figures: bool) -> str:
    """Return sentences on a task that failed by its budget. failure: of its run. has_figures: whether that includes
    the figures."""
    failed = sentence(failure)
    spending = spending_rows.of_task(connection, task.id)
    unit = spent(spec.budget, spending)
    if unit is None:
        resume = f"`claudomator restart {task.name} --resume`"
        return f"{failed} Run {resume} to continue once the daily budget allows."
    figures_too = "" if has_figures else f" It has used {figures_of(spec.budget, spending, unit).text}."
    more = f"allow it more with `claudomator restart {task.name} --budget-{unit} ...`"
    remedy = more if task.file_path is None else f"raise budget.{unit} in {task.file_path}, or {more}"
    return f"{failed}{figures_too} {sentence(remedy)}"


def budget_sentences(connection: Connection, task: Task, spec: TaskSpec) -> list[str]:
    """Return a sentence about what the task has used of its budget, and whether that delays it even after a reply."""
    if not spec.budget.units:
        return []
    spending = spending_rows.of_task(connection, task.id)
    used = with_unknown(all_figures(spec.budget, spending), unknown_figures(spec.budget, spending))
    delayed = task.state == "NEEDS_INPUT" and spent(spec.budget, spending) is not None
    return [f"It has used {used}{'; after a reply it waits until it is allowed more' if delayed else ''}."]


def _budget_view(budget: Budget, spending: Spending, end_ms: int | None = None) -> BudgetView:
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


@dataclass(eq=False, repr=False)
class Agents(KeyedService):
    """The service of agents. Methods raise NotFound for the name of an unknown agent."""

    registry: AgentRegistry
    budgets: Budgets
    clock: Clock

    @answers(AgentCalls.agents)
    def all(self) -> list[AgentView]:
        """Return the configured agents, in the order of the configuration."""
        return self._read(self._views)

    @answers(AgentCalls.hold)
    def hold(self, name: str, request: HoldRequest, *, key: RequestKey | None = None) -> AgentView:
        """Hold the agent, as an operator: start nothing on it."""
        return self._change(name, partial(hold_agent, request=request), key)

    @answers(AgentCalls.release)
    def release(self, name: str, request: ReleaseRequest | None = None, *, key: RequestKey | None = None) -> AgentView:
        """End all holds of the agent, or those on a model family, as an operator."""
        return self._change(name, partial(release_agent, request=request or ReleaseRequest()), key)

    def _change(self, name: str, change: Callable[..., None], key: RequestKey | None) -> AgentView:
        agent = self._named(name)

        def transaction(connection: Connection) -> AgentView:
            change(connection, agent, now_ms=self.clock())
            return next(view for view in self._views(connection) if view.name == name)

        return self._once(key, AgentView, lambda: transaction)

    def _views(self, connection: Connection) -> list[AgentView]:
        now_ms = self.clock()
        seen = self.budgets.seen(connection, now_ms, self._by)
        return agent_views(connection, self.registry, self.budgets, now_ms, self._by, seen)

    def _named(self, name: str) -> AgentSpec:
        agent = self.registry.find(name)
        if agent is None:
            names = [known.name for known in self.registry.agents]
            raise NotFound.among("agent", name, names, none="no agent is configured")
        return agent
