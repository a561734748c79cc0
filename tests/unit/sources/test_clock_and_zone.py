"""Schedules while the machine's clock is set, its zone changed, and summer time begins and ends."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
import tzlocal

from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS
from tests.databases import open_migrated
from tests.fakes.steps import spec
from tests.fakes.world import World

PATH = "/in/t.yaml"
Moved = Callable[[str], None]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_migrated(tmp_path) as database:
        yield World(database)


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[Moved]:
    """Takes the machine to another time zone."""

    def to(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        tzlocal.reload_localzone()

    yield to
    monkeypatch.undo()
    tzlocal.reload_localzone()


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def at(world: World, time_ms: int) -> list[str]:
    """The names of all tasks, once the schedule runner has looked at that time."""
    world.now_ms = time_ms
    world.schedule_runner.run_due()
    return sorted(world.names())


@pytest.mark.parametrize("catch_up", ["skip", "once", "all"])
def test_a_clock_that_goes_back_makes_no_time_twice(world: World, catch_up: str) -> None:
    world.now_ms = ms("2026-12-01T08:30:00+00:00")
    world.take(PATH, spec("t", schedule="0 * * * *", timezone="UTC", catch_up=catch_up, overlap="queue"))
    first = at(world, ms("2026-12-01T09:00:00+00:00"))
    assert first == ["t.20261201t0900z"]

    for _ in range(2):
        assert at(world, ms("2026-12-01T05:30:00+00:00")) == first
        world.restarted_daemon()
        for hour in range(6, 10):
            assert at(world, ms(f"2026-12-01T{hour:02}:00:00+00:00")) == first

    assert at(world, ms("2026-12-01T10:00:00+00:00")) == [*first, "t.20261201t1000z"]


@pytest.mark.parametrize(("catch_up", "made"), [("skip", 0), ("once", 1), ("all", 24)])
def test_a_clock_that_goes_forward_is_as_a_daemon_that_was_away(world: World, catch_up: str, made: int) -> None:
    world.now_ms = ms("2026-12-01T08:30:00+00:00")
    world.take(PATH, spec("t", schedule="0 * * * *", timezone="UTC", catch_up=catch_up, overlap="queue"))

    assert len(at(world, world.now_ms + DAY_MS)) == made

    # Set right again: what lies before the times that were dealt with is past.
    assert len(at(world, world.now_ms - DAY_MS + HOUR_MS)) == made


def test_a_machine_that_is_taken_to_another_zone_keeps_its_schedules_where_they_were(
    world: World, moved: Moved
) -> None:
    moved("Europe/Berlin")
    world.now_ms = ms("2026-12-01T00:00:00+00:00")
    nightly = spec("t", schedule="0 3 * * *")
    world.take(PATH, nightly)

    moved("America/New_York")
    world.restarted_daemon()
    world.take(PATH, nightly, mtime_ns=2)

    assert world.schedules.get("t").timezone == "Europe/Berlin"
    assert at(world, ms("2026-12-01T03:00:00+01:00")) == ["t.20261201t0200z"]
    assert at(world, ms("2026-12-01T03:00:00-05:00")) == ["t.20261201t0200z"]


@pytest.mark.parametrize(
    ("begin", "due"),
    [
        # Summer time begins: 02:30 is not there. It ends: 02:30 is there twice.
        ("2027-03-27T12:00:00+00:00", "20270328"),
        ("2026-10-24T12:00:00+00:00", "20261025"),
    ],
)
def test_a_night_in_which_the_clock_is_changed_has_one_run(world: World, begin: str, due: str) -> None:
    world.now_ms = start_ms = ms(begin)
    world.take(PATH, spec("t", schedule="30 2 * * *", timezone="Europe/Berlin", overlap="queue"))

    for minutes in range(0, 24 * 60, 10):
        at(world, start_ms + minutes * MINUTE_MS)

    (name,) = world.names()
    assert name.startswith(f"t.{due}t")
