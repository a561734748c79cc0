"""Budgets: what is spent, what is left, which limit is met first; and days as calendars have them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from claudomator_py.domain.agent import AgentSpec, ModelChoice, Price, Tier
from claudomator_py.domain.budget import (
    AgentBudget,
    Budget,
    BudgetOf,
    Figures,
    Spending,
    SpentBudget,
    Unit,
    all_figures,
    amount_text,
    day_of,
    forecast,
    is_spent,
    left,
    overspent,
    spent,
    unknown_figures,
)
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.outcome import Tokens
from claudomator_py.domain.report import Used, unmeasured
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.settings import Settings
from claudomator_py.schema.taskfile import parse_task

budgets = st.builds(
    Budget,
    usd=st.none() | st.floats(0.01, 1e6, allow_nan=False),
    tokens=st.none() | st.integers(1, 10**12),
    runs=st.none() | st.integers(1, 10**6),
)
spendings = st.builds(
    Spending,
    usd=st.floats(0, 1e6, allow_nan=False),
    tokens=st.integers(0, 10**12),
    runs=st.integers(0, 10**6),
    unpriced=st.integers(0, 9),
    uncounted=st.integers(0, 9),
)
zones = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Beirut", "America/Sao_Paulo", "Pacific/Apia"]
).map(ZoneInfo)
BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@given(budgets, spendings)
def test_nothing_starts_once_anything_is_spent_and_nothing_is_stopped_before(
    budget: Budget, spending: Spending
) -> None:
    unit = spent(budget, spending)
    lefts = {unit: left(budget, spending, unit) for unit in budget.units}
    assert all(amount is not None and amount >= 0 for amount in lefts.values())
    if any(amount == 0 for amount in lefts.values()):
        assert unit is not None
    if overspent(budget, spending) is not None:
        assert unit is not None, "what has to stop could not start"
    assert all_figures(budget, spending).count(" of ") >= len(budget.units)


@given(budgets, spendings, spendings)
def test_what_is_spent_stays_spent_whatever_comes_on_top(budget: Budget, before: Spending, more: Spending) -> None:
    if spent(budget, before) is not None:
        assert spent(budget, before + more) is not None
    if overspent(budget, before) is not None:
        assert overspent(budget, before + more) is not None


@given(st.lists(spendings, max_size=5))
def test_a_sum_is_that_of_its_parts_in_any_order(parts: list[Spending]) -> None:
    forth, back = sum(parts, Spending()), sum(reversed(parts), Spending())
    assert (forth.tokens, forth.runs, forth.unpriced) == (back.tokens, back.runs, back.unpriced)
    assert forth.usd == pytest.approx(back.usd)


def test_the_limit_that_is_exceeded_most_is_named() -> None:
    budget = Budget(usd=2.0, tokens=100, runs=1)
    assert spent(budget, Spending(usd=2.1, tokens=300, runs=1)) is Unit.TOKENS
    assert overspent(budget, Spending(usd=2.1, tokens=100, runs=9)) is Unit.USD
    assert overspent(budget, Spending(usd=2.0, tokens=100, runs=9)) is None, "runs end no run, and all is not too much"
    assert spent(budget, Spending()) is None


def test_of_several_limits_the_one_that_is_met_or_exceeded_by_most_is_named() -> None:
    budget = Budget(usd=2.0, tokens=100)
    assert overspent(budget, Spending(usd=2.1, tokens=300)) is Unit.TOKENS
    assert spent(budget, Spending(usd=4.0, tokens=100)) is Unit.USD


@pytest.mark.parametrize(
    ("unit", "limit"),
    # Of so many tokens, what a sum of dollars may be off is less than a float can tell apart.
    [*((unit, 100) for unit in Unit), (Unit.TOKENS, 10**9)],
)
def test_exactly_what_a_budget_allows_uses_it_up_and_exceeds_nothing(unit: Unit, limit: int) -> None:
    budget = Budget.model_validate({unit.value: limit})
    assert spent(budget, Spending(**{unit.value: limit})) is unit
    assert overspent(budget, Spending(**{unit.value: limit})) is None
    assert spent(budget, Spending(**{unit.value: limit - 1})) is None


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize(("amount", "used_up"), [(1, False), (2, True)])
def test_a_budget_is_used_up_once_all_of_it_is_spent(unit: Unit, amount: int, used_up: bool) -> None:
    budget = Budget.model_validate({unit.value: 2})
    assert is_spent(budget, lambda: Spending(**{unit.value: amount})) is used_up


def test_of_what_limits_nothing_nobody_asks_what_was_spent() -> None:
    def ask() -> Spending:
        raise AssertionError("it takes a query")

    assert not is_spent(Budget(), ask)


def test_a_budget_that_is_used_up_is_read_as_it_was_stored() -> None:
    over = SpentBudget(of=BudgetOf.AGENT, agent="claude", figures=Figures(unit=Unit.RUNS, spent=5, limit=5))
    assert SpentBudget.read(over.model_dump_json()) == over
    assert SpentBudget.read("its budget is used up") is None, "in words, as earlier versions have stored it"
    assert SpentBudget.read(None) is None


def test_what_is_left_is_the_rest_and_never_less_than_nothing() -> None:
    budget = Budget(tokens=100)
    assert left(budget, Spending(tokens=30), Unit.TOKENS) == 70
    assert left(budget, Spending(tokens=130), Unit.TOKENS) == 0
    assert left(budget, Spending(tokens=30), Unit.USD) is None, "what is not limited is not used up"


def test_everything_that_runs_used_or_nobody_knows_is_added_up() -> None:
    assert Spending(1.0, 2, 3, 4, 5) + Spending(10.0, 20, 30, 40, 50) == Spending(11.0, 22, 33, 44, 55)


def test_rounding_neither_spends_a_budget_nor_hides_a_cent() -> None:
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert spent(Budget(usd=1.0), sum([Spending(usd=0.1)] * 10, Spending())) is Unit.USD
    assert spent(Budget(usd=0.3), sum([Spending(usd=0.1)] * 3, Spending())) is Unit.USD
    assert overspent(Budget(usd=0.3), sum([Spending(usd=0.1)] * 3, Spending())) is None
    shown = [amount_text(Unit.USD, usd) for usd in (2.0, 0.0893, 0.0053, 0.0)]
    assert shown == ["2.00", "0.09", "0.0053", "0.00"]


def test_figures_say_what_nobody_knows() -> None:
    spending = Spending(usd=1.5, tokens=1234, runs=2, unpriced=1, uncounted=2)
    both = Budget(usd=2.0, tokens=5000)
    assert all_figures(both, spending) == "1.50 of 2.00 USD, 1,234 of 5,000 tokens"
    assert unknown_figures(both, spending) == "cost of 1 run not known, tokens of 2 runs not known"
    assert (unknown_figures(Budget(runs=5), spending), unknown_figures(Budget(), spending)) == ("", "")
    assert all_figures(Budget(runs=5), spending) == "2 of 5 runs"


@given(st.integers(0, 4 * 10**12), zones)
def test_days_follow_each_other_without_a_gap(at_ms: int, zone: ZoneInfo) -> None:
    day = day_of(at_ms, zone)
    assert day.has(at_ms)
    assert not day.has(day.end_ms), "it is the first moment of the next"
    assert day_of(day.start_ms, zone) == day == day_of(day.end_ms - 1, zone)
    assert day_of(day.end_ms, zone).start_ms == day.end_ms
    assert 22 * HOUR_MS < day.end_ms - day.start_ms < 50 * HOUR_MS


@pytest.mark.parametrize(
    ("noon", "hours"), [("2026-03-29T12:00:00+02:00", 23), ("2026-10-25T12:00:00+01:00", 25), ("2026-11-22T12:00Z", 24)]
)
def test_a_day_on_which_clocks_are_set_has_an_hour_less_or_more(noon: str, hours: int) -> None:
    day = day_of(at(noon), BERLIN)
    assert day.end_ms - day.start_ms == hours * HOUR_MS
    assert not day.has(day.start_ms - MINUTE_MS)
    assert datetime.fromtimestamp(day.end_ms / 1000, UTC).astimezone(BERLIN).hour == 0


def test_a_cost_is_known_where_there_is_a_price_and_the_agents_own_word_goes_first() -> None:
    prices = {"sol": Price(input=1.0, output=2.0)}
    used = Used(Tokens(input=1_000_000, output=500_000))
    assert used.priced(prices, "sol").cost_usd == 2.0
    assert used.priced(prices, "other").cost_usd is None
    assert Used(used.tokens, 0.5).priced(prices, "sol").cost_usd == 0.5
    assert Used(Tokens(input=1)).priced(prices, "sol").cost_usd is None, "half of it is not known"


# --- who can keep which budget --------------------------------------------------------------------------------------

MODELS = {Tier.FAST: ModelChoice(model="luna"), Tier.BALANCED: ModelChoice(model="sol")}
CODEX = AgentSpec(name="codex", kind="codex", models=MODELS, prices={"sol": Price(input=1.0, output=1.0)})


def task(**fields: object) -> TaskSpec:
    parsed = parse_task({"name": "a", "instructions": "x", "budget": {"usd": 1, "tokens": 5}, **fields})
    assert isinstance(parsed, TaskSpec), parsed
    return parsed


@pytest.mark.parametrize(
    ("agent", "fields", "texts"),
    [
        (AgentSpec(name="c", kind="claude", models=MODELS), {}, []),
        (CODEX, {}, ["it has no price for luna"]),
        (CODEX, {"agent": {"tier": "balanced"}}, []),
        (CODEX, {"agent": {"type": "codex", "model": "astra"}}, ["it has no price for astra"]),
        (CODEX, {"agent": {"type": "gemini", "model": "pro", "tier": "balanced"}}, []),
        (CODEX.model_copy(update={"models": {}}), {}, ["its models have no names"]),
        (AgentSpec(name="lint", kind="command"), {}, ["how many it uses", "what it costs"]),
    ],
)
def test_an_agent_keeps_a_budget_only_if_somebody_can_know(
    agent: AgentSpec, fields: dict[str, object], texts: list[str]
) -> None:
    sentences = unmeasured(task(**fields), agent)
    assert len(sentences) == len(texts)
    for sentence, words in zip(sentences, texts, strict=True):
        assert words in sentence
        assert sentence.startswith(f"{agent.name} cannot keep to budget.")


# --- as files write them --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        ({"usd": 0}, "budget.usd: is too small; it must be at least 0.0001"),
        ({"usd": "2"}, "budget.usd: "),
        ({"tokens": 1.5}, "budget.tokens: is the number 1.5, but must be a whole number"),
        ({"runs": 0}, "budget.runs: is too small; it must be at least 1"),
        ({"run": 5}, "budget.run: is not a known key; did you mean `runs`?"),
        ({"window": "80%"}, "budget.window: is not a known key"),
    ],
)
def test_a_task_that_writes_it_otherwise_is_told_how(budget: dict[str, object], text: str) -> None:
    problems = parse_task({"name": "a", "instructions": "x", "budget": budget})
    assert isinstance(problems, list)
    assert problems[0].render().startswith(text)


def test_a_budget_is_content_and_none_is_not() -> None:
    assert task().budget == Budget(usd=1.0, tokens=5)
    assert task(budget={}).model_dump(exclude_defaults=True) == task(budget={"usd": None}).model_dump(
        exclude_defaults=True
    )


def settings(**mapping: object) -> Settings | list[Problem]:
    return parse_settings(mapping)


def test_the_configuration_has_budgets_for_agents_and_for_all() -> None:
    result = settings(
        agents={"claude": {"budget": {"usd": 5, "tokens": 10, "runs": 3, "window": "80%"}}},
        budget={"usd": 20, "timezone": "Europe/Berlin"},
    )
    assert isinstance(result, Settings)
    assert result.agents["claude"].budget == AgentBudget.model_validate(
        {"usd": 5.0, "tokens": 10, "runs": 3, "window": "80%"}
    )
    assert (result.budget.usd, result.budget.timezone) == (20.0, "Europe/Berlin")
    assert result.agents["claude"].budget.window == 80
    assert AgentBudget.model_validate({"window": "100%"}).window == 100
    assert result.agents["claude"].budget.model_dump(mode="json")["window"] == "80%"


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ({"codex": {"budget": {"usd": 5}}}, "agents.codex.budget.usd: cannot be kept: its program does not say"),
        (
            {"lint": {"kind": "command", "command": "make", "budget": {"tokens": 5}}},
            "agents.lint.budget.tokens: cannot",
        ),
        ({"codex": {"budget": {"window": "80%"}}}, "agents.codex.budget.window: has no meaning for kind `codex`"),
        ({"claude": {"budget": {"window": 80}}}, "agents.claude.budget.window: `80` is not a share; write a whole"),
        ({"claude": {"budget": {"window": "0%"}}}, "agents.claude.budget.window: `0%` is not a share"),
    ],
)
def test_a_budget_that_nobody_could_keep_is_refused_with_the_configuration(agent: dict[str, object], text: str) -> None:
    problems = settings(agents=agent)
    assert isinstance(problems, list)
    assert problems[0].render().startswith(text)


@given(st.text(max_size=8))
def test_a_share_is_a_percentage_or_refused(text: str) -> None:
    try:
        percent = AgentBudget.model_validate({"window": text}).window
    except ValidationError:
        return
    assert percent is not None
    assert 1 <= percent <= 100


def test_without_readings_there_is_no_forecast() -> None:
    assert forecast([]) is None
