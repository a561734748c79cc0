"""What is said of the windows of accounts, when they will be full, and what is kept of them for a person."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.reserve import Reserve
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, format_instant
from claudomator_py.resources.agents import AgentView, WindowView
from claudomator_py.resources.agents.service import Agents
from claudomator_py.schema.configfile import _read
from claudomator_py.schema.settings import Settings
from claudomator_py.store.database import Database
from tests.fakes.agents import CLAUDE, CODEX, LINT
from tests.fakes.world import START_MS, World

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def world(database: Database) -> World:
    return World(database, agents=(CLAUDE, CODEX, LINT))


def say(world: World, name: str, resets_at: int, **windows: float) -> None:
    """A run on claude ends now whose account says that so much of these windows is used."""
    world.submit(name, agent={"type": "claude", "strict": True})
    world.tick()
    world.end(name, windows={window: {"used": used, "resets_at": resets_at} for window, used in windows.items()})
    world.tick()


def agent(world: World, name: str = "claude") -> AgentView:
    return next(view for view in world.roster.all() if view.name == name)


def window(world: World, name: str = "five_hour") -> WindowView:
    return next(window for window in agent(world).windows if window.name == name)


def test_each_window_has_what_was_said_last_when_and_by_which_run(world: World) -> None:
    resets_at = START_MS + 3 * HOUR_MS
    say(world, "one", resets_at, five_hour=0.2, seven_day_opus=0.5)
    world.tick(2 * MINUTE_MS)
    say(world, "two", resets_at, five_hour=0.25)
    result = window(world)
    assert (result.used, result.title, result.resets_at) == (0.25, "5h window", format_instant(resets_at))
    assert (result.said_at, result.account) == (format_instant(world.now_ms), "claude/default")
    assert result.run_id == world.row("two").last_run_id
    assert window(world, "seven_day_opus").used == 0.5
    assert window(world, "seven_day_opus").said_at == format_instant(world.now_ms - 2 * MINUTE_MS)


def test_what_nobody_said_is_not_known_and_never_zero(world: World) -> None:
    assert agent(world, "codex").windows == ()
    say(world, "one", START_MS + HOUR_MS, five_hour=0.2)
    world.tick(HOUR_MS)
    assert (window(world).used, window(world).forecast) == (None, None)


def test_a_guest_reads_the_figures_and_not_whose_run_said_so(world: World) -> None:
    say(world, "one", START_MS + HOUR_MS, five_hour=0.2)
    guest = world.access.as_(Principal("eve", Role.READ, "shop"))[Agents]
    (window,) = next(view for view in guest.all() if view.name == "claude").windows
    assert (window.used, window.run_id) == (0.2, None)


def test_the_forecast_says_when_it_is_full_at_the_pace_of_the_last_hour(world: World) -> None:
    resets_at = START_MS + 5 * HOUR_MS
    say(world, "old", resets_at, five_hour=0.1)
    world.tick(2 * HOUR_MS)
    say(world, "first", resets_at, five_hour=0.4)
    since = world.now_ms
    world.tick(30 * MINUTE_MS)
    say(world, "last", resets_at, five_hour=0.6)
    forecast = window(world).forecast
    assert forecast is not None
    assert (forecast.since, forecast.used_then) == (format_instant(since), 0.4)
    assert forecast.full_at == format_instant(world.now_ms + HOUR_MS)


@pytest.mark.parametrize(
    ("after_ms", "used", "expected"),
    [
        (4 * MINUTE_MS, 0.6, "none"),
        (30 * MINUTE_MS, 0.4, "none"),
        (30 * MINUTE_MS, 0.3, "none"),
        (30 * MINUTE_MS, 1.0, "none"),
        (30 * MINUTE_MS, 0.41, "not before"),
    ],
    ids=["too close together", "no rise", "a fall", "full already", "too slow"],
)
def test_what_allows_no_forecast_has_none(world: World, after_ms: int, used: float, expected: str) -> None:
    resets_at = START_MS + 5 * HOUR_MS
    say(world, "first", resets_at, five_hour=0.4)
    world.tick(after_ms)
    say(world, "last", resets_at, five_hour=used)
    forecast = window(world).forecast
    assert ("none" if forecast is None else "not before" if forecast.full_at is None else "full") == expected


def test_readings_of_the_window_before_say_nothing_of_this_one(world: World) -> None:
    say(world, "first", START_MS + 10 * MINUTE_MS, five_hour=0.4)
    world.tick(30 * MINUTE_MS)
    say(world, "last", START_MS + 5 * HOUR_MS, five_hour=0.6)
    assert window(world).forecast is None


# --- hours that are reserved ------------------------------------------------------------------------------------------

WEEKDAYS = Reserve.model_validate(
    {"share": "20%", "hours": "08:00-20:00", "days": "mon-fri", "timezone": "Europe/Berlin"}
)


def berlin(text: str) -> int:
    """Epoch milliseconds. 2026-11-27 is a Friday."""
    return round(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("now", "resets", "until"),
    [
        ("2026-11-27T09:00", "2026-11-27T12:00", "2026-11-27T12:00"),
        ("2026-11-27T17:00", "2026-11-27T21:00", "2026-11-27T20:00"),
        ("2026-11-27T05:00", "2026-11-27T09:00", "2026-11-27T09:00"),
        ("2026-11-27T02:00", "2026-11-27T07:00", None),
        ("2026-11-27T02:00", "2026-11-27T08:00", None),
        ("2026-11-27T20:00", "2026-11-28T01:00", None),
        ("2026-11-28T09:00", "2026-11-28T14:00", None),
        ("2026-11-28T09:00", "2026-11-30T09:00", "2026-11-30T09:00"),
        ("2026-11-25T09:00", "2026-11-29T09:00", "2026-11-27T20:00"),
        ("2026-11-26T23:00", "2026-11-27T04:00", None),
    ],
)
def test_a_window_that_lasts_into_reserved_hours_is_kept_back_to_their_end(
    now: str, resets: str, until: str | None
) -> None:
    ends = WEEKDAYS.ends(berlin(now), berlin(resets), BERLIN)
    assert ends == (None if until is None else berlin(until))


@pytest.mark.parametrize(
    ("now", "until"), [("2026-11-27T23:00", "2026-11-28T06:00"), ("2026-11-28T03:00", "2026-11-28T06:00")]
)
def test_hours_may_go_over_midnight(now: str, until: str) -> None:
    night = Reserve.model_validate({"share": "20%", "hours": "22:00-06:00", "days": "fri"})
    assert night.ends(berlin(now), berlin("2026-11-28T09:00"), BERLIN) == berlin(until)


def test_in_reserved_hours_a_task_waits_or_goes_elsewhere_and_says_so(world: World) -> None:
    world.now_ms = berlin("2026-11-27T10:00")
    world.reserves = (WEEKDAYS,)
    resets_at = world.now_ms + 2 * HOUR_MS
    say(world, "below", resets_at, five_hour=0.79)
    world.now_ms += 1
    say(world, "at", resets_at, five_hour=0.8)
    world.submit("bound", agent={"type": "claude", "strict": True})
    world.submit("free")
    world.tick()
    assert world.running() == {"free": "codex"}
    view = world.task("bound")
    assert (view.reason, view.waiting_until) == ("budget", format_instant(resets_at))
    assert "5h window (80% used, 80% allowed, the rest kept for 08:00-20:00)" in str(view.reason_text)
    budget = agent(world).budget
    assert budget is not None
    assert budget.reached == "80% of its 5h window, of which it may use 80%, as the rest is kept for 08:00-20:00"
    world.reserves = ()
    world.tick()
    assert "bound" in world.running()


def test_after_the_reserved_hours_the_rest_may_be_used(world: World) -> None:
    world.now_ms = berlin("2026-11-27T19:00")
    world.reserves = (WEEKDAYS,)
    say(world, "first", world.now_ms + 4 * HOUR_MS, five_hour=0.9)
    world.submit("bound", agent={"type": "claude", "strict": True})
    world.tick()
    assert world.task("bound").waiting_until == format_instant(berlin("2026-11-27T20:00"))
    world.tick(HOUR_MS)
    assert "bound" in world.running()


def test_a_reserve_is_of_the_agents_that_it_names(world: World) -> None:
    world.now_ms = berlin("2026-11-27T10:00")
    other = AgentSpec(name="other", kind="claude", models=CLAUDE.models)
    for agents, holds in ((("claude",), True), (("codex",), False), (("other",), False)):
        reserve = WEEKDAYS.model_copy(update={"agents": agents})
        assert reserve.is_about(CLAUDE) is holds
    assert WEEKDAYS.model_copy(update={"agents": ("claude",)}).is_about(other), "a kind is all agents of it"


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"share": "20%", "hours": "8-20"}, "hours"),
        ({"share": "20%", "hours": "08:00-08:00"}, "hours"),
        ({"share": "20%", "hours": "08:00-24:30"}, "hours"),
        ({"share": "20%", "hours": "08:00-20:00", "days": "weekdays"}, "days"),
        ({"share": "20%", "hours": "08:00-20:00", "days": "mon fri"}, "days"),
        ({"share": "0%", "hours": "08:00-20:00"}, "share"),
        ({"hours": "08:00-20:00"}, "share"),
        ({"share": "20%", "hours": "08:00-20:00", "timezone": "Berlin"}, "timezone"),
        ({"share": "20%", "hours": "08:00-20:00", "agents": ["clawd"]}, "agents"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(entry: dict[str, Any], field: str) -> None:
    text = f"agents: {{claude: {{kind: claude}}}}\nbalancing:\n  reserve: [{entry}]\n"
    problems = _read(text.replace("'", '"').encode())
    assert isinstance(problems, list)
    first = problems[0]
    assert first.field is not None
    assert first.field.endswith(field)
    assert first.line == 3
    assert first.remedy


def test_days_and_hours_may_be_written_as_people_do() -> None:
    text = "balancing: {reserve: [{share: 20 %, hours: 8:00 - 20:00, days: 'MON-FRI'}]}"
    settings = _read(text.encode())
    assert isinstance(settings, Settings), settings
    (reserve,) = settings.balancing.reserve
    assert (reserve.share, reserve.hours, reserve.days) == (20, "08:00-20:00", "mon-fri")


@pytest.mark.parametrize("reserves", [(), (WEEKDAYS,)], ids=["nothing reserved", "not at that hour"])
def test_what_nobody_keeps_holds_nothing(world: World, reserves: tuple[Reserve, ...]) -> None:
    world.now_ms, world.reserves = berlin("2026-11-28T10:00"), reserves
    say(world, "first", world.now_ms + 5 * HOUR_MS, five_hour=1.0)
    world.submit("next", agent={"type": "claude", "strict": True})
    world.tick()
    assert "next" in world.running()
