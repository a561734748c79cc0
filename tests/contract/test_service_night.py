"""The picture of a span of time: lanes, bars, numbers over time, and what each stands for."""

from typing import Any

import pytest

from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS
from claudomator_py.resources.report.drawing import LEFT, MAX_ROWS, MIN_BAR, ROW, WIDTH, Picture, drawn
from claudomator_py.resources.report.night import BINS, Lane, Night, Nights
from claudomator_py.resources.report.night_page import LANES, with_all
from claudomator_py.store import events, report_rows
from claudomator_py.store.database import Database
from tests.fakes.world import START_MS, World


@pytest.fixture
def world(database: Database) -> World:
    return World(database, total=20)


def night(world: World, hours: float = 10, by: Principal = OPERATOR, since_ms: int = START_MS) -> Night:
    """So many hours from the start of the world on."""
    return world.access.as_(by)[Nights].night(since_ms, since_ms + round(hours * HOUR_MS))


def picture(world: World, hours: float = 10) -> Picture:
    return drawing_of(world, night(world, hours))


def drawing_of(world: World, night: Night) -> Picture:
    """The picture of that span, as of now."""
    return drawn(night, world.now_ms, world.access.as_(OPERATOR)[Nights].names)


def lane(night: Night, agent: str) -> Lane:
    return next(lane for lane in night.lanes if lane.agent == agent)


def run(world: World, name: str, minutes: float, agent: str = "claude", **outcome: Any) -> None:
    """A run on that agent that begins now and takes so long."""
    world.submit(name, agent={"type": agent, "strict": True})
    world.tick()
    world.tick(round(minutes * MINUTE_MS))
    world.end(name, **outcome)
    world.tick()


def test_each_agent_has_a_lane_with_what_became_of_its_runs_and_their_cost(world: World) -> None:
    run(world, "one", 60, cost_usd=0.5)
    run(world, "two", 30, exit_code=1, status="failed", reason="refused", cost_usd=0.25)
    run(world, "three", 30, agent="codex")
    result = night(world)
    claude = lane(result, "claude")
    assert (claude.counts, claude.busy_ms, claude.cost_usd) == ({"succeeded": 1, "failed": 1}, 90 * MINUTE_MS, 0.75)
    assert lane(result, "codex").cost_usd is None
    assert [lane.agent for lane in result.lanes] == ["claude", "codex", "lint"]


def test_an_agent_has_a_lane_for_each_host_that_its_runs_were_on(world: World) -> None:
    run(world, "here", 30)
    for name, host in (("there", "cluster"), ("again", "cluster"), ("far", "barn")):
        world.submit(name, agent={"type": "claude", "strict": True})
        world.tick()
        world.host.hosts_of_runs[world.live(name).id] = host
        world.tick(10 * MINUTE_MS)
        world.end(name)
        world.tick()
    result = night(world)
    lanes = {lane.agent: len(lane.runs) for lane in result.lanes if lane.runs}
    assert [*lanes.items()] == [("claude", 1), ("claude on barn", 1), ("claude on cluster", 2)]
    assert "claude on cluster" in [label.words for label in drawing_of(world, result).labels]


def test_bars_stand_where_the_time_is_and_say_what_they_are(world: World) -> None:
    world.tick(HOUR_MS)
    run(world, "half", 5 * 60, exit_code=1, status="failed", reason="refused", cost_usd=0.25)
    (bar,) = picture(world).bars
    width = WIDTH - LEFT
    assert (bar.x, bar.width) == (LEFT + width / 10, width / 2)
    assert bar.tone == "bad"
    assert bar.words.startswith("half, failed (refused), ")
    assert bar.words.endswith(", 5h, $0.25")
    assert bar.url == f"/tasks/{world.row('half').id}"


def test_what_lives_or_began_before_is_cut_at_the_edge_of_the_picture(world: World) -> None:
    run(world, "across", 4 * 60)
    world.submit("lives", agent={"type": "claude", "strict": True})
    world.tick()
    world.now_ms += 2 * HOUR_MS
    drawing = drawing_of(world, night(world, 4, since_ms=START_MS + 2 * HOUR_MS))
    width = WIDTH - LEFT
    assert [(bar.x, bar.width, bar.tone) for bar in drawing.bars] == [
        (LEFT, width / 2, "good"),
        (LEFT + width / 2, width / 2, "busy"),
    ]


def test_runs_at_one_time_stand_below_each_other_in_as_many_rows_as_there_are(world: World) -> None:
    for number in range(2):
        world.submit(f"t{number}", agent={"type": "claude", "strict": True})
    world.tick()
    world.now_ms += HOUR_MS
    assert sorted(bar.y for bar in picture(world).bars) == [0, ROW]


def test_runs_too_short_to_be_seen_are_one_bar_that_counts_them(world: World) -> None:
    for number in range(6):
        outcome: dict[str, Any] = {"exit_code": 1, "status": "failed", "reason": "refused"} if number == 3 else {}
        run(world, f"t{number}", 0.01, **outcome)
    (bar,) = picture(world, hours=24).bars
    assert bar.words.endswith(": 5 succeeded, 1 failed")
    assert bar.tone == "bad", "a failure is not hidden among successes"
    assert bar.url == f"/night?hours=12&until={(START_MS + 6 * HOUR_MS) // 1000}", "closer up"
    (bar,) = picture(world, hours=1).bars
    assert bar.url == f"/tasks/{world.row('t3').id}", "there is no closer look"


def test_short_runs_of_one_task_open_it(world: World) -> None:
    world.submit("t", agent={"type": "claude", "strict": True}, retry={"max_attempts": 3, "backoff": "1s"})
    world.tick()
    world.end("t", exit_code=1, status="failed", reason="agent_error")
    world.tick()
    world.tick(2_000)
    world.end("t")
    world.tick()
    (bar,) = picture(world, hours=24).bars
    assert bar.words.startswith("2 runs from ")
    assert bar.url == f"/tasks/{world.row('t').id}"


@pytest.mark.parametrize("lasts_ms", [1_000, 60_000, 600_000])
def test_however_many_runs_there_are_the_picture_has_a_bounded_number_of_bars(world: World, lasts_ms: int) -> None:
    runs = [
        report_rows.DrawnRun(
            f"{at}",
            "claude",
            START_MS + at * 6_000,
            START_MS + at * 6_000 + lasts_ms,
            "succeeded",
            None,
            None,
            f"{at}",
        )
        for at in range(7_000)
    ]
    result = night(world, 12)
    many = Lane("claude", runs, (), {}, 0, None, 0)
    bars = drawing_of(world, Night(result.since_ms, result.until_ms, result.zone, [many], result.bins, (), ())).bars
    columns = (WIDTH - LEFT) / MIN_BAR
    assert len(bars) <= (1 if lasts_ms < 60_000 else MAX_ROWS) * columns + 1
    assert max(bar.y for bar in bars) < MAX_ROWS * ROW
    assert sum(int(bar.words.split()[0]) if " runs from " in bar.words else 1 for bar in bars) == len(runs)


def test_holds_are_drawn_on_every_agent_that_they_hold(world: World) -> None:
    world.submit("t", agent={"type": "claude", "strict": True})
    world.tick()
    world.limit("t", reset_at=START_MS + 5 * HOUR_MS)
    (band,) = picture(world).holds
    assert (band.x, band.width) == (LEFT, (WIDTH - LEFT) / 2)
    assert band.words == "claude/default: rate_limited"
    world.tick(HOUR_MS)
    world.roster.release("claude")
    world.tick(HOUR_MS)
    (band,) = picture(world).holds
    assert band.width == (WIDTH - LEFT) / 10, "it was released after an hour"


def test_numbers_over_time_add_up(world: World) -> None:
    run(world, "one", 60)
    run(world, "two", 60, exit_code=1, status="failed", reason="refused")
    result = night(world, 10)
    assert len(result.bins) == BINS
    assert (sum(entry.done for entry in result.bins), sum(entry.failed for entry in result.bins)) == (1, 1)
    assert [entry.running for entry in result.bins] == [1] * 12 + [0] * 48
    assert [place for place, entry in enumerate(result.bins) if entry.done or entry.failed] == [6, 12]


@pytest.mark.both_databases
def test_open_tasks_are_those_that_were_accepted_and_had_not_ended(world: World) -> None:
    for name in ("before", "cancelled"):
        world.submit(name, not_before="2099-01-01T00:00:00Z")
    world.tick(10 * HOUR_MS)
    since_ms = world.now_ms
    run(world, "one", 60)
    run(world, "two", 60)
    world.service.cancel("cancelled")
    world.tick(HOUR_MS)
    results = [entry.open for entry in night(world, 10, since_ms=since_ms).bins]
    assert results == [3] * 12 + [1] * 48
    world.submit("later")
    assert [entry.open for entry in night(world, 10, since_ms=since_ms).bins] == [*results[:18], *[2] * 42]
    assert [entry.open for entry in night(world, 5, since_ms=since_ms - 5 * HOUR_MS).bins] == [2] * BINS
    stranger = Principal("p", Role.READ, "elsewhere")
    assert {entry.open for entry in night(world, 10, stranger, since_ms).bins} == {0}
    assert "3 tasks left open" in drawing_of(world, night(world, 10, since_ms=since_ms)).columns[0].words


def test_what_ran_for_a_moment_is_counted_among_what_ran_at_a_time(world: World) -> None:
    """Though it ran in the middle of no part of the span."""
    for name in ("one", "two", "three"):
        run(world, name, 1)
    bins = night(world, 24).bins
    assert max(entry.running for entry in bins) == 1
    assert sum(entry.running > 0 for entry in bins) <= 2
    assert sum(entry.done for entry in bins) == 3


def test_days_are_those_of_the_operator_and_of_each_agent(world: World) -> None:
    run(world, "one", 60, cost_usd=0.5)
    world.tick(DAY_MS)
    run(world, "two", 60, agent="codex")
    days = night(world, 48).days
    assert [(entry.agent, entry.runs, entry.cost_usd) for entry in days] == [("claude", 1, 0.5), ("codex", 1, None)]
    assert days[0].day < days[1].day


def test_starts_of_the_daemon_are_marked_for_whoever_sees_all(world: World) -> None:
    def start(connection: Any) -> None:
        events.record(connection, START_MS + HOUR_MS, report_rows.STARTED)

    world.database.write(start)
    (mark,) = picture(world).starts
    assert mark.x == LEFT + (WIDTH - LEFT) / 10
    assert night(world, by=Principal("eve", Role.READ, "shop")).starts == ()


def test_a_guest_sees_the_runs_of_its_own_tasks_alone(world: World) -> None:
    run(world, "ours", 60)
    guest = night(world, by=Principal("eve", Role.READ, "shop"))
    assert [len(lane.runs) for lane in guest.lanes] == [0, 0, 0]


@pytest.mark.parametrize(("hours", "most"), [(1, 13), (6, 13), (12, 13), (24, 13), (168, 13), (744, 13)])
def test_the_axis_has_round_times_and_not_too_many(world: World, hours: int, most: int) -> None:
    ticks = picture(world, hours).ticks
    assert 2 <= len(ticks) <= most
    assert all(LEFT <= tick.x <= WIDTH for tick in ticks)


def test_there_is_something_earlier_only_where_something_ran(world: World) -> None:
    assert not night(world).has_earlier
    run(world, "one", 60)
    assert not night(world).has_earlier
    assert night(world, since_ms=START_MS + MINUTE_MS).has_earlier
    assert not night(world, since_ms=START_MS + MINUTE_MS, by=Principal("eve", Role.READ, "shop")).has_earlier


def test_the_ends_of_runs_add_up_to_the_runs_of_each_agent_and_of_all(world: World) -> None:
    run(world, "one", 10, cost_usd=0.5)
    run(world, "two", 10, exit_code=1, status="failed", reason="refused")
    run(world, "three", 10, agent="codex")
    run(world, "four", 10, agent="codex", status="needs_input", question="Which?")
    world.submit("five", agent={"type": "claude", "strict": True})
    world.tick()
    rows = [
        [column.cell(entry) for column in LANES.columns]
        for entry in with_all([lane for lane in night(world).lanes if lane.runs])
    ]
    assert [(row[0], row[1]) for row in rows] == [("claude", 3), ("codex", 2), ("all", 5)]
    for row in rows:
        assert sum(number for number in row[2:8] if isinstance(number, int)) == row[1], row
    assert rows[-1][2:8] == [2, 1, 0, 1, 0, 1]
    assert [row[-1] for row in rows] == ["at least $0.50", "not known", "at least $0.50"]
