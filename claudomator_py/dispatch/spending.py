"""Compares spending with the budgets in force: what may still begin, and what has to stop. Sums rows each time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.budget import (
    Budget,
    BudgetOf,
    Day,
    DayBudget,
    Figures,
    Spending,
    SpentBudget,
    Unit,
    WindowUse,
    day_of,
    figures_of,
    left,
    overspent,
    spent,
)
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.reserve import Reserve
from claudomator_py.domain.task import TaskSpec
from claudomator_py.scheduler.snapshot import ActiveHold, DayLeft
from claudomator_py.schema.zones import local_zone
from claudomator_py.store import spending_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Run
from claudomator_py.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DaySpending:
    """Spending of a day, by agent."""

    day: Day
    by_agent: Mapping[str, Spending]

    def of(self, agent: str) -> Spending:
        """Return the agent's spending."""
        return self.by_agent.get(agent, Spending())

    @property
    def total(self) -> Spending:
        """Spending of all agents, including those that are no longer configured."""
        return sum(self.by_agent.values(), Spending())


class Budgets:
    """The budgets in force. budget: returns the daily budget of all agents. reserves: returns the shares of windows
    that are reserved at certain hours."""

    def __init__(
        self, budget: Callable[[], DayBudget] = DayBudget, reserves: Callable[[], Sequence[Reserve]] = tuple
    ) -> None:
        self._budget = budget
        self._reserves = reserves

    @property
    def total(self) -> DayBudget:
        """The daily budget of all agents."""
        return self._budget()

    def day(self, at_ms: int) -> Day:
        """Return the calendar day of that time."""
        return day_of(at_ms, self.zone())

    def spent(self, connection: Connection, at_ms: int, by: Principal = OPERATOR) -> DaySpending:
        """Return the spending on the day of that time by the tasks that the principal can see."""
        day = self.day(at_ms)
        return DaySpending(day, spending_rows.by_agent(connection, day.start_ms, day.end_ms, by))

    def seen(self, connection: Connection, at_ms: int, by: Principal) -> tuple[DaySpending, DaySpending]:
        """Return the spending on the day of that time: by all tasks, and by those that the principal can see."""
        today = self.spent(connection, at_ms)
        return today, today if by.sees_all else self.spent(connection, at_ms, by)

    def day_left(self, spent_today: DaySpending) -> DayLeft | None:
        """Return what may still begin on that day; None if there is no daily budget."""
        budget = self._budget()
        if not budget.units:
            return None
        room = _room(budget, spent_today.total)
        if room is None:
            return DayLeft(until=spent_today.day.end_ms)
        return DayLeft(figures=room.figures, until=spent_today.day.end_ms, room=room.runs)

    def day_holds(self, agent: AgentSpec, spent_today: DaySpending) -> list[ActiveHold]:
        """Return the holds by the agent's own daily budget."""
        room = _room(agent.budget, spent_today.of(agent.name))
        if room is None:
            return []
        hold = ActiveHold(
            bucket=f"{agent.name} today",
            reason=Reason.BUDGET,
            until=spent_today.day.end_ms,
            provenance=Provenance.OPERATOR,
            source="",
            figures=room.figures,
            room=room.runs or None,
        )
        return [hold]

    def window_holds(self, agent: AgentSpec, windows: Mapping[str, WindowUse], now_ms: int) -> list[ActiveHold]:
        """Return the holds by the agent's share of its windows and by reserved hours. windows: the latest report of
        each window of its account."""
        return [
            ActiveHold(
                bucket=f"{agent.name} {name}",
                reason=Reason.BUDGET,
                until=usable.until_ms,
                provenance=Provenance.REPORTED,
                source="",
                family=use.family,
                window=name,
                used=use.used,
                share=usable.share,
                reserved=usable.hours,
            )
            for name, use in windows.items()
            if use.resets_at > now_ms
            for usable in self._usable_shares(agent, use, now_ms)
            if use.used >= usable.share
        ]

    def _usable_shares(self, agent: AgentSpec, use: WindowUse, now_ms: int) -> "Iterator[_UsableShare]":
        """Yield the shares of a window that may be used, by the agent's budget and by each reserve."""
        # Divide as usage was divided: 0.57 multiplied by 100 is less than 57.
        if agent.budget.window is not None:
            yield _UsableShare(agent.budget.window / 100, use.resets_at)
        for reserve in self._reserves():
            share = (100 - reserve.share) / 100
            if use.used < share or not reserve.is_about(agent):
                continue
            until_ms = reserve.ends(now_ms, use.resets_at, self.zone(reserve.timezone))
            if until_ms is not None:
                yield _UsableShare(share, until_ms, reserve.hours)

    def keeps_windows(self, agent: AgentSpec) -> bool:
        """Return whether part of the agent's windows is reserved or beyond its budget."""
        return agent.budget.window is not None or any(reserve.is_about(agent) for reserve in self._reserves())

    def zone(self, name: str | None = None) -> ZoneInfo:
        """Return the time zone of that name; None for the operator's."""
        return ZoneInfo(name or self._budget().timezone or local_zone())

    def change_and_record(
        self, connection: Connection, change: Callable[[Connection], T], run: Run, agent: AgentSpec, now_ms: int
    ) -> T:
        """Make the change in the transaction, and record an event for each daily budget that it uses up. A run of a day
        that is over keeps no others from starting, so there is nothing to tell."""
        if not self._has_budget_of_day(agent) or (until_ms := self.day(run.started_ms).end_ms) <= now_ms:
            return change(connection)
        before = self._used_up(connection, run, agent)
        done = change(connection)
        for of, unit in self._used_up(connection, run, agent).items():
            if of not in before:
                data = {"agent": unit.agent, "budget": unit.model_dump(mode="json"), "until": until_ms}
                record(connection, now_ms, "budget_spent", data=data)
        return done

    def _used_up(self, connection: Connection, run: Run, agent: AgentSpec) -> dict[BudgetOf, SpentBudget]:
        """Return the daily budgets that the run draws on and that are used up."""
        drawn_on = self._of_day(connection, run, agent)
        exceeded = ((budget, spent(budget.budget, budget.spending)) for budget in drawn_on)
        return {budget.of: budget.used_up(unit) for budget, unit in exceeded if unit is not None}

    def watches(self, spec: TaskSpec, agent: AgentSpec) -> bool:
        """Return whether the usage of a run could end it or keep others from beginning."""
        if self.keeps_windows(agent):
            return True
        budgets: tuple[Budget, ...] = (spec.budget, agent.budget, self._budget())
        return any(unit is not Unit.RUNS for budget in budgets for unit in budget.units)

    def exceeded(self, connection: Connection, run: Run, spec: TaskSpec, agent: AgentSpec) -> SpentBudget | None:
        """Return the used-up budget for which the run has to stop, if any."""
        for drawn in self._drawn_on(connection, run, spec, agent):
            unit = overspent(drawn.budget, drawn.spending)
            if unit is not None:
                return drawn.used_up(unit)
        return None

    def usd_left(self, connection: Connection, run: Run, spec: TaskSpec, agent: AgentSpec) -> float | None:
        """Return how many US dollars the run may still use; None for no limit."""
        drawn_on = self._drawn_on(connection, run, spec, agent)
        amounts = [left(drawn.budget, drawn.spending, Unit.USD) for drawn in drawn_on]
        known = [amount for amount in amounts if amount is not None]
        return min(known) if known else None

    def _drawn_on(self, connection: Connection, run: Run, spec: TaskSpec, agent: AgentSpec) -> "list[_DrawnOn]":
        """Return the budgets that the run draws on."""
        drawn = self._of_day(connection, run, agent)
        if not spec.budget.units:
            return drawn
        return [_DrawnOn(BudgetOf.TASK, None, spec.budget, spending_rows.of_task(connection, run.task_id)), *drawn]

    def _has_budget_of_day(self, agent: AgentSpec) -> bool:
        """Return whether a run of the agent draws on a daily budget."""
        return bool(agent.budget.units or self._budget().units)

    def _of_day(self, connection: Connection, run: Run, agent: AgentSpec) -> "list[_DrawnOn]":
        """Return the budgets of the run's day."""
        if not self._has_budget_of_day(agent):
            return []
        today = self.spent(connection, run.started_ms)
        return [
            _DrawnOn(BudgetOf.AGENT, agent.name, agent.budget, today.of(agent.name)),
            _DrawnOn(BudgetOf.DAY, None, self._budget(), today.total),
        ]


@dataclass(frozen=True, slots=True)
class _DrawnOn:
    """A budget that a run draws on, and its spending. agent: None unless it is an agent's."""

    of: BudgetOf
    agent: str | None
    budget: Budget
    spending: Spending

    def used_up(self, unit: Unit) -> SpentBudget:
        """Return the budget as used up by the unit."""
        return SpentBudget(of=self.of, agent=self.agent, figures=figures_of(self.budget, self.spending, unit))


@dataclass(frozen=True, slots=True)
class _UsableShare:
    """The share of a window that may be used until a time. hours: those for which the rest is reserved."""

    share: float
    until_ms: int
    hours: str | None = None


@dataclass(frozen=True, slots=True)
class _Room:
    """The runs that may still begin, and the figures of the budget when none may."""

    runs: int
    figures: Figures


def _room(budget: Budget, spending: Spending) -> _Room | None:
    """Return what the budget leaves; None if any number of runs may begin."""
    unit = spent(budget, spending)
    if unit is not None:
        return _Room(0, figures_of(budget, spending, unit))
    runs = left(budget, spending, Unit.RUNS)
    if runs is None:
        return None
    # The figures when the last of them has begun.
    then = Spending(runs=budget.runs or 0)
    return _Room(int(runs), figures_of(budget, then, Unit.RUNS))
