"""When a cron expression fires: the rule for changes of clocks, and an oracle that walks through a year."""

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.cron import parse_cron
from claudomator_py.domain.schedule import Recurrence

QUARTER = 15
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
DAY_MINUTES = 24 * 60
# A year with a leap day, its New Year in between, in minutes since 1970.
FIRST = int(datetime(2027, 11, 20, tzinfo=UTC).timestamp()) // 60
LAST = int(datetime(2028, 11, 20, tzinfo=UTC).timestamp()) // 60
ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Sao_Paulo", "America/Santiago",
    "America/Havana", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Kathmandu", "Atlantic/Azores",
    "Antarctica/Troll", "Australia/Lord_Howe", "Pacific/Chatham",
)  # fmt: skip
RARE = (
    "0 0 * * *", "30 2 * * *", "0 0 * * 1", "0 0 1 * *", "0 0 * * 0", "15 1,2,3 * * *", "*/15 2 * * *", "45 23 * * *",
    "30 0 1,15 * *", "0 12 13 * fri", "0 3 29 2 *", "0 0 */10 * */3", "0 0-3 1-8 3,4,9,10,11 *",
)  # fmt: skip
HOURLY = ("30 * * * *", "0 */2 * * *", "*/15 * * * *", "15 */3 * 3,10 0")


def times(cron: str, begin: str, count: int, zone: str = "Europe/Berlin") -> list[str]:
    """So many times after that one, each as a clock in UTC shows it."""
    recurrence, results = Recurrence(cron, ZoneInfo(zone)), []
    at: int | None = ms(begin)
    for _ in range(count):
        assert at is not None
        at = recurrence.next_after(at)
        assert at is not None
        results.append(datetime.fromtimestamp(at / 1000, UTC).strftime("%m-%dT%H:%M"))
    return results


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


def test_a_skipped_time_fires_right_after_the_change() -> None:
    # On 2026-03-29 clocks go from 02:00 to 03:00, which is 01:00 in UTC.
    assert times("30 2 * * *", "2026-03-28T12:00Z", 2) == ["03-29T01:00", "03-30T00:30"]
    assert times("30 2 * * *", "2026-03-29T00:59:59Z", 1) == ["03-29T01:00"]
    assert times("30 2 * * *", "2026-03-29T01:00Z", 1) == ["03-30T00:30"]
    assert times("0,30 2,3 * * *", "2026-03-28T12:00Z", 3) == ["03-29T01:00", "03-29T01:30", "03-30T00:00"]


def test_a_step_of_minutes_in_a_skipped_hour_fires_once() -> None:
    assert times("*/15 2 * * *", "2026-03-28T12:00Z", 2) == ["03-29T01:00", "03-30T00:00"]


@pytest.mark.parametrize(
    ("cron", "zone", "begin", "expected"),
    [
        ("0 0 * * *", "Europe/Berlin", "2026-03-29T12:00Z", ["03-29T22:00", "03-30T22:00"]),
        ("0 0 * * 1", "Europe/Berlin", "2026-03-23T12:00Z", ["03-29T22:00", "04-05T22:00"]),
        ("0 0 1 * *", "Europe/Berlin", "2026-03-15T12:00Z", ["03-31T22:00", "04-30T22:00"]),
        ("5 0 1 * *", "America/New_York", "2026-03-05T12:00Z", ["04-01T04:05", "05-01T04:05"]),
        # Midnight itself is skipped: the schedule's day is the one that it would have begun.
        ("0 0 * * 0", "America/Santiago", "2026-09-05T12:00Z", ["09-06T04:00", "09-13T03:00"]),
        # Clocks are set by half an hour.
        ("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", ["10-03T15:30", "10-04T15:10"]),
        # A day that the zone never had.
        ("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00Z", ["12-30T10:00", "12-29T22:00"]),
    ],
)
def test_no_change_of_clocks_costs_a_day(cron: str, zone: str, begin: str, expected: list[str]) -> None:
    assert times(cron, begin, 2, zone) == expected


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


def test_what_never_comes_again_ends() -> None:
    assert Recurrence("0 0 1 1 *", UTC).next_after(ms("9998-06-01T00:00Z")) is None


class Walk:
    """A year of a zone's clock, quarter of an hour by quarter of an hour. Readings are minutes since 1970."""

    def __init__(self, zone: str) -> None:
        self.shown: dict[int, list[int]] = defaultdict(list)
        self.first: dict[int, int] = {}
        self.changes: list[int] = []
        latest = offset = None
        clock = ZoneInfo(zone)
        for minute in range(FIRST - 3 * DAY_MINUTES, LAST + 3 * DAY_MINUTES, QUARTER):
            ahead = datetime.fromtimestamp(minute * 60, clock).utcoffset()
            assert ahead is not None
            reading = minute + ahead // MINUTE
            self.shown[reading].append(minute)
            if latest is None or reading > latest:
                for passed in range(reading if latest is None else latest + QUARTER, reading + 1, QUARTER):
                    self.first[passed] = minute
                latest = reading
            if offset not in (None, ahead):
                self.changes.append(minute)
            offset = ahead

    def fires(self, expression: str) -> list[int]:
        """Every minute at which the expression fires within the year, by trying every reading."""
        cron, results = parse_cron(expression), set()
        for day in range(FIRST // DAY_MINUTES - 2, LAST // DAY_MINUTES + 2):
            if not cron.has_day(date(1970, 1, 1) + day * DAY):
                continue
            for hour in cron.hours:
                for minute in cron.minutes:
                    reading = day * DAY_MINUTES + hour * 60 + minute
                    results.update(self.shown[reading] if cron.every_hour else [self.first[reading]])
        return sorted(number for number in results if FIRST <= number < LAST)


@cache
def walk(zone: str) -> Walk:
    return Walk(zone)


def computed(expression: str, zone: str, begin: int, end: int) -> list[int]:
    recurrence, results = Recurrence(expression, ZoneInfo(zone)), []
    at = recurrence.next_after(begin * 60_000 - 1)
    while at is not None and at < end * 60_000:
        results.append(at // 60_000)
        at = recurrence.next_after(at)
    return results


@pytest.mark.parametrize("zone", ZONES)
def test_a_year_is_as_a_walk_through_it_shows(zone: str) -> None:
    for expression in RARE:
        expected = walk(zone).fires(expression)
        assert computed(expression, zone, FIRST, LAST) == expected, expression
    for expression in HOURLY:
        expected = walk(zone).fires(expression)
        for change in [*walk(zone).changes, FIRST + 50_000]:
            begin, end = max(change - 600, FIRST), min(change + 600, LAST)
            there = [entry for entry in expected if begin <= entry < end]
            assert computed(expression, zone, begin, end) == there, expression


@given(
    zone=st.sampled_from(ZONES),
    hours=st.sampled_from(["*", "*/3", "0", "1", "2", "3", "23", "0,1,2,3", "1-22/3"]),
    minutes=st.sampled_from(["0", "15", "30,45", "*/15"]),
    days=st.sampled_from(["*", "1", "26-31", "*/2", "1-7", "29"]),
    weekdays=st.sampled_from(["*", "0", "1", "5-7", "*/2"]),
    change=st.integers(0, 20),
    before=st.integers(-3 * 24 * 60, 3 * 24 * 60),
)
def test_the_next_time_around_any_change_is_that_of_the_walk(
    zone: str, hours: str, minutes: str, days: str, weekdays: str, change: int, before: int
) -> None:
    changes = walk(zone).changes or [FIRST + 100_000]
    at = min(max(changes[change % len(changes)] + before, FIRST), LAST - 1)
    expression = f"{minutes} {hours} {days} * {weekdays}"
    later = [fire for fire in walk(zone).fires(expression) if fire > at]
    next_after = Recurrence(expression, ZoneInfo(zone)).next_after(at * 60_000)
    assert next_after is not None
    assert next_after // 60_000 == later[0] if later else next_after >= LAST * 60_000
