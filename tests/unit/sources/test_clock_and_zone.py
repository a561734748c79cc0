"""Schedules while the machine's clock is set, its zone changed, and summer time begins and ends."""

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS
from claudomator_py.schema import zones
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
def moved(monkeypatch: pytest.MonkeyPatch) -> Moved:
    """Takes the machine to another time zone."""
    return lambda zone: monkeypatch.setenv("TZ", zone)


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

    each = [f"t.20261201t0{hour}00z" for hour in range(6, 10)]
    for _ in range(2):
        made = at(world, ms("2026-12-01T05:30:00+00:00"))
        world.restarted_daemon()
        for hour in range(6, 10):
            made = at(world, ms(f"2026-12-01T{hour:02}:00:00+00:00"))
        assert made == each

    assert at(world, ms("2026-12-01T10:00:00+00:00")) == [*each, "t.20261201t1000z"]


@pytest.mark.parametrize("catch_up", ["skip", "once"])
def test_a_clock_that_was_years_ahead_silences_no_schedule_once_it_is_right(world: World, catch_up: str) -> None:
    world.now_ms = ms("2026-12-01T08:30:00+00:00")
    world.take(PATH, spec("t", schedule="0 * * * *", timezone="UTC", catch_up=catch_up, overlap="queue"))
    ahead = at(world, ms("2029-06-01T12:00:00+00:00"))

    assert at(world, ms("2026-12-01T08:40:00+00:00")) == ahead
    assert world.schedules.get("t").next_at == "2026-12-01T09:00:00.000Z"
    assert at(world, ms("2026-12-01T09:00:00+00:00")) == sorted([*ahead, "t.20261201t0900z"])
    world.restarted_daemon()
    assert at(world, ms("2026-12-01T10:00:00+00:00")) == sorted([*ahead, "t.20261201t0900z", "t.20261201t1000z"])


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


def machine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Replaces the machine's files. Returns the one with its hours, which is not there yet."""
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(zones, "LOCALTIME", folder / "localtime")
    monkeypatch.setattr(zones, "TIMEZONE", folder / "timezone")
    return folder / "localtime"


def database_file(zone: str) -> Path:
    return Path(str(files("tzdata"))) / "zoneinfo" / zone


def test_a_zone_that_the_machine_is_set_to_holds_without_a_restart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    localtime = machine(monkeypatch, tmp_path)
    assert zones.local_zone() == "UTC"
    for zone in ("Europe/Berlin", "America/Argentina/Buenos_Aires"):
        localtime.unlink(missing_ok=True)
        localtime.symlink_to(database_file(zone))
        assert zones.local_zone() == zone


def test_a_container_with_a_copy_of_the_zone_has_its_hours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    localtime = machine(monkeypatch, tmp_path)
    localtime.write_bytes(database_file("America/New_York").read_bytes())
    in_summer = datetime(2027, 7, 1, tzinfo=ZoneInfo(zones.local_zone()))
    assert in_summer.utcoffset() == timedelta(hours=-4)
    (tmp_path / "timezone").write_text("Europe/Paris\n")
    localtime.write_bytes(database_file("Europe/Berlin").read_bytes())
    assert zones.local_zone() == "Europe/Paris"
    (tmp_path / "timezone").write_text("Etc/UTC\n")
    os.utime(localtime, ns=(1, 1))
    assert datetime(2027, 7, 1, tzinfo=ZoneInfo(zones.local_zone())).utcoffset() == timedelta(hours=2)
    localtime.write_text("no zone")
    assert zones.local_zone() == "UTC"


@pytest.mark.parametrize(
    ("variable", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("EST5EDT", "EST5EDT"),
        ("", "UTC"),
        ("CET-1CEST", "UTC"),
        ("/nowhere", "UTC"),
        (str(database_file("Asia/Tokyo")), "Asia/Tokyo"),
    ],
)
def test_the_variable_tz_comes_before_the_machines_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, zone: str
) -> None:
    machine(monkeypatch, tmp_path).symlink_to(database_file("Pacific/Auckland"))
    monkeypatch.setenv("TZ", variable)
    assert zones.local_zone() == zone


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
