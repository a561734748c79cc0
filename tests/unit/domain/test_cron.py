"""Cron expressions: what a field allows, and what is refused with a remedy."""

import pytest

from claudomator_py.domain.cron import BadCron, parse_cron

EVERY = frozenset(range(7))


def test_fields_are_numbers_ranges_steps_lists_and_names() -> None:
    cron = parse_cron("*/20 9-17/4,23 1,15 jan-mar,DEC mon-fri")
    assert cron.minutes == {0, 20, 40}
    assert cron.hours == {9, 13, 17, 23}
    assert cron.days == {1, 15}
    assert cron.months == {1, 2, 3, 12}
    assert cron.weekdays == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("field", "weekdays"),
    [
        ("0", {0}),
        ("7", {0}),
        ("sun", {0}),
        ("1-5", {1, 2, 3, 4, 5}),
        ("5-7", {5, 6, 0}),
        ("sat-sun", {6, 0}),
        ("FRI-Sun", {5, 6, 0}),
        ("4-0", {4, 5, 6, 0}),
        ("*", EVERY),
        ("0-7", EVERY),
    ],
)
def test_weekdays_count_from_sunday_which_is_0_and_7(field: str, weekdays: set[int]) -> None:
    assert parse_cron(f"0 0 * * {field}").weekdays == weekdays


@pytest.mark.parametrize(("field", "weekdays"), [("sat-sun", {6, 0}), ("FRI-Sun", {5, 6, 0}), ("4-0", {4, 5, 6, 0})])
def test_a_range_of_weekdays_may_end_on_sunday(field: str, weekdays: set[int]) -> None:
    assert parse_cron(f"0 0 * * {field}").weekdays == weekdays


def test_two_restricted_kinds_of_day_are_alternatives_as_cron_has_it() -> None:
    assert parse_cron("0 0 13 * fri").either_day
    assert not parse_cron("0 0 * * fri").either_day
    assert not parse_cron("0 0 13 * *").either_day
    assert not parse_cron("0 0 */2 * fri").either_day


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("0 3 * *", "write minute, hour, day, month and weekday"),
        ("0 0 3 * * *", "write minute, hour, day, month and weekday"),
        ("@daily", 'write "0 0 * * *"'),
        ("60 3 * * *", "write a number from 0 to 59"),
        ("0 24 * * *", "write a number from 0 to 23"),
        ("0 3 0 * *", "write a number from 1 to 31"),
        ("0 3 * * mno", "did you mean `mon`?"),
        ("0 3 * * fri-mon", "write fri-sun,mon"),
        ("0 3 * * 5-1", "write 5-7,1"),
        ("0 3 * nov-feb *", "write nov-dec,jan-feb"),
        ("0 22-6 * * *", "write 22-23,0-6"),
        ("0 22-6/2 * * *", "write 22,0,2,4,6"),
        ("*/90 * * * *", "write such as */15; counting begins again with each hour"),
        ("*/120 * * * *", "write 0 for the minute and */2 for the hour"),
        ("0 */24 * * *", "write such as */2; counting begins again with each day"),
        ("0 0 * */13 *", "write such as */3; counting begins again with each year"),
        (
            "CRON_TZ=America/Los_Angeles 30 21 * * *",
            'write `timezone: America/Los_Angeles`, and the schedule as "30 21',
        ),
        ("TZ=UTC 0 3 * * *", 'write `timezone: UTC`, and the schedule as "0 3 * * *"'),
        ("CRON_TZ=Asia/Tokyo @daily", 'write `timezone: Asia/Tokyo`, and the schedule as "0 0 * * *"'),
        ("0 3 * * * Europe/Berlin", 'write `timezone: Europe/Berlin`, and the schedule as "0 3 * * *"'),
        ("cron_tz = UTC 0 3 * * *", 'write `timezone: UTC`, and the schedule as "0 3 * * *"'),
        ("@weekly America/New_York", 'write `timezone: America/New_York`, and the schedule as "0 0 * * 0"'),
        ("0 3 * * mon, tue", 'write "0 3 * * mon,tue": a list has no blanks'),
        ("0 3 * * mon ,tue , wed", 'write "0 3 * * mon,tue,wed": a list has no blanks'),
        ("0 3 * * * make -C src", 'write "0 3 * * *"; the command belongs under `instructions`'),
        ("0 3 * * ? *", 'without a year: "0 3 * * *"'),
        ("30 0 3 ? * MON-FRI", 'without seconds: "0 3 * * MON-FRI"'),
        ("@Daily", 'write "0 0 * * *"'),
        ("@reboot", "write minute, hour, day, month and weekday"),
        ("@every 90m", "write minute, hour, day, month and weekday"),
        ("0 3 ? * mon", "write *"),
        ("H/15 * * * *", "write a number of your own, such as 17"),
        ("0 3 15W * *", "write the day, or weekdays such as mon-fri"),
        ("0 3 * * fri#2", "write the weekday, and let the task see which it is"),
        ("0 3 * * 5L", "write the weekday, and let the task see which it is"),
        ("0 3 * * Thursday", "write `thu`"),
        ("0 3 * january *", "write `jan`"),
        ("5/15 * * * *", "write 5-59/15"),
        ("*/0 * * * *", "write such as */15"),
        ("*/² * * * *", "write such as */15"),
        ("0 3 L * *", "write 28 or 1, which every month has"),
        ("0 3 30 2 *", "correct the day or the month"),
        ("0 3 , * *", "write numbers from 1 to 31"),
        ("٣ 3 * * *", "write numbers from 0 to 59"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_remedy(text: str, remedy: str) -> None:
    with pytest.raises(BadCron) as refused:
        parse_cron(text)
    assert remedy in refused.value.remedy


def test_the_steps_that_a_field_takes_are_named() -> None:
    with pytest.raises(BadCron, match=r"`\*/90` has a step that is not a number from 1 to 59"):
        parse_cron("*/90 * * * *")


@pytest.mark.parametrize(("place", "low", "high"), [(0, 0, 59), (1, 0, 23), (2, 1, 31), (3, 1, 12), (4, 0, 6)])
def test_the_remedy_for_a_range_that_runs_backwards_means_what_was_meant(place: int, low: int, high: int) -> None:
    numbers = [*range(low, high + 1)] * 2
    for first in range(low + 1, high + 1):
        for last in range(low + (place == 4), first):
            for step in (1, 2, 5):
                meant = numbers[first - low : high - low + 1 + last - low + 1 : step]
                with pytest.raises(BadCron) as refused:
                    parse_cron(_with(place, f"{first}-{last}" + (f"/{step}" if step > 1 else "")))
                read = parse_cron(_with(place, refused.value.remedy.removeprefix("write ")))
                assert (read.minutes, read.hours, read.days, read.months, read.weekdays)[place] == {*meant}


def _with(place: int, field: str) -> str:
    return " ".join(field if at == place else "*" for at in range(5))
