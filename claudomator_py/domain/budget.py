"""Budgets: what may be spent, what is left, and which limit is reached first. Spending itself is read from rows."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer, ValidationError, WithJsonSchema

from claudomator_py.domain.errors import shown
from claudomator_py.domain.fields import Count, Line, Strict, refusal
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, SECOND_MS, counted
from claudomator_py.values import dataclass

LEAST_USD = 0.0001
MAX_USD = 1_000_000
MAX_TOKENS = 10**12
MAX_RUNS = 1_000_000
NEVER_TOO_MUCH = 1e-9
"""Tolerance for sums of dollars, which are floating-point numbers; tokens and runs are integers."""


class Unit(StrEnum):
    """What a budget counts."""

    USD = "usd"
    TOKENS = "tokens"
    RUNS = "runs"


_WORDS = {Unit.USD: "USD", Unit.TOKENS: "tokens", Unit.RUNS: "runs"}
_CENT = 0.01
_WHILE_RUNNING = (Unit.USD, Unit.TOKENS)
"""Units that keep rising while a run is alive."""


def _percent(value: object) -> object:
    remedy = "write a whole number of percent, such as 80%"
    text = value.strip() if isinstance(value, str) else ""
    number = text.removesuffix("%").rstrip()
    if not text.endswith("%") or not number.isascii() or not number.isdecimal() or not 0 < int(number[:4]) <= 100:
        raise refusal(f"`{shown(str(value))}` is not a share", remedy)
    return int(number)


Dollars = Annotated[float, Field(strict=True, ge=LEAST_USD, le=MAX_USD)]
Percent = Annotated[
    int,
    BeforeValidator(_percent),
    PlainSerializer(lambda percent: f"{percent}%", return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^([1-9][0-9]?|100) ?%$", "examples": ["80%"]}),
]


class Budget(Strict):
    """Maximum spending in total. Tokens: input and output together, including cached ones."""

    usd: Dollars | None = Field(None, description="US dollars. The agent must report its cost or have `prices`.")
    tokens: Count | None = Field(
        None, ge=1, le=MAX_TOKENS, description="Tokens: input plus output, including cached ones."
    )
    runs: Count | None = Field(
        None, ge=1, le=MAX_RUNS, description="Runs, not counting those that only hit a known limit or an outage."
    )

    def limit(self, unit: Unit) -> float | None:
        """Return the limit for the unit; None if unlimited."""
        return dict(self._limits)[unit]

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units that the budget limits."""
        if self.usd is None and self.tokens is None and self.runs is None:
            return ()  # the most common case, checked for each task
        return tuple([unit for unit, limit in self._limits if limit is not None])

    @property
    def _limits(self) -> tuple[tuple[Unit, float | None], ...]:
        return (Unit.USD, self.usd), (Unit.TOKENS, self.tokens), (Unit.RUNS, self.runs)


class AgentBudget(Budget):
    """What an agent may spend per day, and how much of its account's window may be used up."""

    window: Percent | None = Field(
        None,
        description="Share of a window: once the account has used this much, no run starts until the reset. "
        "Kind `claude` only.",
    )


class DayBudget(Budget):
    """What all agents together may spend per day."""

    timezone: Annotated[Line, Field(max_length=100)] | None = Field(
        None, description="Time zone of the budget's day, such as Europe/Berlin. Default: the zone of this machine."
    )


@dataclass(frozen=True, slots=True)
class Spending:
    """What runs have used, as far as known."""

    usd: float = 0.0
    tokens: int = 0
    runs: int = 0
    unpriced: int = 0
    """Number of runs that have ended with unknown cost in dollars."""
    uncounted: int = 0
    """Number of runs that have ended with unknown tokens."""

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            self.usd + other.usd,
            self.tokens + other.tokens,
            self.runs + other.runs,
            self.unpriced + other.unpriced,
            self.uncounted + other.uncounted,
        )

    def amount(self, unit: Unit) -> float:
        """Return the amount spent of the unit."""
        return {Unit.USD: self.usd, Unit.TOKENS: self.tokens, Unit.RUNS: self.runs}[unit]


class WindowUse(BaseModel, frozen=True):
    """How much of one of its windows an account has used up. used: 1 is all of it. resets_at: epoch milliseconds.
    family: the models that the window applies to; None for all."""

    used: float
    resets_at: int
    family: str | None = None


class Reading(NamedTuple):
    """What an account reported about one of its windows."""

    at_ms: int
    """Time of the report, in epoch milliseconds."""
    use: WindowUse


MIN_PACE_MS = 5 * MINUTE_MS
"""Readings closer together than this say nothing about the pace."""
PACE_MS = HOUR_MS


class Forecast(NamedTuple):
    """When a window will be full at the pace of its latest readings."""

    full_ms: int | None
    """None if the window resets before it is full."""
    since: Reading
    """The earliest reading that the forecast is based on."""


def forecast(readings: Sequence[Reading]) -> Forecast | None:
    """Return the forecast from the last hour of a window's readings, given oldest first; None if they allow none.

    Only readings before the same reset count. The pace is the rise between the first and the last of them, divided by
    the time between.
    """
    if not readings:
        return None
    last = readings[-1]
    recent = [
        reading
        for reading in readings
        if reading.use.resets_at == last.use.resets_at and reading.at_ms >= last.at_ms - PACE_MS
    ]
    since = recent[0]
    took_ms, rise = last.at_ms - since.at_ms, last.use.used - since.use.used
    if took_ms < MIN_PACE_MS or rise <= 0 or last.use.used >= 1:
        return None
    full_ms = last.at_ms + round((1 - last.use.used) / rise * took_ms)
    return Forecast(full_ms if full_ms < last.use.resets_at else None, since)


def spent(budget: Budget, spending: Spending) -> Unit | None:
    """Return the limit that is used up, so that nothing more may start: of several, the one exceeded by the largest
    share."""
    shares = [(share, unit) for share, unit in _shares(budget, spending, tuple(Unit)) if share >= 1]
    return max(shares, key=lambda pair: pair[0])[1] if shares else None


def is_spent(budget: Budget, ask: Callable[[], Spending]) -> bool:
    """Return whether the budget is used up; calls ``ask`` only if the budget limits anything."""
    return bool(budget.units) and spent(budget, ask()) is not None


def overspent(budget: Budget, spending: Spending) -> Unit | None:
    """Return the limit exceeded by what live runs use, so that they must be stopped; of several, see ``spent``."""
    shares = _shares(budget, spending, _WHILE_RUNNING)
    over = [(share, unit) for share, unit in shares if _exceeded(budget, spending, unit)]
    return max(over, key=lambda pair: pair[0])[1] if over else None


def left(budget: Budget, spending: Spending, unit: Unit) -> float | None:
    """Return how much of the unit is left, at least 0; None if unlimited."""
    limit = budget.limit(unit)
    return None if limit is None else max(0.0, limit - spending.amount(unit))


class Figures(BaseModel, frozen=True):
    """What was spent, out of which limit."""

    unit: Unit
    spent: float
    limit: float
    unpriced: int = 0
    """Number of runs of unknown cost, if dollars are limited."""
    uncounted: int = 0
    """Number of runs with unknown tokens, if tokens are limited."""

    @property
    def text(self) -> str:
        """In words: ``2.10 of 2.00 USD``, ``5 of 5 runs (cost of 1 run not known)``."""
        return with_unknown(
            _figures_text(self.unit, self.spent, self.limit), _unknown_text(self.unpriced, self.uncounted)
        )


def figures_of(budget: Budget, spending: Spending, unit: Unit) -> Figures:
    """Return what was spent of the budget's limit for the unit, and which runs could not be counted."""
    return Figures(
        unit=unit,
        spent=spending.amount(unit),
        limit=budget.limit(unit) or 0,
        unpriced=spending.unpriced if budget.usd is not None else 0,
        uncounted=spending.uncounted if budget.tokens is not None else 0,
    )


class BudgetOf(StrEnum):
    """Whose budget it is. Values are stored and part of the API: never rename them."""

    TASK = "task"
    AGENT = "agent"
    """An agent's, for a day."""
    DAY = "day"
    """The budget of all agents together, for a day."""


class SpentBudget(BaseModel, frozen=True):
    """A budget that is used up."""

    of: BudgetOf
    agent: str | None = None
    """The agent whose budget it is."""
    figures: Figures

    @property
    def text(self) -> str:
        """In words: ``its budget is used up, 1,300 of 1,000 tokens``. The subject is a task."""
        whose = {
            BudgetOf.TASK: "its budget",
            BudgetOf.AGENT: f"the day's budget of {self.agent}",
            BudgetOf.DAY: "the day's budget of all agents",
        }
        return f"{whose[self.of]} is used up, {self.figures.text}"

    @classmethod
    def read(cls, stored: str | None) -> "SpentBudget | None":
        """Read the value from JSON; None for anything else, such as the words that earlier versions stored."""
        try:
            return cls.model_validate_json(stored or "")
        except ValidationError:
            return None


def _figures_text(unit: Unit, amount: float, limit: float) -> str:
    return f"{amount_text(unit, amount)} of {amount_text(unit, limit)} {_WORDS[unit]}"


def all_figures(budget: Budget, spending: Spending) -> str:
    """Return what was spent of everything the budget limits: ``2.10 of 20.00 USD, 5 of 9 runs``; empty without
    limits."""
    figures = [figures_of(budget, spending, unit) for unit in budget.units]
    return ", ".join(_figures_text(figure.unit, figure.spent, figure.limit) for figure in figures)


def unknown_figures(budget: Budget, spending: Spending) -> str:
    """Return which of these figures are incomplete: ``cost of 1 run not known``; empty if none is."""
    figures = [figures_of(budget, spending, unit) for unit in budget.units[:1]]
    return "".join(_unknown_text(figure.unpriced, figure.uncounted) for figure in figures)


def with_unknown(figures: str, unknown: str) -> str:
    """Return the figures, followed in brackets by what is missing from them."""
    return f"{figures} ({unknown})" if unknown else figures


def _unknown_text(unpriced: int, uncounted: int) -> str:
    unknown = []
    if unpriced:
        unknown.append(f"cost of {counted(unpriced, 'run')} not known")
    if uncounted:
        unknown.append(f"tokens of {counted(uncounted, 'run')} not known")
    return ", ".join(unknown)


def amount_text(unit: Unit, amount: float) -> str:
    """Return an amount of the unit for people, without the unit's name. An amount below one cent is not shown as
    zero."""
    if unit is not Unit.USD:
        return f"{int(amount):,}"
    return f"{amount:.2f}" if amount >= _CENT or round(amount, 4) == 0 else f"{amount:.4f}"


def cost_text(usd: float | None, unpriced: int = 0) -> str | None:
    """Return US dollars: ``$0.25``, with more places for smaller amounts; None: unknown. unpriced: runs that are not
    in it, as their cost is not known."""
    if usd is None:
        return None
    return f"{'at least ' if unpriced else ''}${amount_text(Unit.USD, usd)}"


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day in some time zone, in epoch milliseconds; its end is the start of the next day."""

    start_ms: int
    end_ms: int

    def has(self, at_ms: int) -> bool:
        """Return whether the time lies on this day."""
        return self.start_ms <= at_ms < self.end_ms


def day_of(at_ms: int, zone: tzinfo) -> Day:
    """Return the calendar day in that zone that contains the time; 23 or 25 hours long when clocks change."""
    today = datetime.fromtimestamp(at_ms / SECOND_MS, zone).date()
    return Day(_midnight_ms(today, zone), _midnight_ms(today + timedelta(days=1), zone))


def _midnight_ms(day: date, zone: tzinfo) -> int:
    """Start of the day; if clocks skip midnight, the moment of the change."""
    return round(datetime.combine(day, time(), zone).timestamp() * SECOND_MS)


def _shares(budget: Budget, spending: Spending, units: tuple[Unit, ...]) -> Iterator[tuple[float, Unit]]:
    """The used share of each limit; 1 is all of it."""
    for unit in units:
        limit = budget.limit(unit)
        if limit is not None:
            yield (spending.amount(unit) + NEVER_TOO_MUCH) / limit, unit


def _exceeded(budget: Budget, spending: Spending, unit: Unit) -> bool:
    limit = budget.limit(unit)
    return limit is not None and spending.amount(unit) > limit + NEVER_TOO_MUCH
