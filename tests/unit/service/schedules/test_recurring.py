"""Times in a time zone, above all where its clocks are set; and the alarms that ring at them."""

import threading
from datetime import UTC, datetime

import pytest
from freezegun import freeze_time

from claudomator_py.service.schedules.recurring import Alarms, Recurrence
from claudomator_py.service.surroundings.zones import known_zone, local_zone


def times(cron: str, begin: str, count: int, zone: str = "Europe/Berlin") -> list[str]:
    """So many times after that one, each as a clock in UTC shows it."""
    recurrence, found = Recurrence(cron, zone), []
    at: int | None = ms(begin)
    for _ in range(count):
        assert at is not None
        at = recurrence.next_after(at)
        assert at is not None
        found.append(datetime.fromtimestamp(at / 1000, UTC).strftime("%m-%dT%H:%M"))
    return found


def ms(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def test_a_time_is_that_of_the_zone() -> None:
    assert times("0 3 * * *", "2026-01-01T00:00Z", 2) == ["01-01T02:00", "01-02T02:00"]
    assert times("0 3 * * *", "2026-07-01T00:00Z", 1) == ["07-01T01:00"]
    assert times("0 3 * * *", "2026-07-01T00:00Z", 1, "Asia/Kolkata") == ["07-01T21:30"]


def test_the_next_time_lies_after_and_is_not_the_same() -> None:
    assert times("0 3 * * *", "2026-01-01T02:00Z", 1) == ["01-02T02:00"]
    assert times("0 3 * * *", "2026-01-01T01:59:59.999Z", 1) == ["01-01T02:00"]


def test_weekdays_are_those_of_cron_and_not_of_the_library() -> None:
    # 2026-11-22 is a Sunday.
    for sunday in ("0", "7", "sun"):
        assert times(f"0 12 * * {sunday}", "2026-11-20T00:00Z", 2) == ["11-22T11:00", "11-29T11:00"]
    assert times("0 12 * * 1", "2026-11-20T00:00Z", 1) == ["11-23T11:00"]
    assert times("0 12 * * 5-7", "2026-11-20T00:00Z", 4) == ["11-20T11:00", "11-21T11:00", "11-22T11:00", "11-27T11:00"]


def test_a_day_of_the_month_or_a_weekday_is_enough_where_both_are_named() -> None:
    assert times("0 12 13 * fri", "2026-11-10T00:00Z", 2) == ["11-13T11:00", "11-20T11:00"]
    assert times("0 12 14 * fri", "2026-11-10T00:00Z", 3) == ["11-13T11:00", "11-14T11:00", "11-20T11:00"]


def test_a_time_that_clocks_leave_out_comes_an_hour_later() -> None:
    # On 2026-03-29 clocks go from 02:00 to 03:00, which is 01:00 in UTC.
    assert times("30 2 * * *", "2026-03-28T12:00Z", 2) == ["03-29T01:30", "03-30T00:30"]


def test_it_comes_even_if_nobody_asked_before_clocks_were_set() -> None:
    assert times("30 2 * * *", "2026-03-29T01:10Z", 1) == ["03-29T01:30"]
    assert times("30 2 * * *", "2026-03-29T01:30Z", 1) == ["03-30T00:30"]


def test_every_hour_is_every_hour_when_clocks_are_set_forward() -> None:
    assert times("30 * * * *", "2026-03-28T23:45Z", 3) == ["03-29T00:30", "03-29T01:30", "03-29T02:30"]
    assert times("0,30 3 * * *", "2026-03-29T00:00Z", 2) == ["03-29T01:00", "03-29T01:30"]


def test_a_time_that_clocks_show_twice_counts_once() -> None:
    # On 2026-10-25 clocks go from 03:00 back to 02:00, at 01:00 in UTC.
    assert times("30 2 * * *", "2026-10-24T12:00Z", 2) == ["10-25T00:30", "10-26T01:30"]
    assert times("30 1-3 * * *", "2026-10-24T12:00Z", 3) == ["10-24T23:30", "10-25T00:30", "10-25T02:30"]
    assert times("30 2 * * *", "2026-10-25T00:45Z", 1) == ["10-26T01:30"]


def test_every_hour_is_every_hour_when_clocks_are_set_back() -> None:
    assert times("30 * * * *", "2026-10-24T23:45Z", 3) == ["10-25T00:30", "10-25T01:30", "10-25T02:30"]
    assert times("*/30 * * * *", "2026-10-25T00:15Z", 3) == ["10-25T00:30", "10-25T01:00", "10-25T01:30"]


def test_a_leap_day_is_waited_for() -> None:
    assert times("0 12 29 2 *", "2026-01-01T00:00Z", 1, "UTC") == ["02-29T12:00"]


def test_zones_are_known_by_name() -> None:
    assert known_zone("Europe/Berlin")
    assert known_zone(local_zone())
    for unknown in ("Europe/Atlantis", "", "../etc/passwd", "/etc/passwd", "Europe"):
        assert not known_zone(unknown)
    with pytest.raises(ValueError, match="cannot be read"):
        Recurrence("0 3 * * never", "UTC")


def test_alarms_ring_at_the_start_when_it_is_time_and_when_asked() -> None:
    rung = threading.Semaphore(0)
    with freeze_time("2026-11-22T01:59:59Z", tick=True):
        alarms = Alarms(rung.release)
        try:
            alarms.start()
            assert rung.acquire(timeout=20), "at the start"
            alarms.set({"nightly": Recurrence("0 2 * * *", "UTC")})
            assert rung.acquire(timeout=20), "when it was time"
            alarms.soon()
            assert rung.acquire(timeout=20), "when asked"
        finally:
            alarms.close()
        alarms.soon()
        assert not rung.acquire(timeout=0)
