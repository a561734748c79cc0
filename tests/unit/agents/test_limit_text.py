"""When a limit resets, by its words."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.agents.limit_text import epoch_ms, find_reset
from claudomator_py.values import toml_data

NEW_YORK = "America/New_York"


def at(text: str, zone: str = NEW_YORK, fold: int = 0) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


AFTERNOON = at("2026-11-21T15:36")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Claude AI usage limit reached|1795304166", 1_795_304_166_000),
        ("Claude AI usage limit reached|1795304166000", 1_795_304_166_000),
        ("Session limit reached ∙ resets 6:47pm", at("2026-11-21T18:47")),
        ("Session limit reached ∙ resets 6pm", at("2026-11-21T18:00")),
        ("You've hit your session limit · resets 6:47pm (America/New_York)", at("2026-11-21T18:47")),
        ("You've hit your 5-hour limit · resets 2am (Europe/Berlin)", at("2026-11-22T02:00", "Europe/Berlin")),
        ("You've hit your 5-hour limit · resets 11pm (UTC)", at("2026-11-21T23:00", "UTC")),
        ("You've hit your weekly limit · resets Nov 24, 3:36pm (America/New_York)", at("2026-11-24T15:36")),
        ("You've hit your weekly limit · resets Nov 24 at 3pm (America/New_York)", at("2026-11-24T15:00")),
        ("You've hit your Opus limit · resets Jan 2, 9am (America/New_York)", at("2027-01-02T09:00")),
        ("You've hit your Opus limit · resets Jan 2, 2027, 9am (America/New_York)", at("2027-01-02T09:00")),
        ("limit reached, resets Tuesday, Nov 24, 3:36 PM", at("2026-11-24T15:36")),
        ("limit reached, resets at 18:47", at("2026-11-21T18:47")),
        ("limit reached, resets at 18:47Z", at("2026-11-22T18:47", "UTC")),
        ("try again at Nov 24th, 2026 3:38 PM.", at("2026-11-24T15:38")),
        ("resets 2026-11-24T15:36:00-05:00", at("2026-11-24T15:36")),
        ("resets 2026-11-24 15:36", at("2026-11-24T15:36")),
        ("resets 12am", at("2026-11-22T00:00")),
        ("resets 12:30pm", at("2026-11-22T12:30")),
        ("Suggested retry after 600s.", AFTERNOON + 600_000),
        ("Please try again in 1.5s.", AFTERNOON + 1_500),
        ("try again in 2 hours and 5 minutes", AFTERNOON + 7_500_000),
        ("resets in 3h 20m", AFTERNOON + 12_000_000),
        ("Try again in two hours.", AFTERNOON + 7_200_000),
        ("Try again in half an hour.", AFTERNOON + 1_800_000),
        ("Your limit resets in more than 2 hours.", AFTERNOON + 7_200_000),
        ("Your limit resets within 2 hours.", AFTERNOON + 7_200_000),
        ("Try again in 01:23:45.", AFTERNOON + 5_025_000),
        ("Reset in: 2h 5m", AFTERNOON + 7_500_000),
        ("You have 2h 5m until your limit resets.", AFTERNOON + 7_500_000),
        ("Time remaining: 2h 5m", AFTERNOON + 7_500_000),
        ("Your quota refills in 2 hours.", AFTERNOON + 7_200_000),
        ('{"type": "usage_limit_reached", "resets_in_seconds": 7200}', AFTERNOON + 7_200_000),
        ("retry-after-ms: 120000", AFTERNOON + 120_000),
        ("retry-after-ms: 5", AFTERNOON + 5),
        ("Retry-After: Sun, 22 Nov 2026 07:28:00 GMT", at("2026-11-22T07:28", "UTC")),
        ('{"resets_at": "2026-11-22T03:00:00Z"}', at("2026-11-22T03:00", "UTC")),
        ("Quotas reset at midnight Pacific time.", at("2026-11-22T00:00", "America/Los_Angeles")),
        ("resets at 6:30 p.m. (Pacific)", at("2026-11-21T18:30", "America/Los_Angeles")),
        ("resets at 18:30 +0530", at("2026-11-22T18:30", "Asia/Kolkata")),
        ("resets at 18:30 (local time)", at("2026-11-21T18:30")),
        ("resets 7pm on Sunday", at("2026-11-22T19:00")),
        ("Try again at 9:00 AM on December 1.", at("2026-12-01T09:00")),
        ("resets at 9 tomorrow", at("2026-11-22T09:00")),
        ("resets at 9am tomorrow (Europe/Berlin)", at("2026-11-22T09:00", "Europe/Berlin")),
        ("Your quota will reset after 11h32m5s.", AFTERNOON + 41_525_000),
        ("Try again in an hour.", AFTERNOON + 3_600_000),
        ("resets in 1 week", AFTERNOON + 7 * 86_400_000),
        ("resets in 1 month", AFTERNOON + 30 * 86_400_000),
        ("Too many requests. Please wait 90 seconds.", AFTERNOON + 90_000),
        ("Retry-After: 3600", AFTERNOON + 3_600_000),
        ("resets Mon 9:00 AM", at("2026-11-23T09:00")),
        ("resets Saturday 3pm", at("2026-11-28T15:00")),
        ("try again on Monday at 9:00 AM.", at("2026-11-23T09:00")),
        ("resets tomorrow at 9am (UTC)", at("2026-11-22T09:00", "UTC")),
        ("Please wait until tomorrow.", at("2026-11-22T00:00")),
        ("resets today at 6pm", at("2026-11-21T18:00")),
        ("resets midnight", at("2026-11-22T00:00")),
        ("available again from noon (UTC)", at("2026-11-22T12:00", "UTC")),
        ("resets 24 Nov, 3pm", at("2026-11-24T15:00")),
        ("resets on the site. It resets on December 1st.", at("2026-12-01T00:00")),
        ("Quota exceeded. Resets on 2026-12-01.", at("2026-12-01T00:00")),
        ("It resets at Mon, 30 Nov 2026 00:00:00 GMT", at("2026-11-30T00:00", "UTC")),
        ("resets at 18:30 GMT+2", at("2026-11-22T18:30", "Etc/GMT-2")),
        ("resets 6:47pm (UTC-05:00)", at("2026-11-21T18:47")),
        ("resets 6:47pm PST", at("2026-11-21T18:47", "Etc/GMT+8")),
        ("Limits will reset on December 1 at 12:00 AM UTC.", at("2026-12-01T00:00", "UTC")),
        ("try again at 14:00 CET", at("2026-11-22T14:00", "Europe/Berlin")),
        ("try again at 2026-11-22 10:40:00 PST", at("2026-11-22T10:40", "Etc/GMT+8")),
        ("resets 2026-11-24T15:36:00.000-0500", at("2026-11-24T15:36")),
        ("resets 24.11.2026 15:00", at("2026-11-24T15:00")),
        ("resets 11/24/2026 15:00", at("2026-11-24T15:00")),
        ("resets on 24/11/2026 at 3pm", at("2026-11-24T15:00")),
        ("resets on 12/1/2026", at("2026-12-01T00:00")),
        ("resets 2026/12/01 09:00", at("2026-12-01T09:00")),
        ("resets at 24:00", at("2026-11-22T00:00")),
        ("resets tomorrow at 24:00 UTC", at("2026-11-23T00:00", "UTC")),
        ("resets Saturday 24:00", at("2026-11-22T00:00")),
        ("resets Nov 30, 24:00", at("2026-12-01T00:00")),
        ("resets 2026-11-30 24:00", at("2026-12-01T00:00")),
        ("resets tonight at 9pm", at("2026-11-21T21:00")),
        ("You can continue at 6:30 PM", at("2026-11-21T18:30")),
        ("reset time: 2026-11-22 00:00:00", at("2026-11-22T00:00")),
        ("access is restored on December 1 at noon", at("2026-12-01T12:00")),
        ("try again in about 2 hours", AFTERNOON + 7_200_000),
        ("resets in ~3h", AFTERNOON + 10_800_000),
        ("try again in less than an hour", AFTERNOON + 3_600_000),
        ('"retryDelay": "34.5s"', AFTERNOON + 34_500),
        ("retry_after_seconds=30", AFTERNOON + 30_000),
        ("resetsAt: 1795304166", 1_795_304_166_000),
        ("X-RateLimit-Reset: 1795304166", 1_795_304_166_000),
        ("resets 6pm, See the page", at("2026-11-21T18:00")),
    ],
)
def test_each_way_to_say_it(message: str, expected: int) -> None:
    assert find_reset(message, AFTERNOON, NEW_YORK) == expected


@pytest.mark.parametrize(
    "message",
    [
        "",
        "You've hit your limit",
        "resets soon",
        "resets 25:00",
        "resets 13pm",
        "resets 7",
        "resets Feb 31, 3pm",
        "limit reached|12",
        "limit reached|9999999999",
        "Request rejected (429)",
        "Please wait a moment.",
        "resets next month",
        "resets 2026-13-01",
        "resets 31.02.2026 15:00",
        "resets 31/31/2026 15:00",
        "resets 2026/12-01 09:00",
        "resets 24:30",
        "Retry-After: 3600/min",
        "resets today",
    ],
)
def test_no_time_is_made_up(message: str) -> None:
    assert find_reset(message, AFTERNOON, NEW_YORK) is None


def test_a_clock_time_that_has_passed_today_is_tomorrows() -> None:
    assert find_reset("resets 3:30pm", AFTERNOON, NEW_YORK) == at("2026-11-22T15:30")


def test_the_minute_that_is_passing_still_counts() -> None:
    """A message says 3:36pm for a reset at 15:36:40, and may be printed in between."""
    assert find_reset("resets 3:36pm", AFTERNOON + 59_000, NEW_YORK) == AFTERNOON
    assert find_reset("resets 3:36pm", AFTERNOON + 60_000, NEW_YORK) == at("2026-11-22T15:36")


def test_across_midnight_in_the_zone_of_the_message() -> None:
    late = at("2026-11-21T23:50", "Europe/Berlin")
    assert find_reset("resets 12:10am (Europe/Berlin)", late, NEW_YORK) == at("2026-11-22T00:10", "Europe/Berlin")


def test_a_date_just_passed_does_not_jump_a_year() -> None:
    now = at("2026-11-24T15:40")
    assert find_reset("resets Nov 24, 3:36pm", now, NEW_YORK) == at("2026-11-24T15:36")


def test_a_day_longer_and_a_day_shorter_than_24_hours() -> None:
    before_spring = at("2027-03-13T22:00")
    assert find_reset("resets 6am", before_spring, NEW_YORK) == before_spring + 7 * 3_600_000
    before_autumn = at("2026-10-31T22:00")
    assert find_reset("resets 6am", before_autumn, NEW_YORK) == before_autumn + 9 * 3_600_000


def test_an_hour_that_comes_twice_is_the_next_of_both() -> None:
    first, second = at("2026-11-01T01:30"), at("2026-11-01T01:30", fold=1)
    assert second - first == 3_600_000
    assert find_reset("resets 1:30am", first - 600_000, NEW_YORK) == first
    assert find_reset("resets 1:30am", first + 600_000, NEW_YORK) == second


def test_an_unknown_zone_is_that_of_the_program_or_of_this_machine() -> None:
    here = find_reset("resets 6:47pm", AFTERNOON)
    assert here is not None
    assert find_reset("resets 6:47pm (Nowhere/Land)", AFTERNOON) == here
    assert find_reset("resets 6:47pm (Nowhere/Land)", AFTERNOON, NEW_YORK) == at("2026-11-21T18:47")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1_795_304_166, 1_795_304_166_000), (1_795_304_166_000, 1_795_304_166_000), (1_795_304_166.5, 1_795_304_166_500)],
)
def test_an_epoch_in_seconds_or_by_its_size_in_milliseconds(given: float, expected: int) -> None:
    assert epoch_ms(given) == expected


@pytest.mark.parametrize("given", [None, True, "1795304166", 0, -1, 7, 10**30, float("inf"), float("nan"), [], {}])
def test_what_cannot_be_a_reset_time_is_none(given: object) -> None:
    assert epoch_ms(given) is None


@given(st.text() | st.from_regex(r"(resets|try again) (at|in)? ?[\w:., ()/-]{0,40}", fullmatch=True))
def test_any_words_give_a_sane_time_or_none(message: str) -> None:
    reset = find_reset(message, AFTERNOON, NEW_YORK)
    assert reset is None or 0 < reset < 5_000_000_000_000


LANGUAGES = toml_data("claudomator_py.agents", "limit_words.toml")


@pytest.mark.parametrize(("message", "english"), [item for words in LANGUAGES.values() for item in words["is"].items()])
def test_a_reset_is_read_in_other_languages(message: str, english: str) -> None:
    assert find_reset(message, AFTERNOON, NEW_YORK) == find_reset(f"resets {english}", AFTERNOON, NEW_YORK) is not None


@pytest.mark.parametrize("message", [words["is_not"] for words in LANGUAGES.values()])
def test_a_length_of_time_alone_is_no_reset(message: str) -> None:
    assert find_reset(message, AFTERNOON, NEW_YORK) is None
